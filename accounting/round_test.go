package accounting

import (
	"errors"
	"math"
	"testing"
)

func exampleRound() Round {
	return Round{
		Family: FamilyDiscreteGaussian, Shares: 80, Honest: 80,
		Update: Lane{ShareSigma: 100, Sensitivity: Sensitivity{L2: 300, Dimension: 10000}},
		Rate:   0.05, HiddenSchedule: true,
	}
}

// signs is the sensitivity of a sum of vectors of this many signs.
func signs(n int) Sensitivity {
	return Sensitivity{L1: float64(n), L2: math.Sqrt(float64(n)), Dimension: n}
}

// stated is a lane whose noise is of the given size in the unit of its family.
func stated(f Family, noise float64, s Sensitivity) Lane {
	l := Lane{Sensitivity: s}
	switch f {
	case FamilyDiscreteGaussian:
		l.ShareSigma = noise
	case FamilySkellam:
		l.ShareVariance = noise
	default:
		l.SumScale = noise
	}
	return l
}

func TestViews(t *testing.T) {
	r := exampleRound()
	server, public, err := r.Views(10, 1e-6)
	if err != nil {
		t.Fatal(err)
	}
	if !(public.Bare().Upper < server.Bare().Upper) || server.Bare().Accountant != "PLD" ||
		server.Bare().Width() > 1e-5*server.Bare().Upper {
		t.Errorf("server %+v, public %+v", server, public)
	}
	// The discrete Gaussian of σ√m is close to a Gaussian of that multiplier.
	z := 100 * math.Sqrt(80) / 300
	g := mustEpsilon(t, 1e-6, Step{Gaussian{z}, 10})
	if server.Bare().Upper < g.Lower || server.Bare().Upper > (1+1e-5)*g.Upper {
		t.Errorf("server %v, and Gaussian %v", server.Bare().Upper, g)
	}
	r.HiddenSchedule = false
	if _, known, err := r.Views(10, 1e-6); err != nil || known.Bare().Upper != server.Bare().Upper {
		t.Errorf("known schedule still amplifies: %v, %v", known, err)
	}
	// A sign lane costs, as 1/z² = Δ²/V + d/V_s says.
	r = exampleRound()
	signs := Lane{ShareSigma: 40, Sensitivity: signs(10000)}
	r.Signs = &signs
	both, err := r.Spent(ServerView, 10, 1e-6)
	if err != nil {
		t.Fatal(err)
	}
	zz := 1 / math.Sqrt(1/(z*z)+10000/(80*40.0*40))
	if want := mustEpsilon(t, 1e-6, Step{Gaussian{zz}, 10}); both.Bare().Upper < want.Lower ||
		both.Bare().Upper > (1+1e-5)*want.Upper {
		t.Errorf("both lanes %v, want about %v", both.Bare().Upper, want)
	}
}

func TestRoundLaws(t *testing.T) {
	lap := Round{Family: FamilyDiscreteLaplace, Shares: 10, Honest: 10,
		Update: Lane{SumScale: 10, Sensitivity: Sensitivity{1, 1, 1}}, Rate: 0.1, HiddenSchedule: true}
	server, public, err := lap.Views(5, 0)
	if err != nil {
		t.Fatal(err)
	}
	if server.Bare().Accountant != "PLD" || !server.Bare().Contains(0.5) ||
		!(public.Bare().Upper < 0.06) {
		t.Errorf("server %+v public %+v", server, public)
	}
	skellam := Round{Family: FamilySkellam, Shares: 10, Honest: 10,
		Update: Lane{ShareVariance: 10, Sensitivity: Sensitivity{1, 1, 1}}, Rate: 1}
	s, err := skellam.Spent(ServerView, 3, 1e-6)
	if err != nil {
		t.Fatal(err)
	}
	if want := mustEpsilon(t, 1e-6, Step{Skellam{100, 1}, 3}); s.Bare().Bound != want {
		t.Errorf("%v, want %v", s.Bare().Bound, want)
	}
	skellam.Update.Sensitivity = Sensitivity{30, 6, 50}
	if s, err = skellam.Spent(ServerView, 3, 1e-6); err != nil || s.Bare().Accountant != "PLD" ||
		s.Bare().Neighbour != "1 coordinate by 6" || s.Bare().Width() > 0.013*s.Bare().Upper {
		t.Errorf("%+v %v", s, err)
	}
}

// The samplers' distance adds (1+e^ε)·N·distance to δ.
func TestTableDistance(t *testing.T) {
	r := Round{Family: FamilySkellam, Shares: 10, Honest: 10,
		Update: Lane{ShareVariance: 10, Sensitivity: Sensitivity{1, 1, 1}}, Rate: 1}
	clean, err := r.Spent(ServerView, 10, 1e-9)
	if err != nil {
		t.Fatal(err)
	}
	r.TableDistance, r.Samples = math.Pow(2, -100), 1e6
	tiny, err := r.Spent(ServerView, 10, 1e-9)
	if err != nil || tiny.Bare().Upper < clean.Bare().Upper ||
		tiny.Bare().Upper > clean.Bare().Upper*(1+1e-8) {
		t.Errorf("%v, %v, %v", clean, tiny, err)
	}
	r.TableDistance = 1e-17
	rough, err := r.Spent(ServerView, 10, 1e-9)
	if err != nil {
		t.Fatal(err)
	}
	left := 1e-9 - (1+math.Exp(rough.Bare().Upper))*1e-17*1e7
	c, err := Compose(Step{Skellam{100, 1}, 10})
	if err != nil {
		t.Fatal(err)
	}
	if b, err := c.Epsilon(left); err != nil || b.Upper > rough.Bare().Upper {
		t.Errorf("ε = %v does not hold at the δ that is left, %v", rough.Bare().Upper, b)
	}
	if s, err := r.Spent(ServerView, 10, 0); err != nil || !math.IsInf(s.Bare().Upper, 1) ||
		s.Bare().Reason == "" {
		t.Errorf("pure claim with table samplers: %+v %v", s, err)
	}
	r.TableDistance = 1e-10
	if s, err := r.Spent(ServerView, 10, 1e-9); err != nil || !math.IsInf(s.Bare().Upper, 1) ||
		s.Bare().Reason == "" {
		t.Errorf("%+v %v", s, err)
	}
}

func TestRoundErrors(t *testing.T) {
	for name, change := range map[string]func(*Round){
		"law":       func(r *Round) { r.Family = 0 },
		"shares":    func(r *Round) { r.Shares = 0 },
		"survivors": func(r *Round) { r.Honest = 79 },
		"rate":      func(r *Round) { r.Rate = 0 },
		"noise":     func(r *Round) { r.Update.ShareSigma = 0 },
		"unit":      func(r *Round) { r.Update.ShareVariance = 1 },
		"norm":      func(r *Round) { r.Update.Sensitivity.L2 = 0 },
		"dim":       func(r *Round) { r.Update.Sensitivity.Dimension = 0 },
		"distance":  func(r *Round) { r.TableDistance = 1 },
		"samples":   func(r *Round) { r.Samples = -1 },
	} {
		r := exampleRound()
		change(&r)
		if _, _, err := r.Views(1, 1e-6); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, _, err := exampleRound().Views(-1, 1e-6); !errors.Is(err, ErrConfig) {
		t.Error(err)
	}
}
