package aggregation

import (
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/masking"
)

func rotationSeed(k byte) *[32]byte { return &[32]byte{k, 9} }

var testEncoder = Encoder{Parties: 10, Dimension: 3, Clip: 1, Scale: 1000}

func TestEncoderErrors(t *testing.T) {
	with := func(change func(*Encoder)) Encoder {
		e := testEncoder
		change(&e)
		return e
	}
	for _, c := range []struct {
		name string
		e    Encoder
		want error
		says string
	}{
		{"zero value", Encoder{}, ErrConfig, "Parties"},
		{"no parties", with(func(e *Encoder) { e.Parties = 0 }), ErrConfig, "Parties"},
		{"negative parties", with(func(e *Encoder) { e.Parties = math.MinInt }), ErrConfig, "Parties"},
		{"no coordinates", with(func(e *Encoder) { e.Dimension = 0 }), ErrConfig, "Dimension"},
		{"too many coordinates", with(func(e *Encoder) {
			e.Dimension = masking.MaxLength + 1
		}), ErrConfig, "Dimension"},
		{"clip zero", with(func(e *Encoder) { e.Clip = 0 }), ErrConfig, "clipping norm"},
		{"clip negative", with(func(e *Encoder) { e.Clip = -1 }), ErrConfig, "clipping norm"},
		{"clip NaN", with(func(e *Encoder) { e.Clip = math.NaN() }), ErrConfig, "clipping norm"},
		{"clip infinite", with(func(e *Encoder) { e.Clip = math.Inf(1) }), ErrConfig, "clipping norm"},
		{"scale zero", with(func(e *Encoder) { e.Scale = 0 }), ErrConfig, "Clip·Scale"},
		{"scale negative", with(func(e *Encoder) { e.Scale = -5 }), ErrConfig, "Clip·Scale"},
		{"scale NaN", with(func(e *Encoder) { e.Scale = math.NaN() }), ErrConfig, "Clip·Scale"},
		{"scale infinite", with(func(e *Encoder) { e.Scale = math.Inf(1) }), ErrConfig, "Clip·Scale"},
		{"scale huge", with(func(e *Encoder) { e.Scale = math.Nextafter(1<<30, 1<<31) }), ErrConfig, "Clip·Scale"},
		{"scale tiny", with(func(e *Encoder) { e.Scale = math.Nextafter(1, 0) }), ErrConfig, "Clip·Scale"},
		{"product overflows", with(func(e *Encoder) {
			e.Clip, e.Scale = 1e150, math.MaxFloat64
		}), ErrConfig, "Clip·Scale"},
		{"bits negative", with(func(e *Encoder) { e.Bits = -1 }), ErrConfig, "Bits"},
		{"bits above 64", with(func(e *Encoder) { e.Bits = 65 }), ErrConfig, "Bits"},
		{"beta negative", with(func(e *Encoder) { e.Beta = -0.1 }), ErrConfig, "Beta"},
		{"beta one", with(func(e *Encoder) { e.Beta = 1 }), ErrConfig, "Beta"},
		{"beta NaN", with(func(e *Encoder) { e.Beta = math.NaN() }), ErrConfig, "Beta"},
		{"noise negative", with(func(e *Encoder) { e.NoiseStdDev = -1 }), ErrConfig, "NoiseStdDev"},
		{"noise NaN", with(func(e *Encoder) { e.NoiseStdDev = math.NaN() }), ErrConfig, "NoiseStdDev"},
		{"noise huge", with(func(e *Encoder) { e.NoiseStdDev = 1e30 }), ErrConfig, "NoiseStdDev"},
		{"family unknown", with(func(e *Encoder) { e.NoiseFamily = 9 }), ErrConfig, "NoiseFamily"},
		{"too few bits", with(func(e *Encoder) { e.Bits = 14 }), ErrBits, "Bits is 14 and 15 are needed"},
		{"too few for the noise", with(func(e *Encoder) { e.Bits, e.NoiseStdDev = 15, 1000 }), ErrBits, "are needed"},
		{"too many parties", with(func(e *Encoder) { e.Parties = math.MaxInt }), ErrBits, "64 bits"},
		{"noise beyond 64 bits", with(func(e *Encoder) { e.NoiseStdDev = 1 << 60 }), ErrBits, "64 bits"},
	} {
		err := c.e.Validate()
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %v that says %q", c.name, err, c.want, c.says)
		}
		update := make([]float64, max(0, min(c.e.Dimension, 10)))
		if out, err := c.e.Encode(update, nil, nil); !errors.Is(err, c.want) || out != nil {
			t.Errorf("%s: Encode = %v, %v", c.name, out, err)
		}
		if out, err := c.e.Decode(nil, 1); !errors.Is(err, c.want) || out != nil {
			t.Errorf("%s: Decode = %v, %v", c.name, out, err)
		}
		if out, err := c.e.Layout(); !errors.Is(err, c.want) || out != nil {
			t.Errorf("%s: Layout = %v, %v", c.name, out, err)
		}
		if out, err := c.e.Sensitivity(); !errors.Is(err, c.want) || out != (accounting.Sensitivity{}) {
			t.Errorf("%s: Sensitivity = %v, %v", c.name, out, err)
		}
	}
}

