package field

import (
	"encoding/binary"
	"math/big"
	"math/rand/v2"
	"testing"

	"filippo.io/edwards25519"
	"pgregory.net/rapid"
)

var order, _ = new(big.Int).SetString(
	"7237005577332262213973186563042994240857116359379907606001950938285454250989", 10)

// toBig returns the integer of the limbs, reduced or not.
func toBig(limbs ...uint64) *big.Int {
	v := new(big.Int)
	for i := len(limbs) - 1; i >= 0; i-- {
		v.Lsh(v, 64).Or(v, new(big.Int).SetUint64(limbs[i]))
	}
	return v
}

func (e *Element) big() *big.Int { return toBig(e[:]...) }

// fromBig returns v mod ℓ.
func fromBig(v *big.Int) Element {
	v = new(big.Int).Mod(v, order)
	var b [32]byte
	v.FillBytes(b[:])
	var e Element
	for i := range e {
		e[i] = binary.BigEndian.Uint64(b[24-8*i:])
	}
	return e
}

// limb draws a limb that is likely to be all zeros, all ones or close by.
func limb() *rapid.Generator[uint64] {
	return rapid.OneOf(
		rapid.Uint64(),
		rapid.SampledFrom([]uint64{0, 1, 1 << 63, 1<<64 - 1, 1<<60 - 1, 1 << 60, delta0, delta1}),
	)
}

// element draws elements, with weight on the edges: near 0, near ℓ, near
// 2^252 and with limbs of zeros and ones.
func element() *rapid.Generator[Element] {
	return rapid.Custom(func(t *rapid.T) Element {
		near := func(v *big.Int) Element {
			return fromBig(new(big.Int).Add(v, big.NewInt(rapid.Int64Range(-4, 4).Draw(t, "offset"))))
		}
		switch rapid.IntRange(0, 4).Draw(t, "kind") {
		case 0:
			return near(new(big.Int))
		case 1:
			return near(new(big.Int).Lsh(big.NewInt(1), 252))
		case 2: // between 2^252 and ℓ
			return fromBig(toBig(limb().Draw(t, "l0"), limb().Draw(t, "l1")%delta1, 0, 1<<60))
		default:
			l := limb()
			return fromBig(toBig(l.Draw(t, "l0"), l.Draw(t, "l1"), l.Draw(t, "l2"), l.Draw(t, "l3")&low252))
		}
	})
}

func same(t *rapid.T, what string, got Element, want *big.Int) {
	t.Helper()
	if got.big().Cmp(new(big.Int).Mod(want, order)) != 0 {
		t.Fatalf("%s: got %x, want %x", what, got.big(), new(big.Int).Mod(want, order))
	}
}

func scalar(e Element) *edwards25519.Scalar {
	b := e.Bytes()
	s, err := new(edwards25519.Scalar).SetCanonicalBytes(b[:])
	if err != nil {
		panic(err)
	}
	return s
}

func TestConstants(t *testing.T) {
	if got := toBig(order0, order1, order2, order3); got.Cmp(order) != 0 {
		t.Errorf("order is %x", got)
	}
	if got := toBig(order160[:]...); got.Cmp(new(big.Int).Lsh(order, 160)) != 0 {
		t.Errorf("order160 is %x", got)
	}
	if got := toBig(order36[:]...); got.Cmp(new(big.Int).Lsh(order, 36)) != 0 {
		t.Errorf("order36 is %x", got)
	}
}

