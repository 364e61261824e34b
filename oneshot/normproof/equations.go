package normproof

import (
	"math/bits"

	"filippo.io/edwards25519"

	"github.com/hushsum/hushsum/internal/labels"
)

// tests are the linear equations of the sums u in the key: ⟨τ_t, u⟩ + ⟨keys[t], s⟩ + q·κ_t =
// totals[t], for the vectors τ_t. A proof has keys and totals.
type tests struct {
	sums   [][rows]uint64 // τ
	keys   [][]uint64     // (τ_t·R)·a
	totals []uint64       // ⟨τ_t·R, y⟩
}

// fold makes the tests, with R from h1 and τ from h2.
func (s *Scheme) fold(t *Statement, h1, h2 *[32]byte) *tests {
	out := &tests{sums: s.testVectors(h2), totals: make([]uint64, s.tests)}
	tables := make([][][256]int64, s.tests)
	sums := make([][]int64, s.tests)
	for i := range tables {
		// 256 entries of less than 2^50 stay below 2^63.
		tables[i] = combine(out.sums[i][:],
			func(a *int64, w *uint64) { *a += int64(*w) }, func(a *int64, w *uint64) { *a -= int64(*w) })
		out.keys = append(out.keys, make([]uint64, s.Degree))
	}
	high, low := make([]uint64, s.tests), make([]uint64, s.tests) // of ⟨τ_t·R, y⟩
	r := matrix{rows: rows, stream: stream(h1, 0)}
	expander := s.ring.NewExpander(&t.RingKey)
	a, product := make([]uint64, s.Degree), make([]uint64, s.Degree)
	turned := make([]int64, s.Degree)
	for at := 0; at < s.Length; at += s.Degree {
		y := t.Masked[at:min(at+s.Degree, s.Length)]
		for i := range sums {
			sums[i] = make([]int64, len(y))
		}
		r.test(sums, tables)
		expander.Expand(a, at/s.Degree)
		for i, v := range sums {
			// v, of which less than N entries are not zero at the end, with X for 1/X.
			clear(turned)
			for j, x := range v {
				x %= int64(s.Modulus)
				x += int64(s.Modulus) & (x >> 63)
				h, l := bits.Mul64(uint64(x), y[j])
				var c uint64
				low[i], c = bits.Add64(low[i], l, 0)
				high[i] += h + c // 2^27 products of 100 bits
				if j == 0 {
					turned[0] = x
				} else {
					turned[s.Degree-j] = -x
				}
			}
			s.ring.MulInto(product, a, s.ring.NewFactor(turned))
			for j, x := range product {
				out.keys[i][j] = (out.keys[i][j] + x) % s.Modulus
			}
		}
	}
	for i, k := range out.keys {
		for j, l := 1, s.Degree-1; j <= l; j, l = j+1, l-1 {
			k[j], k[l] = (s.Modulus-k[l])%s.Modulus, (s.Modulus-k[j])%s.Modulus
		}
		out.totals[i] = bits.Rem64(high[i], low[i], s.Modulus)
	}
	return out
}

// An equation is ⟨coefficients, w⟩ + blind·b_s = total, for the witnesses w and the blind b_s.
type equation struct {
	coefficients []*edwards25519.Scalar
	blind        *edwards25519.Scalar // of the key's commitment, which is dealt with the key
	total        *edwards25519.Scalar
}

