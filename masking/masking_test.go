package masking

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// randomValues draws values that fill the layout, with the edges of the ring
// more often than chance would have them.
func randomValues(rng *rand.Rand, layout Layout) [][]uint64 {
	values := make([][]uint64, len(layout))
	for i, s := range layout {
		values[i] = make([]uint64, s.Length)
		for k := range values[i] {
			x := rng.Uint64() >> (64 - s.Bits)
			switch rng.IntN(8) {
			case 0:
				x = 0
			case 1:
				x = 1<<(s.Bits-1) - 1
			case 2:
				x = 1 << (s.Bits - 1)
			case 3:
				x = ^uint64(0) >> (64 - s.Bits)
			}
			values[i][k] = x
		}
	}
	return values
}

func mustVector(t testing.TB, layout Layout, values ...[]uint64) *Vector {
	t.Helper()
	v, err := FromValues(layout, values...)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func equalValues(a, b [][]uint64) bool { return slices.EqualFunc(a, b, slices.Equal) }

// layouts yields, for every b, lengths around the edges of words, of the
// assembly's turns and of blocks, alone and next to another segment.
func layouts(yield func(Layout) bool) {
	for bits := 1; bits <= 64; bits++ {
		slots := 64 / bits
		for _, n := range []int{1, slots, slots + 1, 16*slots - 1, 16*slots + 1,
			512*slots + 17*slots + 1} {
			if !yield(Layout{{n, bits}}) || !yield(Layout{{3, 65 - bits}, {n, bits}, {1, 7}}) {
				return
			}
		}
	}
}

func TestValuesRoundTrip(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for layout := range layouts {
		values := randomValues(rng, layout)
		if got := mustVector(t, layout, values...).Values(); !equalValues(got, values) {
			t.Fatalf("%v: values changed", layout)
		}
	}
}

// Addition and subtraction, slot by slot and in streams, by assembly and by
// the portable code, against arithmetic on single values.
func TestArithmetic(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	for layout := range layouts {
		a, b := randomValues(rng, layout), randomValues(rng, layout)
		sum, difference := make([][]uint64, len(a)), make([][]uint64, len(a))
		for i, s := range layout {
			low := ^uint64(0) >> (64 - s.Bits)
			for k := range a[i] {
				sum[i] = append(sum[i], (a[i][k]+b[i][k])&low)
				difference[i] = append(difference[i], (a[i][k]-b[i][k])&low)
			}
		}
		x, y := mustVector(t, layout, a...), mustVector(t, layout, b...)
		stream := make([]byte, 0, 8*len(y.words))
		for _, w := range y.words {
			stream = binary.LittleEndian.AppendUint64(stream, w)
		}
		for _, c := range []struct {
			name string
			want [][]uint64
			do   func(v *Vector) error
		}{
			{"Add", sum, func(v *Vector) error { return v.Add(y) }},
			{"Sub", difference, func(v *Vector) error { return v.Sub(y) }},
			{"addStream", sum, func(v *Vector) error { return v.words64(stream, addStream) }},
			{"subStream", difference, func(v *Vector) error { return v.words64(stream, subStream) }},
			{"addStreamGeneric", sum, func(v *Vector) error { return v.words64(stream, addStreamGeneric) }},
			{"subStreamGeneric", difference, func(v *Vector) error { return v.words64(stream, subStreamGeneric) }},
			{"AddPacked", sum, func(v *Vector) error { return v.AddPacked(y.AppendPacked(nil)) }},
		} {
			v := x.Clone()
			if err := c.do(v); err != nil {
				t.Fatal(err)
			}
			if !equalValues(v.Values(), c.want) {
				t.Fatalf("%v: %s is wrong", layout, c.name)
			}
			// The canonical form is unique: equal vectors have equal words.
			if !slices.Equal(v.words, mustVector(t, layout, c.want...).words) {
				t.Fatalf("%v: %s leaves bits outside the slots", layout, c.name)
			}
		}
	}
}

// stream applies a streaming kernel to all segments.
func (v *Vector) words64(b []byte, op func([]uint64, []byte, uint64, uint64)) error {
	for s, at := range v.segments() {
		top, body := s.masks()
		op(v.words[at:at+s.words()], b[8*at:8*(at+s.words())], body, top)
	}
	return nil
}

// The assembly and the portable kernels agree on any words, bits outside the
// slots included, and write nothing beyond what they are given.
func TestKernelsAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Segment{1, rapid.IntRange(1, 64).Draw(t, "bits")}
		top, body := s.masks()
		n := rapid.IntRange(0, 70).Draw(t, "words")
		seed := rapid.Uint64().Draw(t, "seed")
		offset := rapid.IntRange(0, 9).Draw(t, "misalignment")
		rng := rand.New(rand.NewPCG(seed, 3))
		dst := make([]uint64, n+2)
		src := make([]byte, offset+8*n)
		for i := range dst {
			dst[i] = rng.Uint64() & (top | body)
		}
		for i := range src {
			src[i] = byte(rng.Uint32())
		}
		for name, ops := range map[string][2]func([]uint64, []byte, uint64, uint64){
			"add": {addStream, addStreamGeneric}, "sub": {subStream, subStreamGeneric},
		} {
			fast, slow := slices.Clone(dst), slices.Clone(dst)
			ops[0](fast[1:n+1], src[offset:], body, top)
			ops[1](slow[1:n+1], src[offset:], body, top)
			if !slices.Equal(fast, slow) {
				t.Fatalf("%s: kernels differ", name)
			}
			if fast[0] != dst[0] || fast[n+1] != dst[n+1] {
				t.Fatalf("%s: wrote out of bounds", name)
			}
		}
	})
}

