package aggregation

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/hushsum/hushsum/masking"
)

func TestFedAvgLayout(t *testing.T) {
	a := FedAvg{Parties: 100, Dimension: 105, Range: 64, FractionBits: 10, MaxSamples: 200}
	layout, err := a.Layout()
	if err != nil {
		t.Fatal(err)
	}
	// 100·200·64·1024 < 2^31, and 100·200 < 2^15.
	if want := (masking.Layout{{Length: 105, Bits: 32}, {Length: 1, Bits: 15}}); !slices.Equal(layout,
		want) {
		t.Errorf("layout %v, want %v", layout, want)
	}
	if err := layout.Validate(); err != nil {
		t.Error(err)
	}
}

func TestFedAvgByHand(t *testing.T) {
	a := FedAvg{Parties: 2, Dimension: 2, Range: 4, FractionBits: 8, MaxSamples: 10}
	x, err := a.Encode([]float64{1, -2}, 3)
	if err != nil {
		t.Fatal(err)
	}
	y, err := a.Encode([]float64{2, 4}, 1)
	if err != nil {
		t.Fatal(err)
	}
	mean, samples, err := a.Decode(add(t, a, x, y))
	if err != nil {
		t.Fatal(err)
	}
	if samples != 4 || !slices.Equal(mean, []float64{1.25, -0.5}) {
		t.Errorf("mean %v of %d samples, want [1.25 -0.5] of 4", mean, samples)
	}
}

// add adds submissions in the ring.
func add(t interface{ Fatal(...any) }, a FedAvg, submissions ...[][]uint64) [][]uint64 {
	layout, err := a.Layout()
	if err != nil {
		t.Fatal(err)
	}
	sum, err := masking.NewVector(layout)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range submissions {
		v, err := masking.FromValues(layout, s...)
		if err != nil {
			t.Fatal(err)
		}
		if err := sum.Add(v); err != nil {
			t.Fatal(err)
		}
	}
	return sum.Values()
}

// The extremes: all parties at ±Range with the most samples come back exactly.
func TestFedAvgExtremes(t *testing.T) {
	for _, a := range []FedAvg{
		{Parties: 1, Dimension: 1, Range: 1, FractionBits: 0, MaxSamples: 1},
		{Parties: 3, Dimension: 1, Range: 5, FractionBits: 4, MaxSamples: 7},
		{Parties: 50, Dimension: 1, Range: 8, FractionBits: 40, MaxSamples: 1000},
		{Parties: 1 << 20, Dimension: 1, Range: 0.75, FractionBits: 20, MaxSamples: 1 << 20},
	} {
		for _, w := range []float64{a.Range, -a.Range} {
			x, err := a.Encode([]float64{w}, a.MaxSamples)
			if err != nil {
				t.Fatal(err)
			}
			layout, err := a.Layout()
			if err != nil {
				t.Fatal(err)
			}
			sum := [][]uint64{
				{sumInRing(layout[0].Bits, x[0][0], a.Parties)},
				{sumInRing(layout[1].Bits, x[1][0], a.Parties)},
			}
			mean, samples, err := a.Decode(sum)
			if err != nil || mean[0] != w || samples != a.Parties*a.MaxSamples {
				t.Errorf("%+v: mean %v of %d samples, %v", a, mean, samples, err)
			}
		}
	}
}

func TestFedAvgErrors(t *testing.T) {
	good := FedAvg{Parties: 3, Dimension: 2, Range: 2, FractionBits: 8, MaxSamples: 9}
	with := func(change func(*FedAvg)) FedAvg { a := good; change(&a); return a }
	encode := func(a FedAvg, samples int, w ...float64) func() error {
		return func() error {
			kept := slices.Clone(w)
			out, err := a.Encode(w, samples)
			if err != nil && (out != nil || !sameBits(w, kept)) {
				t.Error("an error left a trace")
			}
			return err
		}
	}
	decode := func(a FedAvg, sum ...[]uint64) func() error {
		return func() error {
			mean, samples, err := a.Decode(sum)
			if err != nil && (mean != nil || samples != 0) {
				t.Error("a result with the error")
			}
			return err
		}
	}
	for _, c := range []struct {
		name string
		call func() error
		want error
		says string
	}{
		{"no parties", with(func(a *FedAvg) { a.Parties = 0 }).Validate, ErrConfig, "Parties"},
		{"no dimension", with(func(a *FedAvg) { a.Dimension = 0 }).Validate, ErrConfig, "Dimension"},
		{"too many dimensions", with(func(a *FedAvg) {
			a.Dimension = masking.MaxLength
		}).Validate, ErrConfig, "Dimension"},
		{"no samples", with(func(a *FedAvg) { a.MaxSamples = -1 }).Validate, ErrConfig, "MaxSamples"},
		{"range", with(func(a *FedAvg) { a.Range = math.NaN() }).Validate, ErrConfig, "Range"},
		{"fraction", with(func(a *FedAvg) { a.FractionBits = -1 }).Validate, ErrConfig, "FractionBits"},
		{"wrap of the weights", with(func(a *FedAvg) { a.FractionBits = 60 }).Validate, ErrWrap, "lower"},
		{"wrap of all", with(func(a *FedAvg) { a.FractionBits, a.Parties = 50, 1<<20 }).Validate, ErrWrap, "parties"},
		{"wrap of the count", with(func(a *FedAvg) {
			a.Parties, a.MaxSamples, a.Range = math.MaxInt>>22, math.MaxInt>>22, 1e-15
		}).Validate, ErrWrap, "samples"},
		{"encode unusable", encode(FedAvg{}, 1, 1), ErrConfig, "Parties"},
		{"encode short", encode(good, 1, 1), ErrLength, "1 weights"},
		{"encode long", encode(good, 1, 1, 1, 1), ErrLength, "3 weights"},
		{"encode zero samples", encode(good, 0, 1, 1), ErrSamples, "1 to 9"},
		{"encode too many samples", encode(good, 10, 1, 1), ErrSamples, "1 to 9"},
		{"encode NaN", encode(good, 1, 1, math.NaN()), ErrNotFinite, "coordinate 1"},
		{"encode infinity", encode(good, 1, math.Inf(1), 1), ErrNotFinite, "coordinate 0"},
		{"encode out of range", encode(good, 1, 1, 2.01), ErrSaturated, "coordinate 1"},
		{"decode unusable", decode(FedAvg{}, []uint64{0}, []uint64{1}), ErrConfig, "Parties"},
		{"decode one segment", decode(good, []uint64{0, 0}), ErrLength, "1 segments"},
		{"decode three segments", decode(good, []uint64{0, 0}, []uint64{1}, nil), ErrLength, "3 segments"},
		{"decode short", decode(good, []uint64{0}, []uint64{1}), ErrLength, "segment 0"},
		{"decode without count", decode(good, []uint64{0, 0}, nil), ErrLength, "segment 1"},
		{"decode outside the ring", decode(good, []uint64{0, 1 << 63}, []uint64{1}), ErrRing, "element 1"},
		{"decode count outside the ring", decode(good, []uint64{0, 0}, []uint64{32}), ErrRing, "samples"},
		{"decode count zero", decode(good, []uint64{0, 0}, []uint64{0}), ErrSum, "0 samples"},
		{"decode count too large", decode(good, []uint64{0, 0}, []uint64{28}), ErrSum, "28 samples"},
		{"decode too large", decode(good, []uint64{0, 3*9*2*256 + 1}, []uint64{9}), ErrSum, "coordinate 1"},
		{"decode too small", decode(good, []uint64{1<<15 - 3*9*2*256 - 1, 0}, []uint64{9}), ErrSum, "coordinate 0"},
	} {
		err := c.call()
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %v that says %q", c.name, err, c.want, c.says)
		}
	}
}