// TestArithmetic compares every operation with math/big and, where it has
// one, with filippo.io/edwards25519.
func TestArithmetic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x, y := element().Draw(t, "x"), element().Draw(t, "y")
		small := limb().Draw(t, "small") >> 1
		bx, by := x.big(), y.big()
		var z Element
		same(t, "Add", *z.Add(&x, &y), new(big.Int).Add(bx, by))
		same(t, "Sub", *z.Sub(&x, &y), new(big.Int).Sub(bx, by))
		same(t, "Neg", *z.Neg(&x), new(big.Int).Neg(bx))
		same(t, "Mul", *z.Mul(&x, &y), new(big.Int).Mul(bx, by))
		same(t, "MulSmall", *z.MulSmall(&x, small), new(big.Int).Mul(bx, new(big.Int).SetUint64(small)))
		same(t, "Small", Small(small), new(big.Int).SetUint64(small))
		if (x.IsZero() == 1) != (bx.Sign() == 0) {
			t.Fatal("IsZero")
		}
		inverse := new(big.Int).ModInverse(bx, order)
		if inverse == nil {
			inverse = new(big.Int)
		}
		same(t, "Invert", *z.Invert(&x), inverse)

		if z.Mul(&x, &y); scalar(z).Equal(new(edwards25519.Scalar).Multiply(scalar(x), scalar(y))) != 1 {
			t.Fatal("Mul differs from edwards25519")
		}
		if z.Sub(&x, &y); scalar(z).Equal(new(edwards25519.Scalar).Subtract(scalar(x), scalar(y))) != 1 {
			t.Fatal("Sub differs from edwards25519")
		}
	})
}

// TestAlias checks that receivers may be arguments.
func TestAlias(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := element().Draw(t, "x")
		for name, op := range map[string]func(z, x, y *Element) *Element{
			"Add": (*Element).Add, "Sub": (*Element).Sub, "Mul": (*Element).Mul,
		} {
			var want Element
			op(&want, &x, &x)
			got := x
			op(&got, &got, &got)
			if got != want {
				t.Fatal(name)
			}
		}
		got, want := x, Element{}
		if *got.Neg(&got) != *want.Neg(&x) {
			t.Fatal("Neg")
		}
		if got = x; *got.MulSmall(&got, 7) != *want.MulSmall(&x, 7) {
			t.Fatal("MulSmall")
		}
		if got = x; *got.Invert(&got) != *want.Invert(&x) {
			t.Fatal("Invert")
		}
	})
}

func TestBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := limb()
		var b [32]byte
		for i := range 4 {
			binary.LittleEndian.PutUint64(b[8*i:], l.Draw(t, "limb"))
		}
		if rapid.Bool().Draw(t, "near ℓ") {
			v := new(big.Int).Add(order, big.NewInt(rapid.Int64Range(-3, 3).Draw(t, "offset")))
			for i, w := range v.FillBytes(make([]byte, 32)) {
				b[31-i] = w
			}
		}
		_, err := new(edwards25519.Scalar).SetCanonicalBytes(b[:])
		before := Element{1, 2, 3, 4}
		e := before
		ok := e.SetCanonicalBytes(&b)
		if (ok == 1) != (err == nil) {
			t.Fatalf("%x: got %d, edwards25519 says %v", b, ok, err)
		}
		if ok == 1 && e.Bytes() != b {
			t.Fatal("encoding does not round-trip")
		}
		if ok == 0 && e != before {
			t.Fatal("receiver changed by a refused encoding")
		}
	})
}

func TestSetWideBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b [64]byte
		limbs := make([]uint64, 8)
		for i := range limbs {
			limbs[i] = limb().Draw(t, "limb")
			binary.LittleEndian.PutUint64(b[8*i:], limbs[i])
		}
		var e Element
		same(t, "SetWideBytes", *e.SetWideBytes(&b), toBig(limbs...))
		s, _ := new(edwards25519.Scalar).SetUniformBytes(b[:])
		if scalar(e).Equal(s) != 1 {
			t.Fatal("differs from edwards25519")
		}
	})
}

// TestReduceBound reduces the largest and other numbers that a Wide may hold.
func TestReduceBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var w Wide
		for i := range w {
			w[i] = limb().Draw(t, "limb")
		}
		w[8] &= 1<<26 - 1 // 2^32 products are below 2^538
		want := toBig(w[:]...)
		same(t, "Reduce", *new(Element).Reduce(&w), want)
	})
	top := Wide{}
	for i := range 8 {
		top[i] = 1<<64 - 1
	}
	top[8] = 1<<26 - 1
	if got := new(Element).Reduce(&top); got.big().
		Cmp(new(big.Int).Mod(toBig(top[:]...), order)) != 0 {
		t.Error("largest sum")
	}
}

