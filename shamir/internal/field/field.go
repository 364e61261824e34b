// Package field computes in the scalar field of edwards25519, the integers
// modulo the prime
//
//	ℓ = 2^252 + δ,  δ = 27742317777372353535851937790883648493 < 2^125.
//
// It exists because secret sharing multiplies by small public numbers (holder
// indices) and adds up long sums of products. Both are several times cheaper
// than with filippo.io/edwards25519.Scalar when the reduction modulo ℓ is put
// off. That package remains the reference that the tests compare with, and
// does the inversions.
//
// Everything rests on one identity: 2^252 ≡ −δ (mod ℓ), so that a number
// h·2^252 + r may be replaced by r − δ·h. A multiple of ℓ that is larger than
// δ·h is added first, so that nothing becomes negative.
//
// All operations take a time that depends on lengths and on the arguments
// documented as public, and not on the values of elements: there is no branch
// on and no table lookup by an element.
package field

import (
	"encoding/binary"
	"math/bits"

	"filippo.io/edwards25519"
)

// An Element is an integer modulo ℓ, in four 64-bit limbs, the least
// significant first. It is always canonical, that is less than ℓ; the zero
// value is zero. Arguments and receivers may alias.
type Element [4]uint64

// δ and ℓ in 64-bit limbs, the least significant first.
const (
	delta0 = 0x5812631a5cf5d3ed
	delta1 = 0x14def9dea2f79cd6

	order0 = delta0
	order1 = delta1
	order2 = 0
	order3 = 1 << 60
)

// low252 masks the part of limb 3 that is below 2^252.
const low252 = 1<<60 - 1

// Small returns v as an element.
func Small(v uint64) Element { return Element{v} }

// SetCanonicalBytes sets e to the little-endian integer b and returns 1 if it
// is less than ℓ; otherwise it returns 0 and leaves e unchanged.
func (e *Element) SetCanonicalBytes(b *[32]byte) int {
	v0 := binary.LittleEndian.Uint64(b[0:])
	v1 := binary.LittleEndian.Uint64(b[8:])
	v2 := binary.LittleEndian.Uint64(b[16:])
	v3 := binary.LittleEndian.Uint64(b[24:])
	_, _, _, _, borrow := subOrder(v0, v1, v2, v3)
	mask := -borrow // all ones if the integer is less than ℓ
	e[0] ^= (e[0] ^ v0) & mask
	e[1] ^= (e[1] ^ v1) & mask
	e[2] ^= (e[2] ^ v2) & mask
	e[3] ^= (e[3] ^ v3) & mask
	return int(borrow)
}

// SetWideBytes sets e to the little-endian integer b modulo ℓ. For uniform b
// the result is within statistical distance 2^-259 of uniform.
func (e *Element) SetWideBytes(b *[64]byte) *Element {
	var w Wide
	for i := range 8 {
		w[i] = binary.LittleEndian.Uint64(b[8*i:])
	}
	return e.Reduce(&w)
}

// Bytes returns the canonical little-endian encoding of e.
func (e *Element) Bytes() (b [32]byte) {
	for i := range e {
		binary.LittleEndian.PutUint64(b[8*i:], e[i])
	}
	return b
}

// IsZero returns 1 if e is zero, else 0.
func (e *Element) IsZero() int {
	v := e[0] | e[1] | e[2] | e[3]
	return int(1 ^ (v|-v)>>63)
}

// Add sets e = x + y.
func (e *Element) Add(x, y *Element) *Element {
	v0, c := bits.Add64(x[0], y[0], 0)
	v1, c := bits.Add64(x[1], y[1], c)
	v2, c := bits.Add64(x[2], y[2], c)
	v3, _ := bits.Add64(x[3], y[3], c)
	e.setReduced(v0, v1, v2, v3)
	return e
}

// Sub sets e = x − y.
func (e *Element) Sub(x, y *Element) *Element {
	v0, b := bits.Sub64(x[0], y[0], 0)
	v1, b := bits.Sub64(x[1], y[1], b)
	v2, b := bits.Sub64(x[2], y[2], b)
	v3, b := bits.Sub64(x[3], y[3], b)
	mask := -b // all ones if the difference is negative: add ℓ back
	var c uint64
	e[0], c = bits.Add64(v0, order0&mask, 0)
	e[1], c = bits.Add64(v1, order1&mask, c)
	e[2], c = bits.Add64(v2, order2&mask, c)
	e[3], _ = bits.Add64(v3, order3&mask, c)
	return e
}

