// Package ristretto is the prime-order group ristretto255 of RFC 9496 on top of
// filippo.io/edwards25519: encoding, decoding and the one-way map. Scalars and
// point arithmetic are that package's.
//
// An element is a class of curve points that differ by torsion, so there is no
// cofactor to think of: everything that decodes is in the prime-order group, and
// each element has one encoding.
//
// All functions are constant time but for the result of [Decode], which tells
// whether the bytes were an encoding.
package ristretto

import (
	"errors"

	"filippo.io/edwards25519"
	"filippo.io/edwards25519/field"
)

// Size is the length of an encoded element.
const Size = 32

// ErrEncoding: the bytes are not the encoding of an element.
var ErrEncoding = errors.New("ristretto: not the canonical encoding of an element")

// The constants of RFC 9496 §4.1, made from their definitions.
var (
	one      = new(field.Element).One()
	minusOne = new(field.Element).Negate(one)

	d, sqrtM1, sqrtADMinusOne, invSqrtAMinusD, oneMinusDSquared, dMinusOneSquared *field.Element
)

func init() {
	small := func(x byte) *field.Element {
		e, _ := new(field.Element).SetBytes([]byte{x, 31: 0})
		return e
	}
	mult := func(x uint32) *field.Element { return new(field.Element).Mult32(one, x) }
	// d = −121665/121666
	d = new(field.Element).Multiply(new(field.Element).Negate(mult(121665)),
		new(field.Element).Invert(mult(121666)))
	sqrtM1, _ = new(field.Element).SqrtRatio(minusOne, one)
	minusDMinusOne := new(field.Element).Subtract(minusOne, d) // a·d − 1 = a − d, for a = −1
	sqrtADMinusOne, _ = new(field.Element).SqrtRatio(minusDMinusOne, one)
	sqrtADMinusOne.Negate(sqrtADMinusOne) // the RFC takes the odd root
	invSqrtAMinusD, _ = new(field.Element).SqrtRatio(one, minusDMinusOne)
	oneMinusDSquared = new(field.Element).Subtract(small(1), new(field.Element).Square(d))
	dMinusOneSquared = new(field.Element).Subtract(d, one)
	dMinusOneSquared.Square(dMinusOneSquared)
}

// Encode returns the encoding of the element that p stands for (RFC 9496
// §4.3.2).
func Encode(p *edwards25519.Point) [Size]byte {
	x0, y0, z0, t0 := p.ExtendedCoordinates()
	var u1, u2, root, den1, den2, zInv, t field.Element
	u1.Multiply(t.Add(z0, y0), new(field.Element).Subtract(z0, y0))
	u2.Multiply(x0, y0)
	root.SqrtRatio(one, t.Multiply(&u1, t.Square(&u2)))
	den1.Multiply(&root, &u1)
	den2.Multiply(&root, &u2)
	zInv.Multiply(&den1, t.Multiply(&den2, t0))

	rotate := t.Multiply(t0, &zInv).IsNegative()
	var x, y, den field.Element
	x.Select(t.Multiply(y0, sqrtM1), x0, rotate)
	y.Select(new(field.Element).Multiply(x0, sqrtM1), y0, rotate)
	den.Select(t.Multiply(&den1, invSqrtAMinusD), &den2, rotate)
	y.Select(new(field.Element).Negate(&y), &y, t.Multiply(&x, &zInv).IsNegative())
	t.Subtract(z0, &y)
	t.Absolute(t.Multiply(&den, &t))
	return [Size]byte(t.Bytes())
}

// Decode returns the element with the given encoding, 32 bytes (RFC 9496
// §4.3.1), or [ErrEncoding]. It takes the identity, which is all zero.
func Decode(b []byte) (*edwards25519.Point, error) {
	s, err := new(field.Element).SetBytes(b)
	if err != nil || [Size]byte(s.Bytes()) != [Size]byte(b) || s.IsNegative() == 1 {
		return nil, ErrEncoding
	}
	var ss, u1, u2, u2Squared, v, root, t field.Element
	ss.Square(s)
	u1.Subtract(one, &ss)
	u2.Add(one, &ss)
	u2Squared.Square(&u2)
	v.Multiply(d, v.Square(&u1))
	v.Subtract(v.Negate(&v), &u2Squared)
	_, square := root.SqrtRatio(one, t.Multiply(&v, &u2Squared))
	var denX, denY, x, y, xy field.Element
	denX.Multiply(&root, &u2)
	denY.Multiply(&root, t.Multiply(&denX, &v))
	x.Multiply(t.Add(s, s), &denX)
	x.Absolute(&x)
	y.Multiply(&u1, &denY)
	xy.Multiply(&x, &y)
	if square == 0 || xy.IsNegative() == 1 || y.Equal(new(field.Element)) == 1 {
		return nil, ErrEncoding
	}
	p, err := new(edwards25519.Point).SetExtendedCoordinates(&x, &y, one, &xy)
	if err != nil {
		return nil, ErrEncoding
	}
	return p, nil
}

// FromUniform maps 64 uniform bytes to a uniform element whose discrete
// logarithm nobody knows (RFC 9496 §4.3.4).
func FromUniform(b *[64]byte) *edwards25519.Point {
	p, q := elligator(b[:32]), elligator(b[32:])
	return p.Add(p, q)
}

// elligator is the function MAP of RFC 9496 §4.3.4. The top bit of b is ignored.
func elligator(b []byte) *edwards25519.Point {
	t0, err := new(field.Element).SetBytes(b)
	if err != nil {
		panic("ristretto: " + err.Error()) // the length is ours
	}
	var r, u, v, s, sq, c, n, t field.Element
	r.Multiply(sqrtM1, r.Square(t0))
	u.Multiply(u.Add(&r, one), oneMinusDSquared)
	v.Multiply(v.Subtract(minusOne, t.Multiply(&r, d)), t.Add(&r, d))
	_, square := s.SqrtRatio(&u, &v)
	sq.Absolute(t.Multiply(&s, t0))
	s.Select(&s, sq.Negate(&sq), square)
	c.Select(minusOne, &r, square)
	n.Multiply(&c, t.Subtract(&r, one))
	n.Subtract(n.Multiply(&n, dMinusOneSquared), &v)

	var w0, w1, w2, w3 field.Element
	w0.Multiply(w0.Add(&s, &s), &v)
	w1.Multiply(&n, sqrtADMinusOne)
	t.Square(&s)
	w2.Subtract(one, &t)
	w3.Add(one, &t)
	var x, y, z, xy field.Element
	x.Multiply(&w0, &w3)
	y.Multiply(&w2, &w1)
	z.Multiply(&w1, &w3)
	xy.Multiply(&w0, &w2)
	p, err := new(edwards25519.Point).SetExtendedCoordinates(&x, &y, &z, &xy)
	if err != nil {
		panic("ristretto: " + err.Error()) // the map's image is on the curve
	}
	return p
}
