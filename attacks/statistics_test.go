package attacks

import (
	"math"
	"testing"
)

func TestMeanAndError(t *testing.T) {
	mean, standardError := MeanAndError([]float64{1, 2, 3, 6})
	if mean != 3 || math.Abs(standardError-math.Sqrt(14./3/4)) > 1e-12 {
		t.Errorf("%v ± %v", mean, standardError)
	}
	if got := MeanSquare([]float64{1, 2, -3}); math.Abs(got-14./3) > 1e-12 {
		t.Errorf("mean square %v", got)
	}
}

func TestCorrelation(t *testing.T) {
	for _, c := range []struct {
		x, y []float64
		want float64
	}{
		{[]float64{1, 2, 3}, []float64{-2, -4, -6}, -1},
		{[]float64{1, 2, 3}, []float64{1, 0, 1}, 0},
		{[]float64{1, 2, 3}, []float64{5, 5, 5}, 0}, // not NaN
	} {
		if got := Correlation(c.x, c.y); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%v, %v: %v, want %v", c.x, c.y, got, c.want)
		}
	}
}