func sameBits(x, y []float64) bool {
	equal := func(a, b float64) bool { return math.Float64bits(a) == math.Float64bits(b) }
	return slices.EqualFunc(x, y, equal)
}

// The mean is within the stated bound of the weighted mean in float64.
func TestFedAvgProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := FedAvg{
			Parties:      rapid.IntRange(1, 20).Draw(t, "parties"),
			Dimension:    rapid.IntRange(1, 5).Draw(t, "dimension"),
			Range:        rapid.Float64Range(0.1, 100).Draw(t, "range"),
			FractionBits: rapid.IntRange(0, 30).Draw(t, "fraction"),
			MaxSamples:   rapid.IntRange(1, 1000).Draw(t, "most samples"),
		}
		want := make([]float64, a.Dimension)
		total := 0
		var submissions [][][]uint64
		for range a.Parties {
			w := rapid.SliceOfN(rapid.Float64Range(-a.Range, a.Range), a.Dimension, a.Dimension).Draw(t, "w")
			n := rapid.IntRange(1, a.MaxSamples).Draw(t, "n")
			s, err := a.Encode(w, n)
			if err != nil {
				t.Fatal(err)
			}
			submissions = append(submissions, s)
			for j := range w {
				want[j] += float64(n) * w[j]
			}
			total += n
		}
		mean, samples, err := a.Decode(add(t, a, submissions...))
		if err != nil || samples != total {
			t.Fatalf("%d samples, %v; want %d", samples, err, total)
		}
		bound := float64(a.Parties)/(2*float64(total))*math.Ldexp(1, -a.FractionBits) + 1e-12*a.Range
		for j := range mean {
			if off := math.Abs(mean[j] - want[j]/float64(total)); off > bound {
				t.Fatalf("coordinate %d is off by %v, more than %v", j, off, bound)
			}
		}
	})
}

func TestModelBytes(t *testing.T) {
	w := []float64{0, math.Copysign(0, -1), 1, -math.Pi, math.SmallestNonzeroFloat64, math.MaxFloat64}
	b, err := AppendModel([]byte{7}, w)
	if err != nil || len(b) != 1+8*len(w) || b[0] != 7 {
		t.Fatalf("%d bytes, %v", len(b), err)
	}
	if got := [8]byte(b[17:25]); got != [8]byte{0x3f, 0xf0} {
		t.Errorf("1 is % x, want 3f f0 00 …", got)
	}
	back, err := ParseModel(b[1:], len(w))
	if err != nil || !sameBits(w, back) {
		t.Errorf("%v, %v; want %v", back, err, w)
	}
	nan, err := AppendModel(nil, []float64{1, math.NaN()})
	if nan != nil || !errors.Is(err, ErrNotFinite) {
		t.Errorf("NaN: %v", err)
	}
	for n := range len(b) + 8 {
		if n == len(b)-1 {
			continue
		}
		if got, err := ParseModel(make([]byte, n), len(w)); got != nil || !errors.Is(err, ErrLength) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	if _, err := ParseModel(nil, 0); !errors.Is(err, ErrLength) {
		t.Errorf("no weights: %v", err)
	}
	infinite := append([]byte{0x7f, 0xf0}, make([]byte, 6)...)
	if got, err := ParseModel(infinite, 1); got != nil || !errors.Is(err, ErrNotFinite) {
		t.Errorf("infinity: %v", err)
	}
}
