package noise

import (
	"flag"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/hushsum/hushsum/internal/suite"
	"gonum.org/v1/gonum/stat/distuv"
)

var samplesFlag = flag.Int("noise.samples", 0,
	"samples per law in the histogram tests of the table path, 0 for what the form takes")

// tableSamples returns how many samples of each law the tests of tables take. Their limits
// follow the number, so that false alarms stay as rare.
func tableSamples() int {
	if *samplesFlag > 0 {
		return *samplesFlag
	}
	return suite.Size(100_000, 200_000, 1_000_000, 10_000_000)
}

// falseAlarm is the probability with which each of the statistical tests below
// would reject a right sampler on a fresh seed; the seeds are fixed.
const falseAlarm = 1e-6

// seeded is a reproducible source for tests.
func seeded(seed byte) *rand.ChaCha8 { return rand.NewChaCha8([32]byte{seed, 'n'}) }

type filler interface {
	Fill([]int64) error
}

// checkHistogram draws n samples and compares the histogram (χ², bins of at least 50
// expected), the mean and the variance with the law, each at falseAlarm.
func checkHistogram(t *testing.T, l Law, f filler, n int) {
	t.Helper()
	sd := math.Sqrt(l.Variance())
	lo, hi := int64(l.Mean()-40*sd)-40, int64(l.Mean()+40*sd)+40
	if !l.symmetric() {
		lo = max(lo, 0)
	}
	p, err := l.Probabilities(lo, hi)
	if err != nil {
		t.Fatal(err)
	}
	counts := make([]float64, len(p))
	var sum, square float64
	x := make([]int64, 50000)
	for left := n; left > 0; left -= len(x) {
		x = x[:min(len(x), left)]
		if err := f.Fill(x); err != nil {
			t.Fatal(err)
		}
		for _, k := range x {
			if k < lo || k > hi {
				t.Fatalf("%v: impossible value %d", l, k)
			}
			counts[k-lo]++
			d := float64(k) - l.Mean()
			sum += d
			square += d * d
		}
	}
	// Neighbouring values join until a bin expects 50.
	var chi, want, got, fourth float64
	bins := 0
	for i, q := range p {
		d := float64(lo+int64(i)) - l.Mean()
		fourth += q * d * d * d * d
		want += q * float64(n)
		got += counts[i]
		rest := 0.0
		if i+1 < len(p) {
			for _, q := range p[i+1 : min(len(p), i+1+int(40*sd)+40)] {
				if rest += q * float64(n); rest > 50 {
					break
				}
			}
		}
		if want >= 50 && rest >= 50 || i == len(p)-1 {
			chi += (got - want) * (got - want) / want
			bins++
			want, got = 0, 0
		}
	}
	if bins > 1 {
		limit := distuv.ChiSquared{K: float64(bins - 1)}.Quantile(1 - falseAlarm)
		if chi > limit {
			t.Errorf("%v: χ² = %.1f with %d bins, limit %.1f", l, chi, bins, limit)
		}
	}
	z := distuv.UnitNormal.Quantile(1 - falseAlarm/2)
	v := l.Variance()
	if e := math.Abs(sum/float64(n)) / math.Sqrt(v/float64(n)); e > z {
		t.Errorf("%v: mean off by %.2f standard errors", l, e)
	}
	if e := math.Abs(square/float64(n)-v) / math.Sqrt((fourth-v*v)/float64(n)); e > z {
		t.Errorf("%v: variance off by %.2f standard errors", l, e)
	}
}

