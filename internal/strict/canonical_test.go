package strict

import (
	"encoding/json"
	"math"
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

// Numbers of RFC 8785, appendix B, and its examples of sorting (section 3.2.3) and of texts
// (section 3.2.2).
func TestCanonical(t *testing.T) {
	for bits, want := range map[uint64]string{
		0x0000000000000000: "0",
		0x8000000000000000: "0",
		0x0000000000000001: "5e-324",
		0x8000000000000001: "-5e-324",
		0x7fefffffffffffff: "1.7976931348623157e+308",
		0x4340000000000000: "9007199254740992",
		0x4430000000000000: "295147905179352830000",
		0x44b52d02c7e14af5: "9.999999999999997e+22",
		0x44b52d02c7e14af6: "1e+23",
		0x444b1ae4d6e2ef4e: "999999999999999700000",
		0x444b1ae4d6e2ef50: "1e+21",
		0x3eb0c6f7a0b5ed8c: "9.999999999999997e-7",
		0x3eb0c6f7a0b5ed8d: "0.000001",
		0x41b3de4355555553: "333333333.3333332",
		0x41b3de4355555557: "333333333.33333343",
		0xbecbf647612f3696: "-0.0000033333333333333333",
		0x43143ff3c1cb0959: "1424953923781206.2",
	} {
		if got := string(Canonical(math.Float64frombits(bits))); got != want {
			t.Errorf("%x is written %s, want %s", bits, got, want)
		}
	}
	for want, v := range map[string]any{
		`{"\r":1,"1":2,"` + "\u0080" + `":3,"` + "\u00f6" + `":4,"` + "\u20ac" + `":5,"` + "\U0001f600" +
			`":6,"` + "\ufb33" + `":7}`: map[string]any{"\u20ac": 5, "\r": 1, "\ufb33": 7, "1": 2,
			"\U0001f600": 6, "\u0080": 3, "\u00f6": 4},
		`"` + "\u20ac" + `$\u000f\nA'B\"\\\\\"/<&>` + "\u2028" + `"`: "\u20ac$\u000f\nA'B\"\\\\\"/<&>\u2028",
		`{"a":[1,-2,true,"x",[0.5,1e+30]],"b":{}}`: map[string]any{"b": map[string]any{},
			"a": []any{1, int64(-2), true, "x", []float64{0.5, 1e30}}},
		`"9007199254740993"`:  uint64(1<<53 + 1),
		`"-9007199254740993"`: int64(-1<<53 - 1),
		`["a","b"]`:           []string{"a", "b"},
		`[]`:                  []int(nil),
	} {
		if got := string(Canonical(v)); got != want {
			t.Errorf("%v is written\n%s, want\n%s", v, got, want)
		}
	}
}

// What is written is JSON of the same value, and written the same again.
func TestCanonicalIsJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text, number := rapid.String().Draw(t, "text"), rapid.Float64().Draw(t, "number")
		if math.IsInf(number, 0) {
			number = 1
		}
		v := map[string]any{text: []any{number, text, true}}
		var read map[string]any
		b := Canonical(v)
		if err := json.Unmarshal(b, &read); err != nil || !reflect.DeepEqual(read, v) {
			t.Fatalf("%s is read as %v (%v)", b, read, err)
		}
		if again := Canonical(read); string(again) != string(b) {
			t.Fatalf("%s, and again %s", b, again)
		}
	})
}
