package fixed

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

func random(rng *rand.Rand, integer uint64) Number {
	x := Number{rng.Uint64(), rng.Uint64(), rng.Uint64(), rng.Uint64(), rng.Uint64N(integer)}
	for i := range x {
		if rng.IntN(8) == 0 { // edges
			x[i] = uint64(rng.IntN(3) - 1)
		}
	}
	x[4] %= integer
	return x
}

// units returns by how many units x is off from want·2^256.
func units(x Number, want *big.Int) float64 {
	d, _ := new(big.Float).SetInt(want.Sub(want, x.Int())).Float64()
	return math.Abs(d)
}

// The operations against integers, within what they state.
func TestArithmetic(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 20_000 {
		x, y := random(rng, 1<<31), random(rng, 1<<31)
		a, b := x.Int(), y.Int()
		if FromInt(a) != x {
			t.Fatal("Int and FromInt")
		}
		z := x
		z.Add(&y)
		if units(z, new(big.Int).Add(a, b)) != 0 {
			t.Fatal("Add")
		}
		z.Sub(&x)
		if z != y {
			t.Fatal("Sub")
		}
		z.Mul(&x)
		product := new(big.Int).Mul(a, b)
		if units(z, product.Rsh(product, Bits)) > 1 {
			t.Fatal("Mul")
		}
		if d := rng.Uint64N(1<<40) + 1; true {
			z = x
			z.QuoWord(d)
			if units(z, new(big.Int).Quo(a, new(big.Int).SetUint64(d))) > 1 {
				t.Fatal("QuoWord")
			}
		}
		if y[4]++; true {
			z = x
			z.Quo(&y)
			quotient := new(big.Int).Lsh(a, Bits)
			if units(z, quotient.Quo(quotient, y.Int())) > 1 {
				t.Fatal("Quo")
			}
		}
		n := uint(rng.IntN(330))
		z = x
		if z.Rsh(n); units(z, new(big.Int).Rsh(a, n)) > 1 {
			t.Fatalf("Rsh %d", n)
		}
	}
}

// exp and its logarithm by series in big.Float of 400 bits, and both within what they
// state.
func TestExpLog(t *testing.T) {
	exact := func(x Number) *big.Float { // exp(x·2^-256)
		f := new(big.Float).SetPrec(800).SetMantExp(new(big.Float).SetPrec(800).SetInt(x.Int()), -Bits-16)
		sum, term := big.NewFloat(1).SetPrec(800), big.NewFloat(1).SetPrec(800)
		for i := int64(1); i < 200; i++ {
			term.Mul(term, f)
			term.Quo(term, new(big.Float).SetInt64(i))
			sum.Add(sum, term)
		}
		for range 16 {
			sum.Mul(sum, sum)
		}
		return sum
	}
	scaled := func(f *big.Float) *big.Int {
		n, _ := new(big.Float).SetPrec(800).SetMantExp(f, Bits).Int(nil)
		return n
	}
	rng := rand.New(rand.NewPCG(2, 2))
	worst, worstLog := 0.0, 0.0
	for i := range 2000 {
		x := random(rng, 210)
		if i < 300 {
			x[4] = 0
			x.Rsh(uint(i))
		}
		if i == 0 {
			x = Number{}
		}
		e := exact(x)
		worst = max(worst, units(ExpNeg(x), scaled(new(big.Float).SetPrec(800).Quo(big.NewFloat(1), e))))
		if x[4] < 41 {
			y := FromInt(scaled(e))
			if y[4] == 0 {
				y = One
			}
			worstLog = max(worstLog, units(Log(y), x.Int()))
		}
	}
	t.Logf("exp is off by %g units, log by %g", worst, worstLog)
	if worst > 1<<20 || worstLog > 1<<22 {
		t.Errorf("exp is off by %g units, log by %g", worst, worstLog)
	}
}

func BenchmarkMul(b *testing.B) {
	rng := rand.New(rand.NewPCG(3, 3))
	x, y := random(rng, 1), random(rng, 1)
	for b.Loop() {
		z := x
		z.Mul(&y)
	}
}

func BenchmarkExpNeg(b *testing.B) {
	x := random(rand.New(rand.NewPCG(4, 4)), 100)
	for b.Loop() {
		ExpNeg(x)
	}
}

func BenchmarkLog(b *testing.B) {
	x := random(rand.New(rand.NewPCG(5, 5)), 100)
	x[4]++
	for b.Loop() {
		Log(x)
	}
}
