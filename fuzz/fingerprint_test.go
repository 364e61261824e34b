package fuzz

import (
	"encoding/binary"
	"fmt"
	"reflect"
	"slices"
)

// fingerprint writes down everything that a client or a server remembers, so
// that two states can be compared: whatever its fields point to, except the
// configuration, which does not change, the graphs, which are computed from it,
// and the sources of signatures and randomness. Empty and missing slices are the
// same. Reading by reflection needs no hook in package protocol, and sees the
// fields that a saved state might forget.
func fingerprint(v any) string { return string(appendValue(nil, reflect.ValueOf(v))) }

func appendValue(b []byte, v reflect.Value) []byte {
	switch v.Kind() {
	case reflect.Pointer:
		switch {
		case v.IsNil():
			return append(b, '0')
		case v.Type().String() == "*protocol.settled", v.Type().String() == "*protocol.topology":
			return append(b, '1')
		}
		return appendValue(append(b, '1'), v.Elem())
	case reflect.Interface, reflect.Func, reflect.Chan:
		return b
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().String() == "protocol.Client" && v.Type().Field(i).Name == "vector" {
				continue // room for submissions; what is left in it is never read
			}
			b = appendValue(append(b, '.'), v.Field(i))
		}
		return b
	case reflect.String: // labels
		return append(append(b, '"'), v.String()...)
	case reflect.Slice, reflect.Array:
		b = binary.BigEndian.AppendUint32(append(b, '['), uint32(v.Len()))
		if v.Type().Elem().Kind() == reflect.Uint8 && (v.Kind() == reflect.Slice || v.CanAddr()) {
			return append(b, v.Bytes()...)
		}
		for i := range v.Len() {
			b = appendValue(b, v.Index(i))
		}
		return b
	case reflect.Map:
		keys := v.MapKeys()
		slices.SortFunc(keys, func(x, y reflect.Value) int { return int(x.Int() - y.Int()) })
		for _, key := range keys {
			b = appendValue(appendValue(append(b, ':'), key), v.MapIndex(key))
		}
		return b
	case reflect.Bool:
		if v.Bool() {
			return append(b, 1)
		}
		return append(b, 0)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return binary.BigEndian.AppendUint64(b, uint64(v.Int()))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return binary.BigEndian.AppendUint64(b, v.Uint())
	default:
		panic(fmt.Sprintf("fuzz: a state has a %v: teach fingerprint about it", v.Type()))
	}
}
