package training

import (
	"errors"
	"fmt"
	"math"

	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/privacy"
)

// ErrStanding marks a model that says of its training what no training has.
var ErrStanding = errors.New("training: no model of this training")

// Flat returns the model of a standing, whose tensors are next to each other as the job lists
// them. Public is not in it.
func (t *Training) Flat(s *Standing) []float64 {
	var out []float64
	for _, one := range t.form {
		switch one.Name {
		case job.TensorWeights:
			out = append(out, s.Model...)
		case job.TensorVariate:
			out = append(out, s.Variate...)
		case job.TensorGradient:
			out = append(out, s.Gradient...)
		case job.TensorCounted:
			for _, round := range s.Counted {
				out = append(out, float64(round))
			}
		case job.TensorNext:
			out = append(out, float64(s.Round), float64(s.Exchange))
		case job.TensorSummed:
			rounds := make([]float64, one.Shape[0])
			for k, e := range s.Earlier {
				rounds[k] = float64(e.Round)
			}
			out = append(out, rounds...)
		case job.TensorEarlier:
			sums := make([]float64, one.Shape[0])
			for k, e := range s.Earlier {
				copy(sums[k*len(s.Model):], e.Sum)
			}
			out = append(out, sums...)
		case job.TensorStandard:
			found := make([]float64, one.Shape[0])
			found[0] = float64(s.Standard.Sums)
			copy(found[1:], s.Standard.Mean)
			out = append(out, found...)
		case job.TensorMean:
			mean := make([]float64, one.Shape[0])
			copy(mean, s.Mean)
			out = append(out, mean...)
		case job.TensorFirst, job.TensorSecond:
			moment := make([]float64, one.Shape[0])
			if s.Moments != nil {
				moment = s.Moments[momentOf[one.Name]]
			}
			out = append(out, moment...)
		}
	}
	return out
}

// momentOf are the places of tensors among the moments of the server's rule.
var momentOf = map[string]int{job.TensorFirst: 0, job.TensorSecond: 1}

// Standing reads what a model says, and is Flat's inverse. It fails with [ErrStanding].
func (t *Training) Standing(model []float64) (*Standing, error) {
	length := 0
	for _, one := range t.form {
		length += one.Shape[0]
	}
	if len(model) != length {
		return nil, fmt.Errorf("%w: %d numbers for %d", ErrStanding, len(model), length)
	}
	s := &Standing{}
	for _, one := range t.form {
		part := model[:one.Shape[0]:one.Shape[0]]
		model = model[len(part):]
		switch one.Name {
		case job.TensorWeights:
			s.Model = part
		case job.TensorVariate:
			s.Variate = part
		case job.TensorGradient:
			s.Gradient = part
		case job.TensorCounted:
			for _, x := range part {
				round, err := number(x, 0, t.rounds)
				if err != nil {
					return nil, err
				}
				s.Counted = append(s.Counted, round)
			}
		case job.TensorNext:
			var e1, e2 error
			s.Round, e1 = number(part[0], 1, t.rounds+1) // the last model has the one after
			s.Exchange, e2 = number(part[1], 1, t.Exchanges())
			if err := errors.Join(e1, e2); err != nil {
				return nil, err
			}
		case job.TensorSummed:
			for _, x := range part {
				round, err := number(x, 0, t.rounds)
				if err != nil {
					return nil, err
				}
				if round > 0 {
					s.Earlier = append(s.Earlier, privacy.Decoded{Round: uint64(round)})
				}
			}
		case job.TensorEarlier:
			d := len(s.Model)
			for k := range s.Earlier {
				s.Earlier[k].Sum = part[k*d : (k+1)*d : (k+1)*d]
			}
		case job.TensorStandard:
			sums, err := number(part[0], 0, t.standardises())
			if err != nil {
				return nil, err
			}
			if s.Standard.Sums = sums; sums > 0 {
				s.Standard.Mean = part[1:]
			}
		case job.TensorMean:
			s.Mean = part
		case job.TensorFirst, job.TensorSecond:
			s.Moments = append(s.Moments, part)
		}
	}
	if s.Round <= 1+t.standardises() { // the rule has made no step
		s.Moments = nil
	}
	return s, nil
}

// standardises returns how many of the first rounds sum moments.
func (t *Training) standardises() int {
	if r := t.options.Records; r != nil {
		return r.Standardise
	}
	return 0
}

// number reads a whole number of a model.
func number(x float64, least, most int) (int, error) {
	if !(x >= float64(least) && x <= float64(most) && x == math.Trunc(x)) {
		return 0, fmt.Errorf("%w: %g where a number from %d to %d stands", ErrStanding, x, least, most)
	}
	return int(x), nil
}
