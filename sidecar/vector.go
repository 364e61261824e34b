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

// message converts a vector into the message that a party sends. Its numbers are no longer the
// caller's.
func (v *vectorCall) message(s *declared.Settled, vector []byte) (m declared.Message, err error) {
	samples, err := v.samples(s)
	if err != nil {
		return m, err
	}
	if err := checkNumbers(v.Numbers); err != nil {
		return m, err
	}
	var x []float64
	if v.Numbers == float32s {
		narrow, err := floats[float32](vector)
		if err != nil {
			return m, requestError("", "the vector: %v", err)
		}
		for _, f := range narrow {
			x = append(x, float64(f))
		}
	} else if x, err = floats[float64](vector); err != nil {
		return m, requestError("", "the vector: %v", err)
	} else {
		x = slices.Clone(x)
	}
	return s.Message(x, samples)
}

// encoding returns a function that turns a vector into a submission for a round. A vector that is
// all that is sent stays in place; a program that changes it meanwhile garbles a sum by its own
// input.
func (v *vectorCall) encoding(
	s *declared.Settled, broadcast [32]byte, vector []byte,
) (func(*masking.Vector) error, error) {
	if err := v.check(s); err != nil {
		return nil, err
	}
	if !s.Alone() {
		return func(into *masking.Vector) error {
			m, err := v.message(s, vector)
			if err != nil {
				return err
			}
			return encodeMessage(into, s, broadcast, m)
		}, nil
	}
	if v.Numbers == float32s {
		return encodingOf[float32](s, broadcast, vector)
	}
	return encodingOf[float64](s, broadcast, vector)
}

// encodeMessage writes a message in the form in which it is submitted.
func encodeMessage(
	into *masking.Vector, s *declared.Settled, broadcast [32]byte, m declared.Message,
) error {
	values, err := s.EncodeMessage(broadcast, m, nil)
	if err != nil {
		return err
	}
	defer func() {
		for _, v := range values {
			clear(v)
		}
	}()
	return into.Set(values...)
}

func encodingOf[F aggregation.Float](
	s *declared.Settled, broadcast [32]byte, vector []byte,
) (func(*masking.Vector) error, error) {
	x, err := floats[F](vector)
	if err != nil {
		return nil, requestError("", "the vector: %v", err)
	}
	return func(v *masking.Vector) error { return declared.EncodeTo(v, s, broadcast, x, nil) }, nil
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
	if !s.Alone() {
		total, err := s.DecodeTotal(broadcast, sum.Values(), parties)
		return numbersOf(total.Mean, numbers), total.Samples, err
	}
	if numbers == float32s {
		mean := make([]float32, s.Length())
		err := declared.DecodeTo(mean, s, broadcast, sum, parties)
		return floatBlob(mean), 0, err
	}
	full := make([]float64, s.Length())
	err = declared.DecodeTo(full, s, broadcast, sum, parties)
	return floatBlob(full), 0, err
}

// numbersOf returns numbers as a blob of a known type.
func numbersOf(x []float64, numbers string) []byte {
	if numbers != float32s {
		return floatBlob(x)
	}
	narrow := make([]float32, len(x))
	for i, v := range x {
		narrow[i] = float32(v)
	}
	return floatBlob(narrow)
}

// checkNumbers fails if there is no such type of numbers.
func checkNumbers(numbers string) error {
	switch numbers {
	case "", float32s, float64s:
		return nil
	}
	return fieldError("numbers", "use float32 or float64", "there are no %.40q", numbers)
}
