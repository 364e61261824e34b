//go:build !purego

package masking

import (
	"math/rand/v2"
	"testing"

	"github.com/hushsum/hushsum/internal/guard"
)

// No path reads or writes outside of the vector: it lies directly before and behind pages that end
// the process if they are touched.
func TestGuardPages(t *testing.T) {
	rng := rand.New(rand.NewPCG(30, 3))
	room := guard.Pages(t, 9)
	for n := 1; n <= len(room); n++ {
		if n > 300 {
			n += rng.IntN(60)
		}
		n = min(n, len(room))
		bits := 1 + rng.IntN(64)
		if n%4 == 0 {
			bits = 32
		}
		layout := Layout{{n*(64/bits) - rng.IntN(64/bits), bits}}
		masks := randomMasks(rng, 1+rng.IntN(2))
		for _, words := range [][]uint64{room[:n], room[len(room)-n:]} {
			v := &Vector{layout, words}
			if err := v.Set(randomValues(rng, layout)...); err != nil {
				t.Fatal(err)
			}
			comparePaths(t, v, masks)
		}
	}
}
