package keyexchange

import (
	"crypto"
	"crypto/ed25519"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/hushsum/hushsum/internal/entropy"
	"github.com/hushsum/hushsum/internal/labels"
)

// Errors of signatures.
var (
	// ErrSignature: a signature does not verify under the identity that the
	// roster names. The message was changed on its way or made up.
	ErrSignature = errors.New("keyexchange: signature does not verify")
	// ErrSigner: the signer does not hold an Ed25519 key, or failed to sign.
	ErrSigner = errors.New("keyexchange: an identity needs a working Ed25519 signer")
)

// ErrRandom: the source of randomness failed.
var ErrRandom = entropy.Err

// GenerateIdentity makes a long-term Ed25519 identity from 32 bytes of random (nil: crypto/rand).
// An identity may as well live in a hardware module: any [crypto.Signer] with an Ed25519 key
// serves as an identity.
func GenerateIdentity(random io.Reader) (ed25519.PrivateKey, error) {
	var seed [ed25519.SeedSize]byte
	if err := read(random, seed[:]); err != nil {
		return nil, err
	}
	defer clear(seed[:])
	return ed25519.NewKeyFromSeed(seed[:]), nil
}

// SignatureSize is the length of a signature in bytes.
const SignatureSize = ed25519.SignatureSize

// Sign signs a statement under a label that says what kind of statement it is, so that a
// signature made for one purpose is invalid for any other. The signed bytes are the label's
// length in one byte, the label, and the statement.
func Sign(signer crypto.Signer, label string, statement []byte) ([SignatureSize]byte, error) {
	var out [SignatureSize]byte
	if signer == nil {
		return out, ErrSigner
	}
	if _, ok := signer.Public().(ed25519.PublicKey); !ok {
		return out, ErrSigner
	}
	// Ed25519 is deterministic (RFC 8032 §5.1.6): it reads no randomness.
	signature, err := signer.Sign(nil, signedBytes(label, statement), crypto.Hash(0))
	if err != nil {
		return out, fmt.Errorf("%w: %w", ErrSigner, err)
	}
	if len(signature) != SignatureSize {
		return out, ErrSigner
	}
	return [SignatureSize]byte(signature), nil
}

// Verify checks a signature made by [Sign]; it fails with [ErrSignature].
func Verify(
	key ed25519.PublicKey, label string, statement []byte, signature *[SignatureSize]byte,
) error {
	if len(key) != ed25519.PublicKeySize ||
		!ed25519.Verify(key, signedBytes(label, statement), signature[:]) {
		return ErrSignature
	}
	return nil
}

// SignKey signs the keys that party offers in the session whose configuration
// has the given digest: its X25519 key and, with hybrid keys, the SHA-256 digest
// of its encapsulation key (nil with classical keys).
func SignKey(
	signer crypto.Signer, config [32]byte, party int, key PublicKey, encapsulation *[32]byte,
) ([SignatureSize]byte, error) {
	return Sign(signer, labels.AnnouncedKey, keyStatement(config, party, key, encapsulation))
}

// VerifyKey checks that party of the roster offered these keys for this
// configuration; it fails with [ErrSignature].
func VerifyKey(
	roster *Roster, config [32]byte, party int, key PublicKey, encapsulation *[32]byte,
	signature *[SignatureSize]byte,
) error {
	if party < 0 || party >= roster.Len() {
		return ErrSignature
	}
	return Verify(roster.Key(party), labels.AnnouncedKey,
		keyStatement(config, party, key, encapsulation),
		signature)
}

func keyStatement(config [32]byte, party int, key PublicKey, encapsulation *[32]byte) []byte {
	b := append(make([]byte, 0, 100), config[:]...)
	b = binary.BigEndian.AppendUint32(b, uint32(party))
	b = append(b, key[:]...)
	if encapsulation != nil {
		b = append(b, encapsulation[:]...)
	}
	return b
}

func signedBytes(label string, statement []byte) []byte {
	b := make([]byte, 0, 1+len(label)+len(statement))
	b = append(b, byte(len(label)))
	b = append(b, label...)
	return append(b, statement...)
}

// read fills b from random, or from crypto/rand when random is nil.
func read(random io.Reader, b []byte) error {
	return entropy.Read("keyexchange", random, b)
}
