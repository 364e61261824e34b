package shamir

import (
	"io"

	"github.com/hushsum/hushsum/internal/entropy"
	"github.com/hushsum/hushsum/shamir/internal/field"
)

// SecretSize is the size of a [Secret] in bytes.
const SecretSize = 32

// A Secret is an element of the scalar field of edwards25519, as the canonical
// 32-byte little-endian encoding of an integer less than ℓ. Any other content
// is refused with ErrNonCanonical wherever a Secret is used. Compare secrets
// with crypto/subtle.
type Secret [SecretSize]byte

// A Share is one holder's part of a secret: the value of the polynomial at
// the holder's index, in the encoding of a [Secret]. The value is secret; the
// index is not.
type Share struct {
	Index uint32
	Value [32]byte
}

// GenerateSecret returns a secret drawn from 64 bytes of random, or of
// crypto/rand.Reader if random is nil, as an integer modulo ℓ. For uniform
// bytes its distribution is within statistical distance 2^-259 of uniform. It
// fails with [ErrRandom].
func GenerateSecret(random io.Reader) (Secret, error) {
	e, err := randomElements(random, 1)
	if err != nil {
		return Secret{}, err
	}
	defer clear(e)
	return e[0].Bytes(), nil
}

// ParseSecret returns the secret that b encodes. It refuses a b that is not
// SecretSize bytes long (ErrLength) or not canonical (ErrNonCanonical).
func ParseSecret(b []byte) (Secret, error) {
	if len(b) != SecretSize {
		return Secret{}, ErrLength
	}
	s := Secret(b)
	if _, err := decode((*[32]byte)(&s)); err != nil {
		return Secret{}, err
	}
	return s, nil
}

// decode returns the element that b encodes, or ErrNonCanonical.
func decode(b *[32]byte) (e field.Element, err error) {
	if e.SetCanonicalBytes(b) != 1 {
		return field.Element{}, ErrNonCanonical
	}
	return e, nil
}

// randomElements returns n elements, each from 64 bytes of random in order.
func randomElements(random io.Reader, n int) ([]field.Element, error) {
	buf := make([]byte, 64*n)
	defer clear(buf)
	if err := entropy.Read("shamir", random, buf); err != nil {
		return nil, err
	}
	es := make([]field.Element, n)
	for i := range es {
		es[i].SetWideBytes((*[64]byte)(buf[64*i:]))
	}
	return es, nil
}
