package privacy

import (
	"errors"
	"math"
	"testing"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/aggregation"
)

// What Calibrate finds is within the budget, and 1 % less noise is not. Noise for ε
// at δ must be at least what one Gaussian needs, whose ε is known exactly: the
// rounds of a Gaussian of multiplier z are one of z/√rounds. Laplace noise, whose
// standard deviation counts, is no Gaussian and is left out of that.
func TestCalibrate(t *testing.T) {
	const rounds = 4
	for _, family := range accounting.Families() {
		for _, eps := range []float64{1, 8} {
			if family == accounting.FamilyDiscreteLaplace && eps == 8 {
				continue // one that takes seconds is enough
			}
			r := release()
			r.Promise = Assumed(10, 10)
			r.Noise = Noise{Family: family, Clip: 1, Bits: 24}
			if family == accounting.FamilyDiscreteLaplace {
				r.Noise.Bits = 20
			}
			budget := Budget{Epsilon: eps, Delta: 1e-6}
			z, err := r.Calibrate(budget, rounds)
			if err != nil {
				t.Fatal(err)
			}
			spent := func(z float64) float64 {
				r.Noise.Multiplier = z
				round, err := r.Round()
				if err != nil {
					t.Fatal(err)
				}
				s, err := round.Spent(accounting.ServerView, rounds, budget.Delta)
				if err != nil {
					t.Fatal(err)
				}
				return s.Bare().Upper
			}
			if at, less := spent(z), spent(0.99*z); at > eps || less <= eps {
				t.Errorf("%v, budget %v: %v with multiplier %v, %v with 1 %% less", family, eps, at, z, less)
			}
			exact, err := accounting.GaussianEpsilon(z/math.Sqrt(rounds), budget.Delta)
			if err != nil {
				t.Fatal(err)
			}
			if family != accounting.FamilyDiscreteLaplace && (exact.Lower > eps || exact.Upper < 0.8*eps) {
				t.Errorf("%v, budget %v: a Gaussian of multiplier %v spends %v", family, eps, z, exact)
			}
		}
	}
}

// Calibrate finds what fits between too little noise and too wide a ring, however
// little room there is, and passes over shares of votes too small to add up.
func TestCalibrateInNarrowRings(t *testing.T) {
	for _, c := range []struct {
		bits int
		eps  float64
	}{{9, 16}, {9, 30}, {10, 4}} {
		r := release()
		r.Dimension, r.Noise.Bits = 105, c.bits
		z, err := r.Calibrate(Budget{Epsilon: c.eps}, 20)
		if err != nil {
			t.Errorf("%d bits, ε = %v: %v", c.bits, c.eps, err)
			continue
		}
		r.Noise.Multiplier = z
		round, err := r.Round()
		if err != nil {
			t.Fatal(err)
		}
		if s, err := round.Spent(accounting.ServerView, 20, DefaultDelta); err != nil ||
			s.Bare().Upper > c.eps || s.Bare().Upper < 0.99*c.eps {
			t.Errorf("%d bits, ε = %v: %v with multiplier %v, %v", c.bits, c.eps, s, z, err)
		}
	}
	for name, signs := range map[string]*Signs{"signs": {Dimension: 9, Part: 0.5},
		"votes": Votes(40)} {
		r := release()
		r.Promise, r.Dimension, r.Noise.Bits, r.Signs = Assumed(40, 40), 9, 20, signs
		z, err := r.Calibrate(Budget{Epsilon: 4}, 20)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		r.Noise.Multiplier = z
		round, err := r.Round()
		if err != nil {
			t.Fatal(err)
		}
		if s, err := round.Spent(accounting.ServerView, 20, DefaultDelta); err != nil ||
			s.Bare().Upper > 4 {
			t.Errorf("%s: %v with multiplier %v, %v", name, s, z, err)
		}
	}
}

// Secret coins save noise, against the server too.
func TestCalibrateSampled(t *testing.T) {
	r := release()
	r.Rate, r.Noise.Bits = 0.1, 20
	multiplier := func(view accounting.View) float64 {
		z, err := r.Calibrate(Budget{Epsilon: 2, Against: view}, 10)
		if err != nil {
			t.Fatal(err)
		}
		return z
	}
	server, public := multiplier(accounting.ServerView), multiplier(accounting.PublicView)
	if r.Rate = 0; server != public || server > multiplier(accounting.ServerView)/2 {
		t.Errorf("multiplier %v against the server, %v against the public", server, public)
	}
}

func TestBadBudgets(t *testing.T) {
	for _, c := range []struct {
		field string
		b     Budget
		late  bool // Validate accepts it
	}{
		{"Budget.Epsilon", Budget{Epsilon: -1}, false},
		{"Budget.Epsilon", Budget{Epsilon: math.NaN()}, false},
		{"Budget.Epsilon", Budget{Epsilon: math.Inf(1)}, false},
		{"Budget.Delta", Budget{Epsilon: 1, Delta: 1}, false},
		{"Budget.Delta", Budget{Epsilon: 1, Delta: -1e-9}, false},
		{"Budget.Delta", Budget{Epsilon: 1, Delta: math.NaN()}, false},
		{"Budget.Against", Budget{Epsilon: 1, Against: 7}, false},
		{"Budget.Epsilon", Budget{}, true},
	} {
		if err := c.b.Validate(); (err == nil) != c.late {
			t.Errorf("%+v: Validate returns %v", c.b, err)
		}
		r := release()
		_, err := r.Calibrate(c.b, 4)
		ledger, failed := c.b.Ledger(accounting.Statement{})
		for _, err := range []error{err, failed} {
			var wrong *ConfigError
			if !errors.As(err, &wrong) || wrong.Field != c.field || ledger != nil {
				t.Errorf("%+v: %v, want an error of %s", c.b, err, c.field)
			}
		}
	}
	r := release()
	r.Noise.Bits = 9
	if _, err := r.Calibrate(Budget{Epsilon: 0.01}, 4); !errors.Is(err, aggregation.ErrBits) {
		t.Errorf("no room: %v", err)
	}
	ledger, err := Budget{Epsilon: 3}.Ledger(accounting.Statement{})
	if err != nil || ledger.View() != accounting.ServerView ||
		ledger.Budget("anybody").Target() != (accounting.Target{Epsilon: 3, Delta: DefaultDelta}) {
		t.Errorf("%+v, %v", ledger, err)
	}
}
