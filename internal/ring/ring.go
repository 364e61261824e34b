// Package ring computes in R_q = Z_q[X]/(X^N + 1) for a power of two N and a prime
// q ≡ 1 modulo 2N: negacyclic products by a number-theoretic transform, public
// uniform elements from a key, and coefficients packed to ⌈log₂ q⌉ bits.
//
// It is this small because the protocol multiplies by public elements, adds, and
// does nothing else. No branch and no address depends on coefficients, except in
// [Ring.Expand], where everything is public, and in the decoding of packed
// coefficients, which answers to the first bad one.
package ring

import (
	"fmt"
	"math/big"
	"math/bits"
)

// MaxModulusBits and maxDegree bound q and N, so that the entries of a transform
// fit a word unreduced.
const (
	MaxModulusBits = 50
	maxDegree      = 1 << 12
)

// Ring is R_q with its tables. It does not change and may be shared.
type Ring struct {
	modulus
	n    int
	bits int // ⌈log₂ q⌉

	// Powers of a primitive 2N-th root of unity ψ and of 1/ψ, in bit-reversed
	// order, and 1/N, each with its quotient for mulLazy.
	psi, psiShoup       []uint64
	psiInv, psiInvShoup []uint64
	nInv, nInvShoup     uint64
	oneShoup            uint64

	floating floating // for the path in use
}

// New returns the ring of degree n modulo the prime q. It panics if n is not a
// power of two from 8 to 2^12, if q is not below 2^50 and 1 modulo 2n, or if it is not
// prime: both are constants of the caller.
func New(n int, q uint64) *Ring {
	if n < 8 || n > maxDegree || n&(n-1) != 0 || bits.Len64(q) > MaxModulusBits ||
		q%(2*uint64(n)) != 1 ||
		!new(big.Int).SetUint64(q).ProbablyPrime(0) { // exact below 2^64
		panic(fmt.Sprintf("ring: no ring of degree %d modulo %d", n, q))
	}
	r := &Ring{modulus: newModulus(q), n: n, bits: bits.Len64(q)}
	psi := r.root()
	inv := r.pow(psi, q-2)
	r.psi, r.psiShoup = r.powers(psi)
	r.psiInv, r.psiInvShoup = r.powers(inv)
	r.nInv = r.pow(uint64(n), q-2)
	r.nInvShoup, r.oneShoup = r.shoup(r.nInv), r.shoup(1)
	r.floating = r.newFloating()
	return r
}

// root returns the first g^((q−1)/2N), g = 2, 3, …, that is a primitive 2N-th root
// of unity, which is to say that its N-th power is −1.
func (r *Ring) root() uint64 {
	for g := uint64(2); g < 1000; g++ {
		psi := r.pow(g, (r.q-1)/(2*uint64(r.n)))
		if r.pow(psi, uint64(r.n)) == r.q-1 {
			return psi
		}
	}
	panic("ring: no root of unity") // cannot happen: half of all g give one
}

// powers returns w^0, w^1, …, w^(N−1) in bit-reversed order, and their quotients.
func (r *Ring) powers(w uint64) (p, s []uint64) {
	p, s = make([]uint64, r.n), make([]uint64, r.n)
	shift := 65 - bits.Len(uint(r.n))
	x := uint64(1)
	for i := range r.n {
		j := bits.Reverse64(uint64(i)) >> shift
		p[j], s[j] = x, r.shoup(x)
		x = r.mul(x, w)
	}
	return p, s
}

// Degree returns N.
func (r *Ring) Degree() int { return r.n }

// Modulus returns q.
func (r *Ring) Modulus() uint64 { return r.q }

// Bits returns ⌈log₂ q⌉, the bits of a packed coefficient.
func (r *Ring) Bits() int { return r.bits }

// FromSigned sets dst[i] = src[i] mod q, for |src[i]| < q.
func (r *Ring) FromSigned(dst []uint64, src []int64) {
	for i, v := range src {
		dst[i] = uint64(v) + r.q&uint64(v>>63)
	}
}

// AddSigned adds src[i] to dst[i], which is below q, for |src[i]| < q.
func (r *Ring) AddSigned(dst []uint64, src []int64) {
	dst = dst[:len(src)]
	for i, v := range src {
		dst[i] = r.once(dst[i] + uint64(v) + r.q&uint64(v>>63))
	}
}

// Centred returns the integer that x < q stands for in −(q−1)/2 … (q−1)/2.
func (r *Ring) Centred(x uint64) int64 {
	return int64(x) - int64(r.q)&(int64(r.q/2-x)>>63)
}

// A Factor is an element by which many others are multiplied: its transform, as the path in use
// takes it, or times 2^64 for the portable code. Erase it with clear.
type Factor []uint64

// NewFactor returns the factor of the element with the given coefficients, which
// are small: |c| < q.
func (r *Ring) NewFactor(c []int64) Factor { return r.newFactor(fast, c) }

func (r *Ring) newFactor(p *path, c []int64) Factor {
	f := make(Factor, r.n)
	r.FromSigned(f, c)
	r.ntt(f)
	if p.serves(r.n) {
		p.prepare(f)
		return f
	}
	for i, x := range f {
		f[i] = r.montgomery(x, r.r2)
	}
	return f
}

// MulInto sets dst to the coefficients of a·f, where a is an element in transformed
// form, as [Ring.Expand] makes them. dst and a have N entries and may be one.
func (r *Ring) MulInto(dst, a []uint64, f Factor) { r.mulInto(fast, dst, a, f) }

func (r *Ring) mulInto(p *path, dst, a []uint64, f Factor) {
	if p.serves(r.n) {
		p.mulInto(r, dst, a, f)
		return
	}
	dst, f = dst[:len(a)], f[:len(a)]
	for i, x := range a {
		dst[i] = r.montgomery(x, f[i])
	}
	r.inverse(dst)
}

// SubFrom sets dst[i] = dst[i] − src[i] mod q.
func (r *Ring) SubFrom(dst, src []uint64) {
	dst = dst[:len(src)]
	for i, x := range src {
		d := dst[i] - x
		dst[i] = d + r.q&uint64(int64(d)>>63)
	}
}
