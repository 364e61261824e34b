package keyexchange

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"

	"github.com/cloudflare/circl/kem/mlkem/mlkem768"

	"github.com/hushsum/hushsum/internal/labels"
)

// Errors of ML-KEM.
var (
	// ErrEncapsulationKey: not an ML-KEM-768 encapsulation key: its length is invalid, or a
	// coefficient is not reduced (FIPS 203 §7.2). Refuse the party that sent it.
	ErrEncapsulationKey = errors.New("keyexchange: not an ML-KEM-768 encapsulation key")
	// ErrCiphertext: an ML-KEM ciphertext has an invalid length.
	ErrCiphertext = errors.New("keyexchange: not an ML-KEM-768 ciphertext")
)

// Lengths in bytes of the outputs of ML-KEM-768 (FIPS 203 §8).
const (
	EncapsulationKeySize = mlkem768.PublicKeySize
	ciphertextSize       = mlkem768.CiphertextSize
)

// DecapsulationKey is the ML-KEM-768 key of one party for one session. It has no
// text form and must not be stored once the session's chains exist.
type DecapsulationKey struct {
	key    *mlkem768.PrivateKey // nil once it is erased
	public *mlkem768.PublicKey
	seed   [DecapsulationKeySize]byte
}

// GenerateDecapsulationKey makes a key from 64 bytes of random (nil:
// crypto/rand), which are d ‖ z of FIPS 203 §7.1.
func GenerateDecapsulationKey(random io.Reader) (*DecapsulationKey, error) {
	var seed [DecapsulationKeySize]byte
	if err := read(random, seed[:]); err != nil {
		return nil, err
	}
	defer clear(seed[:])
	return newDecapsulationKey(&seed), nil
}

func newDecapsulationKey(seed *[DecapsulationKeySize]byte) *DecapsulationKey {
	k := &DecapsulationKey{seed: *seed}
	k.public, k.key = mlkem768.NewKeyFromSeed(k.seed[:])
	return k
}

// Public returns the encapsulation key to send, or [ErrErased].
func (k *DecapsulationKey) Public() ([]byte, error) {
	if k.key == nil {
		return nil, ErrErased
	}
	b := make([]byte, EncapsulationKeySize)
	k.public.Pack(b)
	return b, nil
}

// DecapsulationKeySize is the length of an encoded [DecapsulationKey] in bytes.
const DecapsulationKeySize = mlkem768.KeySeedSize

// AppendBinary appends the encoding that [ParseDecapsulationKey] reads, or fails with
// [ErrErased]: [DecapsulationKeySize] bytes as secret as the key, for the sealed state of a
// session in set-up.
func (k *DecapsulationKey) AppendBinary(b []byte) ([]byte, error) {
	if k.key == nil {
		return nil, ErrErased
	}
	return append(b, k.seed[:]...), nil
}

// ParseDecapsulationKey restores a key that [DecapsulationKey.AppendBinary] appended; it fails
// with [ErrEncoding].
func ParseDecapsulationKey(b []byte) (*DecapsulationKey, error) {
	if len(b) != DecapsulationKeySize {
		return nil, fmt.Errorf("%w: a key has %d bytes, want %d", ErrEncoding, len(b),
			DecapsulationKeySize)
	}
	return newDecapsulationKey((*[DecapsulationKeySize]byte)(b)), nil
}

// Erase forgets the key, best effort: it overwrites the seed and drops the only reference to the
// values made from it.
func (k *DecapsulationKey) Erase() { *k = DecapsulationKey{} }

// EncapsulationKey is an ML-KEM-768 key that passed [ParseEncapsulationKey].
type EncapsulationKey struct {
	key mlkem768.PublicKey
}

// EncapsulationDigest returns SHA-256 of an encapsulation key; parties sign it in place of the
// key.
func EncapsulationDigest(key []byte) [32]byte { return sha256.Sum256(key) }

// ParseEncapsulationKey accepts the 1184-byte encodings whose coefficients are all below the
// modulus (FIPS 203 §7.2), and fails otherwise with [ErrEncapsulationKey].
func ParseEncapsulationKey(b []byte) (*EncapsulationKey, error) {
	k := new(EncapsulationKey)
	if err := k.key.Unpack(b); err != nil {
		return nil, ErrEncapsulationKey
	}
	return k, nil
}

