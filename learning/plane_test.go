package learning

import (
	"math"
	"math/cmplx"
	"math/rand/v2"
	"slices"
	"testing"
)

// Transforms are the sums that define them, and inverses bring back what was there.
func TestPlane(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 7))
	for _, n := range []int{1, 2, 4, 6, 8, 9, 10, 14, 18, 22, 36} {
		z := make([]complex128, n*n)
		for i := range z {
			z[i] = complex(random.NormFloat64(), random.NormFloat64())
		}
		before, p := slices.Clone(z), newPlane(n)
		p.transform(z, false)
		for range 20 {
			u, v := random.IntN(n), random.IntN(n)
			want := complex128(0)
			for i := range n {
				for j := range n {
					turns := float64((u*i+v*j)%n) / float64(n)
					want += before[i*n+j] * cmplx.Rect(1, -2*math.Pi*turns)
				}
			}
			if cmplx.Abs(z[u*n+v]-want) > 1e-11 {
				t.Fatalf("n = %d: %v at (%d, %d), want %v", n, z[u*n+v], u, v, want)
			}
		}
		p.transform(z, true)
		for i, x := range z {
			if cmplx.Abs(x/complex(float64(n*n), 0)-before[i]) > 1e-13 {
				t.Fatalf("n = %d: %v comes back as %v", n, before[i], x)
			}
		}
	}
}
