package simulation

import (
	"context"
	"errors"

	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/learning"
)

// Alone judges the model that each party would have without the others, trained for the same number
// of rounds on its own rows only, with neither noise nor clipping of updates. A training by records
// draws each record as often as in the sum. A party whose training diverges is judged by the last
// model before.
//
// It fails with a [job.ConfigError] for options that Run refuses, and with ctx.Err() if ctx ends.
func Alone(ctx context.Context, options Options) ([]learning.Matrix, error) {
	if err := options.Validate(); err != nil {
		return nil, err
	}
	all := make([]learning.Matrix, len(options.Parties))
	for i, rows := range options.Parties {
		x, out, err := newRun(options.alone(rows).settled())
		if err != nil {
			return nil, err
		}
		err = x.train(ctx, out, nil)
		x.erase()
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case errors.Is(err, learning.ErrDiverged), errors.Is(err, aggregation.ErrNotFinite):
		case err != nil:
			return nil, err
		}
		if all[i], err = learning.Evaluate(x.Model, x.learned.Weights, x.Test); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// alone returns the options of the same training by one party.
func (o Options) alone(rows *learning.Dataset) Options {
	a := Options{Model: o.Model, Parties: []*learning.Dataset{rows}, Test: o.Test, Rounds: o.Rounds,
		Local: o.Local, Client: o.Client, Server: o.Server, MaxSamples: o.MaxSamples, Models: o.Models,
		Average: o.Average, Seed: o.Seed, EvaluateEvery: o.Rounds}
	if o.Records != nil {
		a.Records = o.Records.Alone(rows)
	}
	return a
}
