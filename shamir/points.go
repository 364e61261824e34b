package shamir

import (
	"bytes"
	"math/bits"
	"slices"

	"filippo.io/edwards25519"
)

// commitmentSize is the size of the commitment to one coefficient in bytes.
const commitmentSize = 32

// The curve has eight times as many points as the group of prime order that
// commitments live in. Were a point outside that group accepted, a dealer
// could add a point of small order to a commitment so that a share matches for
// some indices only, or for some verifiers only.

// minusOne is ℓ − 1.
var minusOne = new(edwards25519.Scalar).Negate(one())

func one() *edwards25519.Scalar {
	b := [32]byte{1}
	return scalar(&b)
}

// scalar returns the scalar that the canonical encoding b stands for. It must
// have been checked before.
func scalar(b *[32]byte) *edwards25519.Scalar {
	s, err := new(edwards25519.Scalar).SetCanonicalBytes(b[:])
	if err != nil {
		panic("shamir: scalar was not checked") // cannot happen
	}
	return s
}

// parsePoints decodes the canonical encodings of points of prime order, or of
// the identity, one after the other. There must be at least one.
func parsePoints(b []byte) ([]*edwards25519.Point, error) {
	if len(b) == 0 || len(b)%commitmentSize != 0 {
		return nil, ErrLength
	}
	points := make([]*edwards25519.Point, 0, len(b)/commitmentSize)
	for ; len(b) > 0; b = b[commitmentSize:] {
		p, err := new(edwards25519.Point).SetBytes(b[:commitmentSize])
		if err != nil || !bytes.Equal(p.Bytes(), b[:commitmentSize]) || !inPrimeOrderGroup(p) {
			return nil, ErrCommitment
		}
		points = append(points, p)
	}
	return points, nil
}

// inPrimeOrderGroup reports whether ℓ·p is the identity.
func inPrimeOrderGroup(p *edwards25519.Point) bool {
	// There is no scalar ℓ, so compare (ℓ−1)·p with −p.
	q := new(edwards25519.Point).VarTimeDoubleScalarBaseMult(minusOne, p, new(edwards25519.Scalar))
	return q.Equal(new(edwards25519.Point).Negate(p)) == 1
}

// appendPoints appends the encodings of the points, one after the other.
func appendPoints(b []byte, points []*edwards25519.Point) []byte {
	b = slices.Grow(b, commitmentSize*len(points))
	for _, p := range points {
		b = append(b, p.Bytes()...)
	}
	return b
}

// evalPointsVarTime returns points[0] + x·points[1] + x²·points[2] + …, by
// Horner's rule: multiplying by a small x costs few doublings, where
// multiplying by a power of x modulo ℓ costs 252.
func evalPointsVarTime(points []*edwards25519.Point, x uint32) *edwards25519.Point {
	acc := edwards25519.NewIdentityPoint()
	base := edwards25519.NewIdentityPoint()
	for i := len(points) - 1; i >= 0; i-- {
		base.Set(acc) // acc becomes x·acc, by double-and-add
		acc.Set(edwards25519.NewIdentityPoint())
		for bit := bits.Len32(x) - 1; bit >= 0; bit-- {
			acc.Double(acc)
			if x>>bit&1 == 1 {
				acc.Add(acc, base)
			}
		}
		acc.Add(acc, points[i])
	}
	return acc
}