// equation returns the sum of all linear equations, the k-th, from 1, times the k-th power of a
// weight made from h4.
func (s *Scheme) equation(
	tests *tests, h1, h3, h4 *[32]byte, sums []*edwards25519.Scalar,
	gamma *edwards25519.Scalar, combined []*edwards25519.Scalar,
) *equation {
	e := &equation{total: edwards25519.NewScalar(), coefficients: zeros(s.count)}
	base := challenge(h4, labels.OneshotProofWeight)
	weight := small(1)
	next := func() *edwards25519.Scalar {
		weight = new(edwards25519.Scalar).Multiply(weight, base)
		return weight
	}
	plus := func(at int, a, b *edwards25519.Scalar) {
		c := e.coefficients[at]
		c.MultiplyAdd(a, b, c)
	}
	add := func(at int, w *edwards25519.Scalar) { e.coefficients[at].Add(e.coefficients[at], w) }

	var wides []wide
	for t := range tests.totals { // ⟨τ, u⟩ + ⟨n, s⟩ + q·κ = c
		w := next()
		wides = append(wides, wideOf(w))
		plus(s.quotients+t, w, small(s.Modulus))
		e.total.MultiplyAdd(w, small(tests.totals[t]), e.total)
	}
	// Of tests, R' and M: ν products below 2^303 and sums of 256 and 128 weights.
	whole := make([]wide, s.flood)
	for j := range s.Degree + rows {
		for t := range wides {
			if j < s.Degree {
				whole[j].addTimes(&wides[t], tests.keys[t][j])
			} else {
				whole[j].addTimes(&wides[t], tests.sums[t][j-s.Degree])
			}
		}
	}
	weights := make([]*edwards25519.Scalar, rows) // R'·s − u' = 0
	for i := range weights {
		weights[i] = next()
		e.coefficients[s.keySums+i].Subtract(e.coefficients[s.keySums+i], weights[i])
	}
	r := matrix{rows: rows, stream: stream(h1, 1)}
	r.weigh(whole[:s.Degree], weights)

	weights = weights[:floodRows] // M·(s, u, u', squares, κ) + m = f
	for i := range weights {
		weights[i] = next()
		add(s.flood+i, weights[i])
		e.total.MultiplyAdd(weights[i], sums[i], e.total)
	}
	m := matrix{rows: floodRows, stream: stream(h3, 0)}
	m.weigh(whole, weights)
	for j := range whole {
		add(j, whole[j].scalar())
	}

	powers := make([]*edwards25519.Scalar, s.PerPolynomial) // f_0 + Σ γ^j·f_j = P
	for l := range powers {
		powers[l] = next()
		add(s.mask+l, powers[l])
		e.total.MultiplyAdd(powers[l], combined[l], e.total)
	}
	power := small(1)
	lane := small(1 << s.LaneBits)
	for i := range s.scalars + 1 {
		l := i % s.PerPolynomial
		if l == 0 {
			power = new(edwards25519.Scalar).Multiply(power, gamma)
		}
		c := new(edwards25519.Scalar).Multiply(power, powers[l])
		if i == s.scalars {
			e.blind = c
			break
		}
		for j := i * s.lanes; j < min((i+1)*s.lanes, s.Degree); j++ {
			add(j, c)
			c.Multiply(c, lane)
		}
	}
	return e
}

// zeros returns n scalars that are 0.
func zeros(n int) []*edwards25519.Scalar {
	all, out := make([]edwards25519.Scalar, n), make([]*edwards25519.Scalar, n)
	for i := range all {
		out[i] = &all[i]
	}
	return out
}

// dot returns ⟨a, b⟩.
func dot(a, b []*edwards25519.Scalar) *edwards25519.Scalar {
	sum := edwards25519.NewScalar()
	for i := range a {
		sum.MultiplyAdd(a[i], b[i], sum)
	}
	return sum
}

// small returns the scalar x.
func small(x uint64) *edwards25519.Scalar {
	var b [32]byte
	for i := range 8 {
		b[i] = byte(x >> (8 * i))
	}
	c, err := new(edwards25519.Scalar).SetCanonicalBytes(b[:])
	if err != nil {
		panic("normproof: " + err.Error()) // it is below 2^64
	}
	return c
}

// signed returns the scalar x, |x| < 2^62, in a time that does not depend on it.
func signed(x int64) *edwards25519.Scalar {
	c := small(uint64(x + 1<<62))
	return c.Subtract(c, offset)
}

var offset = small(1 << 62)
