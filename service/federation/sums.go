package federation

import (
	"errors"
	"math"
	"slices"

	"github.com/hushsum/hushsum/aggregation"
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
) (next []float64, m *Metric, err error) {
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
	mean, err := f.Settled.Decode(broadcast, sum, len(parties))
	if err != nil {
		return nil, nil, err
	}
	if f.asks != nil { // the answers are read from it
		next, err = f.stored(mean)
		return next, nil, err
	}
	update, m := f.Part(mean, len(parties))
	if next, err = optimizer.Apply(model, update, nil); err != nil {
		return nil, nil, err
	}
	if next, err = f.stored(next); err != nil {
		return nil, nil, err
	}
	return next, m, nil
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

// maxLoss is the largest loss that metrics count.
const maxLoss = 10

// Join appends a party's metrics to its update: with an update clipped to its part of the clip and
// each metric scaled to its part, the norm is at most the clip, and the noise covers both. loss
// counts from 0 to 10; accuracy is from 0 to 1.
func (f *Federation) Join(update []float64, loss, accuracy float64) ([]float64, error) {
	share := f.Job.Metrics.Share
	if share == 0 {
		return update, nil
	}
	clip := f.Job.Privacy.Clip
	clipped, _, err := aggregation.Clip(update, clip*math.Sqrt(1-share*share))
	if err != nil {
		return nil, err
	}
	unit := clip * share / math.Sqrt2
	bound := func(x float64) float64 {
		if !(x >= 0) {
			return 0
		}
		return min(x, 1)
	}
	return append(slices.Clone(clipped), unit*bound(loss/maxLoss), unit*bound(accuracy)), nil
}

// Metric holds the means of the loss and accuracy that parties measured, each with the standard
// deviation of the noise in it.
type Metric struct {
	Loss        float64 `json:"loss"`
	LossDev     float64 `json:"loss_dev"`
	Accuracy    float64 `json:"accuracy"`
	AccuracyDev float64 `json:"accuracy_dev"`
}

// Part is the inverse of Join on the mean of a given number of parties; without metrics the second
// result is nil.
func (f *Federation) Part(mean []float64, parties int) (update []float64, m *Metric) {
	share := f.Job.Metrics.Share
	if share == 0 {
		return mean, nil
	}
	d := f.Spec.Len()
	unit := f.Job.Privacy.Clip * share / math.Sqrt2
	dev := f.Settled.StdDev(parties) / unit
	return mean[:d], &Metric{
		Loss:        mean[d] / unit * maxLoss,
		LossDev:     dev * maxLoss,
		Accuracy:    mean[d+1] / unit,
		AccuracyDev: dev,
	}
}
