package account

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/cli"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/show"
)

const calibrateAbout = `Usage: hushsum calibrate MECHANISM --epsilon E [flags]

Finds what keeps rounds of noisy sums within a privacy budget: the least noise
multiplier, or with --find the most rounds or the highest sampling rate. The
result is accounted for once more, and that upper bound is at most --epsilon.
Multipliers are searched from 2^-10, rounds up to 2^30, rates from 2^-40.
`

const calibrateJSON = `With --json there is one object, that of 'hushsum account --json' for what was
found, with these keys added:
  budget            --epsilon at --delta, and what it is about
  found             what --find says
`

func calibrateManual() *cli.Manual {
	return &cli.Manual{
		Takes:  "The mechanism comes first, then flags, and nothing else.",
		About:  calibrateAbout + mechanismHelp() + privacyHelp,
		Topics: []cli.Topic{cli.JSONHelp(calibrateJSON + "\n" + accountJSON)},
		Examples: []string{
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

// CalibrateCommand returns the command calibrate.
func CalibrateCommand() cli.Command {
	return cli.Command{Name: "calibrate",
		About: "find the noise, rounds or sampling for a privacy budget", Run: calibrate,
		Words: mechanisms}
}

func calibrate(ctx context.Context, args []string, std cli.Streams) int {
	var r release
	args, code, ok := r.takeMechanism("calibrate", args, std)
	if !ok {
		return code
	}
	flags := r.flags("calibrate")
	find, target := findNoise, 0.0
	flags.Var((*cli.FloatValue)(&target), "epsilon", "`E` the budget, above 0; required")
	flags.Var(cli.OneOf(&find, finds, "noise-multiplier, rounds or rate"), "find",
		"`noise-multiplier|rounds|rate` what to find; the other two are taken as given")
	if code, ok := cli.ParseFlags(flags, calibrateManual(), args, std); !ok {
		return code
	}
	if err := r.checkCalibration(find, target, cli.Given(flags)); err != nil {
		return cli.WrongUsage(flags, err, std)
	}
	var spent accounting.Claim
	err := cli.Interruptible(ctx, func() error {
		err := r.solve(find, accounting.Target{Epsilon: target, Delta: r.delta})
		if err == nil {
			spent, err = r.spent(r.View)
		}
		return err
	})
	if ctx.Err() != nil {
		return cli.Interrupted("calibrate", std)
	}
	if err != nil {
		cli.Complain(std.Err, "hushsum calibrate", r.problem(err))
		return cli.ExitFailure
	}
	budget, err := accounting.NewBudget(r.Statement(), target, r.delta)
	if err != nil {
		return cli.Failed("calibrate", err, std)
	}
	if r.json {
		return show.JSON(std, struct {
			jsonPrivacy
			Budget accounting.Budget `json:"budget"`
			Found  string            `json:"found"`
		}{r.jsonPrivacy(ctx, spent), budget, find})
	}
	value := shortest(r.NoiseMultiplier)
	switch find {
	case findRounds:
		value = show.Grouped(r.Rounds)
	case findRate:
		value = shortest(r.Rate)
	}
	found := fmt.Sprintf("%s %s keeps within %v.", find, value, budget)
	fmt.Fprintf(std.Out, "%s\n\n", strings.Join(cli.Wrap(found, cli.Width), "\n"))
	r.print(ctx, spent, std)
	return cli.ExitOK
}

// checkCalibration checks the flags, some of which were given.
func (r *release) checkCalibration(find string, target float64, given map[string]bool) error {
	switch {
	case !given["epsilon"]:
		return &cli.Problem{
			Cause:  "--epsilon is required: it is the budget",
			Advice: "Give a number above 0, as in --epsilon 1.",
		}
	case !(target > 0) || math.IsInf(target, 1):
		return &cli.Problem{
			Cause:  fmt.Sprintf("--epsilon: %v is not a budget", target),
			Advice: "Give a number above 0, such as 1.",
		}
	case given[find]:
		return &cli.Problem{
			Cause:  fmt.Sprintf("--%s: calibrate is looking for it", find),
			Advice: "Leave it out, or find another with --find.",
		}
	case find == findRate && r.View == accounting.ServerView && r.Unit == accounting.PartyUnit:
		return &cli.Problem{
			Cause:  "--find rate: sampling does not count against the server",
			Advice: "Use --adversary public.",
		}
	}
	return r.check(find)
}

// solve sets the quantity that is to be found.
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
	return &cli.Problem{
		Cause:  fmt.Sprintf("target cannot be reached: one round spends %v", one),
		Advice: "Ask for a larger --epsilon or --delta, or use more noise or a smaller rate.",
		Err:    accounting.ErrUnreachable,
	}
}

// shortest prints a number with as many digits as it needs, at most nine.
func shortest(x float64) string { return strconv.FormatFloat(x, 'g', 9, 64) }