func TestMulAdd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var w Wide
		want := new(big.Int)
		for range rapid.IntRange(0, 20).Draw(t, "terms") {
			x, y := element().Draw(t, "x"), element().Draw(t, "y")
			w.MulAdd(&x, &y)
			want.Add(want, new(big.Int).Mul(x.big(), y.big()))
		}
		if toBig(w[:]...).Cmp(want) != 0 {
			t.Fatal("the unreduced sum is wrong")
		}
		same(t, "sum of products", *new(Element).Reduce(&w), want)
	})
}

// TestMulAddMany adds up enough of the largest products to fill the top limb.
func TestMulAddMany(t *testing.T) {
	largest := fromBig(big.NewInt(-1))
	var w Wide
	const terms = 1000 // 64 fill eight limbs
	for range terms {
		w.MulAdd(&largest, &largest)
	}
	product := new(big.Int).Mul(largest.big(), largest.big())
	if toBig(w[:]...).Cmp(product.Mul(product, big.NewInt(terms))) != 0 {
		t.Error("the unreduced sum is wrong")
	}
	if got, want := *new(Element).Reduce(&w), Small(terms); got != want {
		t.Errorf("got %x, want %x", got, want)
	}
}

// TestEval compares Eval with Horner's rule in math/big, at points of every
// size, so with every block length.
func TestEval(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := rapid.SliceOfN(element(), 0, 40).Draw(t, "coefficients")
		x := rapid.OneOf(
			rapid.SampledFrom([]uint32{0, 1, 2, 1<<32 - 1}),
			rapid.Map(rapid.IntRange(0, 31), func(k int) uint32 { return 1<<k - 1 }),
			rapid.Map(rapid.IntRange(0, 31), func(k int) uint32 { return 1 << k }),
			rapid.Uint32(),
		).Draw(t, "x")
		same(t, "Eval", Eval(c, x), horner(c, x))
	})
	// The largest coefficients everywhere, at the largest point of each block length.
	largest := fromBig(big.NewInt(-1))
	c := make([]Element, 60)
	for i := range c {
		c[i] = largest
	}
	for k := range 33 {
		x := uint32(1<<k - 1)
		if got := Eval(c, x); got.big().Cmp(horner(c, x)) != 0 {
			t.Errorf("largest coefficients at %d", x)
		}
	}
}

func horner(c []Element, x uint32) *big.Int {
	v := new(big.Int)
	for i := len(c) - 1; i >= 0; i-- {
		v.Mul(v, big.NewInt(int64(x))).Add(v, c[i].big()).Mod(v, order)
	}
	return v
}

func TestInvertAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nonZero := element().Filter(func(e Element) bool { return e.IsZero() == 0 })
		xs := rapid.SliceOfN(nonZero, 0, 12).Draw(t, "xs")
		got := append([]Element(nil), xs...)
		InvertAll(got)
		for i := range xs {
			same(t, "InvertAll", got[i], new(big.Int).ModInverse(xs[i].big(), order))
		}
	})
}

func randomElements(n int) []Element {
	r := rand.New(rand.NewPCG(1, 2))
	es := make([]Element, n)
	for i := range es {
		es[i] = fromBig(toBig(r.Uint64(), r.Uint64(), r.Uint64(), r.Uint64()))
	}
	return es
}

func BenchmarkEval501(b *testing.B) {
	c := randomElements(501)
	for b.Loop() {
		c[0] = Eval(c, 1000)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/501, "ns/coefficient")
}

func BenchmarkMul(b *testing.B) {
	c := randomElements(2)
	for b.Loop() {
		c[0].Mul(&c[0], &c[1])
	}
}

func BenchmarkMulSmall(b *testing.B) {
	c := randomElements(1)
	for b.Loop() {
		c[0].MulSmall(&c[0], 1<<62+12345)
	}
}

func BenchmarkMulAdd(b *testing.B) {
	c := randomElements(2)
	var w Wide
	for b.Loop() {
		w.MulAdd(&c[0], &c[1])
	}
}

func BenchmarkEdwardsMultiplyAdd(b *testing.B) {
	c := randomElements(2)
	x, y := scalar(c[0]), scalar(c[1])
	for b.Loop() {
		y.MultiplyAdd(y, x, x)
	}
}