func TestPacking(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	for layout := range layouts {
		values := randomValues(rng, layout)
		v := mustVector(t, layout, values...)
		packed := v.AppendPacked([]byte("head"))[4:]

		// The definition, bit by bit.
		var want []byte
		for i, s := range layout {
			segment := make([]byte, (s.Length*s.Bits+7)/8)
			for k, x := range values[i] {
				for j := range s.Bits {
					at := k*s.Bits + j
					segment[at/8] |= byte(x>>j&1) << (at % 8)
				}
			}
			want = append(want, segment...)
		}
		if !bytes.Equal(packed, want) || len(packed) != layout.PackedSize() {
			t.Fatalf("%v: packed bytes differ from the definition", layout)
		}
		again, err := ParsePacked(layout, packed)
		if err != nil || !slices.Equal(again.words, v.words) {
			t.Fatalf("%v: parsing does not give the vector back (%v)", layout, err)
		}
	}
}

func TestParsePackedRefuses(t *testing.T) {
	layout := Layout{{3, 5}, {2, 8}, {1, 1}}
	good := mustVector(t, layout, []uint64{1, 2, 3}, []uint64{4, 5}, []uint64{1})
	packed := good.AppendPacked(nil)
	for n := range len(packed) + 9 {
		if n == len(packed) {
			continue
		}
		if _, err := ParsePacked(layout, make([]byte, n)); !errors.Is(err, ErrPackedSize) {
			t.Errorf("%d bytes: got %v, want ErrPackedSize", n, err)
		}
	}
	for _, bit := range []int{15, 4*8 + 1, 4*8 + 7} {
		bad := bytes.Clone(packed)
		bad[bit/8] ^= 1 << (bit % 8)
		v := good.Clone()
		if err := v.AddPacked(bad); !errors.Is(err, ErrPadding) {
			t.Errorf("padding bit %d: got %v, want ErrPadding", bit, err)
		}
		if !slices.Equal(v.words, good.words) {
			t.Errorf("padding bit %d: the vector changed", bit)
		}
	}
}

func TestLayoutErrors(t *testing.T) {
	for _, layout := range []Layout{
		nil, {}, {{0, 8}}, {{-1, 8}}, {{1, 0}}, {{1, 65}}, {{1, -3}}, {{1, 8}, {1, 99}},
		{{MaxLength + 1, 1}}, {{MaxLength, 1}, {1, 1}}, {{math.MaxInt/2 + 1, 64}, {math.MaxInt/2 + 1, 64}},
		make(Layout, maxSegments+1),
	} {
		if v, err := NewVector(layout); !errors.Is(err, ErrLayout) || v != nil {
			t.Errorf("%.3v: got %v, want ErrLayout", layout, err)
		}
		if _, err := ParsePacked(layout, nil); !errors.Is(err, ErrLayout) {
			t.Errorf("%.3v: ParsePacked: %v", layout, err)
		}
	}
	for _, layout := range []Layout{{{MaxLength, 64}}, {{MaxLength - 1, 1}, {1, 64}},
		slices.Repeat(Layout{{1, 1}}, maxSegments)} {
		if err := layout.Validate(); err != nil {
			t.Errorf("%.3v, the most there may be: %v", layout, err)
		}
	}
}

