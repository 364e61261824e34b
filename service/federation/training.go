package federation

import (
	"fmt"

	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/learning"
	"github.com/hushsum/hushsum/service/tensor"
	"github.com/hushsum/hushsum/training"
)

// This file holds a federation's view of the training that its job declares.

// Standing reads the state of a declared training from a model. broadcast is the one with which the
// training's round began; nil: it is not at hand. round is the federation's. It fails with
// tensor.ErrFormat.
func (f *Federation) Standing(
	round int, model []float64, broadcast []byte,
) (*training.Standing, error) {
	s, err := f.training.Standing(model)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", tensor.ErrFormat, err)
	}
	s.Number = uint64(round)
	if broadcast != nil {
		s.Public = job.BroadcastDigest(broadcast)
	}
	return s, nil
}

// Exchanges returns how many sums a step of the model takes.
func (f *Federation) Exchanges() int {
	if f.training == nil {
		return 1
	}
	return f.training.Exchanges()
}

// Exact reports whether models are sent exactly as computed, without rounding.
func (f *Federation) Exact() bool { return f.Spec.DType == tensor.Float64 }

// Learner returns what judges rows by a model whose training is declared, nil if none is: of
// features that are standardised, if the model says how.
func (f *Federation) Learner(model []float64) learning.Model {
	if f.training == nil {
		return nil
	}
	if s, err := f.training.Standing(model); err == nil {
		if judged, err := f.training.Judged(s); err == nil {
			return judged
		}
	}
	return f.training.Model()
}

// Weights returns the part of a model that belongs to a model of package learning, if the training
// is declared, otherwise all of it.
func (f *Federation) Weights(model []float64) []float64 {
	if f.training == nil {
		return model
	}
	return model[:f.Spec.Tensors[0].Len()]
}

// Trained returns the training that is declared, nil if none is. It fails with a
// [job.ConfigError] if rows are not of its form.
func (f *Federation) Trained(rows *learning.Dataset) (*training.Training, error) {
	if f.training == nil {
		return nil, nil
	}
	if e := job.Errors(f.training.Fits(rows)); len(e) > 0 {
		return nil, f.Job.Mistake(e[0].Path, e[0].Advice, "%s", e[0].Reason)
	}
	return f.training, nil
}
