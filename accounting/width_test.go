package accounting

import (
	"math"
	"testing"
	"time"
)

// Sampled mechanisms of little noise have few, widely spaced losses. Every
// interval is tight all the same; -golden.full runs the whole grid.
func TestWidthGrid(t *testing.T) {
	laws := []struct {
		name string
		make func(s float64) Mechanism
	}{
		{"discrete Gaussian", func(s float64) Mechanism { return DiscreteGaussian{s, 1} }},
		{"Skellam", func(s float64) Mechanism { return Skellam{s * s, 1} }},
		{"Gaussian", func(s float64) Mechanism { return Gaussian{s} }},
		{"Laplace", func(s float64) Mechanism { return Laplace{s} }},
		{"discrete Laplace", func(s float64) Mechanism { return DiscreteLaplace{s, 1} }},
	}
	sigmas, rates := []float64{0.5, 1}, []float64{1e-3, 0.1}
	counts, deltas := []int{1, 100, 10000}, []float64{1e-9}
	if *full {
		sigmas, rates = []float64{0.5, 0.7, 1, 1.4, 2}, []float64{1e-3, 0.01, 0.1}
		counts, deltas = []int{1, 10, 100, 1000, 10000}, []float64{1e-5, 1e-9}
	} else {
		laws = laws[:2]
	}
	for _, law := range laws {
		n, worst, sum, slowest := 0, 0.0, 0.0, time.Duration(0)
		for _, s := range sigmas {
			for _, q := range rates {
				for _, count := range counts {
					for _, delta := range deltas {
						start := time.Now()
						b := mustEpsilon(t, delta, Step{Sampled{law.make(s), q}, count})
						slowest = max(slowest, time.Since(start))
						if b.Upper < 1e-3 {
							continue
						}
						w := b.Width() / b.Upper
						n, sum, worst = n+1, sum+w, math.Max(worst, w)
						if w > 1.2e-3 {
							t.Errorf("%s %v, q=%v, T=%d, δ=%v: [%v, %v], relative width %.2g", law.name, s, q, count,
								delta, b.Lower, b.Upper, w)
						}
					}
				}
			}
		}
		t.Logf("%s: %d intervals, mean width %.2g, widest %.2g relative, slowest %v", law.name, n,
			sum/float64(n), worst, slowest)
	}
}
