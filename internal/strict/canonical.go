package strict

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// Canonical returns a value as the one JSON text that RFC 8785 (JCS) gives it: maps with names of
// text, lists, texts, numbers and truth values. A whole number beyond 2^53 is written as a text, as
// I-JSON (RFC 7493, section 2.2) asks. It panics with other types, invalid UTF-8 and numbers that
// are not finite, which no value of a job is.
func Canonical(v any) []byte { return appendCanonical(nil, v) }

const exact = 1 << 53

func appendCanonical(b []byte, v any) []byte {
	switch v := v.(type) {
	case map[string]any:
		names := make([]string, 0, len(v))
		for name := range v {
			names = append(names, name)
		}
		slices.SortFunc(names, func(a, b string) int {
			return slices.Compare(utf16.Encode([]rune(a)), utf16.Encode([]rune(b)))
		})
		b = append(b, '{')
		for i, name := range names {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(appendText(b, name), ':')
			b = appendCanonical(b, v[name])
		}
		return append(b, '}')
	case []any:
		return appendList(b, v)
	case []string:
		return appendList(b, v)
	case []int:
		return appendList(b, v)
	case []float64:
		return appendList(b, v)
	case string:
		return appendText(b, v)
	case bool:
		return strconv.AppendBool(b, v)
	case int:
		return appendWhole(b, int64(v))
	case int64:
		return appendWhole(b, v)
	case uint64:
		if v > exact {
			return strconv.AppendQuote(b, strconv.FormatUint(v, 10))
		}
		return strconv.AppendUint(b, v, 10)
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			panic(fmt.Sprintf("strict: %v in JSON", v))
		}
		if v == 0 {
			return append(b, '0') // also −0
		}
		text, err := json.Marshal(v) // as ECMAScript writes numbers
		if err != nil {
			panic("strict: " + err.Error())
		}
		return append(b, text...)
	}
	panic(fmt.Sprintf("strict: a %T in JSON", v))
}

func appendList[E any](b []byte, list []E) []byte {
	b = append(b, '[')
	for i, v := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendCanonical(b, v)
	}
	return append(b, ']')
}

func appendWhole(b []byte, v int64) []byte {
	if v > exact || v < -exact {
		return strconv.AppendQuote(b, strconv.FormatInt(v, 10))
	}
	return strconv.AppendInt(b, v, 10)
}

// appendText appends a text with no more escapes than JSON needs (RFC 8785, section 3.2.2.2).
func appendText(b []byte, s string) []byte {
	if !utf8.ValidString(s) {
		panic("strict: a text that is not UTF-8 in JSON")
	}
	b = append(b, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r == '\b':
			b = append(b, `\b`...)
		case r == '\t':
			b = append(b, `\t`...)
		case r == '\n':
			b = append(b, `\n`...)
		case r == '\f':
			b = append(b, `\f`...)
		case r == '\r':
			b = append(b, `\r`...)
		case r < ' ':
			b = fmt.Appendf(b, `\u%04x`, r)
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return append(b, '"')
}
