package oblivious

import "encoding/binary"

// element is an element of GF(2^128) = GF(2)[X]/(X^128 + X^7 + X^2 + X + 1), or a
// row or block of 128 bits: bit k, the coefficient of X^k, is bit k mod 64 of word
// k/64.
type element [2]uint64

func elementOf(b []byte) element {
	return element{binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])}
}

func (e element) bytes() []byte {
	return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, e[0]), e[1])
}

func (e element) add(f element) element { return element{e[0] ^ f[0], e[1] ^ f[1]} }

// times is e if bit is 1 and zero if it is 0.
func (e element) times(bit uint64) element { return element{e[0] & -bit, e[1] & -bit} }

// bit is bit k of e.
func (e element) bit(k int) uint64 { return e[k>>6] >> (k & 63) & 1 }

// multiplier is the table of c·X^k for a public c.
type multiplier [128]element

func newMultiplier(c element) *multiplier {
	m := new(multiplier)
	for k := range m {
		m[k] = c
		carry := c[1] >> 63
		c = element{c[0]<<1 ^ carry*0x87, c[1]<<1 | c[0]>>63}
	}
	return m
}

// mul returns c·e, in a time that does not depend on e.
func (m *multiplier) mul(e element) element {
	var p element
	for k := range m {
		p = p.add(m[k].times(e.bit(k)))
	}
	return p
}

// hash is a universal hash of a column of bits, a whole number of 128-bit blocks ending with a
// block of random padding: Σ block_i·c^(m−i) over all blocks i = 1 to m, so that the padding is
// added as it is. It is linear over GF(2). For a uniform c two different columns of m blocks
// collide with probability at most (m−1)/2^128.
func (m *multiplier) hash(column []byte) element {
	var h element
	for ; len(column) > blockSize; column = column[blockSize:] {
		h = m.mul(h.add(elementOf(column)))
	}
	return h.add(elementOf(column))
}