// Neg sets e = −x.
func (e *Element) Neg(x *Element) *Element { return e.Sub(&Element{}, x) }

// Mul sets e = x·y.
func (e *Element) Mul(x, y *Element) *Element {
	var w Wide
	w.MulAdd(x, y)
	return e.Reduce(&w)
}

// MulSmall sets e = x·y for y < 2^63. A larger y is the programmer's error
// and gives a wrong result.
func (e *Element) MulSmall(x *Element, y uint64) *Element {
	h0, v0 := bits.Mul64(x[0], y)
	h1, v1 := bits.Mul64(x[1], y)
	h2, v2 := bits.Mul64(x[2], y)
	v4, v3 := bits.Mul64(x[3], y)
	var c uint64
	v1, c = bits.Add64(v1, h0, 0)
	v2, c = bits.Add64(v2, h1, c)
	v3, c = bits.Add64(v3, h2, c)
	v4 += c
	// x·y < ℓ·2^63, so that ⌊x·y / 2^252⌋ < 2^64 as foldSmall requires, and
	// its result is below 2^252 + ℓ < 2ℓ.
	e.setReduced(foldSmall(v0, v1, v2, v3, v4))
	return e
}

// Invert sets e = 1/x, or 0 if x is zero.
func (e *Element) Invert(x *Element) *Element {
	b := x.Bytes()
	s, err := new(edwards25519.Scalar).SetCanonicalBytes(b[:])
	if err != nil {
		panic("field: element is not canonical") // cannot happen: see Element
	}
	e.SetCanonicalBytes((*[32]byte)(s.Invert(s).Bytes()))
	return e
}

// InvertAll replaces every element of xs, none of which may be zero, by its
// inverse. It costs one inversion and three multiplications per element
// (Montgomery's trick).
func InvertAll(xs []Element) {
	prefix := make([]Element, len(xs)) // prefix[i] = xs[0]···xs[i−1]
	acc := Small(1)
	for i := range xs {
		prefix[i] = acc
		acc.Mul(&acc, &xs[i])
	}
	acc.Invert(&acc)
	for i := len(xs) - 1; i >= 0; i-- {
		x := xs[i]
		xs[i].Mul(&acc, &prefix[i])
		acc.Mul(&acc, &x)
	}
}

// The helpers below pass limbs one by one because the compiler keeps those in
// registers, and arrays in memory.

// foldSmall returns v mod 2^252 + ℓ − δ·⌊v/2^252⌋, which is congruent to v and
// less than 2^252 + ℓ. The quotient ⌊v/2^252⌋ must be less than 2^64; δ times
// it is then less than 2^189, far below ℓ.
func foldSmall(v0, v1, v2, v3, v4 uint64) (r0, r1, r2, r3 uint64) {
	q := v4<<4 | v3>>60
	p1, p0 := bits.Mul64(q, delta0)
	p2, m := bits.Mul64(q, delta1)
	var b, c uint64
	p1, c = bits.Add64(p1, m, 0)
	p2 += c

	v0, c = bits.Add64(v0, order0, 0)
	v1, c = bits.Add64(v1, order1, c)
	v2, c = bits.Add64(v2, order2, c)
	v3 = v3&low252 + order3 + c

	r0, b = bits.Sub64(v0, p0, 0)
	r1, b = bits.Sub64(v1, p1, b)
	r2, b = bits.Sub64(v2, p2, b)
	r3 = v3 - b
	return r0, r1, r2, r3
}

// subOrder returns v − ℓ modulo 2^256, and 1 if v < ℓ.
func subOrder(v0, v1, v2, v3 uint64) (r0, r1, r2, r3, borrow uint64) {
	r0, borrow = bits.Sub64(v0, order0, 0)
	r1, borrow = bits.Sub64(v1, order1, borrow)
	r2, borrow = bits.Sub64(v2, order2, borrow)
	r3, borrow = bits.Sub64(v3, order3, borrow)
	return r0, r1, r2, r3, borrow
}

// setReduced sets e to v mod ℓ for v < 2ℓ.
func (e *Element) setReduced(v0, v1, v2, v3 uint64) {
	r0, r1, r2, r3, borrow := subOrder(v0, v1, v2, v3)
	mask := -borrow // all ones if v was below ℓ already
	e[0] = r0 ^ (r0^v0)&mask
	e[1] = r1 ^ (r1^v1)&mask
	e[2] = r2 ^ (r2^v2)&mask
	e[3] = r3 ^ (r3^v3)&mask
}
