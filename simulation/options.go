package simulation

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/learning"
	"github.com/hushsum/hushsum/protocol"
)

// MaxClients is the most parties of a run. Every pair of parties shares keys, so
// that set-up takes time and memory in proportion to the square.
const MaxClients = 5000

// Options says what to run. The zero value is of no use: begin with [Defaults]
// and set Train and Test.
type Options struct {
	// Train is dealt to the parties, at random by Seed and without overlap, and
	// Test is what models are judged on. Both have labels 0 and 1 and the same
	// features.
	Train, Test *learning.Dataset

	Clients       int // parties, from 2 to MaxClients
	RowsPerClient int // training rows of each, at least 1
	Rounds        int // at least 1
	LocalSteps    int // gradient steps of a party in a round, at least 1

	Rate   float64 // of gradient descent, above 0 and finite
	Lambda float64 // L2 regularisation, see learning.Logistic; at least 0 and finite
	Seed   uint64  // deals the rows and draws who drops out

	// Range and FractionBits are those of aggregation.FedAvg. A party whose
	// weights leave ±Range ends the run with aggregation.ErrSaturated.
	Range        float64
	FractionBits int

	// Recovery lets a round survive parties that drop out of it; see
	// protocol.Recovery, whose zero value will do. Nil: every party must submit in
	// every round. On the complete graph bytes and memory grow with the square of
	// Clients.
	Recovery *protocol.Recovery
	// Colluders is how many parties may pool what they know with the server, with
	// Recovery; see protocol.Config.
	Colluders int
	// Drop is the fraction of the parties, from 0 to 1, that drop out of each round
	// and come back for the next: DropOuts of them, drawn by Seed, each at a random
	// one of three moments: after it was told of the round and before it trains and
	// submits; after that and before it signs who the survivors are; or after that
	// and before it reveals its shares. It takes Recovery.
	Drop float64

	// Oneshot has a committee help with the sums, to which parties send one message; see
	// there. Nil: pairwise masks, by package protocol.
	Oneshot *Oneshot

	// Noise adds noise to every sum, for differential privacy. Nil: none.
	Noise *Noise

	// Now is the clock that durations are measured with, such as time.Now; it is
	// called from several goroutines. Nil: all durations are 0.
	Now func() time.Time

	// Progress, if not nil, is called while parties work, never concurrently:
	// done of all parties have done their part of the round (0: set-up). With
	// Recovery a round has three parts, and done counts their thirds together.
	Progress func(round, done int)
}

// Defaults returns options for 100 parties of 200 rows, 20 rounds of 50 local
// steps, which suit both data sets of package learning:
//
//   - Rate 2 and Lambda 1e-4. Rows have a norm of at most √2, so that descent is
//     certain up to a rate of almost 4.
//   - Range 64. The largest weight of any party is about 5 in such a run, and
//     was 43 in the longest of others tried: 100 rounds of 500 steps without
//     regularisation.
//   - FractionBits 10. It is weights times rows that are rounded, so that a
//     weight of the average is off by at most 2^-11/200, about 2.5e-6, and a
//     coordinate takes exactly 32 bits.
func Defaults() Options {
	return Options{
		Clients:       100,
		RowsPerClient: 200,
		Rounds:        20,
		LocalSteps:    50,
		Rate:          2,
		Lambda:        1e-4,
		Seed:          1,
		Range:         64,
		FractionBits:  10,
	}
}

// FedAvg returns how the parties' weights are encoded, for models of the given
// number of weights.
func (o *Options) FedAvg(dimension int) aggregation.FedAvg {
	return aggregation.FedAvg{
		Parties:      o.Clients,
		Dimension:    dimension,
		Range:        o.Range,
		FractionBits: o.FractionBits,
		MaxSamples:   o.RowsPerClient,
	}
}

// DropOuts returns how many parties drop out of each round: Drop times Clients,
// rounded to the nearest whole number.
func (o *Options) DropOuts() int { return int(math.Round(o.Drop * float64(o.Clients))) }

