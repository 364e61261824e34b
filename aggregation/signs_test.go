package aggregation

import (
	"errors"
	"math"
	"math/bits"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/masking"
)

func TestSignsLayout(t *testing.T) {
	for n := 1; n < 3000; n++ {
		layout, err := Signs{Parties: n, Dimension: 7}.Layout()
		want := bits.Len(uint(2 * n)) // ⌈log₂(2n + 1)⌉
		if err != nil || !slices.Equal(layout, masking.Layout{{Length: 7, Bits: want}}) {
			t.Fatalf("%d parties: %v, %v; want %d bits", n, layout, err, want)
		}
	}
	s, err := Signs{Parties: 5, Dimension: 10}.Sensitivity()
	if err != nil || s.L1 != 10 || s.L2*s.L2 < 10 || s.L2 > math.Sqrt(10)*(1+0x1p-50) ||
		s.Dimension != 10 {
		t.Errorf("%+v, %v", s, err)
	}
	// Noise of 100 reaches beyond 9 standard deviations with probability 2^-41 over
	// the 10,000 coordinates: 100·√(2·(ln 10⁴ + 42·ln 2)) = 875.6.
	layout, err := Signs{Parties: 100, Dimension: 10000, NoiseStdDev: 100,
		NoiseFamily: accounting.FamilyDiscreteGaussian}.Layout()
	if err != nil || layout[0].Bits != 11 {
		t.Error(layout, err)
	}
	if _, bound, err := (Signs{Parties: 100, Dimension: 10000, NoiseStdDev: 100,
		NoiseFamily: accounting.FamilyDiscreteGaussian}).coding(); err != nil || bound != 975 {
		t.Error(bound, err)
	}
}

func TestSignsErrors(t *testing.T) {
	good := Signs{Parties: 5, Dimension: 2}
	for _, c := range []struct {
		name string
		s    Signs
		want error
	}{
		{"zero value", Signs{}, ErrConfig},
		{"parties", Signs{Dimension: 1}, ErrConfig},
		{"dimension", Signs{Parties: 1}, ErrConfig},
		{"too long", Signs{Parties: 1, Dimension: masking.MaxLength + 1}, ErrConfig},
		{"bits", Signs{Parties: 1, Dimension: 1, Bits: -1}, ErrConfig},
		{"bits above 64", Signs{Parties: 1, Dimension: 1, Bits: 65}, ErrConfig},
		{"too few bits", Signs{Parties: 4, Dimension: 1, Bits: 3}, ErrBits},
		{"noise", Signs{Parties: 1, Dimension: 1, NoiseStdDev: -1}, ErrConfig},
		{"noise NaN", Signs{Parties: 1, Dimension: 1, NoiseStdDev: math.NaN()}, ErrConfig},
		{"tail", Signs{Parties: 1, Dimension: 1, NoiseFamily: 9}, ErrConfig},
		{"noise beyond 64 bits", Signs{Parties: 1, Dimension: 1, NoiseStdDev: 1 << 60}, ErrBits},
		{"parties beyond 64 bits", Signs{Parties: math.MaxInt, Dimension: 1}, ErrBits},
	} {
		if err := c.s.Validate(); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
		if out, err := c.s.Layout(); !errors.Is(err, c.want) || out != nil {
			t.Errorf("%s: Layout = %v, %v", c.name, out, err)
		}
		if out, err := c.s.Sensitivity(); !errors.Is(err, c.want) || out != (accounting.Sensitivity{}) {
			t.Errorf("%s: Sensitivity = %v, %v", c.name, out, err)
		}
		if out, err := c.s.Encode(nil, nil); !errors.Is(err, c.want) || out != nil {
			t.Errorf("%s: Encode = %v, %v", c.name, out, err)
		}
		if out, err := c.s.Decode(nil, 1); !errors.Is(err, c.want) || out != nil {
			t.Errorf("%s: Decode = %v, %v", c.name, out, err)
		}
	}
	noisy := good
	noisy.NoiseStdDev = 3
	for _, c := range []struct {
		s      Signs
		update []float64
		noise  []int64
		want   error
	}{
		{good, []float64{1}, nil, ErrLength},
		{good, []float64{1, 2}, []int64{1, 2}, ErrLength},
		{noisy, []float64{1, 2}, nil, ErrLength},
		{noisy, []float64{1, 2}, []int64{1}, ErrLength},
		{good, []float64{1, math.NaN()}, nil, ErrNotFinite},
		{good, []float64{math.Inf(-1), 1}, nil, ErrNotFinite},
	} {
		if out, err := c.s.Encode(c.update, c.noise); !errors.Is(err, c.want) || out != nil {
			t.Errorf("Encode(%v, %v) = %v, %v; want %v", c.update, c.noise, out, err, c.want)
		}
	}
	for _, c := range []struct {
		sum       [][]uint64
		survivors int
		want      error
	}{
		{[][]uint64{{1, 2}}, 0, ErrConfig},
		{[][]uint64{{1, 2}}, 6, ErrConfig},
		{[][]uint64{{1, 2}, {1}}, 5, ErrLength},
		{[][]uint64{{1}}, 5, ErrLength},
		{[][]uint64{{1, 16}}, 5, ErrRing},
		{[][]uint64{{1, 6}}, 5, ErrSum},
		{[][]uint64{{1, 4}}, 3, ErrSum}, // three parties cannot sum to 4
		{[][]uint64{{16 - 4, 1}}, 3, ErrSum},
	} {
		if out, err := good.Decode(c.sum, c.survivors); !errors.Is(err, c.want) || out != nil {
			t.Errorf("Decode(%v, %d) = %v, %v; want %v", c.sum, c.survivors, out, err, c.want)
		}
	}
}

