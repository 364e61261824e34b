package benchmarks

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	google "github.com/google/differential-privacy/go/v3/noise"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/hushsum/hushsum/noise"
)

// sampled is a law that sums use, or the share of one of 100 parties in it.
type sampled struct {
	name string
	law  noise.Law
}

// lawsOf returns all laws of a standard deviation; shares are of sums that have it.
func lawsOf(sigma int64) ([]sampled, error) {
	var all []sampled
	for _, c := range []struct {
		name string
		make func() (noise.Law, error)
	}{
		{"gaussian", func() (noise.Law, error) {
			return noise.DiscreteGaussian(big.NewRat(sigma*sigma, 1))
		}},
		{"skellam", func() (noise.Law, error) { return noise.Skellam(big.NewRat(sigma*sigma, 1)) }},
		{"laplace", func() (noise.Law, error) {
			return noise.DiscreteLaplace(big.NewRat(sigma*7071, 10000))
		}},
	} {
		law, err := c.make()
		if err != nil {
			return nil, err
		}
		share, err := noise.Shares{Parties: 100, MinHonest: 100, Law: law}.Party()
		if err != nil {
			return nil, err
		}
		all = append(all, sampled{c.name, law}, sampled{c.name + "-share-of-100", share})
	}
	return all, nil
}

// BenchmarkNoise draws integers of the standard deviations that jobs use, and reports
// nanoseconds per sample: hushsum's table and exact paths, in bulk, for every law; the
// secure samplers of Google's library, one at a time, which is the only way it has;
// gonum's floating-point sampler, for scale. -log2-distance is of the table from its law,
// certified.
func BenchmarkNoise(b *testing.B) {
	for _, sigma := range []int64{1, 10, 100, 1000, 30000} {
		laws, err := lawsOf(sigma)
		if err != nil {
			b.Fatal(err)
		}
		run := func(name string, samples int, draw func() error) {
			b.Run(fmt.Sprintf("%s/sigma=%d", name, sigma), func(b *testing.B) {
				for b.Loop() { // what is measured is measured below, once
				}
				b.ReportMetric(best(func() time.Duration {
					start := time.Now()
					if err := draw(); err != nil {
						b.Fatal(err)
					}
					return time.Since(start)
				})/float64(samples), "ns/sample")
				b.ReportMetric(0, "ns/op")
			})
		}
		dst := make([]int64, 1<<14)
		for _, l := range laws {
			table, err := noise.NewTable(l.law)
			if err != nil {
				b.Fatal(err)
			}
			fast := table.NewSampler(nil)
			run(fmt.Sprintf("table/%s/-log2-distance=%.0f", l.name, -math.Log2(table.Distance())),
				len(dst), func() error { return fast.Fill(dst) })
			exact, err := noise.NewExact(l.law, nil)
			if errors.Is(err, noise.ErrTooLarge) {
				continue // only the table path samples what is so wide
			}
			if err != nil {
				b.Fatal(err)
			}
			run("exact/"+l.name, 1<<10, func() error { return exact.Fill(dst[:1<<10]) })
		}
		const draws = 2000
		repeat := func(draw func() error) func() error {
			return func() error {
				for range draws {
					if err := draw(); err != nil {
						return err
					}
				}
				return nil
			}
		}
		gauss, laplace := google.Gaussian(), google.Laplace()
		// ε and δ for which its Gaussian noise has about this σ, sensitivity 1.
		epsilon := 3.7 / float64(sigma)
		run("google/gaussian", draws, repeat(func() error {
			_, err := gauss.AddNoiseInt64(0, 1, 1, epsilon, 1e-5)
			return err
		}))
		run("google/laplace", draws, repeat(func() error {
			_, err := laplace.AddNoiseInt64(0, 1, 1, 1.414/float64(sigma), 0)
			return err
		}))
		normal := distuv.Normal{Sigma: float64(sigma), Src: rand.NewPCG(1, 2)}
		var sink float64
		run("gonum/normal", draws, repeat(func() error { sink += normal.Rand(); return nil }))
		_ = sink
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
