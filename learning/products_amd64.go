//go:build amd64 && !purego

package learning

import (
	"os"

	"golang.org/x/sys/cpu"
)

//go:generate go run -C ../tools ./products -out ../learning/products_amd64.s

// multiply is the way of multiplying in use.
var multiply = chooseProducts(os.Getenv("HUSHSUM_CPU"))

// chooseProducts returns the fastest way that the processor has and that its name allows. Package
// masking reads the same names.
func chooseProducts(name string) *products {
	if name == "portable" || !cpu.X86.HasAVX2 || !cpu.X86.HasFMA {
		return &portable
	}
	return &products{
		scores: func(
			out *[2 * productClasses]float64, x0, x1 []float32, w []float64, stride int,
		) {
			n := len(x0)
			_, _ = x1[n-1], w[(productClasses-1)*stride+n-1]
			scoresAVX2(&x0[0], &x1[0], &w[0], stride, n, &out[0])
		},
		add: func(g []float64, stride int, x *[productRows][]float32, a *productFactors) {
			n := len(x[0])
			_, _, _ = x[1][n-1], x[2][n-1], x[3][n-1]
			_ = g[(productClasses-1)*stride+n-1]
			addAVX2(&x[0][0], &x[1][0], &x[2][0], &x[3][0], &a[0], &g[0], stride, n)
		},
		square: func(x []float32, mean, scale []float64) float64 {
			n := len(x)
			_, _ = mean[n-1], scale[n-1]
			return squareAVX2(&x[0], &mean[0], &scale[0], n)
		},
	}
}

//go:noescape
func scoresAVX2(x0, x1 *float32, w *float64, stride, n int, out *float64)

//go:noescape
func addAVX2(x0, x1, x2, x3 *float32, a, to *float64, stride, n int)

//go:noescape
func squareAVX2(x *float32, mean, scale *float64, n int) float64