// Masking under the secure sum is masking in the clear bit for bit, for every
// rule and both masks: once with an Encoder's average, where the clear rule gets
// the same rounded updates, and once with FixedPoint's.
func TestSecureMaskEqualsClear(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		rng := newRandom(rapid.Uint64().Draw(r, "seed"))
		d, n := rapid.IntRange(1, 40).Draw(r, "d"), rapid.IntRange(1, 8).Draw(r, "n")
		mask := GradientMask{
			Kind:      rapid.SampledFrom([]MaskKind{SoftMask, HardMask}).Draw(r, "kind"),
			Threshold: rapid.SampledFrom([]float64{0, 0.2, 0.4, 0.8, 1}).Draw(r, "τ"),
		}
		secure := Optimizer{Rule: rapid.SampledFrom(everyRule).Draw(r, "rule"), Rate: 0.7, Beta1: 0.5}
		clipped := rapid.Bool().Draw(r, "clipped")
		plainly := secure

		encoder := Encoder{Parties: n, Dimension: d, Clip: 1, Scale: 1 << 14}
		vector := Mean{Parties: n, Dimension: d, Range: 8, FractionBits: 30}
		signs := Signs{Parties: n, Dimension: d}
		lanes := Lanes{vector, signs}
		if clipped {
			lanes = Lanes{encoder, signs}
		}
		layout, err := lanes.Layout()
		if err != nil {
			r.Fatal(err)
		}
		w := normals(rng, d)
		v := slices.Clone(w)
		for range 2 {
			updates := make([][]float64, n)
			submissions := make([][][]uint64, n)
			integers := make([]int64, d) // the rounded updates, summed in the clear
			for k := range updates {
				u := normals(rng, d)
				for i := range u {
					if u[i] = math.Max(-7, math.Min(7, u[i])); rng.IntN(4) == 0 {
						u[i] = 0
					}
				}
				updates[k] = u
				var part [][]uint64
				if clipped {
					part, err = encoder.Encode(u, nil, chacha(byte(k)))
				} else {
					part, err = vector.Encode(u)
				}
				if err != nil {
					r.Fatal(err)
				}
				rounded, err := Integers(part[0], layout[0].Bits)
				if err != nil {
					r.Fatal(err)
				}
				for i, x := range rounded {
					integers[i] += x
				}
				s, err := signs.Encode(u, nil)
				if err != nil {
					r.Fatal(err)
				}
				if submissions[k], err = lanes.Join(part, s); err != nil {
					r.Fatal(err)
				}
			}
			parts, err := lanes.Split(maskedTotal(t, layout, submissions))
			if err != nil {
				r.Fatal(err)
			}
			var mean []float64
			if clipped {
				mean, err = encoder.Decode(parts[0], n)
			} else {
				mean, err = vector.Decode(parts[0], n)
			}
			if err != nil {
				r.Fatal(err)
			}
			sum, err := signs.Decode(parts[1], n)
			if err != nil {
				r.Fatal(err)
			}
			weights, err := mask.Weights(sum, n)
			if err != nil {
				r.Fatal(err)
			}
			if w, err = secure.Apply(w, mean, weights); err != nil {
				r.Fatal(err)
			}

			plain := make([]float64, d)
			for i, x := range integers {
				if clipped {
					plain[i] = float64(x) / (encoder.Scale * float64(n))
				} else {
					plain[i] = math.Ldexp(float64(x), -vector.FractionBits) / float64(n)
				}
			}
			inClear, err := SumSigns(updates...)
			if err != nil {
				r.Fatal(err)
			}
			factors, err := mask.Weights(inClear, n)
			if err != nil {
				r.Fatal(err)
			}
			if v, err = plainly.Apply(v, plain, factors); err != nil {
				r.Fatal(err)
			}
			if !sameBits(w, v) {
				r.Fatalf("under masks %v, in the clear %v", w, v)
			}
		}
	})
}

// With noise, the sum that comes out is that of the signs and the noise.
func TestNoisySigns(t *testing.T) {
	rng := newRandom(5)
	s := Signs{Parties: 6, Dimension: 50, NoiseStdDev: 20, NoiseFamily: accounting.FamilySkellam}
	layout, err := s.Layout()
	if err != nil {
		t.Fatal(err)
	}
	want := make([]int64, s.Dimension)
	var submissions [][][]uint64
	for range s.Parties {
		u := normals(rng, s.Dimension)
		noise := make([]int64, s.Dimension) // data for a test, not for a release
		for i := range noise {
			noise[i] = int64(math.Round(rng.NormFloat64() * 8))
			want[i] += sign(u[i]) + noise[i]
		}
		part, err := s.Encode(u, noise)
		if err != nil {
			t.Fatal(err)
		}
		submissions = append(submissions, part)
	}
	got, err := s.Decode(maskedTotal(t, layout, submissions), s.Parties)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
	if slices.Max(want) <= 6 && slices.Min(want) >= -6 {
		t.Error("the noise shows nowhere")
	}
}

