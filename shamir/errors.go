package shamir

import (
	"errors"
	"fmt"

	"github.com/hushsum/hushsum/internal/entropy"
)

// Errors of this package; test for them with errors.Is. Those about one
// holder come wrapped in an [IndexError], which names it. No error contains a
// secret or a share.
var (
	// ErrIndexZero: a holder has index 0, which is the place of the secret itself.
	ErrIndexZero = errors.New("shamir: index is zero; number holders from 1")
	// ErrDuplicateIndex: two holders or two shares have the same index.
	ErrDuplicateIndex = errors.New(
		"shamir: duplicate index; give every holder its own and hand in one share per holder")
	// ErrUnknownIndex: a share or index does not belong to the Combiner's holders, or is out of
	// place.
	ErrUnknownIndex = errors.New(
		"shamir: index is not the one expected here; give shares in the order of the combiner's indices")
	// ErrThreshold: the threshold is below 1 or above the number of holders.
	ErrThreshold = errors.New(
		"shamir: threshold out of range; it must be at least 1 and at most the number of holders")
	// ErrTooFewShares: fewer shares than the threshold.
	ErrTooFewShares = errors.New("shamir: too few shares; collect at least as many as the threshold")
	// ErrNonCanonical: 32 bytes do not encode a scalar less than ℓ.
	ErrNonCanonical = errors.New(
		"shamir: scalar is not canonical; it must be less than the group order")
	// ErrLength: an encoding has an invalid length.
	ErrLength = errors.New("shamir: encoding has the wrong length")
	// ErrWrongShares: the shares do not lie on one polynomial. The error is a
	// [WrongSharesError].
	ErrWrongShares = errors.New("shamir: shares do not agree with each other")
	// ErrTooManyWrong: more shares are wrong than can be corrected. The error
	// is a [WrongSharesError] and also an ErrWrongShares.
	ErrTooManyWrong = errors.New("shamir: too many wrong shares to correct; collect more shares")
	// ErrRefused: the shares lie on one polynomial, or could be corrected to, but the caller's check
	// refuses the secret.
	ErrRefused = errors.New("shamir: the shares agree on a secret that the commitment check " +
		"refuses; blame the dealer, or more holders than can be corrected")
	// ErrPacking: a Packing has no room for secrets, or a count is negative.
	ErrPacking = errors.New(
		"shamir: a packing needs at least one secret a polynomial, and no negative counts")
	// ErrRandom: the source of randomness failed.
	ErrRandom = entropy.Err
)

// An IndexError names the index that an error is about.
type IndexError struct {
	Index uint32
	Err   error
}

func (e *IndexError) Error() string { return fmt.Sprintf("%v (index %d)", e.Err, e.Index) }

// Unwrap returns the error without the index.
func (e *IndexError) Unwrap() error { return e.Err }

// A WrongSharesError says that shares do not lie on one polynomial of degree
// below the threshold.
type WrongSharesError struct {
	// Wrong holds the indices of the wrong shares, in the order of the shares. It is nil if there
	// are too many to tell.
	Wrong []uint32
	// Limit is the largest number of wrong shares that could have been found:
	// half of the number of shares beyond the threshold, rounded down.
	Limit int
}

func (e *WrongSharesError) Error() string {
	if e.Wrong == nil {
		return fmt.Sprintf("%v (limit %d)", ErrTooManyWrong, e.Limit)
	}
	return fmt.Sprintf("%v: wrong shares from indices %d", ErrWrongShares, e.Wrong)
}

// Is reports whether target is ErrWrongShares, or ErrTooManyWrong if the wrong
// shares could not be told.
func (e *WrongSharesError) Is(target error) bool {
	return target == ErrWrongShares || target == ErrTooManyWrong && e.Wrong == nil
}
