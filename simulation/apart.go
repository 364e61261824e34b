package simulation

import (
	"context"
	"slices"

	"github.com/hushsum/hushsum"
	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/protocol"
)

// Apart is the training of a run taken apart, for those who carry its sums themselves,
// such as a server and parties on machines of their own: what a party submits, and what
// follows from a sum. It keeps nothing from one call to the next and is safe for
// concurrent use. With the same parties in every sum and without noise its models are
// those of [Run] bit for bit.
type Apart struct {
	options *Options
	lanes   *lanes
	layout  masking.Layout
}

// Standing is what a training has come to, and all that parties are told of it.
type Standing struct {
	Model []float64
	// Round is that of the training, from 1, and Exchange which of its sums is next: 1, or
	// 2 of rules that sum gradients first.
	Round, Exchange int
	Variate         []float64 // SCAFFOLD's c, of rules that store control variates
	// Counted is for each party the round of the last sum that it was in, with such
	// variates: it is how a party learns which of its own hold.
	Counted  []int
	Gradient []float64 // mean of the parties', in exchange 2
	// Public is randomness that nobody could choose, fresh for every sum; with noise.
	Public [32]byte
}

// Apart settles a training of options whose Sum is Private. Of Parties only the number
// counts, and with Submit the party's own rows; of Test nothing does. Session is the
// configuration of the sessions but for its Layout. It fails with a [ConfigError].
func (o Options) Apart(session protocol.Config) (*Apart, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	switch {
	case o.Sum != Private || o.Oneshot != nil:
		return nil, bad("Sum", "use Private, without Oneshot",
			"only pairwise private sums are taken apart")
	case o.Clip.Factor > 0 || o.Clip.Adaptive != nil:
		return nil, bad("Clip", "use a fixed norm", "it follows the parties' norms")
	}
	a := &Apart{options: o.settled()}
	var err error
	if a.lanes, err = a.options.newLanes(session); err != nil {
		return nil, err
	}
	a.layout, err = a.lanes.layout()
	return a, err
}

// Layout returns the segments of a submission, the same for all exchanges.
func (a *Apart) Layout() masking.Layout { return slices.Clone(a.layout) }

// Settled returns what accounts for the noise, nil if there is none.
func (a *Apart) Settled() *hushsum.Settled {
	if a.lanes.noisy == nil {
		return nil
	}
	return a.lanes.noisy.settled
}

// Exchanges returns how many sums a round of the training takes.
func (a *Apart) Exchanges() int { return a.options.Client.Sums() }

// Stored reports whether parties keep control variates.
func (a *Apart) Stored() bool { return a.options.Client.Stored() }

// First returns the standing before the first sum.
func (a *Apart) First() *Standing {
	s := &Standing{Model: a.options.Model.Init(a.options.Seed), Round: 1, Exchange: 1}
	if a.Stored() {
		s.Variate = make([]float64, len(s.Model))
		s.Counted = make([]int, len(a.options.Parties))
	}
	if a.Exchanges() > 1 {
		s.Gradient = make([]float64, len(s.Model))
	}
	return s
}

// with returns the lanes of a sum.
func (a *Apart) with(s *Standing) *lanes {
	l := *a.lanes
	if l.noisy != nil {
		noisy := *l.noisy
		noisy.public = s.Public
		l.noisy = &noisy
	}
	return &l
}

// learner returns one that stands where s does.
func (a *Apart) learner(s *Standing) *learner {
	l := newLearner(a.options)
	l.Weights, l.Variate = s.Model, s.Variate
	return l
}

// Submit has party i train on its rows and returns its submission. own is its control
// variate, nil for zero, and next what that becomes if the submission is counted. It
// fails with what training fails with, and with the errors of aggregation.
func (a *Apart) Submit(
	ctx context.Context, s *Standing, i int, own []float64,
) (values [][]uint64, next []float64, err error) {
	l := a.learner(s)
	if a.Stored() {
		l.Variates[i] = own
	}
	lanes := a.with(s)
	if s.Exchange < a.Exchanges() {
		gradient, err := l.Gradient(i)
		if err != nil {
			return nil, nil, err
		}
		values, err = lanes.encode(s.Round, job.Message{
			Vector:  gradient,
			Samples: 1,
			Signed:  make([]float64, len(gradient)),
		})
		return values, nil, err
	}
	w, err := l.TakePart(ctx, s.Round, i, s.Gradient)
	if err != nil {
		return nil, nil, err
	}
	values, err = lanes.encode(s.Round, w.Message)
	return values, w.Own, err
}

// Advance returns the standing that follows from a sum of the submissions of some
// parties; Public is left to the caller. optimizer is the server's rule, which
// remembers. The sum is cut to its rings.
func (a *Apart) Advance(
	s *Standing, optimizer *aggregation.Optimizer, sum [][]uint64, included []int,
) (*Standing, error) {
	total, err := a.with(s).decode(s.Round, sum, len(included))
	if err != nil {
		return nil, err
	}
	after := *s
	if s.Exchange < a.Exchanges() {
		after.Gradient, after.Exchange = total.Mean, s.Exchange+1
		return &after, nil
	}
	l := a.learner(s)
	l.Optimizer = *optimizer
	if after.Model, _, err = l.Next(total); err != nil {
		return nil, err
	}
	for _, v := range after.Model {
		if !finite(v) {
			return nil, aggregation.ErrNotFinite
		}
	}
	if total.Control != nil {
		if after.Variate, err = aggregation.AdvanceVariate(s.Variate, total.Control, len(included),
			len(a.options.Parties)); err != nil {
			return nil, err
		}
		after.Counted = slices.Clone(s.Counted)
		for _, i := range included {
			after.Counted[i] = s.Round
		}
	}
	*optimizer = l.Optimizer
	after.Round, after.Exchange = s.Round+1, 1
	if after.Gradient != nil {
		after.Gradient = make([]float64, len(s.Model))
	}
	return &after, nil
}