func histogramLaws(t *testing.T) []Law {
	r := big.NewRat
	var laws []Law
	add := func(l Law, err error) { laws = append(laws, must(t, l, err)) }
	add(DiscreteGaussian(r(1, 1)))
	add(DiscreteGaussian(r(100, 1)))
	add(DiscreteGaussian(r(10000, 3)))
	add(DiscreteLaplace(r(1, 2)))
	add(DiscreteLaplace(r(7, 1)))
	add(DiscreteLaplace(r(70, 1)))
	add(Skellam(r(3, 1)))
	add(Skellam(r(400, 1)))
	add(Poisson(r(9, 2)))
	add(Poisson(r(200, 1)))
	add(Polya(r(1, 1), r(50, 1)))
	add(Polya(r(1, 10), r(7, 1)))
	add(PolyaDifference(r(1, 3), r(7, 1)))
	add(PolyaDifference(r(5, 2), r(3, 1)))
	return laws
}

// wideLaws are the laws of sums, and shares, that are composed of narrower ones.
func wideLaws(t *testing.T) []Law {
	r := big.NewRat
	var laws []Law
	add := func(l Law, err error) { laws = append(laws, must(t, l, err)) }
	add(DiscreteGaussian(r(90001, 1)))
	add(Skellam(r(90001, 1)))
	add(DiscreteLaplace(r(212, 1)))
	add(PolyaDifference(r(1, 2), r(300, 1)))
	add(PolyaDifference(r(1, 10), r(1000, 1)))
	return laws
}

func TestTableHistograms(t *testing.T) {
	for i, l := range append(histogramLaws(t), wideLaws(t)...) {
		tb, err := NewTable(l)
		if err != nil {
			t.Fatal(err)
		}
		checkHistogram(t, l, tb.NewSampler(seeded(byte(i))), tableSamples())
	}
}

// TestWideMoments: at standard deviations far beyond a histogram by values, the mean,
// the variance, the fourth moment (within what the sixth and the eighth make of n
// samples), the lowest six bits, which are uniform, and for laws that are normal but
// for 10^-6 a histogram with bins of equal probability. Each at falseAlarm.
func TestWideMoments(t *testing.T) {
	r := big.NewRat
	n := tableSamples()
	z := distuv.UnitNormal.Quantile(1 - falseAlarm/2)
	x := make([]int64, n)
	for i, c := range []struct {
		make   func() (Law, error)
		shape  float64 // Laplace and shares: variables of 2·shape·t², else 0
		normal bool
	}{
		{func() (Law, error) { return DiscreteGaussian(r(900000000, 1)) }, 0, true},
		{func() (Law, error) { return DiscreteGaussian(r(1<<60, 3)) }, 0, true},
		{func() (Law, error) { return Skellam(r(900000000, 1)) }, 0, true},
		{func() (Law, error) { return Skellam(r(1<<60, 3)) }, 0, true},
		{func() (Law, error) { return DiscreteLaplace(r(21213, 1)) }, 1, false},
		{func() (Law, error) { return PolyaDifference(r(1, 2), r(21213, 1)) }, 0.5, false},
		{func() (Law, error) { return PolyaDifference(r(1, 2), r(1<<30, 1)) }, 0.5, false},
		{func() (Law, error) { return PolyaDifference(r(1, 10), r(21213, 1)) }, 0.1, false},
	} {
		l, err := c.make()
		tb, err2 := NewTable(must(t, l, err))
		if err2 != nil {
			t.Fatal(err2)
		}
		if err := tb.NewSampler(seeded(byte(50 + i))).Fill(x); err != nil {
			t.Fatal(err)
		}
		// Cumulants of gamma differences: κ_2j = 2·shape·(2j−1)!·t^2j; in units of σ.
		sd := math.Sqrt(l.Variance())
		k4, k6, k8 := 0.0, 0.0, 0.0
		if c.shape > 0 {
			k4, k6, k8 = 6/(2*c.shape), 120/math.Pow(2*c.shape, 2), 5040/math.Pow(2*c.shape, 3)
		}
		m4 := k4 + 3
		m8 := k8 + 28*k6 + 35*k4*k4 + 210*k4 + 105
		var sum, square, fourth float64
		low := make([]float64, 64)
		bins := make([]float64, 200)
		for _, v := range x {
			y := float64(v) / sd
			sum += y
			square += y * y
			fourth += y * y * y * y
			low[v&63]++
			bins[min(int(distuv.UnitNormal.CDF(y)*200), 199)]++
		}
		size := float64(n)
		for name, e := range map[string]float64{
			"mean":          sum / math.Sqrt(size),
			"variance":      (square - size) / math.Sqrt(size*(m4-1)),
			"fourth moment": (fourth - size*m4) / math.Sqrt(size*(m8-m4*m4)),
		} {
			if math.Abs(e) > z {
				t.Errorf("%v: %s off by %.2f standard errors", l, name, e)
			}
		}
		counts := map[string][]float64{"low bits": low}
		if !c.normal {
			low[0] = 0 // zero is likelier
			counts["low bits"] = low[1:]
		} else {
			counts["bins"] = bins
		}
		for name, observed := range counts {
			total := 0.0
			for _, k := range observed {
				total += k
			}
			want, chi := total/float64(len(observed)), 0.0
			for _, k := range observed {
				chi += (k - want) * (k - want) / want
			}
			if c.shape > 0 && c.shape < 1 {
				continue // values near zero are likelier
			}
			if limit := (distuv.ChiSquared{K: float64(len(observed) - 1)}).
				Quantile(1 - falseAlarm); chi > limit {
				t.Errorf("%v: %s: χ² = %.1f, limit %.1f", l, name, chi, limit)
			}
		}
	}
}

