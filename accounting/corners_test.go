package accounting

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/hushsum/hushsum/internal/suite"
)

// tester has the methods that *testing.T, *testing.B and *rapid.T share.
type tester interface {
	Helper()
	Fatal(...any)
}

func mustEpsilon(t tester, delta float64, steps ...Step) Bound {
	t.Helper()
	c, err := Compose(steps...)
	if err != nil {
		t.Fatal(err)
	}
	b, err := c.Epsilon(delta)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// The width that the package promises, over the corners of its range.
func TestIntervalWidth(t *testing.T) {
	for _, c := range []struct {
		name  string
		m     Mechanism
		n     int
		delta float64
		width float64
	}{
		{"the promise", Sampled{Gaussian{1}, 0.01}, 10000, 1e-6, 1e-3},
		{"delta 1e-15", Sampled{Gaussian{1}, 0.01}, 10000, 1e-15, 1e-3},
		{"delta 1e-30", Sampled{Gaussian{1}, 0.01}, 1000, 1e-30, 1e-3},
		{"z 0.1", Sampled{Gaussian{0.1}, 0.01}, 100, 1e-6, 1e-3},
		{"z 100", Sampled{Gaussian{100}, 0.01}, 10000, 1e-6, 1e-3},
		{"q 1", Sampled{Gaussian{1}, 1}, 1e6, 1e-15, 1e-12},
		// One of those that take seconds is enough by default.
		{"z 100, T 1e6, delta 1e-15", Sampled{Gaussian{100}, 0.1}, 1e6, 1e-15, 1e-3},
		{"T 1e6", Sampled{Gaussian{1}, 0.001}, 1e6, 1e-6, 1e-3},
		{"q 1e-6", Sampled{Gaussian{1}, 1e-6}, 1e5, 1e-6, 1e-3},
	}[:suite.Size(7, 7, 9, 9)] {
		start := time.Now()
		b := mustEpsilon(t, c.delta, Step{c.m, c.n})
		w := b.Width() / b.Upper
		t.Logf("%-26s [%.9g, %.9g] width %.2g, %v", c.name, b.Lower, b.Upper, w,
			time.Since(start).Round(time.Millisecond))
		if !(w <= c.width) {
			t.Errorf("%s: relative width %v, want at most %v", c.name, w, c.width)
		}
	}
}

func TestDeltaZero(t *testing.T) {
	// Randomised response, ten times: ten times ε (the reference library says ε).
	b := mustEpsilon(t, 0, Step{RandomisedResponse{math.Log(3), 2}, 10})
	if !b.Contains(10*math.Log(3)) || b.Width() > 1e-12 {
		t.Error(b)
	}
	b = mustEpsilon(t, 0, Step{Sampled{Laplace{1}, 0.5}, 3})
	if want := 3 * math.Log1p(0.5*math.Expm1(1)); !b.Contains(want) {
		t.Error(b, want)
	}
	for _, m := range []Mechanism{Gaussian{1}, Sampled{Gaussian{1}, 0.1}, DiscreteGaussian{1, 1},
		Skellam{1, 1}} {
		b = mustEpsilon(t, 0, Step{m, 1})
		if !math.IsInf(b.Upper, 1) || b.Reason == "" {
			t.Error(m.key(), b)
		}
	}
}

func TestInfiniteWithReason(t *testing.T) {
	// One outcome in a thousand happens only with the client.
	leak := Pair{P: []float64{0.999, 0.001}, Q: []float64{1, 0}}
	b := mustEpsilon(t, 1e-6, Step{leak, 1})
	if !math.IsInf(b.Upper, 1) || b.Reason == "" {
		t.Error(b)
	}
	if b = mustEpsilon(t, 0.01, Step{leak, 1}); b.Upper > 0.1 {
		t.Error(b)
	}
	// One step's loss is about 1/2z² = 5e5: beyond the lattice. What is left is that
	// sampling does no harm.
	b = mustEpsilon(t, 1e-6, Step{Sampled{Gaussian{0.001}, 0.5}, 3})
	whole := mustEpsilon(t, 1e-6, Step{Gaussian{0.001}, 3})
	if b.Upper != whole.Upper || b.Reason != "" || b.Lower > b.Upper {
		t.Error(b, whole)
	}
	b = mustEpsilon(t, 1e-6, Step{ReplaceOne{DiscreteLaplace{1e-4, 1}, 0.5}, 1}, Step{leak, 1})
	if !math.IsInf(b.Upper, 1) || b.Reason == "" {
		t.Error(b)
	}
	// ε beyond float64.
	b = mustEpsilon(t, 1e-6, Step{Gaussian{1e-160}, 1})
	if !math.IsInf(b.Upper, 1) || b.Reason == "" {
		t.Error(b)
	}
}

func TestUnderflow(t *testing.T) {
	c, err := Compose(Step{Sampled{Gaussian{5}, 0.01}, 10})
	if err != nil {
		t.Fatal(err)
	}
	b, err := c.Delta(50)
	if err != nil {
		t.Fatal(err)
	}
	if b.Lower > b.Upper || b.Upper > 1e-200 {
		t.Error(b)
	}
	if b = mustEpsilon(t, 0.999999, Step{Gaussian{5}, 1}); b.Upper != 0 {
		t.Error(b)
	}
}

func TestNothingSpent(t *testing.T) {
	if b := mustEpsilon(t, 1e-6); b.Upper != 0 {
		t.Error(b)
	}
	if b := mustEpsilon(t, 0, Step{Gaussian{1}, 0}); b.Upper != 0 {
		t.Error(b)
	}
}

func TestComposeErrors(t *testing.T) {
	for _, s := range []Step{
		{nil, 1}, {Gaussian{1}, -1}, {Gaussian{0}, 1}, {Gaussian{math.NaN()}, 1}, {Gaussian{math.Inf(1)}, 1},
		{Sampled{Gaussian{1}, 0}, 1}, {Sampled{Gaussian{1}, 1.1}, 1}, {Laplace{-1}, 1}, {DiscreteLaplace{1, 0}, 1},
		{DiscreteGaussian{1, math.MaxInt}, 1}, {RandomisedResponse{1, 1}, 1}, {Pair{}, 1},
		{Pair{P: []float64{1}, Q: []float64{0.5}}, 1},
		{Pair{P: []float64{2, -1}, Q: []float64{1, 0}}, 1},
	} {
		if _, err := Compose(s); !errors.Is(err, ErrConfig) {
			t.Errorf("%v: %v", s, err)
		}
	}
	for _, m := range []Mechanism{Sampled{Sampled{Gaussian{1}, 0.5}, 0.5}, Sampled{nil, 0.5},
		ReplaceOne{Laplace{1}, 0.5}, ReplaceOne{nil, 1}} {
		if _, err := Compose(Step{m, 1}); !errors.Is(err, ErrUnsupported) {
			t.Errorf("%v: %v", m, err)
		}
	}
	if _, err := Compose(Step{DiscreteGaussian{1e9, 1}, 1}); !errors.Is(err, ErrTooLarge) {
		t.Error(err)
	}
	c, err := Compose(Step{Gaussian{1}, 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []float64{-1, 2, math.NaN()} {
		if _, err := c.Epsilon(d); !errors.Is(err, ErrConfig) {
			t.Error(d, err)
		}
	}
	if _, err := c.Delta(-1); !errors.Is(err, ErrConfig) {
		t.Error(err)
	}
}

// A dumb reference: convolve the sum of T discrete Gaussians directly, all terms
// positive, so the result is good to 1e-12 relative without any FFT.
func TestAgainstDirectConvolution(t *testing.T) {
	for _, c := range []struct {
		sigma float64
		n     int
		eps   float64
	}{{1, 100, 109.1}, {1, 100, 60}, {2, 64, 15}, {2, 64, 1}} {
		k := int(20*c.sigma) + 2
		m, err := DiscreteGaussian{c.sigma, 1}.mass()
		if err != nil {
			t.Fatal(err)
		}
		one := make([]float64, 2*k+1)
		for i := range one {
			one[i] = m.at(i - k)
		}
		sum := []float64{1}
		for range c.n {
			next := make([]float64, len(sum)+len(one)-1)
			for i, a := range sum {
				for j, b := range one {
					next[i+j] += a * b
				}
			}
			sum = next
		}
		// L = Σ(2k−1)/2σ² over outcomes k+1 of the shifted law.
		delta := 0.0
		for i, p := range sum {
			x := float64(i - k*c.n) // Σ of noise
			l := (2*x + float64(c.n)) / (2 * c.sigma * c.sigma)
			if l > c.eps {
				delta += p * -math.Expm1(c.eps-l)
			}
		}
		comp, err := Compose(Step{DiscreteGaussian{c.sigma, 1}, c.n})
		if err != nil {
			t.Fatal(err)
		}
		b, err := comp.Delta(c.eps)
		if err != nil {
			t.Fatal(err)
		}
		if b.Lower > delta*(1+1e-12) || b.Upper < delta*(1-1e-12) || b.Width() > 1e-6*delta {
			t.Errorf("σ=%v T=%d ε=%v: [%v, %v], direct %v", c.sigma, c.n, c.eps, b.Lower, b.Upper, delta)
		}
	}
}

// The upper law dominates and the lower law is dominated, step by step: their
// hockey-stick curves enclose the exact one of a single sampled Gaussian.
func TestLatticeEnclosesExactCurve(t *testing.T) {
	for _, q := range []float64{1e-3, 0.1, 0.7} {
		for _, z := range []float64{0.5, 2} {
			l, err := Sampled{Gaussian{z}, q}.law()
			if err != nil {
				t.Fatal(err)
			}
			for _, h := range []float64{0.003, 0.02} {
				g, _ := newPartLattice(l, h, 1e-14)
				up, low := g.upper(), g.lower()
				for eps := -0.2; eps < 3; eps += 0.0137 {
					var u, d float64
					for i := range up {
						n := g.node(i)
						if w := -math.Expm1(eps - n); w > 0 {
							u += up[i] * math.Exp(n/2) * w
							d += low[i] * math.Exp(n/2) * w
						}
						if low[i] < 0 {
							t.Fatal("negative mass")
						}
					}
					u += g.topP
					exact := exactSampledDelta(q, z, eps)
					if u < exact*(1-1e-9)-1e-13 || d > exact*(1+1e-9)+1e-13 {
						t.Fatalf("q=%v z=%v h=%v ε=%v: [%v, %v] misses %v", q, z, h, eps, d, u, exact)
					}
				}
			}
		}
	}
}

// exactSampledDelta is P(L>ε) − e^ε·Q(L>ε) in the remove direction.
func exactSampledDelta(q, z, eps float64) float64 {
	y := (math.Expm1(eps) + q) / q
	if y <= 0 {
		return -math.Expm1(eps)
	}
	x := z*z*math.Log(y) + 0.5
	sf := func(v float64) float64 { return math.Erfc(v/z*invSqrt2) / 2 }
	return (1-q)*sf(x) + q*sf(x-1) - math.Exp(eps)*sf(x)
}
