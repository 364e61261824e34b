package simulation

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/internal/suite"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/privacy"
)

// someNoise is noise of multiplier 1, with a clip of 1 and 18 bits.
var someNoise = job.Privacy{Noise: "discrete-gaussian", Multiplier: 1, Clip: 1, Bits: 18}

// noisy is small with noise: updates of equal weight.
func noisy(t testing.TB, p job.Privacy) trial {
	o := small(t)
	o.Training.Submit, o.Sum = "", job.Sum{}
	o.Privacy = p
	return o
}

func mechanism(t testing.TB, o trial) *privacy.Mechanism {
	t.Helper()
	s, _, err := o.settle()
	if err != nil {
		t.Fatal(err)
	}
	return s.Mechanism()
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
		o := noisy(t, job.Privacy{Noise: family.String(), Multiplier: 0.5, Clip: 0.25, Bits: 12})
		o.Rounds, o.Training.Steps = 1, 5
		o.Sum.Recovery, o.Parties.Colluders = true, 1
		m := mechanism(t, o)
		if s := m.Vector.Shares; s.MinHonest != 4 || s.Parties != 5 {
			t.Errorf("%v: shares %+v, want 4 of 5", family, s)
		}
		square, values := 0.0, 0
		for range runs {
			s, err := o.run(t.Context(), nil)
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
	bare, err := small(t).run(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, drop := range []float64{0, 0.2} {
		for _, clip := range []float64{0.3, 50} {
			o := noisy(t, job.Privacy{Noise: "discrete-gaussian", Multiplier: 1e-8, Clip: clip, Bits: 48})
			o.World.Drop, o.Parties.DropOut = drop, drop
			s, err := o.run(t.Context(), nil)
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
	o := noisy(t, someNoise)
	a, err := o.run(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	b, err := o.run(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if slices.Equal(a.Model, b.Model) || !slices.Equal(a.Clear, b.Clear) {
		t.Error("want different private models and the same clear ones")
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
		x := trial{Job: *j, rows: parties, test: test}
		x.world = func(w *World) { w.Random = rand.NewChaCha8([32]byte{1}) }
		result, err := x.run(t.Context(), nil)
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
