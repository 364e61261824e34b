package aggregation

import (
	"errors"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/hushsum/hushsum/internal/suite"
	"github.com/hushsum/hushsum/masking"
)

func TestRoundToNearest(t *testing.T) {
	p := FixedPoint{Range: 8, FractionBits: 2}
	in := []float64{0, 0.1, 0.124, 0.125, 0.126, 0.375, 0.625, 1, -0.125, -0.126, -0.375, 7.99, 8, -8}
	want := []int64{0, 0, 0, 0, 1, 2, 2, 4, 0, -1, -2, 32, 32, -32}
	got, err := p.Round(in)
	if err != nil || !slices.Equal(got, want) {
		t.Fatalf("Round = %v, %v; want %v", got, err, want)
	}
	ring, err := p.Encode(in, 7)
	if err != nil {
		t.Fatal(err)
	}
	if ring[13] != 96 || ring[12] != 32 {
		t.Errorf("8 and -8 encode to %d and %d, want 32 and 128 - 32", ring[12], ring[13])
	}
	back, err := p.Decode(ring, 7)
	if err != nil {
		t.Fatal(err)
	}
	for i, x := range back {
		if x != float64(want[i])/4 {
			t.Errorf("coordinate %d decodes to %v, want %v", i, x, float64(want[i])/4)
		}
	}
}

