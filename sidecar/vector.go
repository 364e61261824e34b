package sidecar

import (
	"errors"

	"github.com/hushsum/hushsum"
	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/masking"
)

// What the numbers of a vector are, in the words of calls.
const (
	float32s = "float32"
	float64s = "float64" // where nothing is said
)

// encoding returns what turns a vector into a submission for a round. The vector stays
// where it is; who changes it meanwhile garbles a sum by its own input.
func encoding(
	s *hushsum.Settled, broadcast [32]byte, numbers string, vector []byte,
) (func(*masking.Vector) error, error) {
	if err := checkNumbers(numbers); err != nil {
		return nil, err
	}
	if numbers == float32s {
		return encodingOf[float32](s, broadcast, vector)
	}
	return encodingOf[float64](s, broadcast, vector)
}

func encodingOf[F aggregation.Float](
	s *hushsum.Settled, broadcast [32]byte, vector []byte,
) (func(*masking.Vector) error, error) {
	x, err := floats[F](vector)
	if err != nil {
		return nil, requestError("", "the vector: %v", err)
	}
	return func(v *masking.Vector) error { return hushsum.EncodeTo(v, s, broadcast, x, nil) }, nil
}

// errNoVector: an empty blob says that training has made none.
var errNoVector = errors.New("sidecar: there is no vector")

// submission writes a vector's submission into v by encode. In a plan with noise others must not
// see whether training has made a vector: none, and one with NaN or infinity, is zeros with noise,
// and unfit says why.
func submission(
	s *hushsum.Settled, v *masking.Vector, empty bool, encode func(*masking.Vector) error,
) (unfit string, err error) {
	if err = errNoVector; !empty || s.Mechanism() == nil {
		err = encode(v)
	}
	if !hides(s, err) {
		return "", err
	}
	return err.Error(), s.Blank(v, nil)
}

// hides reports whether an error of encoding stays between the program and its sidecar.
func hides(s *hushsum.Settled, err error) bool {
	return s.Mechanism() != nil &&
		(errors.Is(err, errNoVector) || errors.Is(err, aggregation.ErrNotFinite))
}

// meanOf returns the mean of a sum, as a blob.
func meanOf(
	s *hushsum.Settled, broadcast [32]byte, numbers string, sum *masking.Vector, parties int,
) ([]byte, error) {
	if err := checkNumbers(numbers); err != nil {
		return nil, err
	}
	if numbers == float32s {
		mean := make([]float32, s.Plan().Length)
		err := hushsum.DecodeTo(mean, s, broadcast, sum, parties)
		return floatBlob(mean), err
	}
	mean := make([]float64, s.Plan().Length)
	err := hushsum.DecodeTo(mean, s, broadcast, sum, parties)
	return floatBlob(mean), err
}

// checkNumbers fails if there are no such numbers.
func checkNumbers(numbers string) error {
	switch numbers {
	case "", float32s, float64s:
		return nil
	}
	return fieldError("numbers", "use float32 or float64", "there are no %.40q", numbers)
}
