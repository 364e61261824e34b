package simulation

import (
	"context"
	"math"
	"time"

	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/internal/cores"
	"github.com/hushsum/hushsum/internal/fault"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/training"
)

// plain are rounds in which no time passes: one sum after the other, on all cores.
type plain struct {
	*course
	beside  *learner // what is learned in the clear, nil without
	encoded bool     // sums are not in the clear
	updates *summer
	// With rules of two exchanges, sums of gradients come before those of updates.
	gradients *summer
	aligned   aggregation.Mean
}

// newPlain makes the sessions.
func newPlain(x *course) (*plain, error) {
	o := x.setting
	p := &plain{course: x, encoded: !o.inClear(), updates: &summer{setting: o}}
	for _, d := range o.Parties {
		x.out.rows = append(x.out.rows, d.Len())
	}
	if o.compares() {
		p.beside = o.newBeside()
		x.out.Clear = p.beside.Weights
	}
	if o.Client.Sums() > 1 {
		p.aligned = o.plainMean(o.Model.NumParams())
		p.gradients = &summer{setting: o}
	}
	if !p.encoded {
		return p, nil
	}
	var err error
	if m := o.noise(); m != nil {
		p.updates.blank = func() ([][]uint64, error) { return m.Blank(nil) }
		if x.account, err = newAccount(o); err != nil {
			return nil, err
		}
	}
	x.out.Layout = o.settled.Layout()
	if !o.messages() {
		return p, nil
	}
	p.updates.private, err = o.newSums(0, x.out.Layout, o.shown)
	if err != nil || p.gradients == nil {
		return p, err
	}
	// Sums of gradients have no noise.
	layout, err := p.aligned.Layout()
	if err == nil {
		p.gradients.private, err = o.newSums(1, layout, nil)
	}
	return p, err
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

// conclude says what protects the parties, and what a committee did for them.
func (x *plain) conclude() error {
	if s, ok := x.updates.private.(*oneshotSums); ok {
		x.out.Committee = s.committee
		x.out.Committee.BytesDown /= int64(s.committee.Members)
		x.out.Committee.Work /= time.Duration(s.committee.Members)
	}
	if m := x.noise(); m != nil && len(x.out.Rounds) > 0 {
		x.out.Privacy = []Promise{{Party: "each " + x.job.Privacy.Unit, Asked: x.job.Privacy.Epsilon,
			Certified: x.out.Server, Honest: m.Vector.Shares.MinHonest}}
	}
	return nil
}

// summers returns the summers of the run.
func (x *plain) summers() []*summer {
	if x.gradients == nil {
		return []*summer{x.updates}
	}
	return []*summer{x.updates, x.gradients}
}

func (x *plain) erase() {
	for _, s := range x.summers() {
		s.erase()
	}
}

func (x *plain) setUp(ctx context.Context) (cost Cost, err error) {
	if err := x.checkData(ctx); err != nil {
		return cost, err
	}
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
func (x *plain) checkData(ctx context.Context) error {
	if _, err := x.score(x.learned.Weights); err != nil {
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
func (x *plain) learners() []*learner {
	if x.beside == nil {
		return []*learner{x.learned}
	}
	return []*learner{x.learned, x.beside}
}

// play runs one round and moves the models.
func (x *plain) play(ctx context.Context, r *RoundResult) error {
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
		x.out.Clear = x.beside.Weights
		for j, w := range x.learned.Weights {
			r.MaxAbsDiff = max(r.MaxAbsDiff, math.Abs(w-x.beside.Weights[j]))
		}
	}
	return nil
}

// judge evaluates the models.
func (x *plain) judge(r *RoundResult) (err error) {
	if r.Test, err = x.score(x.learned.Weights); err != nil {
		return err
	}
	if x.beside != nil {
		r.Clear, err = x.score(x.beside.Weights)
	}
	return err
}

// meanGradients are the first sums of rules with two exchanges, one for each learner;
// nil for other rules.
func (x *plain) meanGradients(ctx context.Context, r *RoundResult) ([][]float64, error) {
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
func (x *plain) sum(
	ctx context.Context, s *summer, r *RoundResult, submit submitter,
) (outcome, error) {
	out, err := s.sum(ctx, r.Round, x.learned.Weights, submit)
	r.Cost.add(out.cost)
	r.Lost = out.lost
	return out, err
}

// sumUpdates has the parties train and submit, and moves the models.
func (x *plain) sumUpdates(ctx context.Context, r *RoundResult, means [][]float64) error {
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
func (x *plain) totals(r *RoundResult, out outcome, works [][]training.Work) ([]job.Total, error) {
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
func (x *plain) timed(work func() error) (time.Duration, error) {
	start := x.Now()
	err := work()
	return x.Now().Sub(start), err
}
