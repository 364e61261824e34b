package spending

import (
	"errors"
	"math"
	"reflect"
	"testing"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/privacy"
)

// plain is a run that can be accounted for.
func plain() Run {
	return Run{Mechanism: "gaussian", NoiseMultiplier: 2, Rate: 1, Rounds: 3, Sensitivity: 1,
		Dimension: 1, Shares: 1, View: accounting.ServerView}
}

func with(change func(*Run)) Run {
	r := plain()
	change(&r)
	return r
}

// Every field is checked, by its name; a field that is searched for is not.
func TestCheck(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	discrete := func(change func(*Run)) func(*Run) {
		return func(r *Run) {
			r.Mechanism = "skellam"
			change(r)
		}
	}
	for _, c := range []struct {
		field    string // "": nothing is wrong
		searched string
		change   func(*Run)
	}{
		{"", "", func(*Run) {}},
		{"Mechanism", "", func(r *Run) { r.Mechanism = "none" }},
		{"NoiseMultiplier", "", func(r *Run) { r.NoiseMultiplier = 0 }},
		{"NoiseMultiplier", "", func(r *Run) { r.NoiseMultiplier = -1 }},
		{"NoiseMultiplier", "", func(r *Run) { r.NoiseMultiplier = nan }},
		{"NoiseMultiplier", "", func(r *Run) { r.NoiseMultiplier = inf }},
		{"", "NoiseMultiplier", func(r *Run) { r.NoiseMultiplier = nan }},
		{"Scale", "", func(r *Run) { r.Scale = 1 }}, // twice
		{"Scale", "", func(r *Run) { r.NoiseMultiplier, r.Scale = 0, inf }},
		{"Variance", "", func(r *Run) { r.Variance = 1 }},
		{"Variance", "", func(r *Run) { r.NoiseMultiplier, r.Scale, r.Variance = 0, 1, 1 }},
		{"", "", func(r *Run) { r.NoiseMultiplier, r.Variance = 0, 4 }},
		{"Rate", "", func(r *Run) { r.Rate = 0 }},
		{"Rate", "", func(r *Run) { r.Rate = 1.01 }},
		{"Rate", "", func(r *Run) { r.Rate = nan }},
		{"", "Rate", func(r *Run) { r.Rate = 0 }},
		{"Rounds", "", func(r *Run) { r.Rounds = 0 }},
		{"", "", func(r *Run) { r.Rounds = 1 }},
		{"", "Rounds", func(r *Run) { r.Rounds = 0 }},
		{"", "", func(r *Run) { r.Rounds, r.Participations, r.Of = 1, 3, 3 }},
		{"Participations", "", func(r *Run) { r.Rounds, r.Participations, r.Of = 1, 4, 3 }},
		{"Participations", "", func(r *Run) { r.Rounds, r.Of = 1, 3 }},
		{"Rounds", "", func(r *Run) { r.Participations, r.Of = 2, 3 }},
		{"Rounds", "Rounds", func(r *Run) { r.Rounds, r.Participations, r.Of = 1, 2, 3 }},
		{"Rate", "Rate", func(r *Run) { r.Rounds, r.Participations, r.Of = 1, 2, 3 }},
		{"Factorise", "", func(r *Run) { r.Rounds, r.Participations, r.Of, r.Factorise = 1, 2, 3, 2 }},
		{"Sensitivity", "", func(r *Run) { r.Sensitivity = 0 }},
		{"Sensitivity", "", func(r *Run) { r.Sensitivity = nan }},
		{"Sensitivity", "", func(r *Run) { r.Sensitivity = inf }},
		{"Dimension", "", func(r *Run) { r.Dimension = 0 }},
		{"Shares", "", func(r *Run) { r.Shares = 0 }},
		{"Dimension", "", func(r *Run) { r.Dimension = 2 }},
		{"Shares", "", func(r *Run) { r.Shares = 2 }},
		{"Shares", "", discrete(func(r *Run) { r.Shares = 2 })},
		{"", "", discrete(func(r *Run) { r.Dimension, r.Sensitivity = 2, 1.5 })},
		{"", "", func(r *Run) { r.Mechanism, r.Shares = "discrete-gaussian", 2 }},
		{"Sensitivity", "", discrete(func(r *Run) { r.Sensitivity = 1.5 })},
		{"", "", func(r *Run) { r.Sensitivity = 1.5 }},
		{"", "", discrete(func(r *Run) { r.Sensitivity = 1 << 30 })},
		{"Sensitivity", "", discrete(func(r *Run) { r.Sensitivity = 1<<30 + 1 })},
		{"", "", func(r *Run) { r.Sensitivity = 1<<30 + 1 }},
		{"", "", discrete(func(r *Run) { r.NoiseMultiplier = 0x1p-300 })},
		{"NoiseMultiplier", "", discrete(func(r *Run) { r.NoiseMultiplier = 0x1p-301 })},
		{"", "", discrete(func(r *Run) { r.NoiseMultiplier = 0x1p300 })},
		{"NoiseMultiplier", "", discrete(func(r *Run) { r.NoiseMultiplier = 0x1p301 })},
		{"ReplaceOne", "", discrete(func(r *Run) { r.ReplaceOne, r.Dimension = true, 2 })},
		{"", "", func(r *Run) { r.ReplaceOne, r.Rate = true, 0.5 }},
		// The server knows who takes part: the rate does not count.
		{"", "", func(r *Run) { r.Mechanism, r.ReplaceOne, r.Rate = "laplace", true, 0.5 }},
		{"ReplaceOne", "", func(r *Run) {
			r.Mechanism, r.ReplaceOne, r.Rate, r.View = "laplace", true, 0.5, accounting.PublicView
		}},
		{"", "", func(r *Run) { r.Factorise = 2 }},
		{"", "NoiseMultiplier", func(r *Run) { r.Factorise = 3 }},
		{"", "", discrete(func(r *Run) { r.Factorise, r.Sensitivity = 3, 1.5 })},
		{"Factorise", "", func(r *Run) { r.Factorise = 1 }},
		{"Factorise", "", func(r *Run) { r.Factorise = -1 }},
		{"Factorise", "", func(r *Run) { r.Factorise = 4 }},
		{"Factorise", "Rounds", func(r *Run) { r.Factorise = 2 }},
		{"Factorise", "", func(r *Run) { r.Mechanism, r.Factorise = "laplace", 2 }},
		{"Factorise", "", func(r *Run) { r.Mechanism, r.Factorise = "discrete-laplace", 2 }},
		{"Factorise", "", func(r *Run) { r.Unit, r.Factorise = accounting.RecordUnit, 2 }},
		{"Rate", "", func(r *Run) { r.Rate, r.Factorise = 0.5, 2 }},
		{"Rate", "Rate", func(r *Run) { r.Factorise = 2 }},
		{"ReplaceOne", "", func(r *Run) { r.ReplaceOne, r.Factorise = true, 2 }},
		{"Dimension", "", discrete(func(r *Run) { r.Dimension, r.Factorise = math.MaxInt, 2 })},
	} {
		r := with(c.change)
		err := r.Check(c.searched)
		var fault *privacy.ConfigError
		switch {
		case c.field == "" && err != nil:
			t.Errorf("%+v: %v", r, err)
		case c.field != "" && (!errors.As(err, &fault) || fault.Field != c.field ||
			!errors.Is(err, privacy.ErrConfig)):
			t.Errorf("%+v: %v, want %s", r, err, c.field)
		}
	}
	if math.MaxInt > mostRounds {
		var rounds int64 = mostRounds
		r := with(func(r *Run) { r.Rounds = int(rounds) })
		if err := r.Check(""); err != nil {
			t.Error(err)
		}
		r.Rounds++
		if err := r.Check(""); !errors.Is(err, privacy.ErrConfig) {
			t.Errorf("2^40 + 1 rounds: %v", err)
		}
	}
}

