package accounting

import (
	"errors"
	"math"
	"math/rand"
	"testing"

	"github.com/hushsum/hushsum/internal/suite"
)

// Extreme parameters give an ordered interval, infinite with a reason, or a
// typed error; never a panic, a NaN or a minute's wait.
func TestHostileCompositions(t *testing.T) {
	farTail := Sampled{Laplace{0.1}, 1e-6}
	if suite.Long() {
		farTail.Mechanism = Laplace{0.01} // which takes seconds alone
	}
	ms := []Mechanism{
		Gaussian{1e-3}, Gaussian{1e6}, Sampled{Gaussian{0.05}, 1e-9}, Sampled{Gaussian{1e4}, 0.999999},
		Laplace{1e-6}, Laplace{1e9}, farTail, Sampled{Laplace{1e3}, 0.5},
		DiscreteLaplace{1e-3, 1}, DiscreteLaplace{1e5, 1000}, Sampled{DiscreteLaplace{0.1, 3}, 0.01},
		DiscreteGaussian{0.05, 1}, DiscreteGaussian{300, 7}, Sampled{DiscreteGaussian{0.3, 1}, 1e-4},
		Binomial{3, 1}, Binomial{1 << 20, 9}, Sampled{Binomial{100, 1}, 0.01},
		Skellam{1e-3, 5}, Skellam{1e4, 3}, RandomisedResponse{1000, 2}, RandomisedResponse{1e-9, 1000},
		Pair{P: []float64{1, 0}, Q: []float64{0, 1}}, Pair{P: []float64{1}, Q: []float64{1}},
		Pair{P: []float64{0.5, 0.5, 0}, Q: []float64{0.5, 0, 0.5}},
		Pair{P: []float64{1e-300, 1 - 1e-12}, Q: []float64{1e-12, 1 - 1e-12}, TailP: 2e-12, TailQ: 1e-12},
		ReplaceOne{Gaussian{0.3}, 0.01}, ReplaceOne{DiscreteGaussian{3, 1}, 0.3},
		ReplaceOne{DiscreteLaplace{2, 1}, 0.3},
	}
	for i, m := range ms {
		for _, n := range []int{1, 1 << 30} {
			if n > 1 && i%8 != 4 && !*full && !suite.Long() {
				continue // the whole list takes half a minute
			}
			for _, delta := range []float64{1e-6} {
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
			}
		}
	}
}

// Many different steps: any number of Gaussians is one, a hundred others are
// composed, and a hundred thousand are refused at once, or accounted by RDP where
// there is a choice.
func TestManySteps(t *testing.T) {
	const many = 100000
	gauss, sampled := make([]Step, many), make([]Step, many)
	mu2 := 0.0
	for i := range many {
		z := 50 + float64(i)/1000
		mu2 += 1 / (z * z)
		gauss[i] = Step{Gaussian{z}, 1}
		sampled[i] = Step{Sampled{Gaussian{1 + float64(i)/many}, 0.01}, 1}
	}
	if b, want := mustEpsilon(t, 1e-6, gauss...), gaussianEpsilon(math.Sqrt(mu2),
		1e-6); math.Abs(b.Upper-want.Upper) > 1e-9*want.Upper {
		t.Errorf("%v, want %v", b, want)
	}
	some := []Step{}
	for i := 0; i < many; i += many / 60 {
		some = append(some, sampled[i])
	}
	b := mustEpsilon(t, 1e-6, some...)
	most := mustEpsilon(t, 1e-6, Step{Sampled{Gaussian{1}, 0.01}, len(some)})
	least := mustEpsilon(t, 1e-6, Step{Sampled{Gaussian{2}, 0.01}, len(some)})
	if b.Upper > most.Upper || b.Lower < least.Lower || b.Width() > 5e-3*b.Upper {
		t.Errorf("%v, want between %v and %v", b, least, most)
	}
	// Composing 100,000 would take hours.
	if _, err := Compose(sampled...); !errors.Is(err, ErrTooLarge) {
		t.Error(err)
	}
	if _, err := Compose(Step{Gaussian{1}, maxCount}, Step{Gaussian{1}, 1}); !errors.Is(err,
		ErrConfig) {
		t.Error(err)
	}
	// A scalar release with more noise than a table holds.
	r := Round{Family: FamilySkellam, Shares: 10, Honest: 10,
		Update: Lane{ShareVariance: 1e14, Sensitivity: Sensitivity{1e6, 1e6, 1}}, Rate: 1}
	s, err := r.Spent(ServerView, 10, 1e-6)
	if err != nil || s.Bare().Accountant != "PLD" || s.Bare().Lower != 0 || s.Bare().Neighbour != "" {
		t.Fatal(s, err)
	}
	g := mustEpsilon(t, 1e-6, Step{Gaussian{math.Sqrt(1e15) / 1e6}, 10})
	if s.Bare().Upper < g.Lower || s.Bare().Upper > (1+1e-9)*g.Upper {
		t.Errorf("%v, and Gaussian %v", s, g)
	}
}

