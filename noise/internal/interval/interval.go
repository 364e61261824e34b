// Package interval is outward-rounded arithmetic on non-negative numbers: each
// result encloses every value that the operands could have given. It serves
// package noise, whose tables carry a proof of how far they are from their law;
// with intervals the proof needs no error analysis by hand.
package interval

import "math/big"

// Interval is a closed interval of non-negative numbers. The zero value is not
// usable; take one from a [Context].
type Interval struct{ Lo, Hi *big.Float }

// Context holds the working precision, in bits, of the operations.
type Context struct{ Prec uint }

func (c Context) down() *big.Float {
	return new(big.Float).SetPrec(c.Prec).SetMode(big.ToNegativeInf)
}

func (c Context) up() *big.Float {
	return new(big.Float).SetPrec(c.Prec).SetMode(big.ToPositiveInf)
}

// Rat returns an interval that encloses x ≥ 0.
func (c Context) Rat(x *big.Rat) Interval { return Interval{c.down().SetRat(x), c.up().SetRat(x)} }

// Int returns the integer n ≥ 0, exact while it fits the precision.
func (c Context) Int(n int64) Interval { return Interval{c.down().SetInt64(n), c.up().SetInt64(n)} }

// Unit returns the interval [0, 1].
func (c Context) Unit() Interval { return Interval{c.down().SetInt64(0), c.up().SetInt64(1)} }

// Add encloses x + y.
func (c Context) Add(x, y Interval) Interval {
	return Interval{c.down().Add(x.Lo, y.Lo), c.up().Add(x.Hi, y.Hi)}
}

// Sub encloses x − y if that is known to be non-negative: a lower end below zero becomes zero.
func (c Context) Sub(x, y Interval) Interval {
	lo, hi := c.down().Sub(x.Lo, y.Hi), c.up().Sub(x.Hi, y.Lo)
	if lo.Sign() < 0 {
		lo.SetInt64(0)
	}
	return Interval{lo, hi}
}

// Mul encloses x·y.
func (c Context) Mul(x, y Interval) Interval {
	return Interval{c.down().Mul(x.Lo, y.Lo), c.up().Mul(x.Hi, y.Hi)}
}

// Quo encloses x/y. If y may be zero the upper end is +Inf.
func (c Context) Quo(x, y Interval) Interval {
	hi := c.up()
	if y.Lo.Sign() == 0 {
		hi.SetInf(false)
	} else {
		hi.Quo(x.Hi, y.Lo)
	}
	lo := c.down()
	if !y.Hi.IsInf() {
		lo.Quo(x.Lo, y.Hi)
	}
	return Interval{lo, hi}
}

// ExpNeg encloses exp(−a) for a rational 0 ≤ a < 2^30. It sums the series of
// exp(x) for x = a/2^s below 2^-8, where all terms are positive and the rest
// after the term T is below T, squares s times and takes the reciprocal.
func (c Context) ExpNeg(a *big.Rat) Interval {
	s := uint(0)
	if d := a.Num().BitLen() - a.Denom().BitLen() + 9; d > 0 {
		s = uint(d)
	}
	w := Context{c.Prec + 2*s + 32}
	x := w.Rat(new(big.Rat).Quo(a, new(big.Rat).SetInt(new(big.Int).Lsh(big.NewInt(1), s))))
	sum, term := w.Int(1), w.Int(1)
	floor := new(big.Float).SetMantExp(big.NewFloat(1), -int(w.Prec)-8)
	for i := int64(1); ; i++ {
		term = w.Quo(w.Mul(term, x), w.Int(i))
		sum = w.Add(sum, term)
		if term.Hi.Cmp(floor) < 0 {
			sum.Hi.Add(sum.Hi, term.Hi)
			break
		}
	}
	for ; s > 0; s-- {
		sum = w.Mul(sum, sum)
	}
	e := w.Quo(w.Int(1), sum)
	return Interval{c.down().Set(e.Lo), c.up().Set(e.Hi)}
}

// FromFixed returns the interval from lo to hi, in units of 2^-bits.
func FromFixed(lo, hi *big.Int, bits int) Interval {
	exact := func(n *big.Int) *big.Float {
		x := new(big.Float).SetPrec(uint(max(n.BitLen(), 64))).SetInt(n)
		return x.SetMantExp(x, -bits)
	}
	return Interval{exact(lo), exact(hi)}
}

// Fixed returns ⌊Lo·2^bits⌋ and ⌈Hi·2^bits⌉.
func (x Interval) Fixed(bits int) (lo, hi *big.Int) {
	return Floor(x.Lo, bits), Ceil(x.Hi, bits)
}

// Floor returns ⌊x·2^bits⌋ for x ≥ 0.
func Floor(x *big.Float, bits int) *big.Int {
	n, _ := new(big.Float).SetMantExp(x, bits).Int(nil)
	return n
}

// Ceil returns ⌈x·2^bits⌉ for x ≥ 0.
func Ceil(x *big.Float, bits int) *big.Int {
	n, acc := new(big.Float).SetMantExp(x, bits).Int(nil)
	if acc != big.Exact {
		n.Add(n, big.NewInt(1))
	}
	return n
}
