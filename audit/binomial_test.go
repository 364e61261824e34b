package audit

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
		// 7 of 20 at 95 % (Clopper, Pearson 1934): 0.154 to 0.592.
		{BinomialLower(7, 20, 0.025), 0.1539},
		{BinomialUpper(7, 20, 0.025), 0.5922},
	} {
		if math.Abs(c.got-c.want) > 5e-5 {
			t.Errorf("%v, want %v", c.got, c.want)
		}
	}
}
