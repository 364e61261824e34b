package simulation

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/internal/cores"
	"github.com/hushsum/hushsum/internal/fault"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/learning"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/training"
)

// run is the state of a run.
type run struct {
	*setting
	learned *learner // what the sums teach
	beside  *learner // the same in the clear, nil without
	encoded bool     // sums are not in the clear
	updates *summer
	// With rules of two exchanges, sums of gradients come before those of updates.
	gradients *summer
	aligned   aggregation.Mean
	account   *account
}

// Run runs the training of a job in a world, which [Settle] makes. It calls report, if that is not
// nil, after every round. A round with too few parties is lost, which is not a failure: the next
// round begins from the same model. A run with a budget ends before the round that would overspend,
// which is not a failure either, even if that round is the first: see Result.Stopped. Run fails,
// before it begins, with a [job.ConfigError].
//
// A run that fails later, or that ctx ends, fails with a [RoundError], which has the rounds done
// until then and unwraps to the reason, such as context.Canceled, learning.ErrDiverged or
// aggregation.ErrSaturated. It ends within a few steps of training; the round that was under way is
// lost.
func Run(
	ctx context.Context, s *job.Settled, w World, report func(RoundResult),
) (*Result, error) {
	o, err := newSetting(s, w)
	if err != nil {
		return nil, err
	}
	x, out, err := newRun(o)
	if err != nil {
		return nil, err
	}
	defer x.erase()
	if err := x.train(ctx, out, report); err != nil {
		var failed *RoundError
		if errors.As(err, &failed) {
			failed.Done = out
		}
		return nil, err
	}
	return out, nil
}

// train runs all rounds, and puts into out what it has done, however it ends.
func (x *run) train(ctx context.Context, out *Result, report func(RoundResult)) (err error) {
	if out.Server, out.Public, err = x.account.spent(); err != nil {
		return failure(0, -1, err)
	}
	if err := x.checkData(ctx); err != nil {
		return err
	}
	if out.Setup, err = x.setUp(ctx); err != nil {
		return failure(0, -1, err)
	}
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
		err = x.play(ctx, &r)
		x.models(out)
		if err != nil {
			return failure(round, -1, err)
		}
		out.Rounds = append(out.Rounds, r)
		if report != nil {
			r.Model = out.Model
			report(r)
		}
	}
	if n := len(out.Rounds); n > 0 && out.Rounds[n-1].Test == nil {
		if err := x.judge(&out.Rounds[n-1]); err != nil {
			return failure(n, -1, err)
		}
	}
	return nil
}

// newRun makes the first models and the sessions.
func newRun(o *setting) (*run, *Result, error) {
	x := &run{setting: o, learned: o.newLearner(), encoded: !o.inClear(),
		updates: &summer{setting: o}}
	if o.compares() {
		x.beside = o.newBeside()
	}
	out := &Result{}
	x.models(out)
	if o.Client.Sums() > 1 {
		x.aligned = o.plainMean(o.Model.NumParams())
		x.gradients = &summer{setting: o}
	}
	if !x.encoded {
		return x, out, nil
	}
	var err error
	if m := o.noise(); m != nil {
		x.updates.blank = func() ([][]uint64, error) { return m.Blank(nil) }
		if x.account, err = newAccount(o); err != nil {
			return nil, nil, err
		}
	}
	out.Layout = o.settled.Layout()
	if !o.messages() {
		return x, out, nil
	}
	if x.updates.private, err = o.newSums(0, out.Layout, o.shown); err != nil || x.gradients == nil {
		return x, out, err
	}
	// Sums of gradients have no noise.
	layout, err := x.aligned.Layout()
	if err == nil {
		x.gradients.private, err = o.newSums(1, layout, nil)
	}
	return x, out, err
}

// newSums makes the sums of a number by message: by a session, or by a committee.
func (o *setting) newSums(
	number int, layout masking.Layout, progress func(round, done int),
) (privateSums, error) {
	if o.job.Oneshot() {
		return newOneshotSums(o, number, layout, progress)
	}
	return o.newSession(o.session(number, layout, 0), 0, progress), nil
}

