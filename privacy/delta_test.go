package privacy

import (
	"strings"
	"testing"
)

// A delta is large from where it lets one of the units be shown whole.
func TestLargeDelta(t *testing.T) {
	for _, test := range []struct {
		delta float64
		units int
		says  string
	}{
		{1e-3, 500, ""}, {1.0 / 500, 500, ""}, {1e-5, 0, ""}, {0, 500, ""}, {1e-5, 100_000, ""},
		{0.003, 500, "delta = 0.003 is above 1 / 500 units"}, {1e-5, 1_000_000, "such as 1e-07"},
	} {
		got := LargeDelta(test.delta, test.units)
		if (got == "") != (test.says == "") || !strings.Contains(got, test.says) {
			t.Errorf("of %v and %d units it says %q, not %q", test.delta, test.units, got, test.says)
		}
	}
}
