package shamir

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"io"
	"sync"

	"filippo.io/edwards25519"
)

// pedersenLabel is hashed into the second generator. A new derivation needs a
// new version.
const pedersenLabel = "hushsum shamir Pedersen generator v1"

// pedersenGenerator returns the second generator H. Nobody knows its discrete
// logarithm to the base point, because it comes out of a hash function: take
// SHA-256(pedersenLabel ‖ counter), with the counter from 0 in four
// big-endian bytes, until the hash is the canonical encoding of a point of which
// the eightfold is not the identity; H is that eightfold.
var pedersenGenerator = sync.OnceValue(func() *edwards25519.Point {
	for counter := uint32(0); ; counter++ {
		h := sha256.Sum256(binary.BigEndian.AppendUint32([]byte(pedersenLabel), counter))
		p, err := new(edwards25519.Point).SetBytes(h[:])
		if err != nil || !bytes.Equal(p.Bytes(), h[:]) {
			continue
		}
		if p.MultByCofactor(p); p.Equal(edwards25519.NewIdentityPoint()) == 0 {
			return p
		}
	}
})

// Pedersen holds hiding commitments to the coefficients of a sharing polynomial, the constant
// term first: a·G + b·H for the coefficient a of the secret's polynomial and b of the blinding's,
// with the base point G and a second generator H from a hash (Pedersen 1991, "Non-interactive and
// information-theoretic secure verifiable secret sharing"). They reveal nothing about the secret
// to anybody. A dealer that can compute discrete logarithms could open them in two ways.
type Pedersen struct {
	points []*edwards25519.Point
}

// A PedersenShare is one holder's part of a secret and of its blinding.
type PedersenShare struct {
	Index    uint32
	Value    [32]byte
	Blinding [32]byte
}

// SecretShare returns the share of the secret.
func (s PedersenShare) SecretShare() Share { return Share{s.Index, s.Value} }

// BlindingShare returns the share of the blinding.
func (s PedersenShare) BlindingShare() Share { return Share{s.Index, s.Blinding} }

// SplitPedersen is [Split] with hiding commitments. It draws a blinding as
// [GenerateSecret] does, then the coefficients of the secret's polynomial, then
// those of the blinding's. Secret and blinding are rebuilt from their shares
// by [Combine], each on its own.
//
// Errors: as Split.
func SplitPedersen(
	random io.Reader, secret Secret, threshold int, indices []uint32,
) (shares []PedersenShare, blinding Secret, p *Pedersen, err error) {
	if err := checkIndices(threshold, indices); err != nil {
		return nil, Secret{}, nil, err
	}
	if blinding, err = GenerateSecret(random); err != nil {
		return nil, Secret{}, nil, err
	}
	a, err := newPolynomial(random, secret, threshold, indices)
	if err != nil {
		return nil, Secret{}, nil, err
	}
	defer clear(a)
	b, err := newPolynomial(random, blinding, threshold, indices)
	if err != nil {
		return nil, Secret{}, nil, err
	}
	defer clear(b)

	p = &Pedersen{make([]*edwards25519.Point, threshold)}
	for i := range p.points {
		ai, bi := a[i].Bytes(), b[i].Bytes()
		p.points[i] = pedersenCommit(&ai, &bi)
	}
	values, blindings := evaluate(a, indices), evaluate(b, indices)
	defer clear(values)
	defer clear(blindings)
	shares = make([]PedersenShare, len(indices))
	for i, x := range indices {
		shares[i] = PedersenShare{x, values[i].Value, blindings[i].Value}
	}
	return shares, blinding, p, nil
}

// ParsePedersen returns the commitments that b encodes, as [ParseFeldman]
// does, with the same errors.
func ParsePedersen(b []byte) (*Pedersen, error) {
	points, err := parsePoints(b)
	if err != nil {
		return nil, err
	}
	return &Pedersen{points}, nil
}

// AppendBinary appends the encoding that [ParsePedersen] reads. It never fails.
func (p *Pedersen) AppendBinary(b []byte) ([]byte, error) {
	return appendPoints(b, p.points), nil
}

// Threshold returns the number of coefficients.
func (p *Pedersen) Threshold() int { return len(p.points) }

// Verify returns nil if the share lies on the committed polynomials. It is
// constant time in the share's two values and variable time in the rest.
//
// Errors: ErrNotCommitted, ErrIndexZero, ErrNonCanonical.
func (p *Pedersen) Verify(s PedersenShare) error {
	value, blinding := s.SecretShare(), s.BlindingShare()
	if _, err := value.decode(); err != nil {
		return err
	}
	if _, err := blinding.decode(); err != nil {
		return err
	}
	if pedersenCommit(&s.Value, &s.Blinding).Equal(evalPointsVarTime(p.points, s.Index)) != 1 {
		return &IndexError{s.Index, ErrNotCommitted}
	}
	return nil
}

// VerifySecret returns nil if secret and blinding are the committed ones. It
// is constant time in both.
//
// Errors: ErrNotCommitted, ErrNonCanonical.
func (p *Pedersen) VerifySecret(secret, blinding Secret) error {
	a, b := [32]byte(secret), [32]byte(blinding)
	for _, v := range []*[32]byte{&a, &b} {
		if _, err := decode(v); err != nil {
			return err
		}
	}
	if pedersenCommit(&a, &b).Equal(p.points[0]) != 1 {
		return ErrNotCommitted
	}
	return nil
}

// pedersenCommit returns a·G + b·H for canonical a and b.
func pedersenCommit(a, b *[32]byte) *edwards25519.Point {
	p := new(edwards25519.Point).ScalarBaseMult(scalar(a))
	return p.Add(p, new(edwards25519.Point).ScalarMult(scalar(b), pedersenGenerator()))
}
