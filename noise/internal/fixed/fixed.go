// Package fixed is fast arithmetic on non-negative fixed-point numbers with 256
// binary places, for the many sums of exponentials that tables of package noise are
// made from. Every operation is off by at most the number of units in the last place
// (2^-256) that it states, for exact operands, so that a bound on the whole is a count.
package fixed

import (
	"math"
	"math/big"
	"math/bits"
)

// Bits is the number of binary places.
const Bits = 256

// Number is a number below 2^64: four words of binary places, the lowest first, and
// the integer part.
type Number [5]uint64

// One is 1.
var One = Number{4: 1}

// FromBig returns ⌊x·2^256⌋ units, for 0 ≤ x < 2^64.
func FromBig(x *big.Float) Number {
	n, _ := new(big.Float).SetPrec(x.Prec()).SetMantExp(x, Bits).Int(nil)
	return FromInt(n)
}

// FromInt returns n units, 0 ≤ n < 2^320.
func FromInt(n *big.Int) (x Number) {
	var b [40]byte
	n.FillBytes(b[:])
	for i := range x {
		for _, c := range b[32-8*i : 40-8*i] {
			x[i] = x[i]<<8 | uint64(c)
		}
	}
	return x
}

// Int returns x in units.
func (x Number) Int() *big.Int {
	var b [40]byte
	for i, w := range x {
		for j := range 8 {
			b[39-8*i-j] = byte(w >> (8 * j))
		}
	}
	return new(big.Int).SetBytes(b[:])
}

// IsZero reports whether x is 0.
func (x *Number) IsZero() bool { return x[0]|x[1]|x[2]|x[3]|x[4] == 0 }

// Add sets x to x + y, exactly. The sum must be below 2^64.
func (x *Number) Add(y *Number) {
	var c uint64
	for i := range x {
		x[i], c = bits.Add64(x[i], y[i], c)
	}
}

// Sub sets x to x − y, exactly. The difference must not be negative.
func (x *Number) Sub(y *Number) {
	var c uint64
	for i := range x {
		x[i], c = bits.Sub64(x[i], y[i], c)
	}
}

// Mul sets x to x·y, off by at most one unit. The product must be below 2^64.
func (x *Number) Mul(y *Number) {
	var p [10]uint64
	for i, a := range x {
		if a == 0 {
			continue
		}
		var carry uint64
		for j, b := range y {
			hi, lo := bits.Mul64(a, b)
			var c uint64
			lo, c = bits.Add64(lo, p[i+j], 0)
			hi += c
			lo, c = bits.Add64(lo, carry, 0)
			p[i+j], carry = lo, hi+c
		}
		p[i+5] = carry
	}
	*x = Number(p[4:9])
}

// QuoWord sets x to x/d, off by at most one unit.
func (x *Number) QuoWord(d uint64) {
	var r uint64
	for i := len(x) - 1; i >= 0; i-- {
		x[i], r = bits.Div64(r, x[i], d)
	}
}

// Quo sets x to x/y, off by at most one unit. The quotient must be below 2^64.
func (x *Number) Quo(y *Number) {
	n := x.Int()
	*x = FromInt(n.Quo(n.Lsh(n, Bits), y.Int()))
}

// Rsh sets x to x/2^n, off by at most one unit.
func (x *Number) Rsh(n uint) {
	for ; n >= 64; n -= 64 {
		copy(x[:], x[1:])
		x[4] = 0
	}
	for i := range x {
		x[i] >>= n
		if i < 4 {
			x[i] |= x[i+1] << (64 - n)
		}
	}
}

// ln2 is the natural logarithm of 2, off by at most 2^8 units: 2·atanh(1/3), 81 terms, each off by
// less than two units.
var ln2 = func() (sum Number) {
	term := One
	term.QuoWord(3)
	for i := uint64(1); !term.IsZero(); i += 2 {
		t := term
		t.QuoWord(i)
		sum.Add(&t)
		sum.Add(&t)
		term.QuoWord(9)
	}
	return sum
}()

// ExpNeg returns exp(−x), off by at most 2^20 units. With x = n·ln 2 + r, it is
// exp(−r)·2^-n. n is below 2^9 (beyond, the result is zero), so that r is off by 2^17
// units; r/2^8 by 2^9 and one. Thirty terms of the series of exp(−r/2^8) leave less than
// a unit and add two units each; eight squarings double the error each and add one.
func ExpNeg(x Number) Number {
	if x[4] >= 200 {
		return Number{} // exp(−200) is below 2^-288
	}
	n := uint64((float64(x[4]) + float64(x[3])*0x1p-64) / math.Ln2)
	multiple := Number{4: n}
	multiple.Mul(&ln2)
	for multiple.above(&x) { // where the float is a little too large
		n--
		multiple.Sub(&ln2)
	}
	x.Sub(&multiple)
	x.Rsh(8)
	// 1 − x + x²/2 − …: the signs alternate and the terms fall, so that every partial
	// sum is positive.
	sum, term := One, One
	for i := uint64(1); i <= 30; i++ {
		term.Mul(&x)
		term.QuoWord(i)
		if i%2 == 1 {
			sum.Sub(&term)
		} else {
			sum.Add(&term)
		}
	}
	for range 8 {
		square := sum
		sum.Mul(&square)
	}
	sum.Rsh(uint(n))
	return sum
}

func (x *Number) above(y *Number) bool {
	for i := len(x) - 1; i >= 0; i-- {
		if x[i] != y[i] {
			return x[i] > y[i]
		}
	}
	return false
}

// Log returns ln x for 1 ≤ x < 2^60, off by at most 2^22 units. For 1 ≤ x < 2, let y be
// its logarithm in float64, less a little more than the error of that. Then ln x = y +
// ln(1+t), where 1+t = exp(−y)·x is at least 1 and below 1 + 2^-40 and off by 2^21 units,
// and seven terms of the series of ln(1+t) leave less than one.
func Log(x Number) Number {
	n := uint(bits.Len64(x[4]) - 1)
	x.Rsh(n)
	multiple := Number{4: uint64(n)}
	multiple.Mul(&ln2)
	y := FromBig(big.NewFloat(max(0, math.Log(1+float64(x[3])*0x1p-64)-0x1p-44)))
	t := ExpNeg(y)
	t.Mul(&x)
	if t[4] == 0 { // 1, but for the error
		t = One
	}
	t.Sub(&One)
	sum, power := t, t
	for i := uint64(2); i <= 7; i++ {
		power.Mul(&t)
		term := power
		term.QuoWord(i)
		if i%2 == 0 {
			sum.Sub(&term)
		} else {
			sum.Add(&term)
		}
	}
	sum.Add(&y)
	sum.Add(&multiple)
	return sum
}
