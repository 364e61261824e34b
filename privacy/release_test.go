package privacy

import (
	"errors"
	"math"
	"testing"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/noise"
)

// release returns one of a hundred parties' vectors of 40 coordinates.
func release() Release {
	return Release{
		Promise:   Assumed(100, 100),
		Noise:     Noise{Family: accounting.FamilyDiscreteGaussian, Multiplier: 1, Clip: 1, Bits: 18},
		Dimension: 40,
	}
}

func TestConfig(t *testing.T) {
	signs := func(d int, part, least float64) func(*Release) {
		return func(r *Release) { r.Signs = &Signs{Dimension: d, Part: part, MinMultiplier: least} }
	}
	for _, c := range []struct {
		name   string
		change func(*Release)
		field  string
		is     error // or nil
		late   bool  // not found by Validate
	}{
		{"no norm", func(r *Release) { r.Longest = -1 }, "Longest", nil, false},
		{"no family", func(r *Release) { r.Noise.Family = 0 }, "Noise.Family", nil, false},
		{"unknown family", func(r *Release) { r.Noise.Family = 9 }, "Noise.Family", nil, false},
		{"no noise", func(r *Release) { r.Noise.Multiplier = 0 }, "Noise.Multiplier", nil, false},
		{"negative", func(r *Release) { r.Noise.Multiplier = -1 }, "Noise.Multiplier", nil, false},
		{"beyond all", func(r *Release) { r.Noise.Multiplier = 1e300 }, "Noise.Multiplier", nil, false},
		{"NaN", func(r *Release) { r.Noise.Multiplier = math.NaN() }, "Noise.Multiplier", nil, false},
		{"infinite", func(r *Release) { r.Noise.Multiplier = math.Inf(1) }, "Noise.Multiplier", nil, false},
		{"clip 0", func(r *Release) { r.Noise.Clip = 0 }, "Noise.Clip", nil, false},
		{"clip NaN", func(r *Release) { r.Noise.Clip = math.NaN() }, "Noise.Clip", nil, false},
		{"clip infinite", func(r *Release) { r.Noise.Clip = math.Inf(1) }, "Noise.Clip", nil, false},
		{"0 bits", func(r *Release) { r.Noise.Bits = 0 }, "Noise.Bits", nil, false},
		{"65 bits", func(r *Release) { r.Noise.Bits = 65 }, "Noise.Bits", nil, false},
		{"no promise", func(r *Release) { r.Promise = Promise{} }, "Promise", nil, false},
		{"nobody", func(r *Release) { r.Promise = Assumed(0, 1) }, "Promise.Parties", nil, false},
		{"too many", func(r *Release) { r.Promise = Assumed(1<<20+1, 1) }, "Promise.Parties", nil, false},
		{"more than all", func(r *Release) { r.Promise = Assumed(100, 101) }, "Promise.Honest", nil, false},
		{"nobody honest", func(r *Release) { r.Promise = Assumed(100, 0) }, "Promise.Honest", nil, false},
		{"no coordinates", func(r *Release) { r.Dimension = 0 }, "Dimension", nil, false},
		{"rate", func(r *Release) { r.Rate = 1.5 }, "Rate", nil, false},
		{"rate NaN", func(r *Release) { r.Rate = math.NaN() }, "Rate", nil, false},
		{"no signs", signs(0, 0.5, 0), "Signs.Dimension", nil, false},
		{"all for signs", signs(1, 1, 0), "Signs.Part", nil, false},
		{"nothing for signs", signs(1, 0, 0), "Signs.Part", nil, false},
		{"least NaN", signs(1, 0.5, math.NaN()), "Signs.MinMultiplier", nil, false},
		{"least infinite", signs(1, 0.5, math.Inf(1)), "Signs.MinMultiplier", nil, false},
		{"2 bits", func(r *Release) { r.Noise.Bits = 2 }, "Noise.Bits", aggregation.ErrBits, true},
		{"vast", func(r *Release) { r.Noise.Multiplier = 1e12 }, "Noise.Bits", aggregation.ErrBits, true},
		{"wide", func(r *Release) { r.Noise = Noise{accounting.FamilyDiscreteLaplace, 1e7, 1, 64} },
			"Noise.Bits", noise.ErrTooLarge, true},
		{"narrow", func(r *Release) { r.Noise.Multiplier = 1e-12 }, "Noise.Multiplier", nil, true},
		{"huge vector", func(r *Release) { r.Dimension = math.MaxInt >> 22 }, "Noise", aggregation.ErrConfig, true},
		{"votes too few", func(r *Release) { r.Signs = &Signs{Dimension: 1, Part: 0.5} }, "Noise.Family", nil, true},
	} {
		r := release()
		c.change(&r)
		if err := r.Validate(); (err == nil) != c.late {
			t.Errorf("%s: Validate returns %v", c.name, err)
		}
		m, err := r.Mechanism()
		var wrong *ConfigError
		if m != nil || !errors.As(err, &wrong) || wrong.Field != c.field || !errors.Is(err, ErrConfig) ||
			c.is != nil && !errors.Is(err, c.is) {
			t.Errorf("%s: %v, want an error of %s", c.name, err, c.field)
		}
	}
}

// The multiplier of both lanes together is the one that was asked for, and no lane has
// less noise than its part or the least allows.
func TestMultipliers(t *testing.T) {
	for _, s := range []*Signs{{Part: 0.5}, {Part: 1. / 16, MinMultiplier: 4}, Votes(10),
		Votes(1000)} {
		for _, z := range []float64{1e-6, 0.01, 0.3, 1, 7, 1e6} {
			vector, signs := s.multipliers(z)
			if joint := 1 / math.Sqrt(1/(vector*vector)+1/(signs*signs)); math.Abs(joint/z-1) > 1e-12 {
				t.Errorf("%+v: %v and %v are %v together, want %v", s, vector, signs, joint, z)
			}
			if signs < s.MinMultiplier || vector < z || z*z/(signs*signs) > s.Part*(1+1e-12) {
				t.Errorf("%+v: %v is divided into %v and %v", s, z, vector, signs)
			}
		}
	}
	var none *Signs
	if vector, signs := none.multipliers(3); vector != 3 || !math.IsInf(signs, 1) {
		t.Errorf("without signs %v, %v", vector, signs)
	}
	// (Andrew 2021): z = 0.6 with noise of 0.5 on the sum of bits, which is 1 on votes,
	// leaves z_Δ of 1/0.36 − 1 = 0.64/0.36.
	if vector, _ := (&Signs{Part: 0.99, MinMultiplier: 1}).
		multipliers(0.6); math.Abs(vector-0.75) > 1e-15 {
		t.Errorf("%v, want 0.75", vector)
	}
}