func TestEncodeDecodeErrors(t *testing.T) {
	e := testEncoder
	noisy := e
	noisy.NoiseStdDev = 5
	rotated := noisy
	rotated.Rotate = rotationSeed(1)
	encode := func(e Encoder, update []float64, noise []int64, random io.Reader) func() (bool, error) {
		return func() (bool, error) {
			out, err := e.Encode(update, noise, random)
			return out == nil, err
		}
	}
	decode := func(survivors int, sum ...[]uint64) func() (bool, error) {
		return func() (bool, error) { out, err := e.Decode(sum, survivors); return out == nil, err }
	}
	for _, c := range []struct {
		name string
		call func() (bool, error)
		want error
	}{
		{"short", encode(e, []float64{1, 2}, nil, nil), ErrLength},
		{"long", encode(e, []float64{1, 2, 3, 4}, nil, nil), ErrLength},
		{"nothing", encode(e, nil, nil, nil), ErrLength},
		{"NaN", encode(e, []float64{1, 2, math.NaN()}, nil, nil), ErrNotFinite},
		{"infinity", encode(e, []float64{math.Inf(1), 2, 3}, nil, nil), ErrNotFinite},
		{"noise not declared", encode(e, []float64{1, 2, 3}, make([]int64, 3), nil), ErrLength},
		{"noise forgotten", encode(noisy, []float64{1, 2, 3}, nil, nil), ErrLength},
		{"noise short", encode(noisy, []float64{1, 2, 3}, make([]int64, 2), nil), ErrLength},
		{"noise for a power of two", encode(rotated, []float64{1, 2, 3}, make([]int64, 4), nil), ErrLength},
		{"no randomness", encode(e, []float64{1, 2, 3}, nil, strings.NewReader("ab")), ErrRandom},
		{"no survivors", decode(0, []uint64{0, 0, 0}), ErrConfig},
		{"more survivors than parties", decode(11, []uint64{0, 0, 0}), ErrConfig},
		{"no segment", decode(1), ErrLength},
		{"two segments", decode(1, []uint64{0, 0, 0}, []uint64{0}), ErrLength},
		{"sum short", decode(1, []uint64{0, 0}), ErrLength},
		{"sum long", decode(1, []uint64{0, 0, 0, 0}), ErrLength},
		{"beyond the ring", decode(1, []uint64{0, 1 << 15, 0}), ErrRing},
		{"too large a sum", decode(1, []uint64{0, 0, 1<<14 - 1}), ErrSum},
		{"too small a sum", decode(1, []uint64{0, 1 << 14, 0}), ErrSum},
	} {
		empty, err := c.call()
		if !errors.Is(err, c.want) || !empty {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
	_, err := e.Encode([]float64{31415, math.NaN(), 0}, nil, nil)
	if strings.Contains(err.Error(), "314") {
		t.Errorf("the error shows a value: %v", err)
	}
	if _, err := rotated.Encode([]float64{1, 2, 3}, make([]int64, 3), nil); err != nil {
		t.Error(err)
	}
}

// One coordinate, zero vectors and the largest scales.
func TestEncoderEdges(t *testing.T) {
	for _, e := range []Encoder{
		{Parties: 1, Dimension: 1, Clip: 1, Scale: 1},
		{Parties: 1, Dimension: 1, Clip: 1, Scale: 1, Rotate: rotationSeed(2)},
		{Parties: 1, Dimension: 1, Clip: 1, Scale: 1 << 30},
		{Parties: 1, Dimension: 7, Clip: 1, Scale: 1 << 30, Rotate: rotationSeed(3)},
		{Parties: 1, Dimension: 5, Clip: minClip, Scale: 0x1p530},
		{Parties: 1, Dimension: 5, Clip: maxClip, Scale: 0x1p-490, Rotate: rotationSeed(4), Bits: 64},
		{Parties: math.MaxInt32, Dimension: 5, Clip: 1, Scale: 1 << 20, Beta: 1e-300},
		{Parties: 3, Dimension: 4097, Clip: 2, Scale: 1 << 10, Beta: 0.99},
	} {
		layout, err := e.Layout()
		if err != nil {
			t.Errorf("%+v: %v", e, err)
			continue
		}
		if err := layout.Validate(); err != nil {
			t.Errorf("%+v: %v", e, err)
		}
		zero := make([]float64, e.Dimension)
		out, err := e.Encode(zero, nil, nil)
		if err != nil || slices.Max(out[0]) != 0 {
			t.Errorf("%+v: zero becomes %v, %v", e, out, err)
		}
		// All of the norm in the last coordinate, and much too long.
		update := slices.Clone(zero)
		update[e.Dimension-1] = -math.MaxFloat64
		if out, err = e.Encode(update, nil, nil); err != nil {
			t.Errorf("%+v: %v", e, err)
			continue
		}
		got, err := e.Decode(out, 1)
		if err != nil || len(got) != e.Dimension {
			t.Errorf("%+v: %v, %v", e, got, err)
			continue
		}
		update[e.Dimension-1] = -e.Clip
		for i := range got {
			got[i] -= update[i]
		}
		if _, off, err := Clip(got, 1); err != nil ||
			off > math.Sqrt(float64(layout[0].Length))/e.Scale*(1+1e-9)+e.Clip*0x1p-43 {
			t.Errorf("%+v: off by %v, %v", e, off, err)
		}
	}
}

// Encoding does what the documentation says: each integer is next to the rotated
// coordinate times Scale.
func TestEncodeDefinition(t *testing.T) {
	rng := newRandom(8)
	for _, d := range []int{1, 2, 3, 5, 8, 100, 257} {
		e := Encoder{Parties: 3, Dimension: d, Clip: 5, Scale: 1e6, Rotate: rotationSeed(byte(d))}
		x := normals(rng, d)
		want, _, err := Clip(x, e.Clip)
		if err != nil {
			t.Fatal(err)
		}
		rotate(newRotation(e.Rotate, d), want, rotation.forward)
		layout, err := e.Layout()
		if err != nil {
			t.Fatal(err)
		}
		out, err := e.Encode(x, nil, chacha(8))
		if err != nil {
			t.Fatal(err)
		}
		integers, err := Integers(out[0], layout[0].Bits)
		if err != nil || len(integers) != d {
			t.Fatalf("%d integers, %v", len(integers), err)
		}
		for i, got := range integers {
			if want := want[i] * e.Scale; math.Abs(float64(got)-want) >= 1+1e-7 {
				t.Fatalf("d = %d: coordinate %d is %d, want near %v", d, i, got, want)
			}
		}
	}
}

// For every encoder: the norm of what it encodes is within the sensitivity, in
// integers; what enters the rounding is within Clip·Scale, exactly; decoding is
// off by rounding alone; and the wrap bound holds for what is encoded.
func TestEncoderProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := newRandom(rapid.Uint64().Draw(t, "seed"))
		e := Encoder{
			Parties:   rapid.IntRange(1, 1000).Draw(t, "parties"),
			Dimension: rapid.IntRange(1, 300).Draw(t, "dimension"),
			Clip:      math.Exp(rapid.Float64Range(-9, 9).Draw(t, "clip")),
			Beta:      rapid.SampledFrom([]float64{0, 1e-30, 0.01, 0.5, 0.99}).Draw(t, "beta"),
		}
		e.Scale = math.Exp(rapid.Float64Range(0.01, 20).Draw(t, "units")) / e.Clip
		if rapid.Bool().Draw(t, "rotate") {
			e.Rotate = rotationSeed(byte(rng.Uint32()))
		}
		update := normals(rng, e.Dimension)
		for i := range update {
			update[i] *= e.Clip * math.Exp(8*rng.Float64()-6)
		}
		p, err := e.coding()
		if err != nil {
			t.Fatal(err)
		}
		s, err := e.Sensitivity()
		if err != nil {
			t.Fatal(err)
		}
		out, err := e.Encode(update, nil, rngReader{rng.Uint32})
		if err != nil {
			t.Fatal(err)
		}
		integers, err := Integers(out[0], p.layout[0].Bits)
		if err != nil || len(integers) != s.Dimension {
			t.Fatalf("%d integers, %v", len(integers), err)
		}
		var l2 uint64
		var l1 float64
		for _, x := range integers {
			l2 += uint64(x * x)
			l1 += math.Abs(float64(x))
			if max(x, -x)*int64(e.Parties) > p.bound && e.Rotate == nil {
				t.Fatalf("%d parties with %d: above %d", e.Parties, x, p.bound)
			}
		}
		if l2 > p.limit || math.Sqrt(float64(l2)) > s.L2 || l1 > s.L1 {
			t.Fatalf("norms √%d and %v, bounds %+v", l2, l1, s)
		}
		if s.L1 > s.L2*math.Min(math.Sqrt(float64(s.Dimension)), s.L2)*(1+1e-12) {
			t.Fatalf("L1 is above the published bound: %+v", s)
		}

		// The vector before rounding, as Encode computes it.
		v := make([]float64, e.Dimension)
		if _, err := clipInto(v, update, e.Clip); err != nil {
			t.Fatal(err)
		}
		clipped := slices.Clone(v)
		p.rotation.forward(v, 0)
		for i := range v {
			v[i] *= p.factor
		}
		product := squaredNorm([]float64{e.Clip})
		if squaredNorm(v).Cmp(product.Mul(product, squaredNorm([]float64{e.Scale}))) > 0 {
			t.Fatal("the vector is above Clip·Scale before rounding")
		}

		back, err := e.Decode(out, 1)
		if err != nil {
			t.Fatal(err)
		}
		for i := range back {
			back[i] -= clipped[i]
		}
		if off := norm(back); off > math.Sqrt(float64(e.Dimension))/e.Scale+1e-12*e.Clip {
			t.Fatalf("off by %v", off)
		}
	})
}

