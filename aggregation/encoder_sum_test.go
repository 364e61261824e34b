package aggregation

import (
	"crypto/rand"
	"math"
	"slices"
	"strconv"
	"testing"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/masking"
)

// maskedTotal masks the submissions pairwise, drops nobody, and adds them up, as
// they go over the wire.
func maskedTotal(t *testing.T, layout masking.Layout, submissions [][][]uint64) [][]uint64 {
	t.Helper()
	rng := newRandom(12)
	vectors := make([]*masking.Vector, len(submissions))
	for i, values := range submissions {
		var err error
		if vectors[i], err = masking.FromValues(layout, values...); err != nil {
			t.Fatal(err)
		}
	}
	for i := range vectors {
		for j := range i {
			var seed masking.Seed
			for k := range seed {
				seed[k] = byte(rng.Uint32())
			}
			vectors[i].MaskPair(&seed, i, j)
			vectors[j].MaskPair(&seed, j, i)
		}
	}
	sum, err := masking.NewVector(layout)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range vectors {
		if err := sum.AddPacked(v.AppendPacked(nil)); err != nil {
			t.Fatal(err)
		}
	}
	return sum.Values()
}

// The promise, through real masks: the integers of the masked sum are the sum of
// the rounded inputs and of the noise, bit for bit, with a rotation and without,
// whatever the bits; and the mean is near that of the clipped updates.
func TestEncodedSumIsExact(t *testing.T) {
	rng := newRandom(13)
	for _, c := range []struct {
		parties, dimension, bits int
		sigma                    float64 // of the sum, in integer units
		units                    float64
		rotate                   bool
	}{
		{1, 1, 0, 0, 1000, false},
		{2, 1, 0, 30, 1000, true},
		{5, 300, 0, 0, 1 << 14, true},
		{5, 300, 0, 0, 1 << 14, false},
		{7, 300, 0, 50, 1 << 10, true},
		{12, 1000, 20, 400, 1 << 12, true},
		{12, 1000, 64, 400, 1 << 12, false},
		{40, 65, 33, 1e6, 1 << 20, true},
	} {
		e := Encoder{
			Parties: c.parties, Dimension: c.dimension, Bits: c.bits,
			Clip: 3, Scale: c.units / 3, NoiseStdDev: c.sigma,
			NoiseFamily: accounting.FamilyDiscreteGaussian,
		}
		if c.rotate {
			e.Rotate = rotationSeed(14)
		}
		layout, err := e.Layout()
		if err != nil {
			t.Fatalf("%+v: %v", c, err)
		}
		silent := e // the same roundings, without noise
		silent.NoiseStdDev, silent.Bits = 0, layout[0].Bits

		want := make([]int64, layout[0].Length)
		mean := make([]float64, c.dimension)
		var submissions [][][]uint64
		for k := range c.parties {
			update := normals(rng, c.dimension)
			clipped, _, err := Clip(update, e.Clip)
			if err != nil {
				t.Fatal(err)
			}
			for i, x := range clipped {
				mean[i] += x / float64(c.parties)
			}
			rounded, err := silent.Encode(update, nil, chacha(byte(k)))
			if err != nil {
				t.Fatal(err)
			}
			integers, err := Integers(rounded[0], layout[0].Bits)
			if err != nil {
				t.Fatal(err)
			}
			// Data for a test, not noise for a release.
			var noise []int64
			if c.sigma > 0 {
				noise = make([]int64, len(want))
				for i := range noise {
					noise[i] = int64(math.Round(rng.NormFloat64() * c.sigma / math.Sqrt(float64(c.parties))))
				}
			}
			for i, x := range integers {
				want[i] += x
				if noise != nil {
					want[i] += noise[i]
				}
			}
			out, err := e.Encode(update, noise, chacha(byte(k)))
			if err != nil {
				t.Fatal(err)
			}
			submissions = append(submissions, out)
		}

		sum := maskedTotal(t, layout, submissions)
		got, err := Integers(sum[0], layout[0].Bits)
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("%+v: the sum differs from the plain one, %v", c, err)
		}
		decoded, err := e.Decode(sum, c.parties)
		if err != nil {
			t.Fatalf("%+v: %v", c, err)
		}
		// Each coordinate: noise of σ/(n·Scale), and roundings of at most 1/2 each in
		// standard deviation. Eight of both together; the seed is fixed.
		n := float64(c.parties)
		allowed := 8 * math.Sqrt(c.sigma*c.sigma+n/4) / (n * e.Scale)
		for i := range decoded {
			if off := math.Abs(decoded[i] - mean[i]); off > allowed+1e-9 {
				t.Fatalf("%+v: coordinate %d is off by %v, more than %v", c, i, off, allowed)
			}
		}
		// With survivors 1 the sum itself comes out.
		whole, err := e.Decode(sum, 1)
		if err != nil || math.Abs(whole[0]-n*decoded[0]) > 1e-12*(1+math.Abs(whole[0])) {
			t.Fatalf("%+v: %v, %v; want %v", c, whole[0], err, n*decoded[0])
		}
	}
}

