package learning

import (
	"math"
	"testing"
)

func TestConfusion(t *testing.T) {
	const big = 1 << 29 // the product of four such counts does not fit in 64 bits
	for _, c := range []struct {
		c        Confusion
		acc, mcc float64
	}{
		{Confusion{}, 0, 0},
		{Confusion{TP: 5, TN: 7}, 1, 1},
		{Confusion{FP: 5, FN: 7}, 0, -1},
		{Confusion{TN: 75, FN: 25}, 0.75, 0}, // always the majority class
		{Confusion{TP: 25, FP: 75}, 0.25, 0},
		{Confusion{TP: 10}, 1, 0},
		{Confusion{TP: 6, FP: 1, TN: 3, FN: 2}, 0.75, 16 / math.Sqrt(7*8*4*5)},
		{Confusion{TP: big, TN: big}, 1, 1},
		{Confusion{TP: big, FP: big, TN: big, FN: big}, 0.5, 0},
	} {
		if got := c.c.Accuracy(); math.Abs(got-c.acc) > 1e-15 {
			t.Errorf("%+v: accuracy %v, want %v", c.c, got, c.acc)
		}
		if got := c.c.MCC(); math.Abs(got-c.mcc) > 1e-15 {
			t.Errorf("%+v: MCC %v, want %v", c.c, got, c.mcc)
		}
	}
}
