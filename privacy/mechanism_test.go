package privacy

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/internal/suite"
	"github.com/hushsum/hushsum/masking"
)

func mechanism(t testing.TB, r Release) *Mechanism {
	t.Helper()
	m, err := r.Mechanism()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// The accountant is told what parties do: as many honest shares as are left, the
// standard deviation of their sum, the sensitivity after rounding.
func TestRound(t *testing.T) {
	for _, family := range accounting.Families() {
		r := release()
		r.Promise = Promise{parties: 10, shares: 10, honest: 7, colluders: 1, failure: 1e-13}
		r.Noise.Family, r.Noise.Multiplier, r.Noise.Bits = family, 2, 14
		m := mechanism(t, r)
		round := m.Round()
		if same, err := r.Round(); err != nil || same.Update != round.Update ||
			same.Samples != round.Samples {
			t.Errorf("%v: the release's round is %+v, %v, want %+v", family, same, err, round)
		}
		if round.Family != family || round.Honest != round.Shares || round.Shares != 7 ||
			round.Failure != 1e-13 || m.Promise() != r.Promise {
			t.Errorf("%v: %d shares of %d honest ones", family, round.Shares, round.Honest)
		}
		var variance float64
		switch u := round.Update; family {
		case accounting.FamilyDiscreteGaussian:
			variance = 7 * u.ShareSigma * u.ShareSigma
		case accounting.FamilySkellam:
			variance = 7 * u.ShareVariance
		default:
			variance = 1 / (2 * math.Pow(math.Sinh(1/(2*u.SumScale)), 2))
		}
		bounds := m.Vector.Sensitivity
		if want := math.Pow(2*bounds.L2, 2); math.Abs(variance/want-1) > 1e-9 {
			t.Errorf("%v: variance %v, want %v", family, variance, want)
		}
		if got := m.StdDev(7) * m.Encoder.Scale / bounds.L2; math.Abs(got/2-1) > 1e-9 {
			t.Errorf("%v: the multiplier is %v, want 2", family, got)
		}
		if got := m.Vector.SumStdDev(10) / m.Vector.SumStdDev(7); math.Abs(got-math.Sqrt(10./7)) > 1e-12 {
			t.Errorf("%v: ten shares are %v of seven", family, got)
		}
		if s := round.Update.Sensitivity; s != bounds || s.Dimension != 40 ||
			s.L2 < m.Encoder.Clip*m.Encoder.Scale || m.MaxNorm() < 1 {
			t.Errorf("%v: sensitivity %+v", family, s)
		}
		if d := m.Vector.table.Distance(); round.TableDistance < d || round.Samples != 400 {
			t.Errorf("%v: %v samples at distance %v, the table's is %v", family, round.Samples,
				round.TableDistance, d)
		}
	}
}

// With next to no noise and ample bits the mean comes out to rounding, and so do the
// signs; a party that is not drawn changes nothing but the noise.
func TestDecodeIsMean(t *testing.T) {
	suite.Checks(t, suite.Size(30, 30, 100, 1000))
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.IntRange(1, 70).Draw(t, "dimension")
		n := rapid.IntRange(1, 12).Draw(t, "parties")
		r := Release{
			Promise: Assumed(n+2, n+2),
			Noise: Noise{
				Family:     rapid.SampledFrom(accounting.Families()).Draw(t, "family"),
				Multiplier: 1e-4, Clip: math.Ldexp(1, rapid.IntRange(-9, 9).Draw(t, "clip")), Bits: 24,
			},
			Dimension: d,
		}
		if rapid.Bool().Draw(t, "signs") {
			r.Noise.Family = accounting.FamilySkellam
			r.Signs = &Signs{Dimension: d, Part: 0.999, MinMultiplier: 0.005}
		}
		m, err := r.Mechanism()
		if err != nil {
			t.Fatal(err)
		}
		layout, err := m.Layout()
		if err != nil {
			t.Fatal(err)
		}
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		rotation := Rotation([32]byte{byte(d)}, uint64(n))
		sum := make([][]uint64, len(layout))
		for s := range sum {
			sum[s] = make([]uint64, layout[s].Length)
		}
		add := func(made [][]uint64, err error) {
			if err != nil {
				t.Fatal(err)
			}
			for s := range sum {
				for j, x := range made[s] {
					if x>>layout[s].Bits != 0 {
						t.Fatalf("%d is outside a ring of %d bits", x, layout[s].Bits)
					}
					sum[s][j] = (sum[s][j] + x) & (^uint64(0) >> (64 - layout[s].Bits))
				}
			}
		}
		want, votes := make([]float64, d), make([]int64, d)
		for range n {
			v := make([]float64, d)
			for j := range v {
				v[j] = rng.NormFloat64() * r.Noise.Clip / math.Sqrt(float64(d))
			}
			clipped, _, err := aggregation.Clip(v, r.Noise.Clip)
			if err != nil {
				t.Fatal(err)
			}
			for j, x := range clipped {
				want[j] += x / float64(n)
				if x > 0 {
					votes[j]++
				} else if x < 0 {
					votes[j]--
				}
			}
			switch {
			case r.Signs != nil:
				add(m.Encode(rotation, v, v, nil))
			case d%2 == 0:
				add(m.Encode(rotation, v, nil, nil))
			default:
				submission, err := masking.NewVector(layout)
				if err == nil {
					err = EncodeTo(submission, m, rotation, v, nil)
				}
				add(submission.Values(), err)
			}
		}
		add(m.Blank(nil))
		mean, signs, err := m.Decode(rotation, sum, n)
		if err != nil {
			t.Fatal(err)
		}
		// Rounding moves each party's coordinate by less than 1, the rotation by √d′ of
		// these. Of noise 40 standard deviations are room for the tails of all families.
		room := math.Sqrt(float64(layout[0].Length))/m.Encoder.Scale + 40*m.StdDev(n+1)/float64(n)
		for j := range mean {
			if math.Abs(mean[j]-want[j]) > room {
				t.Fatalf("coordinate %d is %v, want %v", j, mean[j], want[j])
			}
		}
		if r.Signs == nil {
			if signs != nil {
				t.Fatal("signs without a lane")
			}
			return
		}
		// σ of a sum of signs is 0.005·√70 at most, so that 3 has probability 10^-10.
		for j := range signs {
			if math.Abs(float64(signs[j]-votes[j])) > 2 {
				t.Fatalf("sign %d is %d, want %d", j, signs[j], votes[j])
			}
		}
	})
}