// Without a rotation and with a scale that is a power of two, integers of updates
// that are on the grid come back exactly.
func TestEncodeOnTheGrid(t *testing.T) {
	e := Encoder{Parties: 3, Dimension: 4, Clip: 100, Scale: 8}
	update := []float64{1.125, -2, 0, 40.5}
	for range 20 {
		out, err := e.Encode(update, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := e.Decode(out, 1)
		if err != nil || !slices.Equal(got, update) {
			t.Fatalf("%v, %v; want %v", got, err, update)
		}
	}
}

// Random bytes in place of a sum, as false masks leave: an error, and no mean.
func TestGarbledSum(t *testing.T) {
	e := Encoder{Parties: 10, Dimension: 200, Clip: 1, Scale: 1000, Rotate: rotationSeed(6)}
	layout, err := e.Layout()
	if err != nil {
		t.Fatal(err)
	}
	rng := newRandom(15)
	sum := make([]uint64, layout[0].Length)
	for i := range sum {
		sum[i] = rng.Uint64() >> (64 - layout[0].Bits)
	}
	if mean, err := e.Decode([][]uint64{sum}, 10); err == nil || mean != nil {
		t.Errorf("%d random coordinates decode to a mean", len(sum))
	}
}

func BenchmarkEncoder(b *testing.B) {
	const d = 100_000
	update := normals(newRandom(1), d)
	for _, rotate := range []bool{false, true} {
		e := Encoder{Parties: 100, Dimension: d, Clip: 1, Bits: 20,
			NoiseFamily: accounting.FamilyDiscreteGaussian}
		if rotate {
			e.Rotate = rotationSeed(1)
		}
		e, err := e.ChooseScale(1, 80)
		if err != nil {
			b.Fatal(err)
		}
		layout, err := e.Layout()
		if err != nil {
			b.Fatal(err)
		}
		noise := make([]int64, layout[0].Length)
		name := "rotate=" + strconv.FormatBool(rotate)
		out, err := e.Encode(update, noise, nil)
		if err != nil {
			b.Fatal(err)
		}
		b.Run("Encode/"+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := e.Encode(update, noise, nil); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*d), "ns/coordinate")
		})
		b.Run("Decode/"+name, func(b *testing.B) {
			for b.Loop() {
				if _, err := e.Decode(out, 1); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*d), "ns/coordinate")
		})
	}
}

func BenchmarkClip(b *testing.B) {
	const d = 100_000
	update := normals(newRandom(1), d)
	for b.Loop() {
		if _, _, err := Clip(update, 1); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*d), "ns/coordinate")
}

func BenchmarkRound(b *testing.B) {
	const d = 100_000
	y := normals(newRandom(1), d)
	for i := range y {
		y[i] *= 50
	}
	out := make([]uint64, d)
	for _, c := range []struct {
		name   string
		source byteSource
	}{{"crypto", byteSource{random: rand.Reader}}, {"zeros", byteSource{random: zeros{}}}} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				if _, err := roundOnce(out, y, 1, &c.source); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*d), "ns/coordinate")
		})
	}
}
