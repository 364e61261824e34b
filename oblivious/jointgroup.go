package oblivious

import (
	"crypto/sha512"
	"encoding/binary"
	"io"

	"filippo.io/edwards25519"

	"github.com/hushsum/hushsum/internal/entropy"
	"github.com/hushsum/hushsum/oblivious/internal/ristretto"
)

// Elements and scalars of a [Joint], on ristretto255. Points are representatives of
// elements: two that differ by torsion are one element, and only encodings are compared.

const (
	elementSize = ristretto.Size
	scalarSize  = 32
)

// generator is G of the page.
var generator = edwards25519.NewGeneratorPoint()

// ciphertext is an ElGamal ciphertext (A, B) = (r·G, v·G + r·P) of the value v.
type ciphertext struct{ a, b edwards25519.Point }

// trivial is the ciphertext of 0 with r = 0, from which inputs and coins begin.
func trivial() ciphertext {
	return ciphertext{*edwards25519.NewIdentityPoint(), *edwards25519.NewIdentityPoint()}
}

// add adds a ciphertext.
func (c *ciphertext) add(d *ciphertext) {
	c.a.Add(&c.a, &d.a)
	c.b.Add(&c.b, &d.b)
}

// times returns w times a ciphertext, for public w.
func (c *ciphertext) times(w uint64) (product ciphertext) {
	product = trivial()
	for ; w > 0; w >>= 1 {
		if w&1 == 1 {
			product.add(c)
		}
		twice := *c
		twice.add(c)
		c = &twice
	}
	return product
}

// appendElement appends the encoding of an element.
func appendElement(b []byte, p *edwards25519.Point) []byte {
	encoded := ristretto.Encode(p)
	return append(b, encoded[:]...)
}

// isIdentity reports whether p stands for the identity. It is not for secrets.
func isIdentity(p *edwards25519.Point) bool {
	return ristretto.Encode(p) == [ristretto.Size]byte{}
}

// small is the scalar of a small number, in constant time below 2^64.
func small(x uint64) *edwards25519.Scalar {
	var b [scalarSize]byte
	binary.LittleEndian.PutUint64(b[:], x)
	return canonical(b[:])
}

// canonical is the scalar of 32 bytes that are known to be below the order.
func canonical(b []byte) *edwards25519.Scalar {
	s, err := new(edwards25519.Scalar).SetCanonicalBytes(b)
	if err != nil {
		panic("oblivious: " + err.Error()) // callers know
	}
	return s
}

// wide is the scalar of 64 bytes, little-endian, modulo the order.
func wide(b []byte) *edwards25519.Scalar {
	s, err := new(edwards25519.Scalar).SetUniformBytes(b)
	if err != nil {
		panic("oblivious: " + err.Error()) // callers give 64 bytes
	}
	return s
}

// decodeScalar reads a scalar, in its only encoding.
func decodeScalar(b []byte) (*edwards25519.Scalar, error) {
	s, err := new(edwards25519.Scalar).SetCanonicalBytes(b)
	if err != nil {
		return nil, ErrEncoding
	}
	return s, nil
}

// drawScalar draws a uniform scalar.
func drawScalar(random io.Reader) (*edwards25519.Scalar, error) {
	var b [64]byte
	defer clear(b[:])
	if err := entropy.Read("oblivious", random, b[:]); err != nil {
		return nil, err
	}
	return wide(b[:]), nil
}

// pick returns zero if bit is 0 and one if it is 1, in the same time.
func pick(bit, zero, one *edwards25519.Scalar) *edwards25519.Scalar {
	difference := new(edwards25519.Scalar).Subtract(one, zero)
	return difference.MultiplyAdd(difference, bit, zero)
}

// challenge is a scalar made of a hash over a label and parts. The label fixes the lengths of all
// parts but the last.
func challenge(label string, parts ...[]byte) *edwards25519.Scalar {
	h := sha512.New()
	h.Write([]byte(label))
	for _, part := range parts {
		h.Write(part)
	}
	return wide(h.Sum(nil))
}

// number is how parties, coins and levels go into hashes.
func number(x int) []byte { return binary.BigEndian.AppendUint32(nil, uint32(x)) }
