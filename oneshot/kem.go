package oneshot

import (
	"crypto/ecdh"
	"crypto/hpke"
	"encoding/binary"
	"fmt"

	"github.com/cloudflare/circl/dh/x25519"
	"github.com/cloudflare/circl/kem/mlkem/mlkem768"

	"github.com/hushsum/hushsum/internal/labels"
	"github.com/hushsum/hushsum/shamir"
)

// KEM is the kind of the members' keys, to which parties seal the parts of their own keys (HPKE,
// RFC 9180; draft-ietf-hpke-pq).
type KEM uint8

const (
	// KEMHybrid is ML-KEM-768 with X25519: it stays secure as long as one of the two does.
	KEMHybrid KEM = iota
	// KEMX25519 is X25519 alone: 24 kB instead of 67 for 40 members, and open to anyone who records a
	// round and later has a quantum computer.
	KEMX25519
)

// String returns the suite's name.
func (k KEM) String() string {
	if k == KEMX25519 {
		return "X25519"
	}
	return "ML-KEM-768 with X25519"
}

// generate makes a member's key from a seed, and the bytes of its public key.
func (k KEM) generate(seed *[32]byte) (*privateKey, []byte, error) {
	kem := hpke.MLKEM768X25519()
	if k == KEMX25519 {
		kem = hpke.DHKEM(ecdh.X25519())
	}
	derived, err := kem.DeriveKeyPair(seed[:])
	if err != nil {
		return nil, nil, err
	}
	b, err := derived.Bytes()
	if err != nil {
		return nil, nil, err
	}
	private, err := k.newPrivateKey(b)
	return private, derived.PublicKey().Bytes(), err
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

// parseKey reads a member's public key. X25519 takes any 32 bytes; sealing fails with points of
// small order.
func (k KEM) parseKey(b []byte) (*publicKey, error) {
	key := &publicKey{kem: k}
	if len(b) != k.keySize() {
		return nil, fmt.Errorf("%w: %d bytes, want %d", ErrKey, len(b), k.keySize())
	}
	if k == KEMHybrid {
		if err := key.hybrid.Unpack(b[:mlkem768.PublicKeySize]); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrKey, err)
		}
	}
	key.x25519 = x25519.Key(b[len(b)-x25519.Size:])
	return key, nil
}

// boxInfo binds a box to its context, its dealer and its member.
func boxInfo(context *[32]byte, party, member int) []byte {
	b := make([]byte, 0, len(labels.OneshotBox)+32+8)
	b = append(b, labels.OneshotBox...)
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

// coverPlainSize is the length of what a leaf of a cover is of.
const coverPlainSize = scalarSize + blindSize

// plainSize is the length of what is in a box: a value of each polynomial, in a
// covered round one of the cover's, with a bound one of what hides P, and the blind.
func (s *settled) plainSize() int {
	if s.reduces {
		return s.partPlainSize() + coverPlainSize
	}
	return s.partPlainSize()
}

// partPlainSize is the length of what a leaf is of: all of it, but for a value of the cover and its
// blind in a covered round with a bound, which have a leaf of their own.
func (s *settled) partPlainSize() int {
	size := s.Polynomials*scalarSize + blindSize
	if s.Covered || s.scheme != nil {
		size += scalarSize
	}
	return size
}

func (s *settled) boxSize() int { return s.KEM.encSize() + s.plainSize() + tagSize }

// leaf commits a party to what is in the box of a member, whatever may be made of the
// box: one that is authenticated by Poly1305 alone can be made to open under two keys.
func leaf(context *[32]byte, party, member int, plain []byte) [32]byte {
	return hash(labels.OneshotLeaf, context[:], uint32Bytes(party), uint32Bytes(member), plain)
}
