package keyexchange

import (
	"errors"
	"fmt"
	"io"

	"github.com/cloudflare/circl/dh/x25519"
)

// Errors of key exchange.
var (
	// ErrPublicKey: an X25519 key is not 32 bytes, not canonical, or of low
	// order. Refuse the party that sent it.
	ErrPublicKey = errors.New("keyexchange: not a canonical X25519 public key of full order")
	// ErrErased: the private key has done its work and is gone. A new session
	// needs a new key.
	ErrErased = errors.New("keyexchange: the session's private key is erased")
)

// PublicKey is an X25519 public key (RFC 7748 §5) that passed [ParsePublicKey].
type PublicKey [32]byte

// PrivateKey is the X25519 key of one party for one session. It has no text
// form and must not be stored once the session's chains exist.
type PrivateKey struct {
	secret, public x25519.Key
	held           bool // until it is erased
}

// GenerateKey draws a key from [KeySize] bytes of random (nil: crypto/rand).
func GenerateKey(random io.Reader) (*PrivateKey, error) {
	var seed [KeySize]byte
	if err := read(random, seed[:]); err != nil {
		return nil, err
	}
	defer clear(seed[:])
	return newKey(&seed), nil
}

func newKey(seed *[KeySize]byte) *PrivateKey {
	k := &PrivateKey{secret: *seed, held: true}
	x25519.KeyGen(&k.public, &k.secret)
	return k
}

// Public returns the key to sign and send, or [ErrErased].
func (k *PrivateKey) Public() (PublicKey, error) {
	if !k.held {
		return PublicKey{}, ErrErased
	}
	return PublicKey(k.public), nil
}

// KeySize is the length of an encoded [PrivateKey] in bytes.
const KeySize = 32

// AppendBinary appends the encoding that [ParseKey] reads, or fails with [ErrErased]: [KeySize]
// bytes as secret as the key, for the sealed state of a session in set-up.
func (k *PrivateKey) AppendBinary(b []byte) ([]byte, error) {
	if !k.held {
		return nil, ErrErased
	}
	return append(b, k.secret[:]...), nil
}

// ParseKey restores a key that [PrivateKey.AppendBinary] appended; it fails with [ErrEncoding].
func ParseKey(b []byte) (*PrivateKey, error) {
	if len(b) != KeySize {
		return nil, fmt.Errorf("%w: a key has %d bytes, want %d", ErrEncoding, len(b), KeySize)
	}
	return newKey((*[KeySize]byte)(b)), nil
}

// Erase overwrites the private key.
func (k *PrivateKey) Erase() { *k = PrivateKey{} }

// ParsePublicKey accepts exactly the 32-byte encodings u < 2^255 − 19 of points that are not of low
// order, and fails otherwise with [ErrPublicKey]. RFC 7748 §5 reduces 2^255 − 19 ≤ u < 2^256, which
// would give one point several encodings: two parties could then agree on a secret but not on the
// transcript.
func ParsePublicKey(b []byte) (PublicKey, error) {
	if len(b) != 32 {
		return PublicKey{}, ErrPublicKey
	}
	key := PublicKey(b)
	if !canonical(&key) {
		return PublicKey{}, ErrPublicKey
	}
	for _, low := range lowOrder {
		if key == low {
			return PublicKey{}, ErrPublicKey
		}
	}
	return key, nil
}

// canonical reports whether the little-endian number is below p = 2^255 − 19.
func canonical(key *PublicKey) bool {
	if key[31] != 0x7f {
		return key[31] < 0x7f
	}
	for i := 30; i > 0; i-- {
		if key[i] != 0xff {
			return true
		}
	}
	return key[0] < 0xed
}

// lowOrder lists the canonical u-coordinates of the points of order 1, 2, 4
// and 8 on the curve and its twist. The test derives them from the torsion
// subgroup.
var lowOrder = [...]PublicKey{
	{}, // order 2 (and the point at infinity)
	{0: 1},
	{
		0xe0, 0xeb, 0x7a, 0x7c, 0x3b, 0x41, 0xb8, 0xae, 0x16, 0x56, 0xe3, 0xfa, 0xf1, 0x9f, 0xc4, 0x6a,
		0xda, 0x09, 0x8d, 0xeb, 0x9c, 0x32, 0xb1, 0xfd, 0x86, 0x62, 0x05, 0x16, 0x5f, 0x49, 0xb8, 0x00,
	},
	{
		0x5f, 0x9c, 0x95, 0xbc, 0xa3, 0x50, 0x8c, 0x24, 0xb1, 0xd0, 0xb1, 0x55, 0x9c, 0x83, 0xef, 0x5b,
		0x04, 0x44, 0x5c, 0xc4, 0x58, 0x1c, 0x8e, 0x86, 0xd8, 0x22, 0x4e, 0xdd, 0xd0, 0x9f, 0x11, 0x57,
	},
	{ // p − 1
		0xec, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
		0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f,
	},
}

// Agree returns the agreement of this key with a peer's. It fails with [ErrErased], or with
// [ErrPublicKey] if the secret is all zero (RFC 7748 §6.1).
func (k *PrivateKey) Agree(peerKey PublicKey) (*Agreement, error) {
	if !k.held {
		return nil, ErrErased
	}
	a := new(Agreement)
	peer := x25519.Key(peerKey)
	// It reports points of low order, which alone make the secret zero.
	if !x25519.Shared((*x25519.Key)(&a.x25519), &k.secret, &peer) {
		a.Erase()
		return nil, ErrPublicKey
	}
	return a, nil
}

// NewChain makes the chain that self shares with peer from X25519 alone: the one that
// [PrivateKey.Agree] and [Agreement.Chain] make without an encapsulation. It fails as Agree does.
//
// self and peer are indices into roster, and not the same.
func (k *PrivateKey) NewChain(
	session [32]byte, roster *Roster, self, peer int, peerKey PublicKey,
) (*Chain, error) {
	agreed, err := k.Agree(peerKey)
	if err != nil {
		return nil, err
	}
	defer agreed.Erase()
	return agreed.Chain(session, roster, self, peer), nil
}
