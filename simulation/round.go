package simulation

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/learning"
)

// shadow is what a party did beside the private sum, to compare and to report.
type shadow struct {
	clear   []float64 // weights of the training in the clear; with noise its update
	largest float64   // magnitude of a weight that went into the sum
}

// playRound runs one round. A round that has too few parties to unmask anything
// is lost: it costs what it costs, and the models stay as they are.
func (r *run) playRound(ctx context.Context, round int) (Round, error) {
	broadcast, err := aggregation.AppendModel(nil, r.summary.Private)
	if err != nil {
		return Round{}, err
	}
	shadows := make([]shadow, len(r.rows))
	out, err := r.play(ctx, round, broadcast, func(ctx context.Context, i int) (submission, error) {
		return r.submission(ctx, round, i, broadcast, &shadows[i])
	})
	if err != nil {
		return Round{}, err
	}
	outcome := Round{Round: round, Dropped: out.dropped, Lost: out.lost}
	if out.lost == nil {
		start := r.now()
		private, samples, err := r.decode(round, out.sum, len(out.included))
		if err != nil {
			return Round{}, err
		}
		out.cost.Server += r.now().Sub(start)
		outcome.Clients, outcome.Samples = len(out.included), samples
		r.summary.Private, r.summary.Clear = private, r.clearModel(out.included, shadows)
	}
	outcome.Cost = out.cost
	for i := range shadows {
		outcome.LargestWeight = max(outcome.LargestWeight, shadows[i].largest)
	}
	for j, w := range r.summary.Private {
		outcome.MaxAbsDiff = max(outcome.MaxAbsDiff, math.Abs(w-r.summary.Clear[j]))
	}
	if outcome.Private, err = r.model.Evaluate(r.summary.Private, r.options.Test); err != nil {
		return Round{}, err
	}
	if outcome.Clear, err = r.model.Evaluate(r.summary.Clear, r.options.Test); err != nil {
		return Round{}, err
	}
	return outcome, nil
}

// submission is what party i makes of the broadcast, and beside it the same
// training in the clear.
func (r *run) submission(ctx context.Context, round, i int, broadcast []byte, beside *shadow) (made submission, err error) {
	weights, err := aggregation.ParseModel(broadcast, r.model.NumParams())
	if err != nil {
		return made, err
	}
	if made.train, err = r.timed(func() error { return r.train(ctx, weights, r.rows[i]) }); err != nil {
		return made, err
	}
	if made.values, err = r.encode(round, weights, i); err != nil {
		return made, err
	}
	made.aside, err = r.timed(func() (err error) {
		for _, w := range weights {
			beside.largest = max(beside.largest, math.Abs(w))
		}
		beside.clear = append([]float64(nil), r.summary.Clear...)
		if err := r.train(ctx, beside.clear, r.rows[i]); err != nil || r.noisy == nil {
			return err
		}
		beside.clear, err = clippedUpdate(beside.clear, r.summary.Clear, r.options.Noise.Clip)
		return err
	})
	return made, err
}

// timed returns how long work took.
func (r *run) timed(work func() error) (time.Duration, error) {
	start := r.now()
	err := work()
	return r.now().Sub(start), err
}

// encode returns what party i submits for the weights that it trained.
func (r *run) encode(round int, weights []float64, i int) ([][]uint64, error) {
	if r.noisy == nil {
		return r.average.Encode(weights, r.rows[i].Len())
	}
	update := make([]float64, len(weights))
	for j, w := range weights {
		update[j] = w - r.summary.Private[j]
	}
	if r.options.Oneshot != nil {
		return r.noisy.rounded(round, update)
	}
	return r.noisy.encode(round, update)
}

// decode returns the model that a sum makes, and how many rows are behind it. The
// server knows how many parties that is, and without noise the sum has the rows.
func (r *run) decode(round int, sum [][]uint64, parties int) (private []float64, samples int, err error) {
	if r.noisy == nil {
		return r.average.Decode(sum)
	}
	private, err = r.noisy.step(round, r.summary.Private, sum, parties)
	return private, parties * r.options.RowsPerClient, err
}

// train is gradient descent that looks up now and then. With noise, weights that
// diverge stay as they were: see Noise.
func (r *run) train(ctx context.Context, weights []float64, rows *learning.Dataset) error {
	begin := slices.Clone(weights)
	for left := r.options.LocalSteps; left > 0; left -= stepsAtOnce {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := r.model.Train(weights, rows, r.options.Rate, min(left, stepsAtOnce))
		if r.noisy != nil && errors.Is(err, learning.ErrDiverged) {
			copy(weights, begin)
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// clearModel is the next model in the clear: the average of the given parties,
// weighted by rows, in plain float64, and with noise in the private sum the last
// model plus that.
func (r *run) clearModel(parties []int, shadows []shadow) []float64 {
	mean := make([]float64, r.model.NumParams())
	total := 0.0
	for _, i := range parties {
		n := float64(r.rows[i].Len())
		for j, w := range shadows[i].clear {
			mean[j] += n * w
		}
		total += n
	}
	for j := range mean {
		mean[j] /= total
		if r.noisy != nil {
			mean[j] += r.summary.Clear[j]
		}
	}
	return mean
}
