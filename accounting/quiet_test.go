package accounting

import (
	"math"
	"testing"

	"github.com/hushsum/hushsum/internal/suite"
)

// Next to no noise gives an infinite bound with a reason, sampled or not, and at
// δ = 0 too; never a panic.
func TestNextToNoNoise(t *testing.T) {
	scales := []float64{1e-100, 5e-324}
	if suite.Long() {
		scales = []float64{1e-100, 1e-145, 1e-160, 5e-324}
	}
	for _, x := range scales {
		for _, m := range []Mechanism{
			Gaussian{x}, Laplace{x}, DiscreteLaplace{x, 1}, DiscreteLaplace{x, 1000}, DiscreteGaussian{x, 1},
			DiscreteGaussian{x, 9},
			Skellam{x, 1}, Skellam{x, 9},
		} {
			for _, q := range []float64{1, 0.01} {
				for _, n := range []int{1000} {
					var all Mechanism = m
					if q < 1 {
						all = Sampled{m, q}
					}
					c, err := Compose(Step{all, n})
					if err != nil {
						t.Fatal(all.key(), err)
					}
					for _, delta := range []float64{0, 1e-6} {
						b, err := c.Epsilon(delta)
						if err != nil || !(b.Lower <= b.Upper) || math.IsInf(b.Upper, 1) != (b.Reason != "") {
							t.Errorf("%s × %d at %v: %+v, %v", all.key(), n, delta, b, err)
						}
						if b.Upper < 2 {
							t.Errorf("%s × %d at %v: %+v for next to no noise", all.key(), n, delta, b)
						}
					}
				}
			}
		}
	}
}