// Validate checks the options without the data and returns an [OptionError] for
// the first that is outside its range.
func (o *Options) Validate() error {
	finite := func(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
	switch {
	case o.Clients < 2:
		return bad("Clients", "the sum of one party is that party's update, so use at least 2", "%d is too few", o.Clients)
	case o.Clients > MaxClients && o.Oneshot == nil:
		return bad("Clients", fmt.Sprintf("every pair shares keys, so use at most %d", MaxClients), "%d is too many", o.Clients)
	case o.Oneshot != nil && o.Noise != nil && o.Noise.Law != accounting.FamilyDiscreteGaussian:
		return bad("Noise.Law", "use discrete Gaussian noise", "%v noise does not hide the keys of a one-message sum", o.Noise.Law)
	case o.RowsPerClient < 1:
		return bad("RowsPerClient", "every party needs at least 1 row", "%d is too few", o.RowsPerClient)
	case o.Rounds < 1:
		return bad("Rounds", "use at least 1", "%d is too few", o.Rounds)
	case o.LocalSteps < 1:
		return bad("LocalSteps", "use at least 1", "%d is too few", o.LocalSteps)
	case !(o.Rate > 0) || !finite(o.Rate):
		return bad("Rate", "use a number above 0, such as 2", "%v is no learning rate", o.Rate)
	case !(o.Lambda >= 0) || !finite(o.Lambda):
		return bad("Lambda", "use 0 or a small number above it, such as 1e-4", "%v is no regularisation", o.Lambda)
	case !(o.Range > 0) || !finite(o.Range):
		return bad("Range", "use a number above 0, such as 64", "%v bounds no weight", o.Range)
	case o.FractionBits < 0 || o.FractionBits > aggregation.MaxFractionBits:
		return bad("FractionBits", "", "%d is outside 0 to %d", o.FractionBits, aggregation.MaxFractionBits)
	case !(o.Drop >= 0 && o.Drop <= 1):
		return bad("Drop", "use a number from 0 to 1, such as 0.1 for a tenth of the parties", "%v is no fraction", o.Drop)
	}
	check := o.validateRing
	if o.Noise != nil {
		check = o.Noise.validate
	}
	if err := check(); err != nil {
		return err
	}
	return o.validateRecovery()
}

// validateRing checks that the sum of all parties cannot wrap, and names the
// option that is most to blame if it can: the one without which it could not.
func (o *Options) validateRing() error {
	err := o.FedAvg(1).Validate()
	if err == nil {
		return nil
	}
	if !errors.Is(err, aggregation.ErrWrap) {
		return &OptionError{Option: "FractionBits", Reason: err.Error(), Err: err}
	}
	option := "FractionBits"
	less := *o
	less.FractionBits = 0
	if less.FedAvg(1).Validate() != nil {
		option = "Range"
		less.Range = 1
		if less.FedAvg(1).Validate() != nil {
			option = "RowsPerClient"
		}
	}
	return &OptionError{
		Option: option,
		Reason: fmt.Sprintf("the sum of %d parties, %d rows each, weights up to %v, %d fraction bits, could leave 64 bits",
			o.Clients, o.RowsPerClient, o.Range, o.FractionBits),
		Advice: "use a smaller range, fewer fraction bits, rows or parties",
		Err:    err,
	}
}

// validateData checks what Validate left out.
func (o *Options) validateData() error {
	switch {
	case o.Train == nil || o.Train.Len() == 0:
		return &OptionError{Option: "Train", Reason: "there are no training rows"}
	case o.Test == nil || o.Test.Len() == 0:
		return &OptionError{Option: "Test", Reason: "there are no test rows"}
	case o.Train.Features != o.Test.Features:
		return &OptionError{Option: "Test", Reason: fmt.Sprintf("it has %d features and Train has %d", o.Test.Features, o.Train.Features)}
	}
	if o.Noise != nil {
		return nil // Mechanism checks the rest
	}
	if err := o.FedAvg(o.Train.Features).Validate(); err != nil {
		return &OptionError{Option: "Train", Reason: err.Error(), Err: err}
	}
	return nil
}
