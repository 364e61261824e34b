package attacks

import (
	"math"
	"testing"
)

func TestBinomialBounds(t *testing.T) {
	// None of n: the upper bound is 1 − α^(1/n), and the lower one 0; all of n mirrors it.
	none := 1 - math.Pow(0.01, 1.0/50)
	for _, c := range []struct{ got, want float64 }{
		{BinomialUpper(0, 50, 0.01), none},
		{BinomialLower(0, 50, 0.01), 0},
		{BinomialLower(50, 50, 0.01), 1 - none},
		{BinomialUpper(50, 50, 0.01), 1},
		// 7 of 20 at 95 % (Clopper, Pearson 1934): .154 to .592.
		{BinomialLower(7, 20, 0.025), .1539},
		{BinomialUpper(7, 20, 0.025), .5922},
	} {
		if math.Abs(c.got-c.want) > 5e-5 {
			t.Errorf("%v, want %v", c.got, c.want)
		}
	}
}

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
