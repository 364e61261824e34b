package simulation

import (
	"errors"
	"math"
	"testing"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/learning"
	"github.com/hushsum/hushsum/protocol"
)

// private returns options of a small noisy run with its data.
func private(t *testing.T, n Noise) Options {
	t.Helper()
	all, _, err := learning.Census(700, 1)
	if err != nil {
		t.Fatal(err)
	}
	o := Defaults()
	o.Clients, o.RowsPerClient, o.Rounds, o.LocalSteps = 10, 20, 4, 2
	if o.Train, o.Test, err = all.Split(.5, 1); err != nil {
		t.Fatal(err)
	}
	o.Noise = &n
	return o
}

// What Calibrate finds is within the budget, and 1 % less noise is not. Noise for ε
// at δ must be at least what one Gaussian needs, whose ε is known exactly: the
// rounds of a Gaussian of multiplier z are one of z/√rounds. Laplace noise, whose
// standard deviation counts, is no Gaussian and is left out of that.
func TestCalibrate(t *testing.T) {
	for _, law := range []accounting.Family{accounting.FamilyDiscreteGaussian, accounting.FamilySkellam, accounting.FamilyDiscreteLaplace} {
		for _, eps := range []float64{1, 8} {
			if law == accounting.FamilyDiscreteLaplace && eps == 8 {
				continue // one that takes seconds is enough
			}
			n := DefaultNoise()
			n.Law, n.Bits, n.Epsilon, n.Delta = law, 24, eps, 1e-6
			if law == accounting.FamilyDiscreteLaplace {
				n.Bits = 20
			}
			o := private(t, n)
			z, err := o.Calibrate(o.Train.Features)
			if err != nil {
				t.Fatal(err)
			}
			spent := func(z float64) float64 {
				m, err := o.plan(o.Train.Features, z)
				if err != nil {
					t.Fatal(err)
				}
				s, err := m.Round().Spent(accounting.ServerView, o.Rounds, n.Delta)
				if err != nil {
					t.Fatal(err)
				}
				return s.Upper
			}
			if at, less := spent(z), spent(.99*z); at > eps || less <= eps {
				t.Errorf("%v, budget %v: %v with multiplier %v, %v with 1 %% less", law, eps, at, z, less)
			}
			exact, err := accounting.GaussianEpsilon(z/math.Sqrt(float64(o.Rounds)), n.Delta)
			if err != nil {
				t.Fatal(err)
			}
			if law != accounting.FamilyDiscreteLaplace && (exact.Lower > eps || exact.Upper < .8*eps) {
				t.Errorf("%v, budget %v: a Gaussian of multiplier %v spends %v", law, eps, z, exact)
			}
		}
	}
}

// The accountant is told what the run does: as many honest shares as are left, the
// standard deviation of their sum, the sensitivity after rounding.
func TestRoundOfAMechanism(t *testing.T) {
	for _, law := range []accounting.Family{accounting.FamilyDiscreteGaussian, accounting.FamilySkellam, accounting.FamilyDiscreteLaplace} {
		n := DefaultNoise()
		n.Law, n.Multiplier, n.Bits = law, 2, 14
		o := private(t, n)
		o.Recovery, o.Colluders = &protocol.Recovery{}, 1
		m, err := o.Mechanism(o.Train.Features)
		if err != nil {
			t.Fatal(err)
		}
		r := m.Round()
		if r.MinSurvivors-r.Colluders != r.Shares || r.Colluders != 1 || r.Shares != m.Shares.MinHonest {
			t.Errorf("%v: %d shares of %d survivors less %d", law, r.Shares, r.MinSurvivors, r.Colluders)
		}
		var variance float64
		switch law {
		case accounting.FamilyDiscreteGaussian:
			variance = float64(r.Shares) * r.Update.ShareSigma * r.Update.ShareSigma
		case accounting.FamilySkellam:
			variance = float64(r.Shares) * r.Update.ShareVariance
		default:
			variance = 1 / (2 * math.Pow(math.Sinh(1/(2*r.Update.SumScale)), 2))
		}
		if want := math.Pow(2*m.Sensitivity.L2, 2); math.Abs(variance/want-1) > 1e-9 {
			t.Errorf("%v: variance %v, want %v", law, variance, want)
		}
		if s := r.Update.Sensitivity; s.L2 != m.Sensitivity.L2 || s.L1 != m.Sensitivity.L1 || s.Dimension != 40 || s.L2 < m.Encoder.Clip*m.Encoder.Scale {
			t.Errorf("%v: sensitivity %+v", law, s)
		}
		if d := m.table.Distance(); r.TableDistance < d || r.Samples != 400 {
			t.Errorf("%v: %v samples at distance %v, the table's is %v", law, r.Samples, r.TableDistance, d)
		}
	}
}

