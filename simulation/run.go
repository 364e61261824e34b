package simulation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/learning"
)

// course is a training under way, whether its rounds take virtual time or none.
type course struct {
	*setting
	ctx     context.Context
	learned *learner // what the sums teach
	account *account // nil: rounds are not charged one by one
	out     *Result
	rounds  rounds
	noting  sync.Mutex // parties train on several cores
}

// rounds are those of a world: without time ([plain]) or in virtual time ([timed]).
type rounds interface {
	setUp(ctx context.Context) (Cost, error)
	// play has the parties train and submit, sums, and moves the models. With errOver the job ends
	// before the round.
	play(ctx context.Context, r *RoundResult) error
	judge(r *RoundResult) error
	conclude() error // says what protects the parties
	erase()
}

// errOver says that no further round is held.
var errOver = errors.New("simulation: the job is over")

// Run runs the training of a job in a world, which [Settle] makes. It calls report, if that is not
// nil, after every round. A round with too few parties is lost, which is not a failure: the next
// round begins from the same model. A run with a budget ends before the round that would overspend,
// which is not a failure either, even if that round is the first: see Result.Stopped. Run fails,
// before it begins, with a [job.ConfigError] and no result.
//
// A run that fails later, or that ctx ends, returns the rounds done until then and a [RoundError],
// which unwraps to the reason, such as context.Canceled, learning.ErrDiverged or
// aggregation.ErrSaturated, or a [job.ConfigError] that names the field to change. It ends within a
// few steps of training; the round that was under way is lost.
func Run(
	ctx context.Context, s *job.Settled, w World, report func(RoundResult),
) (*Result, error) {
	o, err := newSetting(s, w)
	if err != nil {
		return nil, err
	}
	x, err := newCourse(ctx, o)
	if err != nil {
		return nil, err
	}
	defer x.rounds.erase()
	begun := x.Now()
	err = x.train(ctx, report)
	x.out.Took = x.Now().Sub(begun)
	return x.out, err
}

// newCourse makes the first models, and what the sums need.
func newCourse(ctx context.Context, o *setting) (x *course, err error) {
	x = &course{setting: o, ctx: ctx, learned: o.newLearner(), out: &Result{Job: o.job}}
	x.out.Model, x.out.Weights = x.learned.Weights, len(x.learned.Weights)
	if caution := o.job.LargeDelta(); caution != "" && o.settled != nil {
		x.note("%s", caution)
	}
	if o.federation != nil {
		x.rounds, err = newTimed(x)
	} else {
		x.rounds, err = newPlain(x)
	}
	return x, err
}

// train runs all rounds, and puts into the result what it has done, however it ends.
func (x *course) train(ctx context.Context, report func(RoundResult)) (err error) {
	out := x.out
	if out.Server, out.Public, err = x.account.spent(); err != nil {
		return failure(0, -1, err)
	}
	if out.Setup, err = x.rounds.setUp(ctx); err != nil {
		return failure(0, -1, err)
	}
	defer func() {
		if ended := x.conclude(); err == nil && ended != nil {
			err = failure(len(out.Rounds), -1, ended)
		}
	}()
	for round := 1; round <= x.Rounds; round++ {
		server, public, err := x.account.spend()
		if errors.As(err, &out.Stopped) {
			break
		}
		if err != nil {
			return failure(round, -1, err)
		}
		out.Server, out.Public = server, public
		r := RoundResult{Round: round, Server: server, Public: public}
		err = x.rounds.play(ctx, &r)
		if errors.Is(err, errOver) {
			break
		}
		out.Model = x.learned.Weights
		if err == nil && (round%max(1, x.job.World.EvaluateEvery) == 0 || round == x.Rounds) {
			err = x.rounds.judge(&r)
		}
		if err != nil {
			return failure(round, -1, err)
		}
		out.Rounds = append(out.Rounds, r)
		if report != nil {
			r.Model = out.Model
			report(r)
		}
	}
	return nil
}

// conclude judges the last model, and works out what protects the parties.
func (x *course) conclude() error {
	if n := len(x.out.Rounds); n > 0 && x.out.Rounds[n-1].Test == nil {
		if err := x.rounds.judge(&x.out.Rounds[n-1]); err != nil {
			return err
		}
	}
	return x.rounds.conclude()
}

// score evaluates a model on the test rows.
func (x *course) score(weights []float64) (*learning.Matrix, error) {
	m, err := learning.Evaluate(x.Model, weights, x.Test)
	return &m, err
}

// note keeps a remark, once.
func (x *course) note(format string, a ...any) {
	x.noting.Lock()
	defer x.noting.Unlock()
	if text := fmt.Sprintf(format, a...); !slices.Contains(x.out.Notes, text) {
		x.out.Notes = append(x.out.Notes, text)
	}
}
