package collusion

import (
	"math"
	"testing"
)

func TestLaplaceSumAbsolute(t *testing.T) {
	for _, c := range []struct {
		terms           int
		want, tolerance float64
	}{{1, 1, 1e-9}, {2, 1.5, 1e-9}, {3, 1.875, 1e-9}, {99, 11.2, 0.05}} {
		got := laplaceSumAbsolute(c.terms, 1)
		if math.Abs(got-c.want) > c.tolerance {
			t.Errorf("m = %d: %v, want %v", c.terms, got, c.want)
		}
	}
}

func TestThesisClaim(t *testing.T) {
	c := thesisClaim{
		epsilon:         0.1,
		parties:         100,
		records:         200,
		smallest:        100,
		dimension:       25,
		rounds:          3,
		recordsOfClient: 200,
	}
	if got, want := c.pure(), 0.1*100*2*5*3*200; math.Abs(got-want) > 1e-9 {
		t.Errorf("ε = %v, want %v", got, want)
	}
}