// shown passes progress on.
func (o *setting) shown(round, done int) {
	if o.Progress != nil {
		o.Progress(round, done, len(o.Parties))
	}
}

// models puts the models into the result, and what a committee did for them.
func (x *run) models(out *Result) {
	if s, ok := x.updates.private.(*oneshotSums); ok {
		out.Committee = s.committee
		out.Committee.BytesDown /= int64(s.committee.Members)
		out.Committee.Work /= time.Duration(s.committee.Members)
	}
	out.Model = x.learned.Weights
	if x.beside != nil {
		out.Clear = x.beside.Weights
	}
}

// summers returns the summers of the run.
func (x *run) summers() []*summer {
	if x.gradients == nil {
		return []*summer{x.updates}
	}
	return []*summer{x.updates, x.gradients}
}

func (x *run) erase() {
	for _, s := range x.summers() {
		s.erase()
	}
}

func (x *run) setUp(ctx context.Context) (cost Cost, err error) {
	for _, s := range x.summers() {
		one, err := s.setUp(ctx)
		if err != nil {
			return cost, err
		}
		cost.add(one)
	}
	return cost, nil
}

// checkData finds rows that do not fit the model, with noise those of parties too,
// while nothing is spent yet.
func (x *run) checkData(ctx context.Context) error {
	if _, err := learning.Evaluate(x.Model, x.learned.Weights, x.Test); err != nil {
		return &job.ConfigError{Path: "Test",
			Reason: "it does not match the model: " + fault.Reason(err),
			Err:    err}
	}
	if x.noise() == nil {
		return nil
	}
	return cores.Each(ctx, len(x.Parties), func(i int) error {
		if _, err := x.Model.Loss(x.learned.Weights, x.Parties[i]); err != nil {
			return failure(0, i, err)
		}
		return nil
	}, nil)
}

// learners returns those that train in a round, the one of the sums first.
func (x *run) learners() []*learner {
	if x.beside == nil {
		return []*learner{x.learned}
	}
	return []*learner{x.learned, x.beside}
}

// play runs one round and moves the models.
func (x *run) play(ctx context.Context, r *RoundResult) error {
	r.Exchanges = x.Client.Sums()
	for _, l := range x.learners() {
		l.Number = uint64(r.Round)
	}
	means, err := x.meanGradients(ctx, r)
	if err != nil {
		return err
	}
	if r.Lost == nil {
		if err := x.sumUpdates(ctx, r, means); err != nil {
			return err
		}
	} else if err := x.updates.skip(); err != nil {
		return err
	}
	if x.beside != nil {
		for j, w := range x.learned.Weights {
			r.MaxAbsDiff = max(r.MaxAbsDiff, math.Abs(w-x.beside.Weights[j]))
		}
	}
	if r.Round%x.job.World.EvaluateEvery == 0 || r.Round == x.Rounds {
		return x.judge(r)
	}
	return nil
}

// judge evaluates the models.
func (x *run) judge(r *RoundResult) error {
	judged := []**learning.Matrix{&r.Test, &r.Clear}
	for k, l := range x.learners() {
		matrix, err := learning.Evaluate(l.Model, l.Weights, x.Test)
		if err != nil {
			return err
		}
		*judged[k] = &matrix
	}
	return nil
}

// meanGradients are the first sums of rules with two exchanges, one for each learner;
// nil for other rules.
func (x *run) meanGradients(ctx context.Context, r *RoundResult) ([][]float64, error) {
	learners := x.learners()
	means := make([][]float64, len(learners))
	if x.gradients == nil {
		return means, nil
	}
	found := make([][][]float64, len(learners)) // by learner and party
	for k := range found {
		found[k] = make([][]float64, len(x.Parties))
	}
	out, err := x.sum(ctx, x.gradients, r,
		func(_ context.Context, i int) (made submission, err error) {
			if found[0][i], err = x.learned.Gradient(i); err != nil {
				return made, err
			}
			if x.encoded {
				made.values, err = x.aligned.Encode(found[0][i])
			}
			if x.beside != nil && err == nil {
				made.aside, err = x.timed(func() (err error) {
					found[1][i], err = x.beside.Gradient(i)
					return err
				})
			}
			return made, err
		})
	if err != nil || out.lost != nil {
		return nil, err
	}
	for k := range means {
		means[k] = meanOf(out.included, nil, func(i int) []float64 { return found[k][i] })
	}
	if !x.encoded {
		return means, nil
	}
	layout, err := x.aligned.Layout()
	if err != nil {
		return nil, err
	}
	cut(out.sum[0], layout[0].Bits)
	means[0], err = x.aligned.Decode(out.sum, len(out.included))
	return means, err
}

