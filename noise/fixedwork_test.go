package noise

import (
	"math"
	"math/big"
	"slices"
	"sort"
	"testing"
	"time"

	"github.com/hushsum/hushsum/internal/suite"
)

// correlation is Pearson's, over the samples whose time is not among the slowest
// percent: interrupts fall on those whatever their value.
func correlation(ns, abs []float64) float64 {
	sorted := append([]float64(nil), ns...)
	sort.Float64s(sorted)
	limit := sorted[len(sorted)*99/100]
	var n, sx, sy, sxx, syy, sxy float64
	for i, x := range ns {
		if x > limit {
			continue
		}
		y := abs[i]
		n++
		sx, sy, sxx, syy, sxy = sx+x, sy+y, sxx+x*x, syy+y*y, sxy+x*y
	}
	return (sxy - sx*sy/n) / math.Sqrt((sxx-sx*sx/n)*(syy-sy*sy/n))
}

// timeEach draws n samples one by one and returns their times and absolute values.
func timeEach(t *testing.T, f filler, n int) (ns, abs []float64) {
	t.Helper()
	ns, abs = make([]float64, n), make([]float64, n)
	var x [1]int64
	for i := range ns {
		start := time.Now()
		err := f.Fill(x[:])
		ns[i] = float64(time.Since(start))
		if err != nil {
			t.Fatal(err)
		}
		abs[i] = math.Abs(float64(x[0]))
	}
	return ns, abs
}

// correlates measures how the times of n samples of a sampler, made anew by a seed,
// correlate with their absolute values, until it is as good finds it, three times at most.
func correlates(
	t *testing.T, what string, n int, sampler func(seed byte) filler, good func(r float64) bool,
) {
	t.Helper()
	var r float64
	for seed := byte(1); seed <= 3; seed++ {
		r = correlation(timeEach(t, sampler(seed), n))
		t.Logf("%s: correlation %+.4f, limit %.4f", what, r, 5/math.Sqrt(float64(n)))
		if good(r) {
			return
		}
	}
	t.Errorf("%s: time and |value| have a correlation of %+.4f, three times", what, r)
}

// TestTimingCorrelation: over 10^5 samples the time of the table path is not
// correlated with the absolute value (limit 5/√N: 6e-7 by chance, and 3e-19 three times
// in a row with other seeds, the noise of the machine being independent of the value),
// while that of the exact path is: a dependence shows three times.
func TestTimingCorrelation(t *testing.T) {
	suite.OnlyTiming(t)
	const n = 100000
	gaussian, err := DiscreteGaussian(big.NewRat(100, 1))
	gaussian = must(t, gaussian, err)
	wide, err := Skellam(big.NewRat(1000000, 1))
	wide = must(t, wide, err)
	share, err := PolyaDifference(big.NewRat(1, 10), big.NewRat(707, 1))
	share = must(t, share, err)
	laplace, err := DiscreteLaplace(big.NewRat(7, 1))
	laplace = must(t, laplace, err)
	for _, l := range []Law{gaussian, wide, laplace, share} {
		tb, err := NewTable(l)
		if err != nil {
			t.Fatal(err)
		}
		correlates(t, "table path, "+l.String(), n,
			func(seed byte) filler { return tb.NewSampler(Expand(seeded(seed))) },
			func(r float64) bool { return math.Abs(r) <= 5/math.Sqrt(n) })
	}
	correlates(t, "exact path, "+laplace.String(), n,
		func(seed byte) filler {
			e, err := NewExact(laplace, Expand(seeded(seed)))
			if err != nil {
				t.Fatal(err)
			}
			return e
		},
		func(r float64) bool { return r >= 10/math.Sqrt(n) })
}

// TestTimingExtremes times blocks of which every sample is forced to the likeliest
// value, to one in the middle of the table, or to the rarer tables and the largest
// value, for each way of composing a law. By construction nothing but arithmetic on
// registers differs: scan reads all thresholds in order, and all else indexes by
// position only. The machine's noise disturbs the best of many runs least; where
// it still differs there are as many more, up to ten times, which only bring it nearer to
// what the work takes.
func TestTimingExtremes(t *testing.T) {
	suite.OnlyTiming(t)
	r := big.NewRat
	for name, lawOf := range map[string]func() (Law, error){
		"one table": func() (Law, error) { return DiscreteGaussian(r(100, 1)) },
		"smooth":    func() (Law, error) { return DiscreteGaussian(r(1000000, 1)) },
		"digits":    func() (Law, error) { return DiscreteLaplace(r(707, 1)) },
		"mixture":   func() (Law, error) { return PolyaDifference(r(1, 10), r(707, 1)) },
	} {
		l, err := lawOf()
		tb, err2 := NewTable(must(t, l, err))
		if err2 != nil {
			t.Fatal(err2)
		}
		compareExtremes(t, name, tb)
	}
}

func compareExtremes(t *testing.T, law string, tb *Table) {
	constant := func(b byte) filler {
		return tb.NewSampler(readerFunc(func(p []byte) (int, error) {
			for i := range p {
				p[i] = b
			}
			return len(p), nil
		}))
	}
	names := []string{"zero", "middle", "rarer table"}
	paths := []filler{constant(0), constant(0x7f), constant(0xff)}
	best := []float64{math.Inf(1), math.Inf(1), math.Inf(1)}
	dst := make([]int64, 4*block)
	differs := func() bool {
		return slices.Max(best) > 1.1*slices.Min(best)
	}
	for try := 0; try == 0 || differs() && try < 10; try++ {
		for range 2000 {
			for i, f := range paths {
				start := time.Now()
				if err := f.Fill(dst); err != nil {
					t.Fatal(err)
				}
				best[i] = min(best[i], float64(time.Since(start)))
			}
		}
	}
	for i := range best {
		t.Logf("%s, %s: %.2f ns per sample", law, names[i], best[i]/float64(len(dst)))
	}
	if differs() {
		t.Errorf("%s: times for %d samples of %v ns, by %v", law, len(dst), best, names)
	}
}
