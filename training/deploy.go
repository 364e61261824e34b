package training

import (
	"context"

	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/learning"
)

// This file holds what a Coordinator and a Participant of the root package take. The model that
// they send holds all of a standing, and what the server's rule remembers: anyone who has it can
// go on.

// deployed returns the training of a job that those types run.
func deployed(s *job.Settled) (*Training, error) {
	t, err := Of(s)
	if err != nil {
		return nil, err
	}
	t.form = s.Tensors()
	return t, nil
}

// First returns a Coordinator's Model. It fails with a [job.ConfigError] if the job declares no
// training that this package has.
func First(s *job.Settled) ([]float64, error) {
	t, err := deployed(s)
	if err != nil {
		return nil, err
	}
	return t.sent(t.First()), nil
}

// Apply returns a Coordinator's Apply, which goes on from First. It keeps nothing from one call to
// the next. Apply fails as First does, and the function that it returns with [ErrStanding] and the
// errors of aggregation.
//
// For a job whose parties bring vectors of their own it does the server's part: its rule, on means
// with their weights and mask. Then it keeps what the rule remembers for as long as the process
// lasts: see [Remembers].
func Apply(s *job.Settled) (func(d job.Done[float64]) ([]float64, error), error) {
	if !s.Trains() {
		return served(s)
	}
	t, err := deployed(s)
	if err != nil {
		return nil, err
	}
	return func(d job.Done[float64]) ([]float64, error) {
		before, err := t.Standing(d.Model)
		if err != nil {
			return nil, err
		}
		before.Public, before.Number = d.Broadcast, d.Number
		optimizer := t.options.Server
		if err := optimizer.Resume(before.Moments); err != nil {
			return nil, err
		}
		after, err := t.Advance(before, &optimizer, d.Sum.Values(), d.Parties)
		if err != nil {
			return nil, err
		}
		after.Moments = optimizer.Moments()
		return t.sent(after), nil
	}, nil
}

// Remembers reports whether the server's rule of a job goes on from what it did in earlier rounds.
func Remembers(s *job.Settled) bool {
	return Optimizer(s.Job()).Rule != aggregation.RuleFedAvg
}

// served is Apply for vectors of the parties' programs.
func served(s *job.Settled) (func(d job.Done[float64]) ([]float64, error), error) {
	j := s.Job()
	if j.Privacy.ClipQuantile > 0 {
		return nil, noQuantile(j)
	}
	o := Options{Mask: mask(j)}
	rule := *Optimizer(j)
	return func(d job.Done[float64]) ([]float64, error) {
		total := job.Total{Mean: d.Mean, Parties: s.Counts(d.Parties)}
		if total.Mean == nil || !s.Alone() {
			var err error
			total, err = s.Decode(d.Broadcast, d.Sum.Values(), s.Counts(d.Parties))
			if err != nil {
				return nil, err
			}
		}
		l := Learner{Options: o, Weights: d.Model, Optimizer: rule}
		next, _, err := l.Next(total)
		if err == nil {
			rule = l.Optimizer
		}
		return next, err
	}, nil
}

// noQuantile says that the clip of a job that is not simulated follows nothing.
func noQuantile(j *job.Job) error {
	return j.Lacks(job.Machines, "leave it out")
}

// Submit returns a Participant's Work for the party of a number in the roster, on its rows. kept
// is where it keeps control variates, if its rule has any; nil: in memory, and a party that is
// started again goes on without them. Submit fails as First does, and if the rows are not of the
// job's form; the function that it returns fails as [Party.Message] does.
func Submit(s *job.Settled, party int, rows *learning.Dataset, kept Store) (
	func(ctx context.Context, r job.Round[float64]) (job.Update[float64], error), error,
) {
	t, err := deployed(s)
	if err != nil {
		return nil, err
	}
	p, err := t.Party(party, rows, kept)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, r job.Round[float64]) (job.Update[float64], error) {
		at, err := t.Standing(r.Model)
		if err != nil {
			return job.Update[float64]{}, err
		}
		at.Number = r.Number
		return p.Message(ctx, at)
	}, nil
}

// sent returns a standing's model in the type that the job says. Moments stay as they are.
func (t *Training) sent(s *Standing) []float64 {
	model := t.Flat(s)
	if !t.narrow {
		return model
	}
	for i := range len(model) - len(s.Moments)*len(s.Model) {
		model[i] = float64(float32(model[i]))
	}
	return model
}