func TestExactHistograms(t *testing.T) {
	for i, l := range histogramLaws(t) {
		e, err := NewExact(l, seeded(byte(100+i)))
		if err != nil {
			t.Fatal(err)
		}
		checkHistogram(t, l, e, 100000)
	}
}

// TestRareTables forces every word of the first table, and then of the second, into
// its residual, so that the outcomes come from the rarer tables: their
// histograms must match the masses that the proof counts.
func TestRareTables(t *testing.T) {
	l, err := Poisson(big.NewRat(3000, 1))
	tb, err2 := NewTable(must(t, l, err))
	if err2 != nil {
		t.Fatal(err2)
	}
	st := tb.cascade.stages[0]
	if len(st.levels) < 4 || st.slots < 2 {
		t.Fatalf("%d levels, %d slots: the test needs 4 and 2", len(st.levels), st.slots)
	}
	for forced := 1; forced <= 2; forced++ {
		const blocks = 2000
		rng := seeded(byte(200 + forced))
		counts := make([]float64, st.n)
		s := tb.NewSampler(nil)
		s.random = readerFunc(func(p []byte) (int, error) {
			rng.Read(p)
			for i := range p[:4*(block+(forced-1)*columns*st.slots)] {
				p[i] = 0xff
			}
			return len(p), nil
		})
		for range blocks {
			if err := s.draw(st, block); err != nil {
				t.Fatal(err)
			}
			// In each column a sample takes a slot of its own, as long as there are any, and all
			// others take the last.
			for i, x := range s.idx {
				if row := i / columns; row < st.slots {
					counts[x]++
				} else if x != s.idx[i-columns] {
					t.Fatal("slots out of order")
				}
			}
		}
		n := float64(st.slots * columns * blocks)
		chi, bins, want, got := 0.0, 0, 0.0, 0.0
		for k, m := range st.levels[forced].mass {
			p := float64(m) / (1 << wordBits)
			if forced == 1 {
				p += float64(st.levels[1].residual) / (1 << wordBits) *
					float64(st.levels[2].mass[k]) / (1 << wordBits)
			}
			want += n * p
			got += counts[k]
			if want >= 50 {
				chi += (got - want) * (got - want) / want
				bins++
				want, got = 0, 0
			}
		}
		if limit := (distuv.ChiSquared{K: float64(bins)}).Quantile(1 - falseAlarm); chi > limit ||
			bins < 50 {
			t.Errorf("level %d: χ² = %.1f with %d bins, limit %.1f", forced+1, chi, bins, limit)
		}
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