// TestEncodeToHasNoSigns: what EncodeTo refuses leaves nothing in the vector.
func TestEncodeToHasNoSigns(t *testing.T) {
	r := release()
	r.Noise.Family, r.Signs = accounting.FamilySkellam, &Signs{Dimension: 40, Part: 0.5}
	m := mechanism(t, r)
	layout, err := m.Layout()
	if err != nil {
		t.Fatal(err)
	}
	v, err := masking.NewVector(layout)
	if err != nil {
		t.Fatal(err)
	}
	v.AddMask(new(masking.Seed))
	if err := EncodeTo(v, m, [32]byte{}, make([]float64, 40), nil); !errors.Is(err,
		aggregation.ErrLength) {
		t.Errorf("signs: %v", err)
	}
	for _, lane := range v.Values() {
		for _, x := range lane {
			if x != 0 {
				t.Fatal("something is left in the vector")
			}
		}
	}
}

func TestEncodeErrors(t *testing.T) {
	m := mechanism(t, release())
	vector := make([]float64, 40)
	for name, c := range map[string]struct {
		vector, signs []float64
		want          error
	}{
		"too short":     {vector[:39], nil, aggregation.ErrLength},
		"not a number":  {append(slices.Clone(vector[:39]), math.NaN()), nil, aggregation.ErrNotFinite},
		"signs of none": {vector, vector, aggregation.ErrLength},
	} {
		if out, err := m.Encode([32]byte{}, c.vector, c.signs, nil); out != nil ||
			!errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	dry := errors.New("no randomness")
	if out, err := m.Encode([32]byte{}, vector, nil, iotest.ErrReader(dry)); out != nil || err == nil {
		t.Error("encoded without randomness")
	}
	if out, err := m.Blank(iotest.ErrReader(dry)); out != nil || err == nil {
		t.Error("a blank without randomness")
	}
	for name, sum := range map[string][][]uint64{"nothing": nil, "short": {make([]uint64, 63)},
		"two": {make([]uint64, 64), nil}} {
		if mean, _, err := m.Decode([32]byte{}, sum, 5); mean != nil ||
			!errors.Is(err, aggregation.ErrLength) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Rounds and what is public decide the rotation.
func TestRotation(t *testing.T) {
	a := Rotation([32]byte{1}, 2)
	if a != Rotation([32]byte{1}, 2) || a == Rotation([32]byte{2}, 2) ||
		a == Rotation([32]byte{1}, 3) {
		t.Error("rotations do not follow from their arguments")
	}
}
