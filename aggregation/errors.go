package aggregation

import (
	"errors"

	"github.com/hushsum/hushsum/internal/entropy"
)

// Errors of configuration.
var (
	// ErrConfig: a field is outside its range; the error names it.
	ErrConfig = errors.New("aggregation: unusable configuration")
	// ErrWrap: the sum of all parties could leave the ring of 64 bits. Lower the
	// fraction bits, the range, the most samples of a party, or the number of
	// parties.
	ErrWrap = errors.New("aggregation: the sum of all parties could wrap in 64 bits; lower the " +
		"fraction bits, the range, the samples or the parties")
	// ErrBits: the sum of all parties and its noise do not fit the ring of an
	// [Encoder]. Raise Bits, or lower Scale, Clip, Parties or the noise; Rotate
	// helps when there are many coordinates.
	ErrBits = errors.New("aggregation: the sum and its noise do not fit the ring; raise Bits, " +
		"lower Scale, Clip, Parties or the noise, or use Rotate")
)

// ErrRandom: the source of randomness failed, ended, or gives numbers that are
// not random. Nothing was encoded; use crypto/rand.
var ErrRandom = entropy.Err

// Errors of values. They name the coordinate, never the value.
var (
	// ErrNotFinite: a number is NaN or infinite. Training went wrong before it
	// got here: lower the rate, or drop this update.
	ErrNotFinite = errors.New("aggregation: a value is NaN or infinite")
	// ErrSaturated: a number is outside ±Range, or does not fit the ring. Raise
	// the range, or clip updates first; the encoder never clamps.
	ErrSaturated = errors.New("aggregation: a value is out of range; raise the range or clip first")
	// ErrSamples: an update's number of samples is not between 1 and MaxSamples.
	ErrSamples = errors.New("aggregation: the number of samples is out of range")
	// ErrLength: a vector, or the list of segments, has the wrong length.
	ErrLength = errors.New("aggregation: wrong length")
	// ErrRing: a value is 2^b or more, or b is not between 1 and 64.
	ErrRing = errors.New("aggregation: a value is outside its ring")
	// ErrSum: parties of this configuration cannot have made the sum: one of them
	// uses other parameters, or sent false masks. Discard the round.
	ErrSum = errors.New("aggregation: not a sum of updates of this configuration")
)
