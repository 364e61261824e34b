package answers

import "testing"

// Numbers have as many digits as say something.
func TestFigure(t *testing.T) {
	for _, c := range []struct {
		x, width float64
		want     string
	}{
		{1234567.8, 1000, "1,234,568"}, {1234.567, 9, "1,234.6"}, {-12.34, 0.5, "-12.34"}, {0, 0, "0"},
		{2.5, 0, "2.5000"}, {-0.001, 1, "0.0"}, {1e20, 1, "1e+20"}, {7, 0, "7"},
	} {
		if got := figure(c.x, c.width); got != c.want {
			t.Errorf("%v, %v: %s, want %s", c.x, c.width, got, c.want)
		}
	}
}
