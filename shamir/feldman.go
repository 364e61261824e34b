package shamir

import (
	"io"

	"filippo.io/edwards25519"
)

// Feldman holds commitments to the coefficients of a sharing polynomial, the
// constant term first: the coefficients times the base point of edwards25519
// (Feldman 1987, "A practical scheme for non-interactive verifiable secret
// sharing"). With it every holder can check its share alone, and all holders
// that see the same commitments agree on one secret.
//
// The commitments reveal the secret times the base point. That is harmless
// only for secrets that cannot be guessed, such as those of [GenerateSecret].
// Otherwise use [SplitPedersen].
type Feldman struct {
	points []*edwards25519.Point
}

// SplitFeldman is [Split], with commitments to the polynomial. The shares are
// the same as those of Split from the same bytes of random. It takes one
// base-point multiplication per coefficient more.
func SplitFeldman(
	random io.Reader, secret Secret, threshold int, indices []uint32,
) ([]Share, *Feldman, error) {
	coefficients, err := newPolynomial(random, secret, threshold, indices)
	if err != nil {
		return nil, nil, err
	}
	defer clear(coefficients)
	f := &Feldman{make([]*edwards25519.Point, threshold)}
	for i := range coefficients {
		b := coefficients[i].Bytes()
		f.points[i] = new(edwards25519.Point).ScalarBaseMult(scalar(&b))
	}
	return evaluate(coefficients, indices), f, nil
}

// ParseFeldman returns the commitments that b encodes: 32 bytes
// per coefficient. The number of coefficients is the threshold, which the
// caller must compare with the one agreed on.
//
// Errors: ErrLength if b is empty or not a multiple of 32;
// ErrCommitment for encodings that are not canonical, not on the curve or not
// in the group of prime order. The identity is accepted: it commits to zero.
func ParseFeldman(b []byte) (*Feldman, error) {
	points, err := parsePoints(b)
	if err != nil {
		return nil, err
	}
	return &Feldman{points}, nil
}

// AppendBinary appends the encoding that [ParseFeldman] reads. It never fails.
func (f *Feldman) AppendBinary(b []byte) ([]byte, error) {
	return appendPoints(b, f.points), nil
}

// Threshold returns the number of coefficients.
func (f *Feldman) Threshold() int { return len(f.points) }

// Verify returns nil if the share lies on the committed polynomial. It is
// constant time in the share's value and variable time in the rest.
//
// Errors: ErrNotCommitted, ErrIndexZero, ErrNonCanonical.
func (f *Feldman) Verify(s Share) error {
	if _, err := s.decode(); err != nil {
		return err
	}
	got := new(edwards25519.Point).ScalarBaseMult(scalar(&s.Value))
	if got.Equal(evalPointsVarTime(f.points, s.Index)) != 1 {
		return &IndexError{s.Index, ErrNotCommitted}
	}
	return nil
}

// VerifySecret returns nil if secret is the committed one. It is constant time
// in the secret.
//
// Errors: ErrNotCommitted, ErrNonCanonical.
func (f *Feldman) VerifySecret(secret Secret) error {
	b := [32]byte(secret)
	if _, err := decode(&b); err != nil {
		return err
	}
	if new(edwards25519.Point).ScalarBaseMult(scalar(&b)).Equal(f.points[0]) != 1 {
		return ErrNotCommitted
	}
	return nil
}