// A run with a budget stops before the round that would overspend: the rounds that
// it did are within, and with one more they are not.
func TestBudgetEndsTheRun(t *testing.T) {
	n := DefaultNoise()
	n.Multiplier, n.Epsilon = 3, 2.5
	o := private(t, n)
	s, err := Run(t.Context(), o, nil)
	if err != nil {
		t.Fatal(err)
	}
	m, err := o.Mechanism(o.Train.Features)
	if err != nil {
		t.Fatal(err)
	}
	server, _, err := m.Round().Views(len(s.Rounds)+1, DefaultDelta)
	if err != nil {
		t.Fatal(err)
	}
	done := len(s.Rounds)
	if s.Stopped == nil || done == 0 || done == o.Rounds || !errors.Is(s.Stopped, accounting.ErrBudget) {
		t.Fatalf("%d rounds, stopped by %v", done, s.Stopped)
	}
	if last := s.Rounds[done-1]; last.Server.Upper > 2.5 || server.Upper <= 2.5 || s.Stopped.Would != server.Upper || last.Public.Upper != last.Server.Upper {
		t.Errorf("spent %v and %v, one more would be %v or %v", last.Server, last.Public, server, s.Stopped.Would)
	}

	// Lost rounds count: nobody is left to reveal anything, and ε grows all the same.
	n.Epsilon = 0
	o = private(t, n)
	o.Recovery, o.Drop, o.Rounds = &protocol.Recovery{}, 1, 2
	if s, err = Run(t.Context(), o, nil); err != nil {
		t.Fatal(err)
	}
	if s.Lost() != 2 || s.Rounds[1].Server.Upper <= s.Rounds[0].Server.Upper {
		t.Errorf("%d lost, spent %v and %v", s.Lost(), s.Rounds[0].Server, s.Rounds[1].Server)
	}
}

func TestBadBudgets(t *testing.T) {
	for option, change := range map[string]func(*Options){
		"Noise.Epsilon":   func(o *Options) { o.Noise.Epsilon = math.NaN() },
		"Noise.Delta":     func(o *Options) { o.Noise.Delta = 1 },
		"Recovery.Degree": func(o *Options) { o.Recovery = &protocol.Recovery{Adversary: protocol.CuriousServer, Degree: 4} },
		"Noise.Bits":      func(o *Options) { o.Noise.Bits, o.Noise.Epsilon = 9, .01 },
	} {
		n := DefaultNoise()
		n.Epsilon = 1
		o := private(t, n)
		change(&o)
		_, err := o.Calibrate(o.Train.Features)
		var bad *OptionError
		if !errors.As(err, &bad) || bad.Option != option {
			t.Errorf("%s: %v", option, err)
		}
	}
	o := private(t, DefaultNoise())
	if _, err := o.Calibrate(40); err == nil {
		t.Error("calibrated to no budget")
	}
	o.Noise = nil
	if _, err := o.Calibrate(40); err == nil {
		t.Error("calibrated no noise")
	}
}
