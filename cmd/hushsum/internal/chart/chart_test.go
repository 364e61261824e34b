package chart

import (
	"slices"
	"testing"
)

// Ticks are at round numbers within the axis, and no two have the same label.
func TestTicks(t *testing.T) {
	for _, c := range []struct{ low, high float64 }{
		{0, 1}, {1, 1.272}, {-87, 95}, {0.0005, 0.0005001}, {0, 4e7}, {3, 3}, {-1e-9, 1e-9},
	} {
		ticks := round(c.low, c.high)
		labels := map[string]bool{}
		for _, tick := range ticks {
			labels[tick.Label] = true
			if !(tick.Value >= c.low && tick.Value <= c.high) || tick.Label == "-0" {
				t.Errorf("%v to %v: a tick at %v, %q", c.low, c.high, tick.Value, tick.Label)
			}
		}
		if len(labels) != len(ticks) || c.high > c.low && (len(ticks) < 4 || len(ticks) > 10) {
			t.Errorf("%v to %v: %v", c.low, c.high, ticks)
		}
	}
	var labels []string
	for _, tick := range powers(5e-4, 1) {
		if tick.Label != "" {
			labels = append(labels, tick.Label)
		}
	}
	if want := []string{"0.001", "0.01", "0.1", "1"}; !slices.Equal(labels, want) {
		t.Errorf("powers of ten %q, want %q", labels, want)
	}
}
