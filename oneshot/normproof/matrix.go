package normproof

import (
	"crypto/cipher"
	"encoding/binary"
	"math/bits"

	"filippo.io/edwards25519"
)

// A matrix has entries −1, 0 and 1, with probabilities ¼, ½ and ¼, and a multiple of four rows. A
// keystream has it column by column: entry (i, j) is bit 2(i mod 4) less bit 2(i mod 4) + 1 of byte
// j·rows/4 + ⌊i/4⌋. It is read once, from the first column on.
type matrix struct {
	rows   int
	stream cipher.Stream
	buffer []byte
}

// columns is how many are in the buffer at a time.
const columns = 256

// next returns the bytes of the next n columns, at most as many as fit the buffer.
func (m *matrix) next(n int) []byte {
	if m.buffer == nil {
		m.buffer = make([]byte, columns*m.rows/4)
	}
	b := m.buffer[:n*m.rows/4]
	clear(b)
	m.stream.XORKeyStream(b, b)
	return b
}

// times adds the next columns, as many as there are values, each times its value, to sums. Its time
// does not depend on the values.
func (m *matrix) times(sums, values []int64) {
	for len(values) > 0 {
		n := min(columns, len(values))
		bytes := m.next(n)
		for g := range m.rows / 4 {
			four := (*[4]int64)(sums[4*g:])
			s0, s1, s2, s3 := four[0], four[1], four[2], four[3]
			at := g
			for _, v := range values[:n] {
				x := int64(bytes[at])
				at += m.rows / 4
				s0 += (x&1 - x>>1&1) * v
				s1 += (x>>2&1 - x>>3&1) * v
				s2 += (x>>4&1 - x>>5&1) * v
				s3 += (x>>6&1 - x>>7) * v
			}
			four[0], four[1], four[2], four[3] = s0, s1, s2, s3
		}
		values = values[n:]
	}
}

// combine returns for each byte of a column what its four rows add up to, by weights: T[g][b] is
// Σ entry_k·weights[4g + k]. plus and minus add a weight to a sum and take it off.
func combine[T, W any](weights []W, plus, minus func(*T, *W)) [][256]T {
	out := make([][256]T, len(weights)/4)
	combineInto(out, weights, plus, minus)
	return out
}

// combineInto does so for as many groups as there is room for, whose first entries are zero.
func combineInto[T, W any](out [][256]T, weights []W, plus, minus func(*T, *W)) {
	for g := range out {
		table := &out[g]
		for k := range 4 {
			n := 1 << (2 * k) // bytes that say nothing of row k and those after it
			for b := range n {
				table[n+b], table[2*n+b], table[3*n+b] = table[b], table[b], table[b]
				plus(&table[n+b], &weights[4*g+k])
				minus(&table[2*n+b], &weights[4*g+k])
			}
		}
	}
}

// wide is an integer of 320 bits in two's complement, the lowest word first.
type wide [5]uint64

func (w *wide) add(v *wide) {
	var c uint64
	w[0], c = bits.Add64(w[0], v[0], 0)
	w[1], c = bits.Add64(w[1], v[1], c)
	w[2], c = bits.Add64(w[2], v[2], c)
	w[3], c = bits.Add64(w[3], v[3], c)
	w[4], _ = bits.Add64(w[4], v[4], c)
}

func (w *wide) sub(v *wide) {
	var c uint64
	for i := range w {
		w[i], c = bits.Sub64(w[i], v[i], c)
	}
}

// addTimes adds v·x, of which v has no fifth word.
func (w *wide) addTimes(v *wide, x uint64) {
	var product wide
	var high, c uint64
	high, product[0] = bits.Mul64(v[0], x)
	for i := 1; i < 4; i++ {
		h, l := bits.Mul64(v[i], x)
		product[i], c = bits.Add64(l, high, 0)
		high = h + c
	}
	product[4] = high
	w.add(&product)
}

// wideOf returns a scalar as an integer below the order.
func wideOf(c *edwards25519.Scalar) (w wide) {
	b := c.Bytes()
	for i := range 4 {
		w[i] = binary.LittleEndian.Uint64(b[8*i:])
	}
	return w
}

// The order of the scalars is 2^252 + excess.
var (
	excess    = wide{0x5812631a5cf5d3ed, 0x14def9dea2f79cd6}
	orderWide = wide{excess[0], excess[1], 0, 1 << 60}
)

// scalar returns w modulo the order, for |w| < 2^315.
func (w *wide) scalar() *edwards25519.Scalar {
	// w = quotient·2^252 + rest, and 2^252 is −excess.
	quotient := int64(w[4]<<4 | w[3]>>60)
	rest := wide{w[0], w[1], w[2], w[3] & (1<<60 - 1)}
	var less wide
	less.addTimes(&excess, uint64((quotient^quotient>>63)-quotient>>63))
	if quotient < 0 {
		rest.add(&less)
	} else {
		rest.sub(&less)
	}
	// The product is below 2^189, so that the order more or less is enough.
	if rest[4]>>63 == 1 {
		rest.add(&orderWide)
	} else {
		over := rest
		if over.sub(&orderWide); over[4]>>63 == 0 {
			rest = over
		}
	}
	var b [32]byte
	for i := range 4 {
		binary.LittleEndian.PutUint64(b[8*i:], rest[i])
	}
	out, err := new(edwards25519.Scalar).SetCanonicalBytes(b[:])
	if err != nil {
		panic("normproof: " + err.Error()) // it is below the order
	}
	return out
}

// weigh adds to each of sums the next column, its rows times weights. It takes matrices of a
// multiple of 16 rows.
func (m *matrix) weigh(sums []wide, weights []*edwards25519.Scalar) {
	wides := make([]wide, len(weights))
	for i, c := range weights {
		wides[i] = wideOf(c)
	}
	bytes := make([]byte, len(sums)*m.rows/4)
	m.stream.XORKeyStream(bytes, bytes)
	// The tables of four groups at a time stay in the fastest caches.
	const groups = 4
	table := make([][256]wide, groups)
	for g := 0; g < m.rows/4; g += groups {
		combineInto(table, wides[4*g:], (*wide).add, (*wide).sub)
		t0, t1, t2, t3 := &table[0], &table[1], &table[2], &table[3]
		at := g
		for j := range sums {
			b := binary.LittleEndian.Uint32(bytes[at:])
			at += m.rows / 4
			sum := &sums[j]
			sum.add(&t0[b&255])
			sum.add(&t1[b>>8&255])
			sum.add(&t2[b>>16&255])
			sum.add(&t3[b>>24])
		}
	}
}

// test adds to sums[t][j] what the next column j adds up to by tables[t], for as many columns as
// sums[t] has. It takes matrices of a multiple of 16 rows.
func (m *matrix) test(sums [][]int64, tables [][][256]int64) {
	for first := 0; first < len(sums[0]); first += columns {
		n := min(columns, len(sums[0])-first)
		bytes := m.next(n)
		// Four groups of a test at a time stay in the fastest cache.
		for g := 0; g < m.rows/4; g += 4 {
			for t, table := range tables {
				t0, t1, t2, t3 := &table[g], &table[g+1], &table[g+2], &table[g+3]
				at, part := g, sums[t][first:first+n]
				for j, sum := range part {
					b := binary.LittleEndian.Uint32(bytes[at:])
					at += m.rows / 4
					part[j] = sum + t0[b&255] + t1[b>>8&255] + t2[b>>16&255] + t3[b>>24]
				}
			}
		}
	}
}
