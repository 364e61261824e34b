package show

import (
	"math"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hushsum/hushsum/accounting"
)

func TestNumbers(t *testing.T) {
	for n, want := range map[int]string{
		0:       "0",
		999:     "999",
		1000:    "1,000",
		12345:   "12,345",
		1234567: "1,234,567",
	} {
		if got := Grouped(n); got != want {
			t.Errorf("grouped(%d) = %q, want %q", n, got, want)
		}
	}
	for n, want := range map[int64]string{
		0:          "0.00",
		1234567:    "1.23",
		12345678:   "12.3",
		1234567890: "1,235",
	} {
		if got := Short(time.Duration(n)); got != want {
			t.Errorf("short(%d ns) = %q, want %q", n, got, want)
		}
	}
	if got := Percent(5, 0); got != 0 {
		t.Errorf("a share of nothing is %v, want 0", got)
	}
}

// What is printed of a bound is still one, but for the last bits of a float64, with
// four digits or decimals.
func TestBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := math.Pow(10, rapid.Float64Range(-12, 12).Draw(t, "exponent"))
		upper, err := strconv.ParseFloat(Epsilon(e), 64)
		lower, wrong := strconv.ParseFloat(LowerBound(accounting.Spent{
			Bound: accounting.Bound{Lower: e},
		}), 64)
		const bits = 1e-14
		if err != nil || wrong != nil || upper < e*(1-bits) || lower > e*(1+bits) ||
			upper-lower > max(2e-3*e, 1.0001e-4) {
			t.Fatalf("%v is between %v and %v", e, lower, upper)
		}
	})
	for e, want := range map[float64][2]string{
		0:           {"0.0000", "-"},
		0.00123456:  {"0.001235", "0.001234"},
		1.23456:     {"1.2346", "1.2345"},
		123456:      {"1.235e+05", "1.234e+05"},
		math.Inf(1): {"infinite", "infinite"},
		math.NaN():  {"infinite", "-"},
	} {
		if got := [2]string{Epsilon(e), LowerBound(accounting.Spent{
			Bound: accounting.Bound{Lower: e},
		})}; got != want {
			t.Errorf("%v is printed as %v, want %v", e, got, want)
		}
	}
}
