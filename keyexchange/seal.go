package keyexchange

import (
	"errors"
	"io"

	"golang.org/x/crypto/chacha20poly1305"
)

// SealKey is a key for [Seal] and [Open].
type SealKey [chacha20poly1305.KeySize]byte

// GenerateSealKey draws a key from random (nil: crypto/rand).
func GenerateSealKey(random io.Reader) (*SealKey, error) {
	key := new(SealKey)
	if err := read(random, key[:]); err != nil {
		return nil, err
	}
	return key, nil
}

// SealOverhead is by how many bytes a sealed message is longer than its plaintext: a 24-byte
// nonce in front and a 16-byte tag behind.
const SealOverhead = chacha20poly1305.NonceSizeX + chacha20poly1305.Overhead

// ErrOpen: a sealed message was changed, belongs elsewhere, or was sealed under
// another key.
var ErrOpen = errors.New("keyexchange: the sealed message does not open")

// Nonce makes two messages sealed under the same key differ.
type Nonce [chacha20poly1305.NonceSizeX]byte

// GenerateNonce draws a nonce from random (nil: crypto/rand). Nonces of 24 bytes may be
// drawn at random for any number of messages.
func GenerateNonce(random io.Reader) (Nonce, error) {
	var nonce Nonce
	if err := read(random, nonce[:]); err != nil {
		return Nonce{}, err
	}
	return nonce, nil
}

// Seal encrypts and authenticates plaintext, and authenticates the associated
// data, with XChaCha20-Poly1305 (draft-irtf-cfrg-xchacha-03). Messages may share a
// nonce only if their keys are different.
func Seal(nonce *Nonce, key *SealKey, plaintext, associated []byte) ([]byte, error) {
	aead, err := chacha20poly1305.NewX(key[:])
	if err != nil {
		return nil, err
	}
	out := make([]byte, len(nonce), SealOverhead+len(plaintext))
	copy(out, nonce[:])
	return aead.Seal(out, nonce[:], plaintext, associated), nil
}

// Open reverses [Seal]; it fails with [ErrOpen] and reveals nothing of a message that does not
// open.
func Open(key *SealKey, sealed, associated []byte) ([]byte, error) {
	if len(sealed) < SealOverhead {
		return nil, ErrOpen
	}
	aead, err := chacha20poly1305.NewX(key[:])
	if err != nil {
		return nil, err
	}
	nonce, box := sealed[:chacha20poly1305.NonceSizeX], sealed[chacha20poly1305.NonceSizeX:]
	plaintext, err := aead.Open(nil, nonce, box, associated)
	if err != nil {
		return nil, ErrOpen
	}
	return plaintext, nil
}
