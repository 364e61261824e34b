package oneshot

import (
	"crypto/ecdh"
	"crypto/hpke"
	"encoding/binary"
	"fmt"

	"github.com/hushsum/hushsum/shamir"
)

// KEM is the kind of the members' keys, to which parties seal the parts of their
// own (HPKE, RFC 9180; draft-ietf-hpke-pq).
type KEM uint8

const (
	// KEMHybrid is ML-KEM-768 with X25519: it holds as long as one of the two does.
	KEMHybrid KEM = iota
	// KEMX25519 is X25519 alone: 24 kB in place of 67 for 40 members, and open to
	// whoever records a round and has a quantum computer later.
	KEMX25519
)

// String returns the suite's name.
func (k KEM) String() string {
	if k == KEMX25519 {
		return "X25519"
	}
	return "ML-KEM-768 with X25519"
}

func (k KEM) hpke() hpke.KEM {
	if k == KEMX25519 {
		return hpke.DHKEM(ecdh.X25519())
	}
	return hpke.MLKEM768X25519()
}

// keySize and encSize are the bytes of a public key and of an encapsulated key.
func (k KEM) keySize() int {
	if k == KEMX25519 {
		return 32
	}
	return 1216
}

func (k KEM) encSize() int {
	if k == KEMX25519 {
		return 32
	}
	return 1120
}

// tagSize is what ChaCha20-Poly1305 adds.
const tagSize = 16

// parseKey reads a member's public key and tries it: X25519 takes any 32 bytes and
// fails later with points of small order.
func (k KEM) parseKey(b []byte) (hpke.PublicKey, error) {
	key, err := k.hpke().NewPublicKey(b)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKey, err)
	}
	return key, nil
}

func seal(key hpke.PublicKey, info, plaintext []byte) ([]byte, error) {
	box, err := hpke.Seal(key, hpke.HKDFSHA256(), hpke.ChaCha20Poly1305(), info, plaintext)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKey, err)
	}
	return box, nil
}

func open(key hpke.PrivateKey, info, box []byte) ([]byte, error) {
	return hpke.Open(key, hpke.HKDFSHA256(), hpke.ChaCha20Poly1305(), info, box)
}

// boxInfo binds a box to its context, its dealer and its member.
func boxInfo(context *[32]byte, party, member int) []byte {
	b := make([]byte, 0, len(labelBox)+32+8)
	b = append(b, labelBox...)
	b = append(b, context[:]...)
	b = binary.BigEndian.AppendUint32(b, uint32(party))
	return binary.BigEndian.AppendUint32(b, uint32(member))
}

// scalarSize is the length of an encoded scalar, blindSize that of the random bytes
// that keep a leaf from telling anything.
const (
	scalarSize = shamir.SecretSize
	blindSize  = 32
)

// plainSize is the length of what is in a box: a value of each polynomial, in a
// covered round one of the cover's, and the blind.
func (s *settled) plainSize() int {
	size := s.Polynomials*scalarSize + blindSize
	if s.Covered {
		size += scalarSize
	}
	return size
}

func (s *settled) boxSize() int { return s.KEM.encSize() + s.plainSize() + tagSize }

// leaf commits a party to what is in the box of a member, whatever may be made of the
// box: one that is authenticated by Poly1305 alone can be made to open under two keys.
func leaf(context *[32]byte, party, member int, plain []byte) [32]byte {
	return hash(labelLeaf, context[:], uint32Bytes(party), uint32Bytes(member), plain)
}
