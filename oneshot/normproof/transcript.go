package normproof

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
	"math/bits"

	"filippo.io/edwards25519"

	"github.com/hushsum/hushsum/internal/labels"
)

// hash is SHA-256 over a label and parts, whose lengths the label and the parameters fix.
func hash(label string, parts ...[]byte) [32]byte {
	h := sha256.New()
	h.Write([]byte(label))
	for _, part := range parts {
		h.Write(part)
	}
	return [32]byte(h.Sum(nil))
}

// challenge returns a scalar made from a hash.
func challenge(h *[32]byte, label string) *edwards25519.Scalar {
	wide, err := hkdf.Key(sha256.New, h[:], nil, label, 64)
	if err != nil {
		panic("normproof: " + err.Error()) // cannot happen: 64 bytes are few
	}
	return fromWide(wide)
}

// fromWide returns 64 bytes, little-endian, modulo the order.
func fromWide(b []byte) *edwards25519.Scalar {
	c, err := new(edwards25519.Scalar).SetUniformBytes(b)
	if err != nil {
		panic("normproof: " + err.Error()) // callers give 64 bytes
	}
	return c
}

// stream returns the AES-256-CTR keystream under h that begins with counter block
// u64(first) ‖ u64(0).
func stream(h *[32]byte, first uint64) cipher.Stream {
	block, err := aes.NewCipher(h[:])
	if err != nil {
		panic("normproof: " + err.Error()) // an AES-256 key has 32 bytes
	}
	var counter [aes.BlockSize]byte
	binary.BigEndian.PutUint64(counter[:], first)
	return cipher.NewCTR(block, counter[:])
}

// dealingHash returns h0.
func (s *Scheme) dealingHash(t *Statement, key, mask []byte) [32]byte {
	numbers := binary.BigEndian.AppendUint32(nil, t.Party)
	numbers = append(numbers, t.Role)
	numbers = binary.BigEndian.AppendUint64(numbers, s.Bound)
	numbers = binary.BigEndian.AppendUint64(numbers, s.KeyBound)
	return hash(labels.OneshotProofDealing, t.Config[:], t.Context[:], numbers, t.Root[:], t.Digest[:],
		t.Commitment, key, mask)
}

// rowsHash returns h1.
func rowsHash(h0 *[32]byte, combined [][32]byte) [32]byte {
	parts := [][]byte{h0[:]}
	for i := range combined {
		parts = append(parts, combined[i][:])
	}
	return hash(labels.OneshotProofRows, parts...)
}

// testVectors returns ν vectors of numbers below q, made from h2.
func (s *Scheme) testVectors(h2 *[32]byte) [][rows]uint64 {
	out := make([][rows]uint64, s.tests)
	words := stream(h2, 0)
	mask := uint64(1)<<bits.Len64(s.Modulus) - 1
	for t := range out {
		for i := 0; i < rows; {
			var b [8]byte
			words.XORKeyStream(b[:], b[:])
			if x := binary.LittleEndian.Uint64(b[:]) & mask; x < s.Modulus {
				out[t][i] = x
				i++
			}
		}
	}
	return out
}