// sum has the parties submit, and says in r what it cost and whether it was lost.
func (x *run) sum(
	ctx context.Context, s *summer, r *RoundResult, submit submitter,
) (outcome, error) {
	out, err := s.sum(ctx, r.Round, x.learned.Weights, submit)
	r.Cost.add(out.cost)
	r.Lost = out.lost
	return out, err
}

// sumUpdates has the parties train and submit, and moves the models.
func (x *run) sumUpdates(ctx context.Context, r *RoundResult, means [][]float64) error {
	learners := x.learners()
	works := make([][]training.Work, len(learners)) // by learner and party
	for k := range works {
		works[k] = make([]training.Work, len(x.Parties))
	}
	out, err := x.sum(ctx, x.updates, r,
		func(ctx context.Context, i int) (made submission, err error) {
			made.train, err = x.timed(func() (err error) {
				works[0][i], err = x.learned.TakePart(ctx, r.Round, i, means[0])
				return err
			})
			works[0][i].Trained = nil
			if x.Band != nil && err == nil {
				x.learned.Begun[i] = works[0][i].Begun
			}
			if x.encoded && err == nil {
				made.values, err = x.encode(r.Round, works[0][i].Message)
				works[0][i].Message = job.Update[float64]{} // what the server must not see is not kept
			}
			if x.beside != nil && err == nil {
				made.aside, err = x.timed(func() (err error) {
					works[1][i], err = x.beside.TakePart(ctx, r.Round, i, means[1])
					return err
				})
			}
			return made, err
		})
	if err != nil {
		return err
	}
	r.Dropped, r.Refused = out.dropped, out.refused
	for i := range works[0] {
		r.Largest = max(r.Largest, works[0][i].Largest)
	}
	if out.lost != nil {
		return nil
	}
	totals, err := x.totals(r, out, works)
	if err != nil {
		return err
	}
	r.Parties, r.Included, r.Samples = len(out.included), out.included, totals[0].Samples
	if r.Samples == 0 {
		for _, i := range out.included {
			r.Samples += x.Parties[i].Len()
		}
	}
	if err := x.learned.move(r, totals[0], out.included, works[0]); err != nil {
		return err
	}
	if x.beside != nil && len(x.beside.Beginning(out.included)) > 0 {
		return x.beside.move(&RoundResult{Round: r.Round}, totals[1], out.included, works[1])
	}
	return nil
}

// totals returns what the sum says, and what one in the clear would.
func (x *run) totals(r *RoundResult, out outcome, works [][]training.Work) ([]job.Total, error) {
	totals := make([]job.Total, len(works))
	for k, l := range x.learners() {
		var err error
		switch {
		case k > 0 && len(l.Beginning(out.included)) == 0: // of secret coins, which drew nobody
		case k > 0 || !x.encoded:
			totals[k], err = l.total(out.included, works[k])
		default:
			start := x.Now()
			if totals[k], err = x.decode(r.Round, out.sum, out.summed); err == nil {
				l.Decode(&totals[k])
			}
			if x.messages() {
				r.Cost.Server += x.Now().Sub(start)
			}
		}
		if err != nil {
			return nil, err
		}
	}
	return totals, nil
}

// timed returns how long work took.
func (x *run) timed(work func() error) (time.Duration, error) {
	start := x.Now()
	err := work()
	return x.Now().Sub(start), err
}
