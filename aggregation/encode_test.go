package aggregation

import (
	"errors"
	"math"
	"runtime"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/masking"
)

// listed hands out integers in order, as noise; err comes when they end.
type listed struct {
	left []int64
	err  error
}

func (l *listed) Fill(dst []int64) error {
	if len(l.left) < len(dst) {
		return l.err
	}
	l.left = l.left[copy(dst, l.left):]
	return nil
}

// EncodeTo and DecodeTo do what Encode and Decode do, bit for bit, next to other
// segments, and float32 values are taken and given as what they are.
func TestEncodeTo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := newRandom(rapid.Uint64().Draw(t, "seed"))
		d := rapid.SampledFrom([]int{1, 3, 64, 1000, 4095, 4096, 4097, 10_000}).Draw(t, "d")
		e := Encoder{Parties: 9, Dimension: d, Clip: 2, Scale: 1000,
			NoiseFamily: accounting.FamilyDiscreteGaussian}
		if rapid.Bool().Draw(t, "rotate") {
			e.Rotate = rotationSeed(byte(d))
		}
		var share []int64
		if rapid.Bool().Draw(t, "noise") {
			e.NoiseStdDev, share = 100, make([]int64, d)
			for i := range share {
				share[i] = rng.Int64N(201) - 100
			}
		}
		update, narrow := normals(rng, d), make([]float32, d)
		for i, x := range update {
			narrow[i] = float32(x)
			update[i] = float64(narrow[i])
		}
		want, err := e.Encode(update, share, chacha(1))
		if err != nil {
			t.Fatal(err)
		}
		layout, err := e.Layout()
		if err != nil {
			t.Fatal(err)
		}
		wide := masking.Layout{{Length: 2, Bits: 7}, layout[0], {Length: 1, Bits: 1}}
		for _, encode := range []func(*masking.Vector, Noise) error{
			func(v *masking.Vector, noise Noise) error {
				return EncodeTo(v, 1, e, update, noise, chacha(1))
			},
			func(v *masking.Vector, noise Noise) error {
				return EncodeTo(v, 1, e, narrow, noise, chacha(1))
			},
		} {
			v, err := masking.FromValues(wide, []uint64{100, 3}, make([]uint64, d), []uint64{1})
			if err != nil {
				t.Fatal(err)
			}
			var noise Noise
			if share != nil {
				noise = &listed{left: share}
			}
			if err := encode(v, noise); err != nil {
				t.Fatal(err)
			}
			got := v.Values()
			if !slices.Equal(got[1], want[0]) {
				t.Fatal("not what Encode returns")
			}
			if got[0][0] != 100 || got[0][1] != 3 || got[2][0] != 1 {
				t.Fatal("another segment changed")
			}
			mean, err := e.Decode(want, 2)
			if err != nil {
				t.Fatal(err)
			}
			double, single := make([]float64, d), make([]float32, d)
			if err := DecodeTo(double, e, v, 1, 2); err != nil || !slices.Equal(double, mean) {
				t.Fatalf("not what Decode returns: %v", err)
			}
			if err := DecodeTo(single, e, v, 1, 2); err != nil {
				t.Fatal(err)
			}
			for i, x := range single {
				if x != float32(mean[i]) {
					t.Fatalf("coordinate %d is %v, want %v", i, x, float32(mean[i]))
				}
			}
		}
	})
}

func TestEncodeToErrors(t *testing.T) {
	plain := testEncoder
	noisy := plain
	noisy.NoiseStdDev = 5
	boom := errors.New("boom")
	share := func(n int) Noise { return &listed{left: make([]int64, n), err: boom} }
	for _, c := range []struct {
		name    string
		e       Encoder
		segment int
		update  []float32
		noise   Noise
		want    error
		kept    bool // the vector is as it was
	}{
		{"configuration", Encoder{}, 1, []float32{1, 2, 3}, nil, ErrConfig, true},
		{"segment below 0", plain, -1, []float32{1, 2, 3}, nil, ErrLength, true},
		{"segment beyond the last", plain, 2, []float32{1, 2, 3}, nil, ErrLength, true},
		{"another's segment", plain, 0, []float32{1, 2, 3}, nil, ErrLength, true},
		{"short update", plain, 1, []float32{1, 2}, nil, ErrLength, false},
		{"NaN", plain, 1, []float32{1, 2, float32(math.NaN())}, nil, ErrNotFinite, false},
		{"noise not declared", plain, 1, []float32{1, 2, 3}, share(3), ErrConfig, false},
		{"noise forgotten", noisy, 1, []float32{1, 2, 3}, nil, ErrConfig, false},
		{"noise fails", noisy, 1, []float32{1, 2, 3}, share(2), boom, false},
	} {
		layout := masking.Layout{{Length: 1, Bits: 3}, {Length: 3, Bits: 15}}
		if l, err := c.e.Layout(); err == nil {
			layout[1] = l[0]
		}
		v, err := masking.FromValues(layout, []uint64{5}, []uint64{1, 2, 3})
		if err != nil {
			t.Fatal(err)
		}
		err = EncodeTo(v, c.segment, c.e, c.update, c.noise, nil)
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
		values := v.Values()
		if kept := values[0][0] == 5 && slices.Equal(values[1], []uint64{1, 2, 3}); kept != c.kept {
			t.Errorf("%s: the vector holds %v", c.name, values)
		}
		if zero := values[0][0] == 0 && slices.Max(values[1]) == 0; !c.kept && !zero {
			t.Errorf("%s: something is left of the update: %v", c.name, values)
		}
	}
	layout, err := plain.Layout()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name               string
		e                  Encoder
		length             int
		segment, survivors int
		value              uint64
		want               error
	}{
		{"configuration", Encoder{}, 3, 0, 1, 0, ErrConfig},
		{"segment", plain, 3, 1, 1, 0, ErrLength},
		{"room", plain, 2, 0, 1, 0, ErrLength},
		{"survivors", plain, 3, 0, 0, 0, ErrConfig},
		{"sum", plain, 3, 0, 1, 1<<14 - 1, ErrSum},
	} {
		v, err := masking.FromValues(layout, []uint64{c.value, 1, 2})
		if err != nil {
			t.Fatal(err)
		}
		mean := slices.Repeat([]float32{7}, c.length)
		if err := DecodeTo(mean, c.e, v, c.segment, c.survivors); !errors.Is(err, c.want) ||
			slices.Max(mean) != 0 {
			t.Errorf("%s: %v with %v, want %v", c.name, err, mean, c.want)
		}
	}
}