// A run is the steps that package accounting has for it, however the noise is stated.
func TestSteps(t *testing.T) {
	for _, c := range []struct {
		change func(*Run)
		want   accounting.Mechanism
	}{
		{func(*Run) {}, accounting.Gaussian{NoiseMultiplier: 2}},
		{func(r *Run) { r.Sensitivity = 5 }, accounting.Gaussian{NoiseMultiplier: 2}},
		{func(r *Run) { r.NoiseMultiplier, r.Scale, r.Sensitivity = 0, 10, 5 },
			accounting.Gaussian{NoiseMultiplier: 2}},
		{func(r *Run) { r.NoiseMultiplier, r.Variance, r.Sensitivity = 0, 100, 5 },
			accounting.Gaussian{NoiseMultiplier: 2}},
		{func(r *Run) { r.Mechanism, r.Sensitivity = "laplace", 3 }, accounting.Laplace{Scale: 2}},
		{func(r *Run) { r.Mechanism, r.Sensitivity = "discrete-gaussian", 3 },
			accounting.DiscreteGaussian{Sigma: 6, Sensitivity: 3}},
		{func(r *Run) { r.Mechanism, r.Sensitivity = "discrete-laplace", 3 },
			accounting.DiscreteLaplace{Scale: 6, Sensitivity: 3}},
		{func(r *Run) { r.Mechanism, r.Sensitivity = "skellam", 3 },
			accounting.Skellam{Variance: 36, Sensitivity: 3}},
		{func(r *Run) { r.Mechanism, r.NoiseMultiplier, r.Variance = "skellam", 0, 7 },
			accounting.Skellam{Variance: 7, Sensitivity: 1}},
		{func(r *Run) { r.Rate = 0.5 }, accounting.Gaussian{NoiseMultiplier: 2}}, // the server's view
		{func(r *Run) { r.Rate, r.View = 0.5, accounting.PublicView },
			accounting.Sampled{Mechanism: accounting.Gaussian{NoiseMultiplier: 2}, Rate: 0.5}},
		{func(r *Run) { r.Rate, r.View, r.ReplaceOne = 0.5, accounting.PublicView, true },
			accounting.ReplaceOne{Mechanism: accounting.Gaussian{NoiseMultiplier: 2}, Rate: 0.5}},
		{func(r *Run) { r.Rate, r.ReplaceOne = 0.5, true },
			accounting.ReplaceOne{Mechanism: accounting.Gaussian{NoiseMultiplier: 2}, Rate: 1}},
	} {
		r := with(c.change)
		want := []accounting.Step{{Mechanism: c.want, Count: 3}}
		if got := r.Steps(); !reflect.DeepEqual(got, want) {
			t.Errorf("%+v: %+v, want %+v", r, got, want)
		}
	}
}

