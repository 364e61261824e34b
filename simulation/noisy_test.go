package simulation

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/noise"
	"github.com/hushsum/hushsum/protocol"
)

var families = []accounting.Family{accounting.FamilyDiscreteLaplace, accounting.FamilyDiscreteGaussian, accounting.FamilySkellam}

// After one round the private model has what the noise predicts over the clear one,
// in which updates are the same: the variance of all parties' shares, by the number
// of parties, and that of rounding.
//
// False alarm: of 400 weights per law, the mean square is within 6 standard
// deviations of what it is expected to be, with the kurtosis of at most 6 that
// the shares of all parties have: below 1e-8 if it is normal, below 1e-6 in all
// with room for its skewness.
func TestNoisyRound(t *testing.T) {
	const runs = 10
	for _, family := range families {
		o := small(t)
		o.Rounds, o.LocalSteps = 1, 5
		o.Noise = &Noise{Law: family, Multiplier: 0.5, Clip: 0.25, Bits: 12}
		o.Recovery, o.Colluders = &protocol.Recovery{MinSurvivors: 5}, 1
		m, err := o.Mechanism(o.Train.Features)
		if err != nil {
			t.Fatal(err)
		}
		if m.Shares.MinHonest != 4 || m.Shares.Parties != 5 {
			t.Errorf("%v: shares %+v, want 4 of 5", family, m.Shares)
		}
		if got := m.StdDev() * m.Encoder.Scale / m.Sensitivity.L2; math.Abs(got/0.5-1) > 1e-9 {
			t.Errorf("%v: the multiplier is %v, want 0.5", family, got)
		}
		square, values := 0.0, 0
		for range runs {
			s, err := Run(t.Context(), o, nil)
			if err != nil {
				t.Fatal(err)
			}
			if r := s.Rounds[0]; r.Clients != 5 || r.Samples != 300 {
				t.Errorf("%v: %d parties, %d samples", family, r.Clients, r.Samples)
			}
			if s.Layout[0].Bits != 12 || s.Layout[0].Length != 40 {
				t.Errorf("%v: layout %v, want 40 of 12 bits", family, s.Layout)
			}
			for j, w := range s.Private {
				square += (w - s.Clear[j]) * (w - s.Clear[j])
				values++
			}
		}
		// A rounded coordinate has a variance of at most 1/4 unit and about 1/6.
		want := (m.Shares.Law.Variance()*5/4 + 5.0/6) / (5 * 5) / (m.Encoder.Scale * m.Encoder.Scale)
		got := square / float64(values)
		tolerance := 6*math.Sqrt(5/float64(values)) + 0.02 // 0.02 for what rounding may have else
		if math.Abs(got/want-1) > tolerance {
			t.Errorf("%v: a variance of %.4g between the models, want %.4g within %.0f %%", family, got, want, 100*tolerance)
		}
		t.Logf("%v: standard deviation %.4g between the models, want %.4g", family, math.Sqrt(got), math.Sqrt(want))
	}
}

