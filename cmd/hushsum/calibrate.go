package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/hushsum/hushsum/accounting"
)

const calibrateAbout = `Usage: hushsum calibrate MECHANISM --epsilon E [flags]

Finds what keeps rounds of noisy sums within a privacy budget: the least noise
multiplier, or with --find the most rounds, or the highest sampling rate. The
outcome is accounted once more, and that upper bound is at most --epsilon.
Multipliers are searched from 2^-10, rounds up to 2^30, rates from 2^-40.
`

const calibrateJSON = `With --json there is one object, that of 'hushsum account --json' for what was
found, and besides:
  target_epsilon    as --epsilon
  found             what --find says
`

func calibrateManual() *manual {
	return &manual{
		about:  calibrateAbout + mechanismHelp() + privacyHelp,
		topics: []topic{{"json", "what --json prints", calibrateJSON + "\n" + accountJSON}},
		examples: []string{
			"hushsum calibrate gaussian --epsilon 1 --rate 0.01 --rounds 10000",
			"hushsum calibrate discrete-laplace --epsilon 0.5 --delta 0",
			"hushsum calibrate gaussian --epsilon 4 --find rounds --noise-multiplier 2",
		},
	}
}

// The values of --find.
const (
	findNoise  = "noise-multiplier"
	findRounds = "rounds"
	findRate   = "rate"
)

var finds = map[string]string{findNoise: findNoise, findRounds: findRounds, findRate: findRate}

func calibrate(ctx context.Context, args []string, std streams) int {
	var r release
	args, code, ok := r.takeMechanism("calibrate", args, std)
	if !ok {
		return code
	}
	flags := r.flags("calibrate")
	find, target := findNoise, 0.0
	flags.Var((*floatValue)(&target), "epsilon", "`E` the budget, above 0; required")
	flags.Var(oneOf(&find, finds, "noise-multiplier, rounds or rate"), "find",
		"`noise-multiplier|rounds|rate` what to find; the other two are taken as given")
	if code, ok := parseFlags(flags, calibrateManual(), args, std); !ok {
		return code
	}
	if err := r.checkCalibration(find, target, given(flags)); err != nil {
		return wrongUsage(flags, err, std)
	}
	var spent accounting.Spent
	err := interruptible(ctx, func() error {
		err := r.solve(find, accounting.Target{Epsilon: target, Delta: r.delta})
		if err == nil {
			spent, err = r.spent(r.View)
		}
		return err
	})
	if ctx.Err() != nil {
		return interrupted("calibrate", std)
	}
	if err != nil {
		complain(std.err, "hushsum calibrate", r.problem(err))
		return exitFailure
	}
	if r.json {
		return printJSON(std, struct {
			jsonPrivacy
			TargetEpsilon float64 `json:"target_epsilon"`
			Found         string  `json:"found"`
		}{r.jsonPrivacy(ctx, spent), target, find})
	}
	value := shortest(r.NoiseMultiplier)
	switch find {
	case findRounds:
		value = grouped(r.Rounds)
	case findRate:
		value = shortest(r.Rate)
	}
	fmt.Fprintf(std.out, "%s %s keeps epsilon within %v at delta %v.\n\n", find, value, target,
		r.delta)
	r.describe(std)
	r.printSpent(spent, std)
	r.printOther(ctx, std)
	return exitOK
}

// checkCalibration checks the flags, of which some were given.
func (r *release) checkCalibration(find string, target float64, given map[string]bool) error {
	switch {
	case !given["epsilon"]:
		return &problem{
			cause:  "--epsilon is required: it is the budget",
			advice: "Give a number above 0, as in --epsilon 1.",
		}
	case !(target > 0) || math.IsInf(target, 1):
		return &problem{
			cause:  fmt.Sprintf("--epsilon: %v is no budget", target),
			advice: "Give a number above 0, such as 1.",
		}
	case given[find]:
		return &problem{
			cause:  fmt.Sprintf("--%s: it is what is to be found", find),
			advice: "Leave it out, or find another with --find.",
		}
	case find == findRate && r.View == accounting.ServerView:
		return &problem{
			cause:  "--find rate: sampling does not count against the server",
			advice: "Use --adversary public.",
		}
	}
	return r.check(find)
}

// solve sets what is to be found.
func (r *release) solve(find string, t accounting.Target) (err error) {
	err = r.Calibrate(fields[find], t)
	try := *r
	found := err == nil && r.Rounds > 0
	if find != findRounds || found || err != nil && !errors.Is(err, accounting.ErrUnreachable) {
		return err
	}
	try.Rounds = 1
	one, err := try.spent(r.View)
	if err != nil {
		return err
	}
	spends := "epsilon " + epsilon(one.Upper)
	if one.Reason != "" {
		spends = "an epsilon without finite bound"
	}
	return &problem{
		cause: fmt.Sprintf("target cannot be reached: one round spends %s at delta %v",
			spends, t.Delta),
		advice: "Ask for a larger --epsilon or --delta, or use more noise or a smaller rate.",
		err:    accounting.ErrUnreachable,
	}
}

// shortest prints a number with as many digits as it has, at most nine.
func shortest(x float64) string { return strconv.FormatFloat(x, 'g', 9, 64) }
