package simulation

import (
	"context"
	"errors"
	"time"

	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/learning"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/protocol"
)

// stepsAtOnce is after how many gradient steps a party looks whether the run is
// to end.
const stepsAtOnce = 50

// run is the state of a run: how it sums, and the models.
type run struct {
	summing
	now     func() time.Time
	options Options
	report  func(Round)
	model   learning.Logistic
	average aggregation.FedAvg  // without noise
	noisy   *noisy              // with noise, else nil
	budget  *budget             // with noise, else nil
	rows    []*learning.Dataset // by party
	summary *Summary
}

// Run trains. It calls report, if that is not nil, after every round. A round that
// has too few parties to unmask anything, with recovery, is lost and no failure:
// the next one begins from the same model. A run with a privacy budget ends before
// the round that would overspend, which is no failure either: see Summary.Stopped.
// Run fails, before it begins, with an [OptionError] or with learning.ErrTooFewRows if Train
// has not enough rows for all parties.
//
// A run that fails later, or that ctx ends, returns what was done until then
// beside the error: a [RoundError], which unwraps to the reason, such as
// context.Canceled, learning.ErrDiverged or aggregation.ErrSaturated. It ends
// within a few steps of training; the round that was under way is lost.
func Run(ctx context.Context, options Options, report func(Round)) (*Summary, error) {
	r, err := newRun(options, report)
	if err != nil {
		return nil, err
	}
	defer r.erase()
	if r.summary.Server, r.summary.Public, err = r.budget.spent(); err != nil {
		return r.summary, failure(0, -1, err)
	}
	if err := r.checkData(); err != nil {
		return r.summary, err
	}
	if r.summary.Setup, err = r.setUp(ctx); err != nil {
		return r.summary, failure(0, -1, err)
	}
	for round := 1; round <= r.options.Rounds; round++ {
		server, public, err := r.budget.spend()
		if errors.As(err, &r.summary.Stopped) {
			return r.summary, nil
		}
		if err != nil {
			return r.summary, failure(round, -1, err)
		}
		r.summary.Server, r.summary.Public = server, public
		outcome, err := r.playRound(ctx, round)
		if err != nil {
			return r.summary, failure(round, -1, err)
		}
		outcome.Server, outcome.Public = server, public
		r.summary.Rounds = append(r.summary.Rounds, outcome)
		r.summary.Committee = r.committee()
		if r.report != nil {
			r.report(outcome)
		}
	}
	return r.summary, nil
}

// checkData finds rows that do not fit the model, with noise those of parties too,
// while nothing is spent yet.
func (r *run) checkData() error {
	if _, err := r.model.Evaluate(r.summary.Private, r.options.Test); err != nil {
		return &OptionError{Option: "Test", Reason: "it does not go with the model: " + err.Error(), Err: err}
	}
	if r.noisy == nil {
		return nil
	}
	for i, rows := range r.rows {
		if _, err := r.model.Loss(r.summary.Private, rows); err != nil {
			return failure(0, i, err)
		}
	}
	return nil
}

// committee returns what the members did until now.
func (r *run) committee() Committee {
	s, ok := r.summing.(*oneshotSums)
	if !ok {
		return Committee{}
	}
	c := s.committee
	c.BytesDown /= int64(c.Members)
	c.Work /= time.Duration(c.Members)
	return c
}

// failure names the party, or −1, with which a round failed.
func failure(round, party int, err error) error {
	if named, ok := err.(*RoundError); ok {
		return named
	}
	return &RoundError{Round: round, Party: party, Err: err}
}

// newRun checks the options, deals the rows and makes the session.
func newRun(options Options, report func(Round)) (*run, error) {
	if err := options.Validate(); err != nil {
		return nil, err
	}
	if err := options.validateData(); err != nil {
		return nil, err
	}
	r := &run{
		options: options,
		report:  report,
		model:   learning.Logistic{Features: options.Train.Features, Lambda: options.Lambda},
	}
	layout, err := r.encoding()
	if err != nil {
		return nil, err
	}
	if r.rows, err = options.Train.PartitionIID(options.Clients, options.RowsPerClient, options.Seed); err != nil {
		return nil, err
	}
	config := protocol.Config{Layout: layout, Recovery: options.Recovery, Colluders: options.Colluders}
	drops := newDropOuts(&options)
	if r.now = options.Now; r.now == nil {
		r.now = func() time.Time { return time.Time{} }
	}
	if options.Oneshot != nil {
		r.summing, err = newOneshotSums(&options, layout, r.noisy, drops)
	} else {
		r.summing, err = newSession(options.Clients, config, drops, options.Now, options.Progress)
	}
	if err != nil {
		return nil, err
	}
	r.summary = &Summary{
		Layout:  layout,
		Private: make([]float64, r.model.NumParams()),
		Clear:   make([]float64, r.model.NumParams()),
	}
	return r, nil
}

// encoding settles how parties encode what they submit.
func (r *run) encoding() (layout masking.Layout, err error) {
	dimension := r.model.NumParams()
	r.average = r.options.FedAvg(dimension)
	if r.noisy, err = newNoisy(&r.options, dimension); err != nil {
		return nil, err
	}
	if r.noisy != nil {
		if r.budget, err = newBudget(r.options.Noise, r.options.Clients, r.noisy.Round()); err != nil {
			return nil, err
		}
		return r.noisy.Encoder.Layout()
	}
	return r.average.Layout()
}
