package shamir

import (
	"io"
	"slices"

	"github.com/hushsum/hushsum/shamir/internal/field"
)

// Split shares secret among the holders with the given indices, so that any
// threshold of them can rebuild it. Shares come in the order of indices.
//
// The coefficients of x^1, x^2, …, x^(threshold−1) are made from 64 bytes of
// random each, in this order, as in [GenerateSecret]; nil means
// crypto/rand.Reader. With threshold 1 every share is the secret.
//
// It takes the time of len(indices)·threshold multiplications by small numbers; indices below
// 2^11 are the cheapest, and from 2^28 the most expensive.
//
// Errors: ErrThreshold, ErrIndexZero, ErrDuplicateIndex, ErrNonCanonical, or
// [ErrRandom].
func Split(random io.Reader, secret Secret, threshold int, indices []uint32) ([]Share, error) {
	if err := checkIndices(threshold, indices); err != nil {
		return nil, err
	}
	s, err := decode((*[32]byte)(&secret))
	if err != nil {
		return nil, err
	}
	drawn, err := randomElements(random, threshold-1)
	if err != nil {
		return nil, err
	}
	defer clear(drawn)
	coefficients := append([]field.Element{s}, drawn...) // the constant term first
	defer clear(coefficients)
	shares := make([]Share, len(indices))
	for i, x := range indices {
		v := field.Eval(coefficients, x)
		shares[i] = Share{x, v.Bytes()}
	}
	return shares, nil
}

// checkIndices checks that the indices are distinct and not zero, and that
// 1 ≤ threshold ≤ len(indices).
func checkIndices(threshold int, indices []uint32) error {
	if threshold < 1 || threshold > len(indices) {
		return ErrThreshold
	}
	sorted := slices.Sorted(slices.Values(indices))
	if sorted[0] == 0 {
		return ErrIndexZero
	}
	for i, x := range sorted[1:] {
		if x == sorted[i] {
			return &IndexError{x, ErrDuplicateIndex}
		}
	}
	return nil
}
