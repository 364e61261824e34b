package simulation

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/internal/suite"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/noise"
	"github.com/hushsum/hushsum/privacy"
	"github.com/hushsum/hushsum/protocol"
)

// noisy is small with noise: updates of equal weight.
func noisy(t testing.TB, n privacy.Noise) Options {
	o := small(t)
	o.Models, o.MaxSamples = false, 0
	o.Noise = &n
	return o
}

func mechanism(t testing.TB, o Options) *privacy.Mechanism {
	t.Helper()
	release, err := o.Release()
	if err != nil {
		t.Fatal(err)
	}
	m, err := release.Mechanism()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// After one round the private model has what the noise predicts over the clear one,
// in which updates are the same: the variance of all parties' shares, by the number
// of parties, and that of rounding.
//
// False alarm: of 400 weights per law, the mean square is within 6 standard
// deviations of what it is expected to be, with the kurtosis of at most 6 that
// the shares of all parties have: below 1e-8 if it is normal, below 1e-6 in all
// with room for its skewness.
func TestNoisyRound(t *testing.T) {
	runs := suite.Size(4, 4, 10, 10) // of five parties, the limits follow from the number
	for _, family := range accounting.Families() {
		o := noisy(t, privacy.Noise{Family: family, Multiplier: 0.5, Clip: 0.25, Bits: 12})
		o.Rounds, o.Local.Steps = 1, 5
		o.Recovery, o.Colluders = &protocol.Recovery{MinSurvivors: 5}, 1
		m := mechanism(t, o)
		if s := m.Vector.Shares; s.MinHonest != 4 || s.Parties != 5 {
			t.Errorf("%v: shares %+v, want 4 of 5", family, s)
		}
		square, values := 0.0, 0
		for range runs {
			s, err := Run(t.Context(), o, nil)
			if err != nil {
				t.Fatal(err)
			}
			if r := s.Rounds[0]; r.Parties != 5 || r.Samples != 300 {
				t.Errorf("%v: %d parties, %d samples", family, r.Parties, r.Samples)
			}
			if s.Layout[0].Bits != 12 || s.Layout[0].Length != 40 {
				t.Errorf("%v: layout %v, want 40 of 12 bits", family, s.Layout)
			}
			for j, w := range s.Model {
				square += (w - s.Clear[j]) * (w - s.Clear[j])
				values++
			}
		}
		// A rounded coordinate has a variance of at most 1/4 unit and about 1/6.
		variance := math.Pow(m.Vector.SumStdDev(5), 2)
		want := (variance + 5.0/6) / (5 * 5) / (m.Encoder.Scale * m.Encoder.Scale)
		got := square / float64(values)
		tolerance := 6*math.Sqrt(5/float64(values)) + 0.02 // 0.02 for what rounding may have else
		if math.Abs(got/want-1) > tolerance {
			t.Errorf("%v: a variance of %.4g between the models, want %.4g within %.0f %%", family, got,
				want, 100*tolerance)
		}
		t.Logf("%v: standard deviation %.4g between the models, want %.4g", family, math.Sqrt(got),
			math.Sqrt(want))
	}
}

// Under next to no noise and with ample bits, the models of a whole run agree to
// rounding, also when parties drop out; under no clipping to speak of they are
// those of averaging without noise.
func TestNoisyTraining(t *testing.T) {
	bare, err := Run(t.Context(), small(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, drop := range []float64{0, 0.2} {
		for _, clip := range []float64{0.3, 50} {
			o := noisy(t, privacy.Noise{Family: accounting.FamilyDiscreteGaussian, Multiplier: 1e-8,
				Clip: clip, Bits: 48})
			o.Drop = drop
			if drop > 0 {
				o.Recovery = &protocol.Recovery{}
			}
			s, err := Run(t.Context(), o, nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := s.Rounds[2].MaxAbsDiff; diff == 0 || diff > 1e-5 {
				t.Errorf("drop %v, clip %v: the models are %v apart", drop, clip, diff)
			}
			like := slices.EqualFunc(s.Clear, bare.Clear,
				func(a, b float64) bool { return math.Abs(a-b) < 1e-9 })
			if want := drop == 0 && clip == 50; like != want {
				t.Errorf("drop %v, clip %v: like training without noise: %v, want %v", drop, clip, like, want)
			}
		}
	}
}

// Two runs add different noise, to the same training in the clear.
func TestNoiseIsFresh(t *testing.T) {
	o := noisy(t, DefaultNoise())
	a, err := Run(t.Context(), o, nil)
	if err != nil {
		t.Fatal(err)
	}
	b, err := Run(t.Context(), o, nil)
	if err != nil {
		t.Fatal(err)
	}
	if slices.Equal(a.Model, b.Model) || !slices.Equal(a.Clear, b.Clear) {
		t.Error("want different private models and the same clear ones")
	}
}

// What package privacy refuses is said in the words of Options.
func TestNoiseOptions(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Options)
		field  string
		is     error // or nil
		late   bool  // not found by Validate
	}{
		{"no law", func(o *Options) { o.Noise.Family = 0 }, "privacy.noise", nil, false},
		{"no noise", func(o *Options) { o.Noise.Multiplier = 0 }, "privacy.multiplier", nil, false},
		{"clip NaN", func(o *Options) { o.Noise.Clip = math.NaN() }, "privacy.clip", nil, false},
		{"0 bits", func(o *Options) { o.Noise.Bits = 0 }, "privacy.bits", nil, false},
		{"2 bits", func(o *Options) { o.Noise.Bits = 2 }, "privacy.bits", aggregation.ErrBits, true},
		{"wide", func(o *Options) {
			o.Noise.Family, o.Noise.Bits, o.Noise.Multiplier = accounting.FamilyDiscreteLaplace, 64, 1e7
		}, "privacy.bits", noise.ErrTooLarge, true},
		{"narrow", func(o *Options) { o.Noise.Multiplier = 1e-12 }, "privacy.multiplier", nil, true},
		{"budget", func(o *Options) { o.Budget.Epsilon = -1 }, "privacy.epsilon", nil, false},
		{"delta", func(o *Options) { o.Budget.Delta = 2 }, "privacy.delta", nil, false},
		{"sparse", func(o *Options) { o.Recovery = &protocol.Recovery{Adversary: protocol.CuriousServer, Degree: 4} },
			"sum.degree", nil, false},
	} {
		o := noisy(t, DefaultNoise())
		if c.name == "sparse" {
			o.Parties, o.Test = census(t, 800, 10, 20)
		}
		c.change(&o)
		if err := o.Validate(); (err == nil) != c.late {
			t.Errorf("%s: Validate returns %v", c.name, err)
		}
		_, err := Run(t.Context(), o, nil)
		var wrong *job.ConfigError
		if !errors.As(err, &wrong) || wrong.Path != c.field || !errors.Is(err, job.ErrConfig) ||
			c.is != nil && !errors.Is(err, c.is) {
			t.Errorf("%s: %v, want an error of %s", c.name, err, c.field)
		}
	}
	o := small(t)
	if r, err := o.Release(); r != nil || !errors.Is(err, job.ErrConfig) {
		t.Errorf("without noise: %v, %v", r, err)
	}
	if _, err := o.Calibrate(); !errors.Is(err, job.ErrConfig) {
		t.Errorf("calibrated no noise: %v", err)
	}
	o = noisy(t, DefaultNoise())
	if _, err := o.Calibrate(); !errors.Is(err, privacy.ErrConfig) {
		t.Errorf("calibrated to no budget: %v", err)
	}
	o.Parties = nil
	if _, err := o.Release(); !errors.Is(err, job.ErrConfig) {
		t.Errorf("without parties: %v", err)
	}
}

// A round of secret coins for which nobody is drawn is noise alone, and next to it, in the clear,
// nothing.
func TestNobodyDrawn(t *testing.T) {
	parties, test := declaredRows(t)
	for _, mask := range []string{"none", "soft"} {
		j := declaredJob()
		j.Rounds, j.Parties.Hidden, j.Training.Mask = 60, 0.5, mask
		j.Privacy = job.Privacy{Noise: "skellam", Multiplier: 1, Clip: 1, SubmitAfter: time.Second}
		o, err := Declared(j, parties, test)
		if err != nil {
			t.Fatal(err)
		}
		o.Random = rand.NewChaCha8([32]byte{1})
		result, err := Run(t.Context(), o, nil)
		if err != nil {
			t.Fatalf("%s: %v", mask, err)
		}
		nobody := 0
		for _, r := range result.Rounds {
			if r.Lost == nil && len(r.Included) == 0 {
				nobody++
			}
		}
		if nobody == 0 || math.IsNaN(result.Clear[0]) {
			t.Errorf("%s: %d rounds of nobody", mask, nobody)
		}
	}
}
