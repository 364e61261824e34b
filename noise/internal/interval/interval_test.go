package interval

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

// inside reports whether x lies in the interval.
func inside(i Interval, x *big.Rat) bool {
	lo, hi := new(big.Rat), new(big.Rat)
	i.Lo.Rat(lo)
	if i.Hi.IsInf() {
		return lo.Cmp(x) <= 0
	}
	i.Hi.Rat(hi)
	return lo.Cmp(x) <= 0 && x.Cmp(hi) <= 0
}

// TestEnclosure compares random arithmetic with exact fractions, at a precision so low
// that rounding matters.
func TestEnclosure(t *testing.T) {
	num := rapid.Int64Range(0, 1<<40)
	den := rapid.Int64Range(1, 1<<40)
	rapid.Check(t, func(t *rapid.T) {
		c := Context{uint(rapid.IntRange(5, 40).Draw(t, "prec"))}
		x := big.NewRat(num.Draw(t, "x"), den.Draw(t, "x below"))
		i := c.Rat(x)
		for range rapid.IntRange(1, 8).Draw(t, "steps") {
			y := big.NewRat(num.Draw(t, "y"), den.Draw(t, "y below"))
			j := c.Rat(y)
			switch rapid.IntRange(0, 3).Draw(t, "op") {
			case 0:
				x, i = new(big.Rat).Add(x, y), c.Add(i, j)
			case 1:
				x, i = new(big.Rat).Mul(x, y), c.Mul(i, j)
			case 2:
				if y.Sign() > 0 {
					x, i = new(big.Rat).Quo(x, y), c.Quo(i, j)
				}
			case 3:
				if x.Cmp(y) >= 0 {
					x, i = new(big.Rat).Sub(x, y), c.Sub(i, j)
				}
			}
			if !inside(i, x) {
				t.Fatalf("%v outside [%v, %v]", x, i.Lo, i.Hi)
			}
		}
		if !i.Hi.IsInf() {
			bits := rapid.IntRange(-10, 60).Draw(t, "bits")
			lo, hi := i.Fixed(bits)
			scale := new(big.Rat).SetFloat64(math.Ldexp(1, bits))
			s := new(big.Rat).Mul(x, scale)
			if new(big.Rat).SetInt(lo).Cmp(s) > 0 || new(big.Rat).SetInt(hi).Cmp(s) < 0 {
				t.Fatalf("%v·2^%d outside [%v, %v]", x, bits, lo, hi)
			}
		}
	})
}

func TestQuoByZero(t *testing.T) {
	c := Context{20}
	q := c.Quo(c.Int(3), c.Unit())
	if !q.Hi.IsInf() || q.Lo.Cmp(big.NewFloat(3)) != 0 {
		t.Errorf("3/[0, 1] = [%v, %v]", q.Lo, q.Hi)
	}
	if q = c.Quo(c.Int(1), q); q.Lo.Sign() != 0 {
		t.Errorf("1/[3, ∞] = [%v, %v]", q.Lo, q.Hi)
	}
}

// TestExpNeg: known digits of e^-1, enclosures of exp(−a)·exp(−b) and of exp(−a−b) that
// meet, agreement with math.Exp, and intervals as narrow as the precision says.
func TestExpNeg(t *testing.T) {
	c := Context{300}
	one := c.ExpNeg(big.NewRat(1, 1))
	const digits = "0.3678794411714423215955237701614608674458111310317678345078368016974614957" +
		"4489980335714727434591964374662732"
	want, _, err := big.ParseFloat(digits, 10, 340, big.ToNearestEven)
	if err != nil {
		t.Fatal(err)
	}
	if d := new(big.Float).Sub(one.Lo, want); d.Sign() != 0 && d.MantExp(nil) > -290 {
		t.Errorf("e^-1 off by %v", d)
	}
	rapid.Check(t, func(t *rapid.T) {
		a := big.NewRat(rapid.Int64Range(0, 1<<30).Draw(t, "a"),
			rapid.Int64Range(1, 1<<30).Draw(t, "a below"))
		b := big.NewRat(rapid.Int64Range(0, 1000).Draw(t, "b"),
			rapid.Int64Range(1, 1000).Draw(t, "b below"))
		if a.Cmp(big.NewRat(1<<20, 1)) > 0 {
			a.Inv(a)
		}
		x := c.Mul(c.ExpNeg(a), c.ExpNeg(b))
		y := c.ExpNeg(new(big.Rat).Add(a, b))
		if x.Lo.Cmp(y.Hi) > 0 || y.Lo.Cmp(x.Hi) > 0 {
			t.Fatalf("exp(−%v)·exp(−%v) and exp(−sum) do not meet", a, b)
		}
		width := new(big.Float).Sub(y.Hi, y.Lo)
		if width.Sign() != 0 && width.MantExp(nil) > y.Hi.MantExp(nil)-290 {
			t.Fatalf("interval too wide: %v", width)
		}
		f, _ := new(big.Rat).Add(a, b).Float64()
		if g, _ := y.Lo.Float64(); f < 700 && math.Abs(g/math.Exp(-f)-1) > 1e-12 {
			t.Fatalf("exp(−%v) = %v", f, g)
		}
	})
}