// Agreement holds the secrets that two parties agree on during set-up, from which their chain is
// made. With hybrid keys it is complete once [Agreement.Encapsulate] or [Agreement.Decapsulate]
// has added the second secret.
type Agreement struct {
	x25519     [32]byte
	kem        [32]byte
	ciphertext [32]byte // SHA-256 of the ciphertext
	hybrid     bool
}

// Encapsulate draws a secret for the holder of a key, adds it, and returns the
// ciphertext that carries it. random is 32 bytes (nil: crypto/rand).
func (a *Agreement) Encapsulate(
	key *EncapsulationKey, random io.Reader,
) (ciphertext []byte, err error) {
	var m, secret [32]byte
	if err := read(random, m[:]); err != nil {
		return nil, err
	}
	defer clear(m[:])
	ciphertext = make([]byte, ciphertextSize)
	key.key.EncapsulateTo(ciphertext, secret[:], m[:])
	a.add(&secret, ciphertext)
	return ciphertext, nil
}

// Decapsulate adds the secret that a ciphertext carries. A ciphertext that was not made for the key
// gives a secret that nobody else has (FIPS 203 §7.3); a ciphertext of invalid length gives
// [ErrCiphertext]. Decapsulate may also fail with [ErrErased].
func (a *Agreement) Decapsulate(key *DecapsulationKey, ciphertext []byte) error {
	if key.key == nil {
		return ErrErased
	}
	if len(ciphertext) != ciphertextSize {
		return ErrCiphertext
	}
	var secret [32]byte
	key.key.DecapsulateTo(secret[:], ciphertext)
	a.add(&secret, ciphertext)
	return nil
}

func (a *Agreement) add(secret *[32]byte, ciphertext []byte) {
	a.kem, a.ciphertext, a.hybrid = *secret, sha256.Sum256(ciphertext), true
	clear(secret[:])
}

// Chain makes the chain that two parties share, given by their indices into roster: HKDF binds the
// secrets that they agreed on to the session, both identities and the ciphertext. Both sides get
// the same chain, at round 1.
func (a *Agreement) Chain(session [32]byte, roster *Roster, self, peer int) *Chain {
	// ML-KEM's secret comes first, as in draft-ietf-tls-ecdhe-mlkem §4.
	secret := make([]byte, 0, 64)
	if a.hybrid {
		secret = append(secret, a.kem[:]...)
	}
	secret = append(secret, a.x25519[:]...)
	defer clear(secret)
	key := extract(session[:], secret)
	defer clear(key)
	info := make([]byte, 0, len(labels.Chain)+96)
	info = append(info, labels.Chain...)
	info = append(info, roster.Key(min(self, peer))...)
	info = append(info, roster.Key(max(self, peer))...)
	if a.hybrid {
		info = append(info, a.ciphertext[:]...)
	}
	chain := &Chain{round: 1}
	expand(chain.key[:], key, string(info))
	return chain
}

// AgreementSize is the length of an encoded [Agreement] in bytes.
const AgreementSize = 1 + 3*32

// AppendBinary appends the encoding that [ParseAgreement] reads: [AgreementSize] bytes as secret
// as the agreement.
func (a *Agreement) AppendBinary(b []byte) ([]byte, error) {
	hybrid := byte(0)
	if a.hybrid {
		hybrid = 1
	}
	b = append(b, hybrid)
	b = append(b, a.x25519[:]...)
	b = append(b, a.kem[:]...)
	return append(b, a.ciphertext[:]...), nil
}

// ParseAgreement restores an agreement that [Agreement.AppendBinary] appended; it fails with
// [ErrEncoding].
func ParseAgreement(b []byte) (*Agreement, error) {
	if len(b) != AgreementSize || b[0] > 1 {
		return nil, fmt.Errorf("%w: not an agreement", ErrEncoding)
	}
	return &Agreement{
		hybrid:     b[0] == 1,
		x25519:     [32]byte(b[1:]),
		kem:        [32]byte(b[33:]),
		ciphertext: [32]byte(b[65:]),
	}, nil
}

// Clone returns a copy.
func (a *Agreement) Clone() *Agreement {
	b := *a
	return &b
}

// Erase overwrites the secrets.
func (a *Agreement) Erase() { *a = Agreement{} }
