package simulation

import (
	"context"
	"errors"

	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/learning"
)

// Alone judges the model that each party would have without the others, trained for the same number
// of rounds on its own rows only, with neither noise nor clipping of updates. A training by records
// draws each record as often as in the sum. A party whose training diverges is judged by the last
// model before.
//
// It fails with a [job.ConfigError] for a world that Run refuses or in which time is virtual, and
// with ctx.Err() if ctx ends.
func Alone(ctx context.Context, settled *job.Settled, w World) ([]learning.Matrix, error) {
	if err := w.notTimed(); err != nil {
		return nil, err
	}
	o, err := newSetting(settled, w)
	if err != nil {
		return nil, err
	}
	all := make([]learning.Matrix, len(o.Parties))
	for i := range all {
		x, err := newCourse(ctx, o.alone(i))
		if err != nil {
			return nil, err
		}
		err = x.train(ctx, nil)
		x.rounds.erase()
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case errors.Is(err, learning.ErrDiverged), errors.Is(err, aggregation.ErrNotFinite):
		case err != nil:
			return nil, err
		}
		if all[i], err = learning.Evaluate(x.learned.Model, x.learned.Weights, x.Test); err != nil {
			return nil, err
		}
	}
	return all, nil
}
