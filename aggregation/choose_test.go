package aggregation

import (
	"errors"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/hushsum/hushsum/accounting"
)

func TestChooseScaleErrors(t *testing.T) {
	good := Encoder{Parties: 100, Dimension: 1000, Clip: 1, Bits: 18}
	with := func(change func(*Encoder)) Encoder {
		e := good
		change(&e)
		return e
	}
	for _, c := range []struct {
		name       string
		e          Encoder
		multiplier float64
		shares     int
		want       error
	}{
		{"zero value", Encoder{}, 1, 1, ErrConfig},
		{"no bits", with(func(e *Encoder) { e.Bits = 0 }), 1, 80, ErrConfig},
		{"no shares", good, 1, 0, ErrConfig},
		{"more shares than parties", good, 1, 101, ErrConfig},
		{"multiplier negative", good, -1, 80, ErrConfig},
		{"multiplier NaN", good, math.NaN(), 80, ErrConfig},
		{"multiplier infinite", good, math.Inf(1), 80, ErrConfig},
		{"clip zero", with(func(e *Encoder) { e.Clip = 0 }), 1, 80, ErrConfig},
		{"no coordinates", with(func(e *Encoder) { e.Dimension = 0 }), 1, 80, ErrConfig},
		{"too few bits", with(func(e *Encoder) { e.Bits = 8 }), 1, 80, ErrBits},
		{"too much noise", good, 1e6, 80, ErrBits},
		{"noise without end", with(func(e *Encoder) { e.Bits = 64 }), 1e18, 80, ErrBits},
	} {
		got, err := c.e.ChooseScale(c.multiplier, c.shares)
		if !errors.Is(err, c.want) || got != (Encoder{}) {
			t.Errorf("%s: %+v, %v; want %v", c.name, got, err, c.want)
		}
	}
}

// What is chosen fits, has the noise that was asked for, and is the largest: a
// hundred-thousandth more does not fit.
func TestChooseScaleProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := Encoder{
			Parties:   rapid.IntRange(1, 10000).Draw(t, "parties"),
			Dimension: rapid.IntRange(1, 1<<20).Draw(t, "dimension"),
			Clip:      math.Exp(rapid.Float64Range(-20, 20).Draw(t, "clip")),
			Bits:      rapid.IntRange(2, 64).Draw(t, "bits"),
			NoiseFamily: rapid.SampledFrom([]accounting.Family{accounting.FamilyDiscreteLaplace,
				accounting.FamilySkellam, accounting.FamilyDiscreteGaussian}).Draw(t, "tail"),
		}
		if rapid.Bool().Draw(t, "rotate") {
			e.Rotate = rotationSeed(1)
		}
		z := rapid.SampledFrom([]float64{0, 0.1, 1, 10}).Draw(t, "multiplier")
		shares := rapid.IntRange(1, e.Parties).Draw(t, "shares")
		got, err := e.ChooseScale(z, shares)
		if errors.Is(err, ErrBits) {
			// Then one unit does not fit: with one bit for the noise alone, or
			// because of the parties.
			e.Scale = 1.000001 / e.Clip
			s := Encoder{Parties: 1, Dimension: e.Dimension, Clip: e.Clip, Scale: e.Scale, Rotate: e.Rotate}
			sens, err := s.Sensitivity()
			if err != nil {
				t.Fatal(err)
			}
			e.NoiseStdDev = z * sens.L2 * math.Sqrt(float64(e.Parties)/float64(shares))
			if err := e.Validate(); !errors.Is(err, ErrBits) {
				t.Fatalf("one unit fits (%v), and ChooseScale refuses", err)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := got.Validate(); err != nil {
			t.Fatal(err)
		}
		s, err := got.Sensitivity()
		if err != nil {
			t.Fatal(err)
		}
		share := got.NoiseStdDev / math.Sqrt(float64(e.Parties)) * math.Sqrt(float64(shares))
		if math.Abs(share-z*s.L2) > 1e-12*share {
			t.Fatalf("the shares that must suffice have σ = %v, want %v", share, z*s.L2)
		}
		more := got
		more.Scale *= 1.00001
		if more.Scale*more.Clip > maxUnits {
			return
		}
		more.NoiseStdDev = 0
		more.Bits = 0
		if s, err = more.Sensitivity(); err != nil {
			t.Fatal(err)
		}
		more.Bits = e.Bits
		more.NoiseStdDev = z * s.L2 * math.Sqrt(float64(e.Parties)/float64(shares))
		// Integer bounds have steps; the next scale may sit on the same one.
		if err := more.Validate(); err == nil && got.Clip*got.Scale > 1000 && z > 0 {
			t.Fatalf("a larger scale fits: %v, not %v", more.Scale, got.Scale)
		}
	})
}

// Known settings: what a number of bits buys. They are to hold within 1 %, so that a
// bound that becomes looser shows.
func TestChooseScaleKnown(t *testing.T) {
	const gaussian = accounting.FamilyDiscreteGaussian
	for _, c := range []struct {
		n, d, bits int
		z          float64
		tail       accounting.Family
		rotate     bool
		units      float64 // Clip·Scale
		inflation  float64 // Δ₂/(Clip·Scale)
	}{
		{100, 10000, 16, 1, gaussian, true, 1678, 1.001},
		{100, 10000, 20, 1, gaussian, true, 2.694e+04, 1},
		{100, 10000, 20, 1, 0, true, 1.211e+04, 1},
		{100, 10000, 20, 1, accounting.FamilySkellam, true, 2.694e+04, 1},
		{100, 10000, 20, 1, gaussian, false, 4775, 1},
		{100, 100000, 12, 1, gaussian, true, 63.62, 2.689},
		{100, 100000, 14, 1, gaussian, true, 578.9, 1.038},
		{100, 100000, 16, 1, gaussian, true, 2398, 1.002},
		{100, 100000, 20, 1, gaussian, true, 3.855e+04, 1},
		{100, 100000, 24, 1, gaussian, true, 6.169e+05, 1},
		{1000, 1000000, 20, 1, gaussian, true, 2.26e+04, 1},
		{1000, 1000000, 20, 1, 0, true, 1.043e+04, 1.001},
		{10, 1, 16, 0, 0, false, 3276, 1},
	} {
		e := Encoder{Parties: c.n, Dimension: c.d, Clip: 0.5, Bits: c.bits, NoiseFamily: c.tail}
		if c.rotate {
			e.Rotate = rotationSeed(3)
		}
		e, err := e.ChooseScale(c.z, c.n*8/10)
		if err != nil {
			t.Errorf("%+v: %v", c, err)
			continue
		}
		s, err := e.Sensitivity()
		if err != nil {
			t.Fatal(err)
		}
		units := e.Clip * e.Scale
		if math.Abs(units/c.units-1) > 0.01 || math.Abs(s.L2/units/c.inflation-1) > 0.01 {
			t.Errorf("{%d, %d, %d, %v, %d, %v, %.4g, %.4g},", c.n, c.d, c.bits, c.z, c.tail, c.rotate, units,
				s.L2/units)
		}
	}
}
