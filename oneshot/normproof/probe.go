package normproof

import (
	"crypto/rand"
	"encoding/binary"
	"math/bits"
	"sync"

	"github.com/hushsum/hushsum/internal/ring"
)

// A probe has the secret coins by which a verifier checks the tests that are in a proof, for many
// proofs of one ring key: who made a false test passes with 1/q for each pair of coins, whatever it
// tried before, since coins are drawn when proofs are fixed. It takes a fifth of the time of making
// the tests anew, which [Scheme.Verify] does.
type probe struct {
	*Scheme
	pairs []pairOfCoins
	key   [32]byte // of the ring
	once  sync.Once
}

// pairOfCoins are r and w, with a_j·r for all blocks j.
type pairOfCoins struct {
	r       []uint64
	w, step uint64 // step is ⌊w·2^64/q⌋
	moved   []uint64
}

// probeBits is how rarely a false test passes: with 2^-probeBits or less.
const probeBits = 40

// newProbe draws coins.
func (s *Scheme) newProbe() *probe {
	p := &probe{Scheme: s}
	for known := 0; known < probeBits; known += bits.Len64(s.Modulus) - 1 {
		one := pairOfCoins{r: make([]uint64, s.Degree)}
		for i := range one.r {
			one.r[i] = s.coin()
		}
		one.w = s.coin()
		one.step, _ = bits.Div64(one.w, 0, s.Modulus)
		p.pairs = append(p.pairs, one)
	}
	return p
}

// coin is uniform below q.
func (s *Scheme) coin() uint64 {
	var b [8]byte
	for mask := uint64(1)<<bits.Len64(s.Modulus) - 1; ; {
		_, _ = rand.Read(b[:]) // never fails
		if x := binary.LittleEndian.Uint64(b[:]) & mask; x < s.Modulus {
			return x
		}
	}
}

// prepare multiplies the ring's elements by r, once, and reports whether the coins are for a ring
// key.
func (p *probe) prepare(key *[32]byte) bool {
	p.once.Do(func() {
		p.key = *key
		expander := p.ring.NewExpander(key)
		a, block := make([]uint64, p.Degree), make([]uint64, p.Degree)
		var factors []ring.Factor
		for i := range p.pairs {
			signed := make([]int64, p.Degree)
			for j, x := range p.pairs[i].r {
				signed[j] = int64(x)
			}
			factors = append(factors, p.ring.NewFactor(signed))
			p.pairs[i].moved = make([]uint64, p.Length)
		}
		for at := 0; at < p.Length; at += p.Degree {
			expander.Expand(a, at/p.Degree)
			for i := range p.pairs {
				p.ring.MulInto(block, a, factors[i])
				copy(p.pairs[i].moved[at:], block)
			}
		}
	})
	return p.key == *key
}

// agrees reports whether the tests of a proof are those of its statement: for
// v = A·r + w·y, ⟨n_t, r⟩ + w·c_t = ⟨τ_t, R·v⟩, since n_t = Aᵀ·Rᵀ·τ_t and c_t = ⟨τ_t, R·y⟩.
func (p *probe) agrees(t *Statement, h1 *[32]byte, given *tests) bool {
	q := p.Modulus
	sums := make([]buckets, (len(p.pairs)+1)/2) // each of two pairs, or of the last
	for i := range sums {
		sums[i] = newBuckets(rows)
	}
	r := matrix{rows: rows, stream: stream(h1, 0)}
	var v [columns][2]uint64
	// As many values below q as this add up to less than 2^64, in all buckets of a group.
	most := 1 << (64 - bits.Len64(q))
	since := 0
	for at := 0; at < p.Length; at += columns {
		y := t.Masked[at:min(at+columns, p.Length)]
		bytes := r.next(len(y))
		if since += columns; since > most {
			for i := range sums {
				sums[i].reduce(q)
			}
			since = 256 + columns // each bucket counts as a value
		}
		for i := range p.pairs {
			c, lane := &p.pairs[i], i%2
			for j, x := range y {
				high, _ := bits.Mul64(x, c.step) // w·y below 2q (Harvey 2014)
				x = x*c.w - high*q
				x += c.moved[at+j]
				x -= 2 * q & -(1 - (x-2*q)>>63)
				x -= q & -(1 - (x-q)>>63)
				v[j][lane] = x
			}
			if lane == 1 || i == len(p.pairs)-1 {
				sums[i/2].add(bytes, v[:len(y)], lane == 1)
			}
		}
	}
	for i := range p.pairs {
		c, u := &p.pairs[i], sums[i/2].rows(i%2, q)
		for k, n := range given.keys {
			left := product(n, c.r)
			left.add(bits.Mul64(given.totals[k], c.w))
			right := product(given.sums[k][:], u)
			if left.mod(q) != right.mod(q) {
				return false
			}
		}
	}
	return true
}

// double is a sum of products.
type double struct{ high, low uint64 }

func (d *double) add(high, low uint64) {
	var c uint64
	d.low, c = bits.Add64(d.low, low, 0)
	d.high += high + c
}

func (d *double) mod(q uint64) uint64 { return bits.Rem64(d.high, d.low, q) }

// product is ⟨a, b⟩, of at most 2^12 numbers below 2^50.
func product(a, b []uint64) (sum double) {
	for i := range a {
		sum.add(bits.Mul64(a[i], b[i]))
	}
	return sum
}

// same reports whether tests are those that a verifier makes.
func (t *tests) same(other *tests) bool {
	for i := range t.totals {
		if t.totals[i] != other.totals[i] {
			return false
		}
		for j, x := range t.keys[i] {
			if x != other.keys[i][j] {
				return false
			}
		}
	}
	return true
}

// testSize is how many bytes a proof has of one test: n_t, packed, and c_t.
func (s *Scheme) testSize() int { return s.ring.PackedSize(s.Degree) + 8 }

// encodeTests returns what a proof has of tests.
func (s *Scheme) encodeTests(t *tests) []byte {
	b := make([]byte, 0, s.tests*s.testSize())
	for i, n := range t.keys {
		b = s.ring.AppendPacked(b, n)
		b = binary.LittleEndian.AppendUint64(b, t.totals[i])
	}
	return b
}

// decodeTests reads them, and reports whether all numbers are below q.
func (s *Scheme) decodeTests(b []byte) (*tests, bool) {
	out := &tests{}
	for range s.tests {
		packed := b[:s.testSize()-8]
		n := make([]uint64, s.Degree)
		if s.ring.CheckPacked(packed, s.Degree) != nil {
			return nil, false
		}
		s.ring.AddPacked(n, packed)
		total := binary.LittleEndian.Uint64(b[len(packed):])
		if total >= s.Modulus {
			return nil, false
		}
		out.keys, out.totals = append(out.keys, n), append(out.totals, total)
		b = b[s.testSize():]
	}
	return out, true
}
