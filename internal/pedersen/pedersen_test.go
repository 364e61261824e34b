package pedersen

import (
	"bytes"
	"encoding/hex"
	"math"
	"math/rand/v2"
	"testing"

	"filippo.io/edwards25519"
	"pgregory.net/rapid"

	"github.com/hushsum/hushsum/internal/dudect"
)

const testLabel = "hushsum pedersen test"

// scalarOf returns the scalar of 64 bytes.
func scalarOf(t testing.TB, b []byte) *edwards25519.Scalar {
	s, err := new(edwards25519.Scalar).SetUniformBytes(b)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func integer(t testing.TB, v int64) *edwards25519.Scalar {
	b := make([]byte, 64)
	u := uint64(v)
	if v < 0 {
		u = -u
	}
	for i := range 8 {
		b[i] = byte(u >> (8 * i))
	}
	s := scalarOf(t, b)
	if v < 0 {
		s.Negate(s)
	}
	return s
}

func randomScalar(t testing.TB, r *rand.Rand) *edwards25519.Scalar {
	b := make([]byte, 64)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return scalarOf(t, b)
}

// naive is the sum by the library's own multiplications, one by one.
func naive(scalars []*edwards25519.Scalar, points []*edwards25519.Point) *edwards25519.Point {
	sum := edwards25519.NewIdentityPoint()
	for i, s := range scalars {
		sum.Add(sum, new(edwards25519.Point).ScalarMult(s, points[i]))
	}
	return sum
}

// extremes are scalars at the ends of digits, of both codes.
func extremes(t testing.TB) []*edwards25519.Scalar {
	var out []*edwards25519.Scalar
	for _, v := range []int64{0, 1, 7, 8, 9, 15, 16, 127, 128, 129, 255, 256, math.MaxInt64} {
		out = append(out, integer(t, v), integer(t, -v))
	}
	for _, b := range []byte{0x77, 0x78, 0x80, 0x81, 0x88, 0xff} {
		wide := make([]byte, 64)
		copy(wide, bytes.Repeat([]byte{b}, 31))
		out = append(out, scalarOf(t, wide))
	}
	return out
}

// The points of a label are fixed: of prime order, all different, and the first those that they
// were when this was written.
func TestGenerators(t *testing.T) {
	g := NewGenerators(testLabel, 100)
	if g.Count() != 100 {
		t.Errorf("%d points", g.Count())
	}
	seen := map[string]bool{}
	minusOne := new(edwards25519.Scalar).Negate(integer(t, 1))
	for i := range g.Count() {
		p := g.Point(i)
		negative := new(edwards25519.Point).Negate(p)
		if new(edwards25519.Point).ScalarMult(minusOne, p).Equal(negative) != 1 || IsSmall(p) {
			t.Errorf("point %d is not of prime order", i)
		}
		if seen[string(p.Bytes())] {
			t.Errorf("point %d comes twice", i)
		}
		seen[string(p.Bytes())] = true
	}
	for i, want := range []string{ // made by another program, from the comment alone
		"e1084a312a843cb8be8672a232d98204f835275a5a2c6e7c2f0cfa71ff847f46",
		"de9aef2232c3e5908efdd7e124f8f0e298194b2c5a26bae1b55245ea5b527cfc",
	} {
		if got := hex.EncodeToString(g.Point(i).Bytes()); got != want {
			t.Errorf("point %d is %s", i, got)
		}
	}
	other := NewGenerators(testLabel+"'", 1)
	if seen[string(other.Point(0).Bytes())] {
		t.Error("another label has a point of this one")
	}
}

// Both sums equal multiplications one by one, for any scalars and at the ends of digits.
func TestSums(t *testing.T) {
	g := NewGenerators(testLabel, 40)
	r := rand.New(rand.NewPCG(1, 2))
	for round := range 20 {
		scalars := extremes(t)
		if round > 0 {
			scalars = scalars[:0]
			for range r.IntN(40) {
				scalars = append(scalars, randomScalar(t, r))
			}
		}
		var points []*edwards25519.Point
		for i := range scalars {
			points = append(points, g.Point(i))
		}
		want := naive(scalars, points)
		if g.Commit(Part{Scalars: scalars, Bits: maxBits}).Equal(want) != 1 {
			t.Errorf("round %d: Commit differs", round)
		}
		if g.SumVarTime(scalars, nil).Equal(want) != 1 {
			t.Errorf("round %d: SumVarTime differs", round)
		}
		var others []Term
		for i, s := range scalars {
			others = append(others, Term{s, points[i]})
		}
		if g.SumVarTime(nil, others).Equal(want) != 1 {
			t.Errorf("round %d: SumVarTime of other points differs", round)
		}
	}
}

// Every integer of few bits, and the ends of longer ones, at every bound that allows them.
func TestIntegers(t *testing.T) {
	g := NewGenerators(testLabel, 3)
	check := func(v int64, bits int) {
		t.Helper()
		got := g.Commit(Part{At: 2, Integers: []int64{v}, Bits: bits})
		want := new(edwards25519.Point).ScalarMult(integer(t, v), g.Point(2))
		if got.Equal(want) != 1 {
			t.Errorf("%d of %d bits", v, bits)
		}
	}
	for bits := range 8 {
		for v := -int64(1) << bits; v <= 1<<bits; v++ {
			check(v, bits)
		}
	}
	for bits := 8; bits <= 60; bits++ {
		check(1<<bits, bits)
		check(-1<<bits, bits)
		check(1<<bits-1, bits)
	}
}

// Parts that do not meet add up to the whole, and a part of small values to the same as scalars.
func TestParts(t *testing.T) {
	g := NewGenerators(testLabel, 64)
	rapid.Check(t, func(r *rapid.T) {
		values := rapid.SliceOfN(rapid.Int64Range(-1<<40, 1<<40), 1, 64).Draw(r, "values")
		cut := rapid.IntRange(0, len(values)).Draw(r, "cut")
		whole := g.Commit(Part{Integers: values, Bits: 40})
		parts := g.Commit(Part{Integers: values[:cut], Bits: 40},
			Part{At: cut, Integers: values[cut:], Bits: 41})
		var scalars []*edwards25519.Scalar
		for _, v := range values {
			scalars = append(scalars, integer(t, v))
		}
		if whole.Equal(parts) != 1 || whole.Equal(g.SumVarTime(scalars, nil)) != 1 {
			r.Errorf("%d values cut at %d", len(values), cut)
		}
	})
}

// A point of small order more changes the encoding, and whether it is small; eight times the point
// stays.
func TestSmallOrder(t *testing.T) {
	// A point of order 8, from the list of RFC 7748's and 8032's small points.
	text := "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a"
	small := [32]byte(must(hex.DecodeString(text)))
	p, err := Parse(&small)
	if err != nil || !IsSmall(p) {
		t.Fatal("the point is not small", err)
	}
	g := NewGenerators(testLabel, 1).Point(0)
	sum := new(edwards25519.Point).Add(g, p)
	if sum.Equal(g) == 1 || IsSmall(sum) {
		t.Error("the sum is the point, or small")
	}
	if !IsSmall(new(edwards25519.Point).Subtract(sum, g)) {
		t.Error("the difference is not small")
	}
	three := integer(t, 3)
	want := new(edwards25519.Point).ScalarMult(three, sum)
	empty := NewGenerators(testLabel, 0)
	if empty.SumVarTime(nil, []Term{{three, sum}}).Equal(want) != 1 {
		t.Error("a point of full order is multiplied wrongly")
	}
	if !IsSmall(edwards25519.NewIdentityPoint()) {
		t.Error("the identity is not small")
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// Of all encodings of a point one is taken, and no others.
func FuzzParse(f *testing.F) {
	f.Add(edwards25519.NewGeneratorPoint().Bytes())
	f.Add(edwards25519.NewIdentityPoint().Bytes())
	f.Add(bytes.Repeat([]byte{0xff}, 32))
	zero := make([]byte, 32)
	f.Add(zero)
	// y = 1 with the sign of x = 0, and y = p + 1: both other encodings of the identity.
	f.Add(append(append([]byte{1}, zero[:30]...), 0x80))
	f.Add(append(append([]byte{0xee}, bytes.Repeat([]byte{0xff}, 30)...), 0x7f))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) != 32 {
			return
		}
		p, err := Parse((*[32]byte)(b))
		if err == nil && !bytes.Equal(p.Bytes(), b) {
			t.Errorf("%x is taken", b)
		}
		if err != nil && p != nil {
			t.Error("an error with a point")
		}
	})
}

