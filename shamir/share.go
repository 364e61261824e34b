package shamir

import (
	"encoding/binary"
	"io"

	"github.com/hushsum/hushsum/internal/entropy"
	"github.com/hushsum/hushsum/shamir/internal/field"
)

// SecretSize is the size of a [Secret] in bytes.
const SecretSize = 32

// shareSize is the size of an encoded [Share] in bytes.
const shareSize = 4 + 32

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

// AppendBinary appends the encoding of s to b: the index, big-endian in 4
// bytes, and the value. It refuses what UnmarshalBinary would refuse.
func (s Share) AppendBinary(b []byte) ([]byte, error) {
	if _, err := s.decode(); err != nil {
		return nil, err
	}
	b = binary.BigEndian.AppendUint32(b, s.Index)
	return append(b, s.Value[:]...), nil
}

// MarshalBinary returns the encoding that AppendBinary appends.
func (s Share) MarshalBinary() ([]byte, error) {
	b, err := s.AppendBinary(make([]byte, 0, shareSize))
	if err != nil {
		return nil, err
	}
	return b, nil
}

// UnmarshalBinary sets s to the share that b encodes. It refuses a b that is
// not 36 bytes long (ErrLength), index zero (ErrIndexZero) and a value
// that is not canonical (ErrNonCanonical); s is then unchanged.
func (s *Share) UnmarshalBinary(b []byte) error {
	if len(b) != shareSize {
		return ErrLength
	}
	v := Share{Index: binary.BigEndian.Uint32(b), Value: [32]byte(b[4:])}
	if _, err := v.decode(); err != nil {
		return err
	}
	*s = v
	return nil
}

// decode returns the value of s, or an IndexError.
func (s *Share) decode() (field.Element, error) {
	if s.Index == 0 {
		return field.Element{}, ErrIndexZero
	}
	e, err := decode(&s.Value)
	if err != nil {
		return field.Element{}, &IndexError{s.Index, err}
	}
	return e, nil
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
