package simulation

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/learning"
	"github.com/hushsum/hushsum/protocol"
)

// exchange is one round while it lasts.
type exchange struct {
	*run
	round     int
	leaves    []moment // by party
	broadcast []byte
	turns     []turn        // by party
	server    time.Duration // that the server worked
}

// turn is what one party did in one round.
type turn struct {
	message []byte    // its last answer, until the server takes it
	clear   []float64 // weights of the training in the clear; with noise its update
	largest float64   // magnitude of a weight that went into the sum
	cost    Cost
}

// playRound runs one round. A round that has too few parties to unmask anything
// is lost: it costs what it costs, and the models stay as they are.
func (r *run) playRound(ctx context.Context, round int) (Round, error) {
	x := &exchange{run: r, round: round, leaves: r.drops.next(len(r.clients)), turns: make([]turn, len(r.clients))}
	outcome := Round{Round: round}
	for _, leaves := range x.leaves {
		if leaves != never {
			outcome.Dropped++
		}
	}
	private, samples, err := x.sum(ctx)
	var party *RoundError
	switch {
	case err == nil:
		included := r.server.Included()
		outcome.Clients, outcome.Samples = len(included), samples
		r.summary.Private, r.summary.Clear = private, x.clearModel(included)
	case r.options.Recovery != nil && errors.Is(err, protocol.ErrTooFew) && !errors.As(err, &party):
		outcome.Lost = err
	default:
		return Round{}, err
	}

	cost := Cost{Server: x.server}
	for i := range x.turns {
		cost.add(x.turns[i].cost)
		outcome.LargestWeight = max(outcome.LargestWeight, x.turns[i].largest)
	}
	outcome.Cost = cost.perParty(len(r.clients))
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

// sum is the round's private sum, from the broadcast to the average. An error
// of the server is as package protocol has it, one of a party a RoundError.
func (x *exchange) sum(ctx context.Context) (private []float64, samples int, err error) {
	if x.broadcast, err = aggregation.AppendModel(nil, x.summary.Private); err != nil {
		return nil, 0, err
	}
	begin := func() ([]protocol.Envelope, error) { return x.run.server.Begin(x.broadcast) }
	if x.options.Recovery == nil {
		err = x.step(ctx, 0, begin, x.takePart)
	} else {
		// Who dropped out of the last round comes back first.
		err = x.step(ctx, -1, x.run.server.Invite, x.answer)
		for i, step := range []struct {
			send func() ([]protocol.Envelope, error)
			take func(context.Context, int, []byte) error
		}{
			{begin, x.takePart},
			{x.run.server.Survivors, x.answerUnless(beforeSign)},
			{x.run.server.Certificate, x.answerUnless(beforeReveal)},
		} {
			if err == nil {
				err = x.step(ctx, i, step.send, step.take)
			}
		}
	}
	if err != nil {
		return nil, 0, err
	}
	err = x.serve(func() error {
		sum, err := x.run.server.Sum()
		if err == nil {
			private, samples, err = x.decode(sum)
		}
		return err
	})
	return private, samples, err
}

// serve has the server work.
func (x *exchange) serve(work func() error) error {
	start := x.options.Now()
	err := work()
	x.server += x.options.Now().Sub(start)
	return err
}

// step has the server make messages, the parties take them, and the server take
// their answers. index is for progress, −1 for none.
func (x *exchange) step(ctx context.Context, index int, send func() ([]protocol.Envelope, error), take func(context.Context, int, []byte) error) error {
	var envelopes []protocol.Envelope
	err := x.serve(func() (err error) {
		envelopes, err = send()
		return err
	})
	if err != nil {
		return err
	}
	err = x.each(ctx, x.round, index, len(envelopes), func(i int) (int, error) {
		return envelopes[i].To, take(ctx, envelopes[i].To, envelopes[i].Message)
	})
	if err != nil {
		return err
	}
	return x.serve(func() error {
		for i := range x.turns {
			t := &x.turns[i]
			if t.message == nil {
				continue
			}
			if err := x.run.server.Receive(t.message); err != nil {
				return failure(x.round, i, err)
			}
			t.cost.BytesUp += int64(len(t.message))
			t.message = nil
		}
		return nil
	})
}

// answer has a party take a message of the server.
func (x *exchange) answer(_ context.Context, i int, message []byte) (err error) {
	t := &x.turns[i]
	start := x.options.Now()
	t.message, err = x.clients[i].Receive(message)
	t.cost.Client += x.options.Now().Sub(start)
	t.cost.BytesDown += int64(len(message))
	return err
}

// answerUnless is answer for parties that have not dropped out by then.
func (x *exchange) answerUnless(gone moment) func(context.Context, int, []byte) error {
	return func(ctx context.Context, i int, message []byte) error {
		if x.leaves[i] <= gone {
			return nil
		}
		return x.answer(ctx, i, message)
	}
}

// takePart is a party's part of a round up to its submission, and the same
// training in the clear.
func (x *exchange) takePart(ctx context.Context, i int, begin []byte) error {
	now := x.options.Now
	t := &x.turns[i]
	if err := x.answer(ctx, i, begin); err != nil {
		return err
	}
	start := now()
	weights, err := aggregation.ParseModel(x.broadcast, x.model.NumParams())
	if err != nil {
		return err
	}
	t.cost.BytesDown += int64(len(x.broadcast))
	received := now()
	t.cost.Client += received.Sub(start)
	if x.leaves[i] == beforeSubmit {
		return nil
	}
	if err := x.train(ctx, weights, x.rows[i]); err != nil {
		return err
	}
	trained := now()
	values, err := x.encode(weights, i)
	if err != nil {
		return err
	}
	if t.message, err = x.clients[i].Submit(x.broadcast, values...); err != nil {
		return err
	}
	t.cost.Train = trained.Sub(received)
	t.cost.Client += now().Sub(trained)
	for _, w := range weights {
		t.largest = max(t.largest, math.Abs(w))
	}
	t.clear = append([]float64(nil), x.summary.Clear...)
	if err := x.train(ctx, t.clear, x.rows[i]); err != nil || x.noisy == nil {
		return err
	}
	t.clear, err = clippedUpdate(t.clear, x.summary.Clear, x.options.Noise.Clip)
	return err
}

// encode returns what party i submits for the weights that it trained.
func (x *exchange) encode(weights []float64, i int) ([][]uint64, error) {
	if x.noisy == nil {
		return x.average.Encode(weights, x.rows[i].Len())
	}
	update := make([]float64, len(weights))
	for j, w := range weights {
		update[j] = w - x.summary.Private[j]
	}
	return x.noisy.encode(x.round, update)
}

// decode returns the model that a sum makes, and how many rows are behind it. The
// server knows how many parties that is, and without noise the sum has the rows.
func (x *exchange) decode(sum [][]uint64) (private []float64, samples int, err error) {
	if x.noisy == nil {
		return x.average.Decode(sum)
	}
	included := x.run.server.Included()
	private, err = x.noisy.step(x.round, x.summary.Private, sum, len(included))
	return private, len(included) * x.options.RowsPerClient, err
}

// train is gradient descent that looks up now and then.
func (r *run) train(ctx context.Context, weights []float64, rows *learning.Dataset) error {
	for left := r.options.LocalSteps; left > 0; left -= stepsAtOnce {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := r.model.Train(weights, rows, r.options.Rate, min(left, stepsAtOnce)); err != nil {
			return err
		}
	}
	return nil
}

// clearModel is the next model in the clear: the average of the given parties,
// weighted by rows, in plain float64, and with noise in the private sum the last
// model plus that.
func (x *exchange) clearModel(parties []int) []float64 {
	mean := make([]float64, x.model.NumParams())
	total := 0.0
	for _, i := range parties {
		n := float64(x.rows[i].Len())
		for j, w := range x.turns[i].clear {
			mean[j] += n * w
		}
		total += n
	}
	for j := range mean {
		mean[j] /= total
		if x.noisy != nil {
			mean[j] += x.summary.Clear[j]
		}
	}
	return mean
}