func TestParse(t *testing.T) {
	for _, other := range []string{
		"0100000000000000000000000000000000000000000000000000000000000080",
		"eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
		"0200000000000000000000000000000000000000000000000000000000000000",
	} {
		b := [32]byte(must(hex.DecodeString(other)))
		if _, err := Parse(&b); err != ErrPoint {
			t.Errorf("%s: %v", other, err)
		}
	}
}

// Commit takes a time that does not depend on values, and SumVarTime one that does.
func TestTiming(t *testing.T) {
	g := NewGenerators(testLabel, 16)
	r := rand.New(rand.NewPCG(3, 4))
	prepare := func(class int) []*edwards25519.Scalar {
		out := make([]*edwards25519.Scalar, g.Count())
		for i := range out {
			out[i] = integer(t, 0)
			if class == 1 {
				out[i] = randomScalar(t, r)
			}
		}
		return out
	}
	dudect.Check(t, "Commit", false, 1<<12, prepare, func(s []*edwards25519.Scalar) {
		g.Commit(Part{Scalars: s, Bits: maxBits})
	})
	dudect.Check(t, "SumVarTime", true, 1<<12, prepare, func(s []*edwards25519.Scalar) {
		g.SumVarTime(s, nil)
	})
}

// BenchmarkSum is a sum over 2,711 points in the three ways: Commit, SumVarTime, and the library's
// VarTimeMultiScalarMult. It reports the microseconds a point.
func BenchmarkSum(b *testing.B) {
	const count = 2711
	g := NewGenerators(testLabel, count)
	r := rand.New(rand.NewPCG(5, 6))
	var scalars []*edwards25519.Scalar
	var points []*edwards25519.Point
	small := make([]int64, count)
	for i := range count {
		scalars = append(scalars, randomScalar(b, r))
		points = append(points, g.Point(i))
		small[i] = r.Int64N(201) - 100
	}
	for _, way := range []struct {
		name string
		run  func()
	}{
		{"Commit", func() { g.Commit(Part{Scalars: scalars, Bits: maxBits}) }},
		{"CommitSmall", func() { g.Commit(Part{Integers: small, Bits: 9}) }},
		{"SumVarTime", func() { g.SumVarTime(scalars, nil) }},
		{"library", func() { new(edwards25519.Point).VarTimeMultiScalarMult(scalars, points) }},
	} {
		b.Run(way.name, func(b *testing.B) {
			for b.Loop() {
				way.run()
			}
			perPoint := float64(b.Elapsed().Microseconds()) / float64(b.N) / count
			b.ReportMetric(perPoint, "us/point")
		})
	}
	b.Run("NewGenerators", func(b *testing.B) {
		for b.Loop() {
			NewGenerators(testLabel, count)
		}
	})
}

// A base multiplies as the library does, at the ends of digits and elsewhere, points with a part
// of small order too.
func TestBase(t *testing.T) {
	text := "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a"
	small := [32]byte(must(hex.DecodeString(text)))
	eighth, err := Parse(&small)
	if err != nil {
		t.Fatal(err)
	}
	g := NewGenerators(testLabel, 1).Point(0)
	r := rand.New(rand.NewPCG(3, 4))
	for _, p := range []*edwards25519.Point{
		g, edwards25519.NewGeneratorPoint(), edwards25519.NewIdentityPoint(),
		new(edwards25519.Point).Add(g, eighth),
	} {
		base, scalars := NewBase(p), extremes(t)
		for range 20 {
			scalars = append(scalars, randomScalar(t, r))
		}
		for i, s := range scalars {
			if base.Multiply(s).Equal(new(edwards25519.Point).ScalarMult(s, p)) != 1 {
				t.Errorf("scalar %d: another product", i)
			}
		}
	}
}
