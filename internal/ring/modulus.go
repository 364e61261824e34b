package ring

import "math/bits"

// modulus is an odd prime q below 2^61 with what multiplication modulo q needs.
type modulus struct {
	q    uint64
	qInv uint64 // −1/q mod 2^64
	r2   uint64 // 2^128 mod q
}

func newModulus(q uint64) modulus {
	m := modulus{q: q}
	inv := q // correct to three bits; each step doubles them
	for range 5 {
		inv *= 2 - q*inv
	}
	m.qInv = -inv
	_, r := bits.Div64(1, 0, q<<1>>1) // 2^64 mod q, since q > 1
	h, l := bits.Mul64(r, r)
	_, m.r2 = bits.Div64(h, l, q)
	return m
}

// montgomery returns a·b/2^64 mod q for a·b < q·2^64 (Montgomery 1985). Its time
// does not depend on a and b.
func (m *modulus) montgomery(a, b uint64) uint64 {
	h, l := bits.Mul64(a, b)
	k := l * m.qInv
	kh, kl := bits.Mul64(k, m.q)
	_, carry := bits.Add64(l, kl, 0) // the low words add up to 0 or 2^64
	return m.once(h + kh + carry)
}

// once returns x mod q for x < 2q, without a branch.
func (m *modulus) once(x uint64) uint64 {
	d := x - m.q
	return d + m.q&uint64(int64(d)>>63)
}

// mul returns a·b mod q for a, b < q.
func (m *modulus) mul(a, b uint64) uint64 { return m.montgomery(m.montgomery(a, b), m.r2) }

func (m *modulus) pow(a, e uint64) uint64 {
	x := uint64(1)
	for ; e > 0; e >>= 1 {
		if e&1 == 1 {
			x = m.mul(x, a)
		}
		a = m.mul(a, a)
	}
	return x
}

// shoup returns ⌊w·2^64/q⌋ for the public constant w < q.
func (m *modulus) shoup(w uint64) uint64 {
	quotient, _ := bits.Div64(w, 0, m.q)
	return quotient
}

// mulLazy returns x·w mod q or that plus q, for any x and w < q of which ws is
// shoup(w) (Harvey 2014, "Faster arithmetic for number-theoretic transforms").
func mulLazy(x, w, ws, q uint64) uint64 {
	h, _ := bits.Mul64(x, ws)
	return x*w - h*q
}