// Outcomes and orders may come in any order.
func TestNonMonotoneGrids(t *testing.T) {
	p, q := []float64{0.05, 0.4, 0.1, 0.25, 0.2}, []float64{0.3, 0.1, 0.35, 0.05, 0.2}
	want := mustEpsilon(t, 1e-4, Step{Pair{P: p, Q: q}, 8})
	rng := rand.New(rand.NewSource(3))
	for range 5 {
		var m Pair
		for _, i := range rng.Perm(len(p)) {
			m.P, m.Q = append(m.P, p[i]), append(m.Q, q[i])
		}
		if b := mustEpsilon(t, 1e-4, Step{m, 8}); math.Abs(b.Upper-want.Upper) > 1e-9 ||
			math.Abs(b.Lower-want.Lower) > 1e-9 {
			t.Errorf("%v, then %v", want, b)
		}
	}
	sorted, err := MechanismRDP(Sampled{Gaussian{1}, 0.1}, []float64{2, 3, 4, 8, 16})
	if err != nil {
		t.Fatal(err)
	}
	mixed, err := MechanismRDP(Sampled{Gaussian{1}, 0.1}, []float64{8, 2, 16, 4, 3})
	if err != nil {
		t.Fatal(err)
	}
	a, _, err1 := sorted.Times(50).Epsilon(1e-5)
	b, _, err2 := mixed.Times(50).Epsilon(1e-5)
	if a != b || err1 != nil || err2 != nil {
		t.Error(a, b, err1, err2)
	}
	// A curve that falls with its order is no divergence, but a bound: all of it
	// is used, with gaps in the integer orders and infinite values.
	c, err := NewRDP([]float64{5, 2, 3, 9, 2.5}, func(x float64) float64 {
		if x == 9 {
			return math.Inf(1)
		}
		return 10 / x
	})
	if err != nil {
		t.Fatal(err)
	}
	s, err := c.Poisson(0.1)
	if err != nil {
		t.Fatal(err)
	}
	f, err := c.FixedSize(1, 10, math.Inf(1))
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range c.Values() {
		for _, w := range []float64{s.Values()[i], f.Values()[i]} {
			if !(w >= 0 && w <= v) {
				t.Errorf("order %v: %v from %v", c.Orders()[i], w, v)
			}
		}
	}
}

// δ far beyond what a window resolves is bounded by what the tables leave out,
// 1e-61 a step for integer noise.
func TestDeltaFarOut(t *testing.T) {
	for _, m := range []Mechanism{Sampled{DiscreteGaussian{10, 1}, 0.01},
		Sampled{Skellam{100, 1}, 0.01}} {
		c, err := Compose(Step{m, 100})
		if err != nil {
			t.Fatal(err)
		}
		for _, eps := range []float64{1, 10} {
			if b, err := c.Delta(eps); err != nil || b.Upper > 1e-58 || b.Lower > b.Upper {
				t.Errorf("%s ε=%v: %v %v", m.key(), eps, b, err)
			}
		}
	}
}