func TestFixedPointErrors(t *testing.T) {
	good := FixedPoint{Range: 2, FractionBits: 4}
	encode := func(p FixedPoint, b int, values ...float64) func() error {
		return func() error {
			out, err := p.Encode(values, b)
			if err != nil && out != nil {
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
		{"NaN", encode(good, 10, 0, math.NaN()), ErrNotFinite, "coordinate 1"},
		{"infinity", encode(good, 10, math.Inf(-1)), ErrNotFinite, "coordinate 0"},
		{"above the range", encode(good, 10, 0, 0, math.Nextafter(2, 3)), ErrSaturated, "coordinate 2"},
		{"below the range", encode(good, 10, -2.25), ErrSaturated, "coordinate 0"},
		{"beyond the ring", encode(good, 6, 1, 2), ErrSaturated, "coordinate 1"},
		{"no bits", encode(good, 0, 1), ErrRing, "0 bits"},
		{"too many bits", encode(good, 65, 1), ErrRing, "65 bits"},
		{"range zero", encode(FixedPoint{0, 4}, 10, 0), ErrConfig, "Range"},
		{"range negative", FixedPoint{-1, 4}.Validate, ErrConfig, "Range"},
		{"range NaN", FixedPoint{math.NaN(), 4}.Validate, ErrConfig, "Range"},
		{"range infinite", FixedPoint{math.Inf(1), 4}.Validate, ErrConfig, "Range"},
		{"fraction negative", FixedPoint{1, -1}.Validate, ErrConfig, "FractionBits"},
		{"fraction too long", FixedPoint{1, 63}.Validate, ErrConfig, "FractionBits"},
		{"one value too large", FixedPoint{2, 62}.Validate, ErrWrap, "lower"},
		{"huge range", FixedPoint{math.MaxFloat64, 0}.Validate, ErrWrap, "lower"},
		{"sum too large", func() error { _, err := FixedPoint{1, 60}.Bits(8); return err }, ErrWrap, "8 parties"},
		{"no parties", func() error { _, err := good.Bits(0); return err }, ErrConfig, "0 parties"},
		{"bits of nothing", func() error { _, err := FixedPoint{}.Bits(2); return err }, ErrConfig, "Range"},
		{"decode outside the ring", func() error {
			_, err := good.Decode([]uint64{0, 1024}, 10)
			return err
		}, ErrRing, "element 1"},
		{"decode without bits", func() error { _, err := good.Decode([]uint64{0}, 0); return err }, ErrRing, "0 bits"},
		{"decode without range", func() error {
			_, err := FixedPoint{}.Decode([]uint64{0}, 4)
			return err
		}, ErrConfig, "Range"},
	} {
		err := c.call()
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %v that says %q", c.name, err, c.want, c.says)
		}
		for _, other := range []error{ErrConfig, ErrWrap, ErrNotFinite, ErrSaturated, ErrSamples,
			ErrLength, ErrRing, ErrSum} {
			if other != c.want && errors.Is(err, other) {
				t.Errorf("%s: %v is also %v", c.name, err, other)
			}
		}
	}
}

// The values themselves are secret and stay out of messages.
func TestErrorsKeepValues(t *testing.T) {
	_, err := FixedPoint{Range: 1, FractionBits: 4}.Encode([]float64{31415.9265}, 10)
	if err == nil || strings.Contains(err.Error(), "314") {
		t.Errorf("the error shows the value, or is absent: %v", err)
	}
}

// sumInRing adds encoded values modulo 2^b.
func sumInRing(b int, x uint64, n int) uint64 {
	return (x * uint64(n)) & (^uint64(0) >> (64 - b))
}

// For every small bound: b bits hold the sum of n extreme values of either sign,
// and one bit fewer does not.
func TestWrapBoundExhaustive(t *testing.T) {
	for limit := 1; limit <= 130; limit++ {
		p := FixedPoint{Range: float64(limit)}
		for n := 1; n <= 130; n++ {
			b, err := p.Bits(n)
			if err != nil {
				t.Fatal(err)
			}
			for _, x := range []float64{float64(limit), -float64(limit)} {
				v, err := p.Encode([]float64{x}, b)
				if err != nil {
					t.Fatal(err)
				}
				sum, err := Integers([]uint64{sumInRing(b, v[0], n)}, b)
				if err != nil || sum[0] != int64(n)*int64(x) {
					t.Fatalf("limit %d, %d parties, %d bits: %d times %v gives %d, %v", limit, n, b, n, x, sum[0],
						err)
				}
			}
			// One bit fewer: the largest sum comes out wrong.
			v := uint64(limit) & (^uint64(0) >> (64 - (b - 1)))
			sum, err := Integers([]uint64{sumInRing(b-1, v, n)}, b-1)
			if err != nil || sum[0] == int64(n)*int64(limit) {
				t.Fatalf("limit %d, %d parties: %d bits would do, and Bits says %d", limit, n, b-1, b)
			}
		}
	}
}

func TestWrapBoundEdges(t *testing.T) {
	for _, c := range []struct {
		p    FixedPoint
		n    int
		want int // 0: ErrWrap
	}{
		{FixedPoint{1, 0}, 1, 2},
		{FixedPoint{1, 0}, 2, 3},
		{FixedPoint{0x1p-300, 0}, 1, 2}, // the bound is rounded up, to 1
		{FixedPoint{1.25, 2}, 3, 5},     // 15 < 16
		{FixedPoint{1.2500001, 2}, 3, 6},
		{FixedPoint{1, 62}, 1, 64},
		{FixedPoint{1, 62}, 2, 0},
		{FixedPoint{1, 53}, 1 << 9, 64},
		{FixedPoint{1, 53}, 1<<10 - 1, 64},
		{FixedPoint{1, 53}, 1 << 10, 0},
		{FixedPoint{1<<53 - 1, 0}, 1 << 10, 64},
		{FixedPoint{1<<53 - 1, 0}, 1<<10 + 1, 0}, // 2^63 + 2^53 − …
		{FixedPoint{1, 0}, math.MaxInt, 64},
		{FixedPoint{2, 0}, math.MaxInt, 0},
	} {
		b, err := c.p.Bits(c.n)
		if b != c.want || (c.want == 0) != errors.Is(err, ErrWrap) {
			t.Errorf("%+v, %d parties: %d bits, %v; want %d", c.p, c.n, b, err, c.want)
		}
	}
}

// The promise, through real masks: for every b and every number of parties from
// 2 to 50, decoding the masked sum gives the sum of the rounded inputs bit for
// bit. Inputs fill the ring: they use the whole range that does not wrap.
func TestMaskedSumIsExact(t *testing.T) {
	const dimension = 5
	rng := rand.New(rand.NewPCG(7, 1))
	for b := 1; b <= 64; b++ {
		for n := 2; n <= 50; n++ {
			if !suite.Long() && (b+n)%7 != 0 {
				continue
			}
			p := FixedPoint{Range: 0x1p62, FractionBits: 0}
			if b < 50 {
				p = FixedPoint{Range: 0x1p50, FractionBits: b % 13}
			}
			inputs := ringFilling(rng, p, b, n, dimension)
			want := make([]int64, dimension)
			for _, x := range inputs {
				rounded, err := p.Round(x)
				if err != nil {
					t.Fatal(err)
				}
				for j, v := range rounded {
					want[j] += v
				}
			}
			got, err := Integers(maskedSum(t, p, b, inputs), b)
			if err != nil || !slices.Equal(got, want) {
				t.Fatalf("b = %d, n = %d: the sum decodes to %d, %v; want %d", b, n, got, err, want)
			}
		}
	}
}

// ringFilling draws n vectors whose rounded sum is between −2^(b−1) and
// 2^(b−1) − 1 and often near either end.
func ringFilling(rng *rand.Rand, p FixedPoint, b, n, dimension int) [][]float64 {
	inputs := make([][]float64, n)
	for i := range inputs {
		inputs[i] = make([]float64, dimension)
	}
	unit := math.Ldexp(1, -p.FractionBits)
	for j := range dimension {
		up, down := int64(1)<<(b-1)-1, int64(-1)<<(b-1) // what is left of the ring
		if b == 64 {
			up, down = math.MaxInt64, math.MinInt64
		}
		for _, i := range rng.Perm(n) {
			// Half of what is left, or up to all of it, and what float64 holds.
			var x int64
			if rng.IntN(2) == 0 {
				x = rng.Int64N(up/2 + 1)
			} else {
				x = -rng.Int64N(-(down / 2) + 1)
			}
			if x == 0 && down < 0 && rng.IntN(3) == 0 {
				x = -1
			}
			if shift := bits.Len64(uint64(max(x, -x))) - 50; shift > 0 {
				x = x >> shift << shift
			}
			if x >= 0 {
				up -= x
			} else if x < down {
				x = 0
			} else {
				down -= x
			}
			// A fraction that rounds away, where float64 has the places for it.
			fraction := rng.Float64() - 0.5
			if math.Abs(float64(x)) > 1<<40 {
				fraction = 0
			}
			inputs[i][j] = (float64(x) + 0.99*fraction) * unit
		}
	}
	return inputs
}

// maskedSum encodes the inputs, masks them pairwise and adds them up.
func maskedSum(t *testing.T, p FixedPoint, b int, inputs [][]float64) []uint64 {
	t.Helper()
	submissions := make([][][]uint64, len(inputs))
	for i, x := range inputs {
		ring, err := p.Encode(x, b)
		if err != nil {
			t.Fatalf("b = %d, n = %d: %v", b, len(inputs), err)
		}
		submissions[i] = [][]uint64{ring}
	}
	return maskedTotal(t, masking.Layout{{Length: len(inputs[0]), Bits: b}}, submissions)[0]
}

// At the computed b nothing that Encode takes can wrap.
func TestComputedBitsProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := FixedPoint{
			Range:        rapid.Float64Range(1e-9, 1e6).Draw(t, "range"),
			FractionBits: rapid.IntRange(0, 36).Draw(t, "fraction"),
		}
		n := rapid.IntRange(1, 64).Draw(t, "parties")
		b, err := p.Bits(n)
		if err != nil {
			t.Fatal(err)
		}
		var sum uint64
		var want int64
		for range n {
			x := rapid.Float64Range(-p.Range, p.Range).Draw(t, "x")
			ring, err := p.Encode([]float64{x}, b)
			if err != nil {
				t.Fatal(err)
			}
			rounded, err := p.Round([]float64{x})
			if err != nil {
				t.Fatal(err)
			}
			if off := math.Abs(float64(rounded[0]) - math.Ldexp(x, p.FractionBits)); off > 0.5 {
				t.Fatalf("rounded by %v", off)
			}
			sum += ring[0]
			want += rounded[0]
		}
		sum &= ^uint64(0) >> (64 - b)
		got, err := Integers([]uint64{sum}, b)
		if err != nil || got[0] != want {
			t.Fatalf("%d, %v; want %d", got[0], err, want)
		}
		value, err := p.Decode([]uint64{sum}, b)
		if err != nil || value[0] != math.Ldexp(float64(want), -p.FractionBits) {
			t.Fatalf("%v, %v; want %d·2^-%d", value, err, want, p.FractionBits)
		}
	})
}
