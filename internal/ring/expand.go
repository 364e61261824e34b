package ring

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
)

// An Expander makes the public elements a_0, a_1, … of a key.
type Expander struct {
	ring *Ring
	aes  cipher.Block
	buf  []byte
}

// NewExpander returns the expander of a public key.
func (r *Ring) NewExpander(key *[32]byte) *Expander {
	block, err := aes.NewCipher(key[:])
	if err != nil {
		panic("ring: " + err.Error()) // an AES-256 key has 32 bytes
	}
	return &Expander{ring: r, aes: block, buf: make([]byte, 8*r.n)}
}

// Expand sets a to the transformed form of a_j: of the AES-256-CTR keystream that
// begins with the counter block u64(j) ‖ u64(0), big-endian, the 64-bit
// little-endian words, cut to their lowest ⌈log₂ q⌉ bits, those at or above q
// passed over. For a key that nobody chose the entries are uniform.
func (e *Expander) Expand(a []uint64, j int) {
	var counter [aes.BlockSize]byte
	binary.BigEndian.PutUint64(counter[:], uint64(j))
	stream := cipher.NewCTR(e.aes, counter[:])
	mask := uint64(1)<<e.ring.bits - 1
	q := e.ring.q
	for n := 0; n < len(a); {
		buf := e.buf[:8*min(len(a)-n, len(e.buf)/8)]
		clear(buf)
		stream.XORKeyStream(buf, buf)
		for ; len(buf) >= 8; buf = buf[8:] {
			x := binary.LittleEndian.Uint64(buf) & mask
			a[n] = x // stays only if it is counted
			if x < q {
				n++
			}
		}
	}
}
