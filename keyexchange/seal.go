package keyexchange

import (
	"errors"
	"io"

	"golang.org/x/crypto/chacha20poly1305"
)

// SealKey is a key for [Seal] and [Open].
type SealKey [chacha20poly1305.KeySize]byte

// SealOverhead is by how many bytes a sealed message is longer than what was
// sealed: a 24-byte nonce in front and a 16-byte tag behind.
const SealOverhead = chacha20poly1305.NonceSizeX + chacha20poly1305.Overhead

// ErrOpen: a sealed message was changed, belongs elsewhere, or was sealed under
// another key.
var ErrOpen = errors.New("keyexchange: the sealed message does not open")

// Seal encrypts and authenticates plaintext, and authenticates the associated
// data, with XChaCha20-Poly1305 (draft-irtf-cfrg-xchacha-03) under a nonce of 24
// bytes from random (nil: crypto/rand). A nonce of that length may be drawn at
// random for any number of messages.
func Seal(random io.Reader, key *SealKey, plaintext, associated []byte) ([]byte, error) {
	aead, err := chacha20poly1305.NewX(key[:])
	if err != nil {
		return nil, err
	}
	out := make([]byte, chacha20poly1305.NonceSizeX, SealOverhead+len(plaintext))
	if err := read(random, out); err != nil {
		return nil, err
	}
	return aead.Seal(out, out, plaintext, associated), nil
}

// Open reverses [Seal]; it fails with [ErrOpen] and gives nothing away of a
// message that does not open.
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
