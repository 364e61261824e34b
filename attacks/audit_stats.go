package attacks

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// sigmas is how many standard errors a mean may be from what theory says: for a
// normal one a false alarm of 2e-9, and below 1e-6 with the skewness of the squares
// that are averaged here. A run has some two hundred such rows, so that a false alarm
// in any of them has a probability below 2e-4.
const sigmas = 6

// z95 is the two-sided normal quantile of 95 %.
const z95 = 1.959963984540054

// near returns a measurement with the given standard error, which must be within
// sigmas of want.
func near(value, se float64, n int, want float64) Measure {
	return between(value, se, n, want-sigmas*se, want+sigmas*se)
}

// between returns a measurement with the given standard error, which must be from
// low to high.
func between(value, se float64, n int, low, high float64) Measure {
	return Measure{
		Value: value, Lower: value - z95*se, Upper: value + z95*se, Confidence: 0.95, Samples: n,
		Min: low, Max: high,
	}
}

// proportion returns a measured probability, with its Clopper–Pearson interval, that
// must be from low to high.
func proportion(k, n int, low, high float64) Measure {
	m := Measure{Value: float64(k) / float64(n), Confidence: 0.95, Samples: n, Min: low, Max: high}
	m.Lower, m.Upper = binomialLower(k, n, 0.025), binomialUpper(k, n, 0.025)
	return m
}

// binomialLower is the Clopper–Pearson lower bound of a probability from k
// successes in n: it is above the truth with probability alpha at most.
func binomialLower(k, n int, alpha float64) float64 {
	if k <= 0 {
		return 0
	}
	return distuv.Beta{Alpha: float64(k), Beta: float64(n - k + 1)}.Quantile(alpha)
}

// binomialUpper is the Clopper–Pearson upper bound.
func binomialUpper(k, n int, alpha float64) float64 {
	if k >= n {
		return 1
	}
	return 1 - binomialLower(n-k, n, alpha)
}

// shown returns an audit's lower bound on ε, which must not exceed upper.
func shown(a Audited, upper float64) Measure {
	return Measure{
		Value: a.Lower, Lower: a.Lower, Upper: a.Lower, Confidence: 1 - 2*auditAlpha,
		Samples: a.Positives + a.Negatives, Max: upper,
	}
}

// uncorrelated returns a measured correlation of n independent pairs that must be
// below 4/√N in absolute value. With no correlation that fails with a probability
// of 6e-5; three rows use it.
func uncorrelated(r float64, n int) Measure {
	limit := 4 / math.Sqrt(float64(n))
	m := correlated(r, n)
	m.Min, m.Max = -limit, limit
	return m
}

// correlated returns a measured correlation with Fisher's interval.
func correlated(r float64, n int) Measure {
	m := Measure{Value: r, Lower: r, Upper: r, Confidence: 0.95, Samples: n, Min: -1, Max: 1}
	if math.Abs(r) < 1 && n > 3 {
		z, d := math.Atanh(r), z95/math.Sqrt(float64(n-3))
		m.Lower, m.Upper = math.Tanh(z-d), math.Tanh(z+d)
	}
	return m
}

// correlation is Pearson's, or 0 if one of the two does not vary.
func correlation(x, y []float64) float64 {
	r := stat.Correlation(x, y, nil)
	if math.IsNaN(r) {
		return 0
	}
	return r
}

// source returns the random numbers of one part of a run.
func (o Options) source(part uint64) *rand.Rand {
	return rand.New(rand.NewPCG(o.seed(), part))
}

// parallel calls trial for 0 to n−1 on all cores, each with random numbers of its
// own that depend on the seed, the part and the trial alone. It stops at the first
// error, or when ctx ends.
func (o Options) parallel(ctx context.Context, part uint64, n int, trial func(i int, r *rand.Rand) error) error {
	workers := min(runtime.GOMAXPROCS(0), n)
	var group sync.WaitGroup
	errs := make([]error, workers)
	for w := range workers {
		group.Go(func() {
			for i := w; i < n; i += workers {
				if errs[w] = ctx.Err(); errs[w] != nil {
					return
				}
				r := rand.New(rand.NewPCG(o.seed(), part<<32|uint64(i)))
				if err := trial(i, r); err != nil {
					errs[w] = fmt.Errorf("trial %d: %w", i, err)
					return
				}
			}
		})
	}
	group.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// meanAndError returns the mean of the values and its standard error.
func meanAndError(values []float64) (mean, se float64) {
	mean, variance := stat.MeanVariance(values, nil)
	return mean, math.Sqrt(variance / float64(len(values)))
}

// squares returns the squares of the values.
func squares(values []float64) []float64 {
	s := slices.Clone(values)
	for i, v := range s {
		s[i] = v * v
	}
	return s
}

// fill fills bytes from a run's random numbers.
func fill(b []byte, r *rand.Rand) {
	for i := range b {
		b[i] = byte(r.Uint64())
	}
}
