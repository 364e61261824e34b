package federation

import (
	"errors"
	"math"

	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/training"
)

// This file defines what is summed, and what follows from a sum.

// Optimizer returns the server's rule, in its initial state.
func (f *Federation) Optimizer() *aggregation.Optimizer { return training.Optimizer(f.Job) }

// Next returns the model that follows from a round's model, the broadcast that the round began
// with, and the sum of the submissions of some parties; and the metrics that these parties
// measured, nil if they measured none. optimizer, of Optimizer, keeps its state between rounds. It
// fails with errors of aggregation.
func (f *Federation) Next(
	optimizer *aggregation.Optimizer, round int, model []float64, broadcast []byte, sum [][]uint64,
	parties []int,
) (next []float64, m *job.Metric, err error) {
	if f.training != nil {
		s, err := f.Standing(round, model, broadcast)
		if err != nil {
			return nil, nil, err
		}
		if s, err = f.training.Advance(s, optimizer, sum, parties); err != nil {
			return nil, nil, err
		}
		next, err = f.stored(f.training.Flat(s))
		return next, nil, err
	}
	total, err := f.Settled.Decode(job.BroadcastDigest(broadcast), sum,
		f.Settled.Counts(parties))
	if err != nil {
		return nil, nil, err
	}
	if f.asks == nil {
		next, err = optimizer.Apply(model, total.Mean, nil)
	} else { // the answers are read from it
		next, err = f.asks.Next(model, total.Mean, len(parties))
	}
	if err != nil {
		return nil, nil, err
	}
	if next, err = f.stored(next); err != nil {
		return nil, nil, err
	}
	return next, total.Metric, nil
}

// ErrDiverged: the model that follows from a sum has numbers that its type cannot represent.
var ErrDiverged = errors.New("federation: the model has diverged, and the one before it is kept; " +
	"lower the rates")

// stored returns a model as it is stored and sent. All parties would refuse one with infinite
// numbers, for ever.
func (f *Federation) stored(model []float64) ([]float64, error) {
	f.Spec.Round(model)
	for _, x := range model {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return nil, ErrDiverged
		}
	}
	return model, nil
}
