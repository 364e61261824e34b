package sidecar

import (
	"errors"
	"slices"

	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/internal/fault"
	declared "github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/masking"
)

// The types of a vector's numbers, in the words of calls.
const (
	float32s = "float32"
	float64s = "float64" // the default
)

// vectorCall holds what calls with a vector say about it.
type vectorCall struct {
	Numbers string `json:"numbers"`
	// Weight is the weight of the vector in a weighted mean, such as the number of rows that it is
	// made from; left out: 1.
	Weight *int `json:"weight"`
}

// samples returns the weight of a vector of a job.
func (v *vectorCall) samples(s *declared.Settled) (int, error) {
	switch {
	case v.Weight == nil:
		return 1, nil
	case !weighs(s):
		return 0, fault.New(declared.ErrConfig, "leave it out, or declare sum.max_weight",
			"weight: the job's vectors have none")
	case *v.Weight < 0, *v.Weight == 0 && s.Mechanism() == nil:
		return 0, fault.New(declared.ErrConfig, "give the number of rows, or be absent in the round",
			"weight: %d is not a weight", *v.Weight)
	}
	return *v.Weight, nil
}

// check returns an error in the call that does not lie in the vector.
func (v *vectorCall) check(s *declared.Settled) error {
	if _, err := v.samples(s); err != nil {
		return err
	}
	return checkNumbers(v.Numbers)
}

// updateOf converts a vector into what a party submits, of the numbers that are in it. Its numbers
// may be the caller's.
func updateOf[F aggregation.Float](
	v *vectorCall, s *declared.Settled, vector []byte,
) (u declared.Update[F], err error) {
	if u.Samples, err = v.samples(s); err != nil {
		return u, err
	}
	if u.Vector, err = floats[F](vector); err != nil {
		return u, requestError("", "the vector: %v", err)
	}
	return u, nil
}

// update is updateOf as float64, of numbers that are no longer the caller's.
func (v *vectorCall) update(
	s *declared.Settled, vector []byte,
) (u declared.Update[float64], err error) {
	if err := checkNumbers(v.Numbers); err != nil {
		return u, err
	}
	if v.Numbers != float32s {
		u, err = updateOf[float64](v, s, vector)
		u.Vector = slices.Clone(u.Vector)
		return u, err
	}
	narrow, err := updateOf[float32](v, s, vector)
	u.Samples = narrow.Samples
	for _, x := range narrow.Vector {
		u.Vector = append(u.Vector, float64(x))
	}
	return u, err
}

// encoding returns a function that turns a vector into a submission for a round. The vector stays
// in place; a program that changes it meanwhile garbles a sum by its own input.
func (v *vectorCall) encoding(
	s *declared.Settled, broadcast [32]byte, vector []byte,
) (func(*masking.Vector) error, error) {
	if err := v.check(s); err != nil {
		return nil, err
	}
	if v.Numbers == float32s {
		return encodingOf[float32](v, s, broadcast, vector)
	}
	return encodingOf[float64](v, s, broadcast, vector)
}

func encodingOf[F aggregation.Float](
	v *vectorCall, s *declared.Settled, broadcast [32]byte, vector []byte,
) (func(*masking.Vector) error, error) {
	u, err := updateOf[F](v, s, vector)
	if err != nil {
		return nil, err
	}
	return func(v *masking.Vector) error { return declared.EncodeTo(v, s, broadcast, u, nil) }, nil
}

// errNoVector: an empty blob says that training has produced none.
var errNoVector = errors.New("sidecar: there is no vector")

// submission writes a vector's submission into v with encode. In a job with noise others must not
// see whether training has produced a vector: none, or one with NaN or infinity, becomes zeros with
// noise, and unfit says why.
func submission(
	s *declared.Settled, v *masking.Vector, empty bool, encode func(*masking.Vector) error,
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
func hides(s *declared.Settled, err error) bool {
	return s.Mechanism() != nil &&
		(errors.Is(err, errNoVector) || errors.Is(err, aggregation.ErrNotFinite))
}

// meanOf returns the mean of a sum, as a blob, and the sum of its weights, 0 if the sum does not
// contain it.
func meanOf(
	s *declared.Settled, broadcast [32]byte, numbers string, sum *masking.Vector, parties int,
) (mean []byte, weight int, err error) {
	if err := checkNumbers(numbers); err != nil {
		return nil, 0, err
	}
	if numbers == float32s {
		return decoded[float32](s, broadcast, sum, parties)
	}
	return decoded[float64](s, broadcast, sum, parties)
}

func decoded[F aggregation.Float](
	s *declared.Settled, broadcast [32]byte, sum *masking.Vector, parties int,
) ([]byte, int, error) {
	mean := make([]F, s.Length())
	total, err := declared.DecodeTo(mean, s, broadcast, sum, parties)
	return floatBlob(mean), total.Samples, err
}

// checkNumbers fails if there is no such type of numbers.
func checkNumbers(numbers string) error {
	switch numbers {
	case "", float32s, float64s:
		return nil
	}
	return fieldError("numbers", "use float32 or float64", "there are no %.40q", numbers)
}