// rngReader makes bytes of a generator for tests.
type rngReader struct{ next func() uint32 }

func (r rngReader) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = byte(r.next() >> 11)
	}
	return len(b), nil
}

// The fewest bits are the fewest: for every small number of parties and every
// small norm, parties that all send the largest coordinate fill the ring, and one
// bit fewer gives another sum.
func TestEncoderWrapBoundTight(t *testing.T) {
	for parties := 1; parties <= 40; parties++ {
		for units := 1; units <= 40; units++ {
			e := Encoder{Parties: parties, Dimension: 1, Clip: 1, Scale: float64(units)}
			layout, err := e.Layout()
			if err != nil {
				t.Fatal(err)
			}
			b := layout[0].Bits
			for _, x := range []float64{1, -1} {
				out, err := e.Encode([]float64{x}, nil, nil)
				if err != nil {
					t.Fatal(err)
				}
				sum := sumInRing(b, out[0][0], parties)
				mean, err := e.Decode([][]uint64{{sum}}, parties)
				if err != nil || mean[0] != x {
					t.Fatalf("%d parties, %d units, %d bits: %v, %v; want %v", parties, units, b, mean, err, x)
				}
			}
			sum := sumInRing(b-1, uint64(units)&(1<<(b-1)-1), parties)
			if got, err := Integers([]uint64{sum}, b-1); err != nil || got[0] == int64(units*parties) {
				t.Fatalf("%d parties, %d units: %d bits would do, not %d (%v)", parties, units, b-1, b, err)
			}
			e.Bits = b - 1
			if err := e.Validate(); !errors.Is(err, ErrBits) {
				t.Fatalf("%d bits: %v", b-1, err)
			}
		}
	}
}