// Vectors and shares are lanes, whose noise is that of all shares together.
func TestRound(t *testing.T) {
	r := with(func(r *Run) {
		r.Mechanism, r.Shares, r.Dimension, r.Sensitivity = "discrete-gaussian", 4, 100, 3
	})
	got := r.Round()
	if !r.Lanes() || got.Family != accounting.FamilyDiscreteGaussian || got.Shares != 4 ||
		got.Honest != 4 || got.Update.ShareSigma != 3 || got.Update.ShareVariance != 0 ||
		got.Update.Sensitivity.L2 != 3 || got.Update.Sensitivity.Dimension != 100 ||
		got.Update.Sensitivity.L1 != accounting.RoundedL1(3, 100) || !got.HiddenSchedule ||
		got.Rate != 1 {
		t.Errorf("%+v", got)
	}
	r.Mechanism, r.Shares = "skellam", 1
	if got = r.Round(); got.Family != accounting.FamilySkellam || got.Update.ShareVariance != 36 ||
		got.Update.ShareSigma != 0 {
		t.Errorf("%+v", got)
	}
	if r.Dimension = 1; r.Lanes() {
		t.Error("one coordinate of one share is a lane")
	}
}

// Epsilon and Delta are those of the accountant that is asked, and each other's inverse.
func TestEpsilonAndDelta(t *testing.T) {
	r := plain()
	spent, err := r.Epsilon(1e-5)
	if err != nil || spent.Bare().Accountant != "PLD" || spent.Server() != accounting.CuriousServer {
		t.Fatalf("%+v, %v", spent, err)
	}
	delta, err := r.Delta(spent.Bare().Upper)
	if err != nil || delta.Lower > 1e-5 || delta.Upper < 0.99e-5 {
		t.Errorf("at ε = %v: %+v, %v", spent.Bare().Upper, delta, err)
	}
	composed, err := accounting.Compose(r.Steps()...)
	if err != nil {
		t.Fatal(err)
	}
	if want, err := composed.Epsilon(1e-5); err != nil || spent.Bare().Bound != want {
		t.Errorf("%+v, want %+v, %v", spent, want, err)
	}
	lanes := with(func(r *Run) { r.Mechanism, r.Dimension, r.Sensitivity = "skellam", 10, 100 })
	spent, err = lanes.Epsilon(1e-5)
	want, err2 := lanes.Round().Spent(accounting.ServerView, 3, 1e-5)
	if err != nil || err2 != nil || spent.Bare() != want.Bare() || spent.Bare().Accountant != "PLD" {
		t.Errorf("%+v, want %+v, %v, %v", spent, want, err, err2)
	}
	if _, err := lanes.Delta(1); !errors.Is(err, accounting.ErrUnsupported) {
		t.Errorf("the δ of a vector: %v", err)
	}
	for _, bad := range []Run{with(func(r *Run) { r.NoiseMultiplier = 0 }),
		with(func(r *Run) { r.Mechanism, r.NoiseMultiplier = "skellam", 0 })} {
		if _, err := bad.Epsilon(1e-5); err == nil {
			t.Errorf("%+v: an epsilon", bad)
		}
		if _, err := bad.Delta(1); err == nil {
			t.Errorf("%+v: a delta", bad)
		}
	}
}

