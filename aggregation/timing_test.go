package aggregation

import (
	"math/rand/v2"
	"testing"

	"github.com/hushsum/hushsum/internal/dudect"
)

// Clipping takes a time that does not depend on whether the norm is above the bound.
// The test would find a clip that skips what is short enough.
func TestClipTiming(t *testing.T) {
	const length, bound = 4096, 1
	update := func(class int) []float64 {
		out := make([]float64, length)
		for i := range out {
			// A norm of some 0.5 or 2.
			out[i] = (rand.Float64() - 0.5) * []float64{0.027, 0.108}[class]
		}
		return out
	}
	dst := make([]float64, length)
	dudect.Check(t, "clip", false, 1<<13, update, func(u []float64) {
		if _, err := clipInto(dst, u, bound); err != nil {
			t.Error(err)
		}
	})
	dudect.Check(t, "a clip of only what is too long", true, 1<<12, update, func(u []float64) {
		k, err := newClipping(u, bound)
		if err != nil {
			t.Error(err)
		}
		if k.factor != 1 {
			clipTo(dst, u, k)
		}
	})
}