// A rotation spreads what all parties have in one coordinate: fewer bits, and
// the sum still comes out.
func TestRotationSavesBits(t *testing.T) {
	e := Encoder{Parties: 50, Dimension: 1 << 13, Clip: 1, Scale: 1 << 16,
		NoiseFamily: accounting.FamilyDiscreteGaussian}
	plain, err := e.Layout()
	if err != nil {
		t.Fatal(err)
	}
	e.Rotate = rotationSeed(5)
	rotated, err := e.Layout()
	if err != nil {
		t.Fatal(err)
	}
	if plain[0].Bits-rotated[0].Bits != 3 {
		t.Errorf("%d bits without and %d with a rotation", plain[0].Bits, rotated[0].Bits)
	}
	update := make([]float64, e.Dimension)
	update[77] = 1
	sum := make([]uint64, rotated[0].Length)
	for range e.Parties {
		out, err := e.Encode(update, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i, x := range out[0] {
			sum[i] = (sum[i] + x) & (1<<rotated[0].Bits - 1)
		}
	}
	mean, err := e.Decode([][]uint64{sum}, e.Parties)
	if err != nil {
		t.Fatal(err)
	}
	if mean[76] > 1e-3 || mean[77] < 0.999 || mean[77] > 1.001 {
		t.Errorf("decodes to %v, %v; want 0, 1", mean[76], mean[77])
	}
}