// What is found meets the target, and the least step beyond does not; what was stated
// otherwise of the noise gives way.
func TestCalibrate(t *testing.T) {
	target := accounting.Target{Epsilon: 2, Delta: 1e-5}
	lanes := func(r *Run) { r.Mechanism, r.Dimension, r.Sensitivity = "skellam", 10, 1000 }
	for name, c := range map[string]struct {
		field  string
		change func(*Run)
		beyond func(*Run)
	}{
		"noise": {"NoiseMultiplier", func(r *Run) { r.NoiseMultiplier, r.Scale = 0, 1 },
			func(r *Run) { r.NoiseMultiplier *= 0.99 }},
		"noise of a vector": {"NoiseMultiplier", lanes, func(r *Run) { r.NoiseMultiplier *= 0.99 }},
		"rounds":            {"Rounds", func(r *Run) { r.NoiseMultiplier = 10 }, func(r *Run) { r.Rounds++ }},
		"rounds of a vector": {"Rounds", func(r *Run) {
			lanes(r)
			r.NoiseMultiplier = 10
		}, func(r *Run) { r.Rounds++ }},
		"rate": {"Rate", func(r *Run) { r.NoiseMultiplier, r.View = 1, accounting.PublicView },
			func(r *Run) { r.Rate *= 1.02 }},
		"rate of a vector": {"Rate", func(r *Run) {
			lanes(r)
			r.NoiseMultiplier, r.View = 1, accounting.PublicView
		}, func(r *Run) { r.Rate *= 1.02 }},
	} {
		r := with(c.change)
		if err := r.Calibrate(c.field, target); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if c.field == "NoiseMultiplier" {
			r.Scale = 0
		}
		got, err := r.Epsilon(1e-5)
		if err != nil || got.Bare().Upper > 2 {
			t.Errorf("%s: ε = %v, %v with %+v", name, got.Bare().Upper, err, r)
		}
		c.beyond(&r)
		if more, err := r.Epsilon(1e-5); err != nil || more.Bare().Upper <= 2 {
			t.Errorf("%s: one more step spends %v, %v with %+v", name, more.Bare().Upper, err, r)
		}
	}
}