func TestLanes(t *testing.T) {
	vector := Mean{Parties: 3, Dimension: 2, Range: 1, FractionBits: 4}
	average := FedAvg{Parties: 3, Dimension: 4, Range: 1, FractionBits: 4, MaxSamples: 10}
	vote := Signs{Parties: 3, Dimension: 1}
	lanes := Lanes{vector, average, vote}
	layout, err := lanes.Layout()
	if err != nil || !slices.Equal(layout,
		masking.Layout{{Length: 2, Bits: 7}, {Length: 4, Bits: 10}, {Length: 1, Bits: 5},
			{Length: 1, Bits: 3}}) {
		t.Fatal(layout, err)
	}
	part0, err := vector.Encode([]float64{0.5, -0.25})
	if err != nil {
		t.Fatal(err)
	}
	part1, err := average.Encode([]float64{1, 0, -1, 0.5}, 7)
	if err != nil {
		t.Fatal(err)
	}
	part2, err := vote.Encode([]float64{-3}, nil)
	if err != nil {
		t.Fatal(err)
	}
	all, err := lanes.Join(part0, part1, part2)
	if err != nil || len(all) != 4 {
		t.Fatal(all, err)
	}
	parts, err := lanes.Split(all)
	if err != nil || len(parts) != 3 {
		t.Fatal(parts, err)
	}
	if x, err := vector.Decode(parts[0], 1); err != nil || !slices.Equal(x, []float64{0.5, -0.25}) {
		t.Error(x, err)
	}
	if x, n, err := average.Decode(parts[1]); err != nil || n != 7 ||
		!slices.Equal(x, []float64{1, 0, -1, 0.5}) {
		t.Error(x, n, err)
	}
	if x, err := vote.Decode(parts[2], 1); err != nil || !slices.Equal(x, []int64{-1}) {
		t.Error(x, err)
	}

	for name, c := range map[string]struct {
		call func() ([][]uint64, error)
		want error
	}{
		"none":     {func() ([][]uint64, error) { return Lanes{}.Join() }, ErrConfig},
		"nil":      {func() ([][]uint64, error) { return Lanes{nil}.Join() }, ErrConfig},
		"bad lane": {func() ([][]uint64, error) { return Lanes{Signs{}}.Join() }, ErrConfig},
		"too many": {func() ([][]uint64, error) {
			return make(Lanes, 0, 1025).many(1025).Join()
		}, masking.ErrLayout},
		"a part missing": {func() ([][]uint64, error) { return lanes.Join(part0, part1) }, ErrLength},
		"order":          {func() ([][]uint64, error) { return lanes.Join(part1, part0, part2) }, ErrLength},
		"split elsewhere": {func() ([][]uint64, error) {
			return lanes.Join(append(slices.Clone(part0), part1[0]), part1[1:], part2)
		}, ErrLength},
		"one part for all": {func() ([][]uint64, error) { return lanes.Join(all) }, ErrLength},
		"vector, short":    {func() ([][]uint64, error) { return vector.Encode([]float64{1}) }, ErrLength},
		"vector, range":    {func() ([][]uint64, error) { return vector.Encode([]float64{1, 2}) }, ErrSaturated},
		"vector, NaN": {func() ([][]uint64, error) {
			return vector.Encode([]float64{1, math.NaN()})
		}, ErrNotFinite},
		"vector, none":    {func() ([][]uint64, error) { return Mean{Parties: 1, Range: 1}.Encode(nil) }, ErrConfig},
		"vector, parties": {func() ([][]uint64, error) { return Mean{Dimension: 1, Range: 1}.Encode(nil) }, ErrConfig},
	} {
		if out, err := c.call(); !errors.Is(err, c.want) || out != nil {
			t.Errorf("%s: %v, %v; want %v", name, out, err, c.want)
		}
	}
	for _, c := range []struct {
		sum       [][]uint64
		survivors int
		want      error
	}{
		{[][]uint64{{1, 2}}, 0, ErrConfig},
		{[][]uint64{{1, 2}}, 4, ErrConfig},
		{[][]uint64{{1}}, 3, ErrLength},
		{[][]uint64{{1, 128}}, 3, ErrRing},
		{[][]uint64{{1, 49}}, 3, ErrSum},
	} {
		if out, err := vector.Decode(c.sum, c.survivors); !errors.Is(err, c.want) || out != nil {
			t.Errorf("Decode(%v, %d) = %v, %v; want %v", c.sum, c.survivors, out, err, c.want)
		}
	}
}

// many returns n copies of one lane.
func (l Lanes) many(n int) Lanes {
	for range n {
		l = append(l, Signs{Parties: 1, Dimension: 1})
	}
	return l
}
