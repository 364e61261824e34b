package attacks

import (
	"math"
	"testing"
)

// Every combination of measurements that are missing, in range and out of range.
func TestVerdict(t *testing.T) {
	var missing Measure
	in, out := Exactly(1, 1, 1), Exactly(2, 1, 1)
	nan := Exactly(math.NaN(), 1, 1)
	for _, c := range []struct {
		undefended, defended Measure
		limit                bool
		want                 Verdict
	}{
		{missing, missing, false, Toothless},
		{in, missing, false, Shown},
		{out, missing, false, Toothless},
		{missing, in, false, Held},
		{missing, out, false, Broken},
		{in, in, false, Held},
		{out, in, false, Toothless},
		{in, out, false, Broken},
		{out, out, false, Broken},
		{in, nan, false, Broken},
		{nan, in, false, Toothless},
		{in, in, true, Documented},
		{missing, in, true, Documented},
		{in, out, true, Broken},
		{out, in, true, Toothless},
		{missing, missing, true, Toothless},
	} {
		row := Row{Undefended: c.undefended, Defended: c.defended, Limit: c.limit}
		if got := row.Verdict(); got != c.want {
			t.Errorf("%+v: %v, want %v", row, got, c.want)
		}
		bad := c.want == Toothless || c.want == Broken
		if c.want.Good() == bad {
			t.Errorf("%v: good is %v", c.want, c.want.Good())
		}
	}
}

func TestMeasure(t *testing.T) {
	for _, c := range []struct {
		measure Measure
		text    string
		ok      bool
	}{
		{Measure{}, "-", true},
		{Exactly(3, 10, 3), "3", true},
		{Near(10, 1, 100, 16), "10 [8.04, 11.96]", true},
		{Near(10, 1, 100, 16.1), "10 [8.04, 11.96]", false},
		{Between(0.5, 0.1, 100, 0, 0.4), "0.5 [0.304, 0.696]", false},
		{Between(0.5, 0.1, 100, 0, 0.4).Within(0, 1), "0.5 [0.304, 0.696]", true},
		{Proportion(7, 20, 0.3, 0.4), "0.35 [0.1539, 0.5922]", true},
		{Correlated(0, 100), "0 [-0.1964, 0.1964]", true},
		{Correlated(1, 100), "1", true},
		{Uncorrelated(0.49, 100), "0.49 [0.3248, 0.6262]", true},
		{Uncorrelated(-0.51, 100), "-0.51 [-0.6421, -0.3485]", false},
	} {
		if got := c.measure.String(); got != c.text || c.measure.OK() != c.ok {
			t.Errorf("%+v: %q, %v; want %q, %v", c.measure, got, c.measure.OK(), c.text, c.ok)
		}
	}
}
