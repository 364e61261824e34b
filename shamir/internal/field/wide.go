package field

import "math/bits"

// A Wide is a sum of products of elements that is not reduced yet. The zero
// value is zero. It holds up to 2^32 products.
type Wide [9]uint64

// MulAdd adds x·y to w.
func (w *Wide) MulAdd(x, y *Element) {
	// Schoolbook multiplication by rows: each row adds x[i]·y, of five limbs,
	// to the limbs i to i+4 of w. The carry out of a row belongs one limb
	// above it, which is where the next row ends; there is room for it in the
	// row's top limb, which is below 2^61 because y is below 2^253.
	var carry uint64
	for i, xi := range x {
		row := (*[5]uint64)(w[i:])
		h0, p0 := bits.Mul64(xi, y[0])
		h1, p1 := bits.Mul64(xi, y[1])
		h2, p2 := bits.Mul64(xi, y[2])
		p4, p3 := bits.Mul64(xi, y[3])
		var c uint64
		p1, c = bits.Add64(p1, h0, 0)
		p2, c = bits.Add64(p2, h1, c)
		p3, c = bits.Add64(p3, h2, c)
		p4, _ = bits.Add64(p4, carry, c)

		row[0], c = bits.Add64(row[0], p0, 0)
		row[1], c = bits.Add64(row[1], p1, c)
		row[2], c = bits.Add64(row[2], p2, c)
		row[3], c = bits.Add64(row[3], p3, c)
		row[4], carry = bits.Add64(row[4], p4, c)
	}
	w[8] += carry
}

// ℓ·2^160 and ℓ·2^36, which Reduce adds to keep its intermediate results
// positive.
const mask64 = 1<<64 - 1

var (
	order160 = [7]uint64{0, 0, delta0 << 32 & mask64, delta1<<32&mask64 | delta0>>32, delta1 >> 32, 0,
		1 << (412 - 6*64)}
	order36 = [5]uint64{delta0 << 36 & mask64, delta1<<36&mask64 | delta0>>28, delta1 >> 28, 0,
		1 << (288 - 4*64)}
)

// Reduce sets e to w modulo ℓ.
func (e *Element) Reduce(w *Wide) *Element {
	// 2^32 products are less than 2^(32+506) together: the quotient by 2^252
	// is below 2^286 and δ times it below 2^411 < ℓ·2^160. What is left is
	// below 2^252 + ℓ·2^160 < 2^413; its quotient is below 2^161 and δ times
	// that below 2^286 < ℓ·2^36; and so on.
	v := order160
	fold(v[:], w[:])
	u := order36
	fold(u[:], v[:])
	e.setReduced(foldSmall(u[0], u[1], u[2], u[3], u[4]))
	return e
}

// fold adds v mod 2^252 − δ·⌊v/2^252⌋ to r, which holds a multiple of ℓ that
// is greater than δ·⌊v/2^252⌋. It needs len(r) = len(v) − 2, v below
// 2^(64·len(v)−4), and room in r for the sum.
func fold(r, v []uint64) {
	var b, c uint64
	r[0], c = bits.Add64(r[0], v[0], 0)
	r[1], c = bits.Add64(r[1], v[1], c)
	r[2], c = bits.Add64(r[2], v[2], c)
	r[3], c = bits.Add64(r[3], v[3]&low252, c)
	for i := 4; i < len(r); i++ {
		r[i], c = bits.Add64(r[i], 0, c)
	}
	// Row by row: r −= δ·q·2^(64·i) for every limb q of the quotient. The
	// borrow of a row goes into the next one's top limb. The last row ends at
	// the top of r, and leaves no borrow because r stays positive.
	var above uint64
	for i := range len(v) - 4 {
		q := v[i+3]>>60 | v[i+4]<<4
		p1, p0 := bits.Mul64(q, delta0)
		p2, m := bits.Mul64(q, delta1)
		p1, c = bits.Add64(p1, m, 0)
		p2 += c + above // no overflow: p2 < 2^61
		r[i], b = bits.Sub64(r[i], p0, 0)
		r[i+1], b = bits.Sub64(r[i+1], p1, b)
		r[i+2], above = bits.Sub64(r[i+2], p2, b)
	}
}