func TestFromValuesErrors(t *testing.T) {
	layout := Layout{{2, 4}, {1, 64}}
	for _, c := range []struct {
		values [][]uint64
		want   error
	}{
		{nil, ErrLength},
		{[][]uint64{{1, 2}}, ErrLength},
		{[][]uint64{{1}, {1}}, ErrLength},
		{[][]uint64{{1, 2, 3}, {1}}, ErrLength},
		{[][]uint64{{1, 2}, {1}, {1}}, ErrLength},
		{[][]uint64{{1, 16}, {1}}, ErrRange},
		{[][]uint64{{1 << 63, 1}, {1}}, ErrRange},
	} {
		if v, err := FromValues(layout, c.values...); !errors.Is(err, c.want) || v != nil {
			t.Errorf("%v: got %v, want %v", c.values, err, c.want)
		}
	}
	a, b := mustVector(t, layout, []uint64{1, 2}, []uint64{3}),
		mustVector(t, Layout{{2, 4}}, []uint64{1, 2})
	if err := a.Add(b); !errors.Is(err, ErrLayoutMismatch) {
		t.Errorf("Add: %v", err)
	}
	if err := a.Sub(b); !errors.Is(err, ErrLayoutMismatch) {
		t.Errorf("Sub: %v", err)
	}
}

// All shares give the secret; all but one are as likely for any other secret,
// since the last share can be anything; shares of zero re-blind shares.
func TestShare(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		layout := Layout{
			{rapid.IntRange(1, 40).Draw(t, "length"), rapid.IntRange(1, 64).Draw(t, "bits")},
			{1, rapid.IntRange(1, 64).Draw(t, "bits of the second")},
		}
		n := rapid.IntRange(2, 7).Draw(t, "n")
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 6))
		secret, err := FromValues(layout, randomValues(rng, layout)...)
		if err != nil {
			t.Fatal(err)
		}
		shares, err := secret.Share(nil, n)
		if err != nil || len(shares) != n {
			t.Fatal(err)
		}
		zero, err := NewVector(layout)
		if err != nil {
			t.Fatal(err)
		}
		blinds, err := zero.Share(nil, n)
		if err != nil {
			t.Fatal(err)
		}
		sum, reblinded := zero.Clone(), zero.Clone()
		for i, share := range shares {
			if sum.Add(share) != nil || share.Add(blinds[i]) != nil || reblinded.Add(share) != nil {
				t.Fatal("layouts differ")
			}
		}
		if !slices.Equal(sum.words, secret.words) || !slices.Equal(reblinded.words, secret.words) {
			t.Fatal("the shares do not add up to the secret")
		}
	})
}

// Every share of one secret bit, the last included, is uniform: over 20,000
// sharings of each secret, χ² with 3 degrees of freedom on pairs of shares out
// of three stays below 30.7 (false alarm 1e-6 each, 6 tests).
func TestShareIsUniform(t *testing.T) {
	random := rand.NewChaCha8([32]byte{7})
	for secretBit := uint64(0); secretBit <= 1; secretBit++ {
		secret := mustVector(t, Layout{{1, 1}}, []uint64{secretBit})
		var counts [3][4]float64
		const runs = 20_000
		for range runs {
			shares, err := secret.Share(random, 3)
			if err != nil {
				t.Fatal(err)
			}
			for i := range 3 {
				counts[i][shares[i].words[0]<<1|shares[(i+1)%3].words[0]]++
			}
		}
		for i, count := range counts {
			chi := 0.0
			for _, c := range count {
				chi += (c - runs/4) * (c - runs/4) / (runs / 4)
			}
			if chi > 30.7 {
				t.Errorf("secret %d: shares %d and %d: χ² = %.1f", secretBit, i, (i+1)%3, chi)
			}
		}
	}
}

func TestShareErrors(t *testing.T) {
	v := mustVector(t, Layout{{2, 4}}, []uint64{1, 2})
	for _, n := range []int{-1, 0, 1} {
		if _, err := v.Share(nil, n); !errors.Is(err, ErrShares) {
			t.Errorf("n = %d: %v", n, err)
		}
	}
	if shares, err := v.Share(bytes.NewReader(make([]byte, 20)), 9); !errors.Is(err,
		io.ErrUnexpectedEOF) || shares != nil {
		t.Errorf("short randomness: %v", err)
	}
}