// Under next to no noise and with ample bits, the models of a whole run agree to
// rounding, also when parties drop out; under no clipping to speak of they are
// those of weighted averaging.
func TestNoisyTraining(t *testing.T) {
	o := small(t)
	bare, err := Run(t.Context(), o, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, drop := range []float64{0, 0.2} {
		for _, clip := range []float64{0.3, 50} {
			o := small(t)
			o.Drop = drop
			if drop > 0 {
				o.Recovery = &protocol.Recovery{}
			}
			o.Noise = &Noise{Law: accounting.FamilyDiscreteGaussian, Multiplier: 1e-8, Clip: clip, Bits: 48}
			s, err := Run(t.Context(), o, nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := s.Rounds[2].MaxAbsDiff; diff == 0 || diff > 1e-5 {
				t.Errorf("drop %v, clip %v: the models are %v apart", drop, clip, diff)
			}
			like := slices.EqualFunc(s.Clear, bare.Clear, func(a, b float64) bool { return math.Abs(a-b) < 1e-9 })
			if want := drop == 0 && clip == 50; like != want {
				t.Errorf("drop %v, clip %v: like training without noise: %v, want %v", drop, clip, like, want)
			}
		}
	}
}

// Two runs add different noise, to the same training in the clear.
func TestNoiseIsFresh(t *testing.T) {
	o := small(t)
	n := DefaultNoise()
	o.Noise = &n
	a, err := Run(t.Context(), o, nil)
	if err != nil {
		t.Fatal(err)
	}
	b, err := Run(t.Context(), o, nil)
	if err != nil {
		t.Fatal(err)
	}
	if slices.Equal(a.Private, b.Private) || !slices.Equal(a.Clear, b.Clear) {
		t.Error("want different private models and the same clear ones")
	}
}

func TestNoiseOptions(t *testing.T) {
	good := DefaultNoise()
	for _, c := range []struct {
		name   string
		change func(*Noise)
		option string
		is     error // or nil
		late   bool  // not found by Validate
	}{
		{"no law", func(n *Noise) { n.Law = 0 }, "Noise.Law", nil, false},
		{"one-sided", func(n *Noise) { n.Law = 9 }, "Noise.Law", nil, false},
		{"no noise", func(n *Noise) { n.Multiplier = 0 }, "Noise.Multiplier", nil, false},
		{"negative", func(n *Noise) { n.Multiplier = -1 }, "Noise.Multiplier", nil, false},
		{"beyond all", func(n *Noise) { n.Multiplier = 1e300 }, "Noise.Multiplier", nil, false},
		{"NaN", func(n *Noise) { n.Multiplier = math.NaN() }, "Noise.Multiplier", nil, false},
		{"infinite", func(n *Noise) { n.Multiplier = math.Inf(1) }, "Noise.Multiplier", nil, false},
		{"clip 0", func(n *Noise) { n.Clip = 0 }, "Noise.Clip", nil, false},
		{"clip NaN", func(n *Noise) { n.Clip = math.NaN() }, "Noise.Clip", nil, false},
		{"clip infinite", func(n *Noise) { n.Clip = math.Inf(1) }, "Noise.Clip", nil, false},
		{"0 bits", func(n *Noise) { n.Bits = 0 }, "Noise.Bits", nil, false},
		{"65 bits", func(n *Noise) { n.Bits = 65 }, "Noise.Bits", nil, false},
		{"2 bits", func(n *Noise) { n.Bits = 2 }, "Noise.Bits", aggregation.ErrBits, true},
		{"vast", func(n *Noise) { n.Multiplier = 1e12 }, "Noise.Bits", aggregation.ErrBits, true},
		{"wide", func(n *Noise) { n.Law, n.Bits = accounting.FamilySkellam, 30 }, "Noise.Bits", noise.ErrTooLarge, true},
		{"narrow", func(n *Noise) { n.Multiplier = 1e-12 }, "Noise.Multiplier", nil, true},
	} {
		o := small(t)
		n := good
		c.change(&n)
		o.Noise = &n
		if err := o.Validate(); (err == nil) != c.late {
			t.Errorf("%s: Validate returns %v", c.name, err)
		}
		_, err := Run(t.Context(), o, nil)
		var bad *OptionError
		if !errors.As(err, &bad) || bad.Option != c.option || !errors.Is(err, ErrOptions) || c.is != nil && !errors.Is(err, c.is) {
			t.Errorf("%s: %v, want an error of %s", c.name, err, c.option)
		}
	}
	o := small(t)
	if m, err := o.Mechanism(40); m != nil || err != nil {
		t.Errorf("without noise: %v, %v", m, err)
	}
	o.Noise, o.Clients = &good, 0
	if _, err := o.Mechanism(40); !errors.Is(err, ErrOptions) {
		t.Errorf("without parties: %v", err)
	}
}
