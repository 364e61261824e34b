package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strconv"
	"time"

	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/learning"
	"github.com/hushsum/hushsum/simulation"
)

const simulateAbout = `Usage: hushsum simulate [flags]

Trains a model of many parties on this machine by federated averaging. Every
round, each party trains on rows of its own, masks the outcome, and submits it;
the server sees nothing but the sum of all. Beside it runs the same training in
the clear, from the same seed, to show what privacy costs the model.

One line is printed per round:
  parties      in the sum, of all
  up, down     bytes from and to each party: messages and the broadcast model
  train ms     a party's local training
  sum ms       a party's work for the private sum: encode and mask
  server ms    the server's work for all parties
  accuracy     of the model, on rows that no party has
  MCC          its Matthews correlation: 1 is perfect, 0 is no better than
               giving every row the same answer
Times of parties are means. Ctrl-C ends the run early and prints what was done.

With --json there is one object per line: one for each round, with
  round, clients, accuracy, mcc, clear_accuracy, clear_mcc, max_abs_diff,
  largest_weight, bytes_up, bytes_down, train_ms, client_ms, server_ms
then one with "summary": true and the same keys, bytes and times being totals
over all rounds. Set-up, which is done once, is in setup_ keys of its own.
Bytes and times are those of one party, but server times are for all.

Examples:
  hushsum simulate
  hushsum simulate --clients 10 --rounds 5
  hushsum simulate --data path/to/adult --json
`

// simulateFlags are the values of the command's flags.
type simulateFlags struct {
	options simulation.Options
	data    string
	json    bool
}

// flagOf names the flag that sets an option.
var flagOf = map[string]string{
	"Clients":       "clients",
	"RowsPerClient": "rows-per-client",
	"Rounds":        "rounds",
	"LocalSteps":    "local-steps",
	"Rate":          "rate",
	"Lambda":        "lambda",
	"Seed":          "seed",
	"Range":         "range",
	"FractionBits":  "fraction-bits",
}

func newSimulateFlags() (*flag.FlagSet, *simulateFlags) {
	v := &simulateFlags{options: simulation.Defaults()}
	o := &v.options
	f := flag.NewFlagSet("simulate", flag.ContinueOnError)
	f.StringVar(&v.data, "data", synthetic, "`synthetic|PATH` made-up census rows, or the folder with adult.data\n"+
		"        and adult.test of the UCI Adult census")
	f.IntVar(&o.Clients, flagOf["Clients"], o.Clients, "`N` parties, at least 2")
	f.IntVar(&o.RowsPerClient, flagOf["RowsPerClient"], o.RowsPerClient, "`N` training rows of each party")
	f.IntVar(&o.Rounds, flagOf["Rounds"], o.Rounds, "`N` rounds, each one private sum")
	f.IntVar(&o.LocalSteps, flagOf["LocalSteps"], o.LocalSteps, "`N` gradient steps of each party in a round")
	f.Float64Var(&o.Rate, flagOf["Rate"], o.Rate, "`X` learning rate of gradient descent")
	f.Float64Var(&o.Lambda, flagOf["Lambda"], o.Lambda, "`X` strength of L2 regularisation")
	f.Float64Var(&o.Range, flagOf["Range"], o.Range, "`X` largest weight to encode; a larger one ends the run")
	f.IntVar(&o.FractionBits, flagOf["FractionBits"], o.FractionBits, "`N` binary places of weight times rows; each costs a bit")
	f.Var((*seedValue)(&o.Seed), flagOf["Seed"], "`N` makes and deals the rows; one seed, one outcome")
	f.BoolVar(&v.json, "json", false, "print one JSON object per line instead of a table")
	return f, v
}

// seedValue is a seed whose errors say what a seed is.
type seedValue uint64

func (s *seedValue) String() string { return strconv.FormatUint(uint64(*s), 10) }

func (s *seedValue) Set(text string) error {
	x, err := strconv.ParseUint(text, 0, 64)
	if err != nil {
		return errors.New("want a whole number from 0 to 2^64 - 1")
	}
	*s = seedValue(x)
	return nil
}

// reporter shows a run as it goes on.
type reporter interface {
	begin(about string, o *simulation.Options)
	progress(round, done int)
	round(r simulation.Round)
	end(s *simulation.Summary, took time.Duration)
}

func simulate(ctx context.Context, args []string, std streams) int {
	flags, v := newSimulateFlags()
	if code, ok := parseFlags(flags, simulateAbout, args, std); !ok {
		return code
	}
	options := &v.options
	if err := options.Validate(); err != nil {
		return wrongUsage(flags, optionError(err), std)
	}
	fail := func(err error) int {
		fmt.Fprintf(std.err, "hushsum simulate: %v\n", err)
		return exitFailure
	}
	start := time.Now()
	about, err := loadData(v.data, options)
	if err != nil {
		return fail(err)
	}

	var report reporter = &table{std: std, options: options}
	if v.json {
		report = &jsonLines{w: std.out, options: options}
	}
	report.begin(about, options)
	options.Now = time.Now
	options.Progress = report.progress
	summary, err := simulation.Run(ctx, *options, report.round)
	if summary != nil {
		report.end(summary, time.Since(start))
	}
	switch {
	case err == nil:
		return exitOK
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		fmt.Fprintf(std.err, "hushsum simulate: interrupted after %d of %d rounds\n", len(summary.Rounds), options.Rounds)
		return exitInterrupted
	}
	return fail(advise(err))
}

// optionError names the flag instead of the option.
func optionError(err error) error {
	var bad *simulation.OptionError
	if errors.As(err, &bad) && flagOf[bad.Option] != "" {
		return fmt.Errorf("--%s: %s", flagOf[bad.Option], bad.Reason)
	}
	return err
}

// advise says which flag helps against an error of a run.
func advise(err error) error {
	switch {
	case errors.Is(err, aggregation.ErrSaturated):
		return fmt.Errorf("%w\nRaise --range, or lower --rate or --local-steps", err)
	case errors.Is(err, learning.ErrDiverged):
		return fmt.Errorf("%w\nLower --rate", err)
	}
	return optionError(err)
}
