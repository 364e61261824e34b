//go:build !purego

package ring

import (
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/hushsum/hushsum/internal/guard"
)

// No path reads or writes outside of what it is given: results, elements, factors and tables lie
// directly before pages that end the process if they are touched, and then behind them.
func TestGuardPages(t *testing.T) {
	random := rand.New(rand.NewPCG(30, 3))
	for n := 8; n <= 512; n *= 2 {
		r := New(n, moduli[2])
		want, a := make([]uint64, n), fill(random, 0, n, r.q)
		c := centre(r, fill(random, 0, n, r.q))
		r.mulInto(nil, want, a, r.newFactor(nil, c))
		for _, p := range paths {
			if !p.has() || !p.serves(n) {
				continue
			}
			for _, atEnd := range []bool{false, true} {
				room := func() []uint64 {
					pages := guard.Pages(t, 1)
					if atEnd {
						return pages[len(pages)-n:]
					}
					return pages[:n]
				}
				dst, entries, f := room(), room(), Factor(room())
				copy(entries, a)
				copy(f, r.newFactor(p, c))
				guarded := *r
				guarded.floating.psiInv = unsafe.Slice(floats(room()), n)
				copy(guarded.floating.psiInv, r.floating.psiInv)
				p.mulInto(&guarded, dst, entries, f)
				if !slices.Equal(dst, want) {
					t.Fatalf("%s, degree %d: another product", p.name, n)
				}
			}
		}
	}
}

// Packed coefficients are checked and added within their bytes, for counts around those of groups.
func TestGuardPagesPacked(t *testing.T) {
	random := rand.New(rand.NewPCG(30, 5))
	words := guard.Pages(t, 1)
	bytes := unsafe.Slice((*byte)(unsafe.Pointer(&guard.Pages(t, 1)[0])), 8*len(words))
	for _, q := range pathModuli {
		r := New(8, q)
		for n := 1; n <= 140; n++ {
			a := fill(random, 0, n, q)
			packed := r.AppendPacked(nil, a)
			for _, atEnd := range []bool{false, true} {
				b, sum := bytes[:len(packed)], words[:n]
				if atEnd {
					b, sum = bytes[len(bytes)-len(packed):], words[len(words)-n:]
				}
				copy(b, packed)
				copy(sum, a)
				if err := r.CheckPacked(b, n); err != nil {
					t.Fatal(err)
				}
				r.AddPacked(sum, b)
				for i, x := range a {
					if sum[i] != 2*x%q {
						t.Fatalf("modulo %d: coefficient %d of %d is wrong", q, i, n)
					}
				}
			}
		}
	}
}
