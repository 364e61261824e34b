package benchmarks

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	google "github.com/google/differential-privacy/go/v3/noise"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/hushsum/hushsum/noise"
)

// BenchmarkNoise draws integers of standard deviation 1, 10 and 1,000, and reports
// nanoseconds per sample: hushsum's table and exact paths, in bulk, for the discrete
// Gaussian and Laplace laws; the secure samplers of Google's library, one at a time,
// which is the only way it has; gonum's floating-point sampler, for scale.
func BenchmarkNoise(b *testing.B) {
	for _, sigma := range []int64{1, 10, 1000} {
		gaussian, err := noise.DiscreteGaussian(big.NewRat(sigma*sigma, 1))
		if err != nil {
			b.Fatal(err)
		}
		laplace, err := noise.DiscreteLaplace(big.NewRat(sigma*7071, 10000))
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("sigma=%d", sigma), func(b *testing.B) {
			for b.Loop() { // what is measured is measured below, once
			}
			for name, law := range map[string]noise.Law{"gaussian": gaussian, "laplace": laplace} {
				table, err := noise.NewTable(law)
				if err != nil {
					b.Fatal(err)
				}
				fast := table.NewSampler(nil)
				exact, err := noise.NewExact(law, nil)
				if err != nil {
					b.Fatal(err)
				}
				dst := make([]int64, 1<<14)
				bulk := func(fill func([]int64) error) float64 {
					return best(func() time.Duration {
						start := time.Now()
						if err := fill(dst); err != nil {
							b.Fatal(err)
						}
						return time.Since(start)
					}) / float64(len(dst))
				}
				b.ReportMetric(bulk(fast.Fill), "table-"+name+"-ns")
				b.ReportMetric(bulk(exact.Fill), "exact-"+name+"-ns")
			}
			const draws = 2000
			gauss, laplaceNoise := google.Gaussian(), google.Laplace()
			one := func(draw func() error) float64 {
				return best(func() time.Duration {
					start := time.Now()
					for range draws {
						if err := draw(); err != nil {
							b.Fatal(err)
						}
					}
					return time.Since(start)
				}) / draws
			}
			// ε and δ for which its Gaussian noise has about this σ, sensitivity 1.
			epsilon := 3.7 / float64(sigma)
			b.ReportMetric(one(func() error {
				_, err := gauss.AddNoiseInt64(0, 1, 1, epsilon, 1e-5)
				return err
			}), "google-gaussian-ns")
			b.ReportMetric(one(func() error {
				_, err := laplaceNoise.AddNoiseInt64(0, 1, 1, 1.414/float64(sigma), 0)
				return err
			}), "google-laplace-ns")
			normal := distuv.Normal{Sigma: float64(sigma), Src: rand.NewPCG(1, 2)}
			var sink float64
			b.ReportMetric(one(func() error { sink += normal.Rand(); return nil }), "gonum-normal-ns")
			_ = sink
			b.ReportMetric(0, "ns/op")
		})
	}
}

// best is the shortest of seven runs, in nanoseconds.
func best(run func() time.Duration) float64 {
	shortest := run()
	for range 6 {
		shortest = min(shortest, run())
	}
	return float64(shortest.Nanoseconds())
}
