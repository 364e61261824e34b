package flat

import (
	"encoding/binary"
	"math"
)

// Logical says what values of a column mean.
type Logical struct {
	Kind  string // one of the constants, or the name of another; empty: what the type says
	Scale int32  // digits behind the point of a decimal number
	Bits  int32  // of an integer
	Units int64  // of a timestamp, in a second; 0: unknown
}

// The meanings that have constants.
const (
	String    = "STRING"
	Enum      = "ENUM"
	Decimal   = "DECIMAL"
	Date      = "DATE"
	Timestamp = "TIMESTAMP"
	Signed    = "INT"
	Unsigned  = "UINT"
	Null      = "NULL"
	Float16   = "FLOAT16"
)

// logicals are the meanings by their numbers in the format.
var logicals = map[int]string{1: String, 2: "MAP", 3: "LIST", 4: Enum, 5: Decimal, 6: Date,
	7: "TIME", 8: Timestamp, 11: Null, 12: "JSON", 13: "BSON", 14: "UUID", 15: Float16,
	16: "VARIANT", 17: "GEOMETRY", 18: "GEOGRAPHY"}

// logical reads a meaning.
func (t *thrift) logical(kind byte) (l Logical) {
	t.inner(kind, func(id int, kind byte) {
		l.Kind = logicals[id]
		t.inner(kind, func(field int, kind byte) {
			switch {
			case id == 5 && field == 1:
				l.Scale = t.int32(kind)
			case id == 8 && field == 2:
				t.inner(kind, func(unit int, kind byte) {
					l.Units = map[int]int64{1: 1e3, 2: 1e6, 3: 1e9}[unit]
					t.skip(kind, 0)
				})
			case id == 10 && field == 1:
				l.Bits = t.int32(kind)
			case id == 10 && field == 2:
				if l.Kind = Unsigned; kind == kindTrue {
					l.Kind = Signed
				}
			default:
				t.skip(kind, 0)
			}
		})
		if l.Kind == "" {
			l.Kind = "a logical type that is not known here"
		}
	})
	return l
}

// olds are the meanings by their numbers in earlier versions of the format, which the numbers of
// integers end.
var olds = []Logical{{Kind: String}, {Kind: "MAP"}, {Kind: "MAP_KEY_VALUE"}, {Kind: "LIST"},
	{Kind: Enum}, {Kind: Decimal}, {Kind: Date}, {Kind: "TIME"}, {Kind: "TIME"},
	{Kind: Timestamp, Units: 1e3}, {Kind: Timestamp, Units: 1e6},
	{Kind: Unsigned, Bits: 8}, {Kind: Unsigned, Bits: 16}, {Kind: Unsigned, Bits: 32},
	{Kind: Unsigned, Bits: 64}, {Kind: Signed, Bits: 8}, {Kind: Signed, Bits: 16},
	{Kind: Signed, Bits: 32}, {Kind: Signed, Bits: 64}, {Kind: "JSON"}, {Kind: "BSON"},
	{Kind: "INTERVAL"}}

// meaning returns what values of a field mean: as the format says it now, or as it did.
func (f *field) meaning() Logical {
	switch {
	case f.logical.Kind != "" || f.old == -1:
		return f.logical
	case f.old < -1 || int(f.old) >= len(olds):
		return Logical{Kind: "a converted type that is not known here"}
	}
	l := olds[f.old]
	l.Scale = f.scale
	return l
}

// Half returns the number that two bytes of a Float16 hold.
func Half(b []byte) float64 {
	x := binary.LittleEndian.Uint16(b)
	exponent, fraction := int(x>>10&31), float64(x&1023)
	y := math.Ldexp(1024+fraction, exponent-25)
	switch {
	case exponent == 0:
		y = math.Ldexp(fraction, -24)
	case exponent == 31 && fraction == 0:
		y = math.Inf(1)
	case exponent == 31:
		y = math.NaN()
	}
	if x>>15 == 1 {
		y = -y
	}
	return y
}
