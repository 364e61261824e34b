package accounting

import (
	"math/rand"
	"testing"

	"github.com/hushsum/hushsum/internal/suite"
	"pgregory.net/rapid"
)

func drawMechanism(t *rapid.T) Mechanism {
	var m Mechanism
	switch rapid.IntRange(0, 5).Draw(t, "kind") {
	case 0, 1:
		m = Gaussian{rapid.Float64Range(0.5, 8).Draw(t, "z")}
	case 2:
		m = Laplace{rapid.Float64Range(0.5, 20).Draw(t, "b")}
	case 3:
		m = DiscreteLaplace{rapid.Float64Range(0.5, 10).Draw(t, "t"), rapid.IntRange(1, 4).Draw(t, "d")}
	case 4:
		m = DiscreteGaussian{rapid.Float64Range(0.7, 10).Draw(t, "s"), rapid.IntRange(1, 3).Draw(t, "d")}
	default:
		m = Skellam{rapid.Float64Range(1, 50).Draw(t, "v"), rapid.IntRange(1, 3).Draw(t, "d")}
	}
	if rapid.Bool().Draw(t, "sampled") {
		m = Sampled{m, rapid.Float64Range(0.005, 1).Draw(t, "q")}
	}
	return m
}

// Certified intervals only order when they are disjoint, so monotonicity is
// stated as: the side that must be smaller has its lower bound below the other's
// upper bound; for the same law with another δ or count it also holds of uppers
// up to the width.
func TestProperties(t *testing.T) {
	suite.Checks(t, suite.Size(30, 40, 100, 1000))
	rapid.Check(t, func(t *rapid.T) {
		m := drawMechanism(t)
		n := rapid.IntRange(1, 300).Draw(t, "n")
		delta := rapid.SampledFrom([]float64{1e-3, 1e-5, 1e-8, 1e-12}).Draw(t, "delta")
		b := mustEpsilon(t, delta, Step{m, n})
		if b.Lower > b.Upper || b.Lower < 0 {
			t.Fatalf("%v", b)
		}
		slack := 1e-6 + 5e-3*b.Upper
		if more := mustEpsilon(t, delta, Step{m, n + 1 + n/4}); more.Upper < b.Lower ||
			more.Upper < b.Upper-slack {
			t.Fatalf("more rounds spend less: %v then %v", b, more)
		}
		if looser := mustEpsilon(t, delta*10, Step{m, n}); looser.Lower > b.Upper ||
			looser.Upper > b.Upper+slack {
			t.Fatalf("larger δ needs more: %v then %v", b, looser)
		}
		if s, ok := m.(Sampled); ok {
			if less := mustEpsilon(t, delta,
				Step{Sampled{s.Mechanism, s.Rate / 2}, n}); less.Lower > b.Upper {
				t.Fatalf("lower rate spends more: %v then %v", b, less)
			}
			if g, ok := s.Mechanism.(Gaussian); ok {
				quiet := mustEpsilon(t, delta, Step{Sampled{Gaussian{g.NoiseMultiplier * 1.1}, s.Rate}, n})
				if quiet.Lower > b.Upper || quiet.Upper > b.Upper+slack {
					t.Fatalf("more noise spends more: %v then %v", b, quiet)
				}
			}
		}
	})
}

// The order of composition does not matter, and splitting a count neither.
func TestOrderDoesNotMatter(t *testing.T) {
	steps := []Step{
		{Sampled{Gaussian{1}, 0.1}, 50}, {Laplace{10}, 3}, {Gaussian{20}, 40},
		{Sampled{DiscreteLaplace{3, 1}, 0.2}, 10}, {Skellam{50, 1}, 2},
	}
	want := mustEpsilon(t, 1e-6, steps...)
	rng := rand.New(rand.NewSource(1))
	for range 5 {
		var mixed []Step
		for _, i := range rng.Perm(len(steps)) {
			s := steps[i]
			mixed = append(mixed, Step{s.Mechanism, s.Count / 2}, Step{s.Mechanism, s.Count - s.Count/2})
		}
		if got := mustEpsilon(t, 1e-6, mixed...); got != want {
			t.Fatalf("%v, then %v", want, got)
		}
	}
	if want.Width() > 2e-2*want.Upper {
		t.Errorf("mixed composition is wide: %v", want)
	}
	t.Logf("mixed composition: [%v, %v]", want.Lower, want.Upper)
}