// allocated returns how many bytes f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// Several blocks and what is left: the sum of two parties comes back, encoding and
// decoding take room that does not depend on the length, and the wire takes b bits a
// coordinate.
func TestEncodeLong(t *testing.T) {
	if testing.Short() {
		t.Skip("five million coordinates")
	}
	const d = 5<<20 + 12345
	e := Encoder{Parties: 2, Dimension: d, Clip: 3, Bits: 24, Rotate: rotationSeed(2),
		NoiseFamily: accounting.FamilyDiscreteGaussian}
	e, err := e.ChooseScale(0.001, 2)
	if err != nil {
		t.Fatal(err)
	}
	layout, err := e.Layout()
	if err != nil {
		t.Fatal(err)
	}
	if layout.PackedSize() != d*24/8 {
		t.Errorf("%d bytes for %d coordinates of 24 bits", layout.PackedSize(), d)
	}
	sum, err := masking.NewVector(layout)
	if err != nil {
		t.Fatal(err)
	}
	v, want := sum.Clone(), make([]float64, d)
	rng := newRandom(4)
	update := make([]float32, d)
	for range e.Parties {
		for i := range update {
			update[i] = float32(rng.NormFloat64() / math.Sqrt(d)) // a norm of about 1
			want[i] += float64(update[i]) / 2
		}
		noise := make([]int64, d)
		if n := allocated(func() {
			err = EncodeTo(v, 0, e, update, &listed{left: noise}, nil)
		}); err != nil || n > 20<<20 {
			t.Fatalf("encoding allocates %d bytes, %v", n, err)
		}
		if err := sum.Add(v); err != nil {
			t.Fatal(err)
		}
	}
	mean := make([]float32, d)
	if n := allocated(func() { err = DecodeTo(mean, e, sum, 0, 2) }); err != nil || n > 20<<20 {
		t.Fatalf("decoding allocates %d bytes, %v", n, err)
	}
	var off float64
	for i, x := range mean {
		off += (float64(x) - want[i]) * (float64(x) - want[i])
	}
	// Two roundings of variance 1/4 at most to a coordinate, and the mean of them.
	if most := math.Sqrt(d/8.0) / e.Scale; math.Sqrt(off) > most*1.01 {
		t.Errorf("off by %v, want %v at most", math.Sqrt(off), most)
	}
}

// BenchmarkLong is one party's work, without its noise, and the server's, on five
// million coordinates of 32 bits.
func BenchmarkLong(b *testing.B) {
	const d = 5_000_000
	e := Encoder{Parties: 20, Dimension: d, Clip: 1, Bits: 32, Rotate: rotationSeed(1),
		NoiseFamily: accounting.FamilyDiscreteGaussian}
	e, err := e.ChooseScale(0, 20)
	if err != nil {
		b.Fatal(err)
	}
	layout, err := e.Layout()
	if err != nil {
		b.Fatal(err)
	}
	v, err := masking.NewVector(layout)
	if err != nil {
		b.Fatal(err)
	}
	update := make([]float32, d)
	for i, x := range normals(newRandom(1), d) {
		update[i] = float32(x)
	}
	b.Run("Encode", func(b *testing.B) {
		for b.Loop() {
			if err := EncodeTo(v, 0, e, update, nil, nil); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*d), "ns/coordinate")
	})
	b.Run("Decode", func(b *testing.B) {
		for b.Loop() {
			if err := DecodeTo(update, e, v, 0, 1); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*d), "ns/coordinate")
	})
}
