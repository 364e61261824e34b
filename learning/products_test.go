package learning

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Both ways of multiplying agree with plain sums, for any number of rows and classes.
func TestProducts(t *testing.T) {
	random := rand.New(rand.NewPCG(9, 9))
	for _, rows := range []int{1, 2, 3, 4, 7, 33} {
		for _, stride := range []int{8, 24, productBlock, productBlock + 8} {
			const lines = 2 * productClasses
			x := make([][]float32, rows)
			for i := range x {
				x[i] = make([]float32, stride)
				for j := range x[i] {
					x[i][j] = float32(random.NormFloat64())
				}
			}
			w, a := make([]float64, lines*stride), make([]float64, rows*lines)
			mean, scale := w[:stride], w[stride:2*stride]
			for _, of := range [][]float64{w, a} {
				for j := range of {
					of[j] = random.NormFloat64()
				}
			}
			for _, p := range []*products{&portable, multiply} {
				z, g := make([]float64, rows*lines), make([]float64, lines*stride)
				squares := make([]float64, rows)
				p.scoresOf(z, squares, x, w, mean, scale, lines)
				p.addTo(g, x, a, stride, lines)
				for k := range lines {
					for i := range rows {
						want := 0.0
						for j, v := range x[i] {
							want += float64(v) * w[k*stride+j]
						}
						if math.Abs(z[i*lines+k]-want) > 1e-10 {
							t.Fatalf("row %d, class %d: %v, want %v", i, k, z[i*lines+k], want)
						}
					}
					for j := range stride {
						want := 0.0
						for i := range rows {
							want += float64(x[i][j]) * a[i*lines+k]
						}
						if math.Abs(g[k*stride+j]-want) > 1e-10 {
							t.Fatalf("class %d, number %d: %v, want %v", k, j, g[k*stride+j], want)
						}
					}
				}
				for i := range rows {
					want := 0.0
					for j, v := range x[i] {
						y := (float64(v) - mean[j]) * scale[j]
						want += y * y
					}
					if math.Abs(squares[i]-want) > 1e-10*want {
						t.Fatalf("row %d: a squared norm of %v, want %v", i, squares[i], want)
					}
				}
			}
		}
	}
}
