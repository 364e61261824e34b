package accounting

import (
	"errors"
	"math"
	"testing"
	"time"
)

// Extreme parameters give an ordered interval, infinite with a reason, or a
// typed error; never a panic, a NaN or a minute's wait.
func TestHostileCompositions(t *testing.T) {
	ms := []Mechanism{
		Gaussian{1e-3}, Gaussian{1e6}, Sampled{Gaussian{0.05}, 1e-9}, Sampled{Gaussian{1e4}, 0.999999},
		Laplace{1e-6}, Laplace{1e9}, Sampled{Laplace{0.01}, 1e-6}, Sampled{Laplace{1e3}, 0.5},
		DiscreteLaplace{1e-3, 1}, DiscreteLaplace{1e5, 1000}, Sampled{DiscreteLaplace{0.1, 3}, 0.01},
		DiscreteGaussian{0.05, 1}, DiscreteGaussian{300, 7}, Sampled{DiscreteGaussian{0.3, 1}, 1e-4},
		Skellam{1e-3, 5}, Skellam{1e4, 3}, RandomisedResponse{1000, 2}, RandomisedResponse{1e-9, 1000},
		Pair{P: []float64{1, 0}, Q: []float64{0, 1}}, Pair{P: []float64{1}, Q: []float64{1}},
		Pair{P: []float64{0.5, 0.5, 0}, Q: []float64{0.5, 0, 0.5}},
		Pair{P: []float64{1e-300, 1 - 1e-12}, Q: []float64{1e-12, 1 - 1e-12}, TailP: 2e-12, TailQ: 1e-12},
		ReplaceOne{Gaussian{0.3}, 0.01}, ReplaceOne{DiscreteGaussian{3, 1}, 0.3}, ReplaceOne{DiscreteLaplace{2, 1}, 0.3},
	}
	for i, m := range ms {
		if i%4 != 0 && !*full {
			continue // the whole list takes half a minute
		}
		for _, n := range []int{1, 1 << 30} {
			for _, delta := range []float64{1e-6} {
				start := time.Now()
				c, err := Compose(Step{m, n})
				if errors.Is(err, ErrTooLarge) {
					continue
				}
				if err != nil {
					t.Fatal(m.key(), err)
				}
				b, err := c.Epsilon(delta)
				if err != nil {
					t.Fatal(m.key(), err)
				}
				if !(b.Lower >= 0 && b.Lower <= b.Upper) || math.IsInf(b.Upper, 1) != (b.Reason != "") {
					t.Errorf("%s ×%d δ=%v: %+v", m.key(), n, delta, b)
				}
				if d := time.Since(start); d > 6*time.Second {
					t.Errorf("%s ×%d δ=%v took %v", m.key(), n, delta, d)
				}
			}
		}
	}
}
