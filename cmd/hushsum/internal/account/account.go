// Package account has the commands account and calibrate: what rounds of noisy sums spend of
// privacy, and which noise keeps them within a budget.
package account

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/cli"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/show"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/privacy"
)

const accountAbout = `Usage: hushsum account MECHANISM [flags]

Computes how much of a party's privacy rounds of noisy sums spend: the epsilon
that holds at --delta.
`

const accountJSON = `With --json there is one object:
  mechanism, rounds, rate, sensitivity, dimension, shares
                    as called
  of                with --participations, which rounds then holds: as --of
  factorise         with --factorise: as called; a party is then charged
                    once in this many rounds
  noise_multiplier  as --noise-multiplier
  claim             what is spent, and of whom:
    epsilon         upper bound, to be claimed; null if there is no finite one
    at_least        lower bound of the same epsilon; 0 if none is proved, null
                    if it is infinite
    delta           as --delta
    accountant      what proves them: "PLD" or "RDP"
    neighbour       only with --dimension or --shares and a lower bound: by what
                    vector of one party, in units, it is attained
    reason          only if epsilon is null: why
    unit            "party" or "record", whom epsilon protects
    adjacency       how neighbours differ: "add-remove", "zero-out" (against the
                    server, of vectors or with --factorise), "replace-one"
    server          "public": against those who see released sums; "curious":
                    against a server that follows the protocol
    colluders, committees
                    0 and none: nobody helps the server
    assumes         "sums", which nobody checks here, and "coins" with a --rate
                    of records
  other             if --rate is below 1 and the unit a party, the claim against
                    the other adversary; null if both have the same epsilon, or
                    if there is no bound against the other
  caution           only with --units and a delta above one in them: why that is
                    too large
With --explain there is the derivation of docs/derivations.md instead.
Without --json both adversaries are shown if --rate is below 1.
`

func accountManual() *cli.Manual {
	return &cli.Manual{
		Takes:  "The mechanism comes first, then flags, and nothing else.",
		About:  accountAbout + mechanismHelp() + privacyHelp,
		Topics: []cli.Topic{cli.JSONHelp(accountJSON)},
		Examples: []string{
			"hushsum account gaussian --noise-multiplier 1 --rate 0.01 --rounds 10000",
			"hushsum account discrete-laplace --sensitivity 4 --delta 0",
			"hushsum account skellam --sensitivity 1000 --dimension 4096 --rounds 20 --json",
		},
	}
}

// jsonPrivacy is the JSON object that account and calibrate print.
type jsonPrivacy struct {
	Mechanism       string            `json:"mechanism"`
	NoiseMultiplier float64           `json:"noise_multiplier"`
	Rounds          int               `json:"rounds"`
	Of              int               `json:"of,omitempty"`
	Factorise       int               `json:"factorise,omitempty"`
	Rate            float64           `json:"rate"`
	Sensitivity     float64           `json:"sensitivity"`
	Dimension       int               `json:"dimension"`
	Shares          int               `json:"shares"`
	Claim           accounting.Claim  `json:"claim"`
	Other           *accounting.Claim `json:"other"`
	Caution         string            `json:"caution,omitempty"`
}

// Command returns the command account.
func Command() cli.Command {
	return cli.Command{Name: "account", About: "compute how much privacy rounds of noisy sums spend",
		Run: account, Words: mechanisms}
}

func account(ctx context.Context, args []string, std cli.Streams) int {
	var r release
	args, code, ok := r.takeMechanism("account", args, std)
	if !ok {
		return code
	}
	flags := r.flags("account")
	explain := false
	flags.BoolVar(&explain, "explain", false, "print how epsilon follows, step by step")
	if code, ok := cli.ParseFlags(flags, accountManual(), args, std); !ok {
		return code
	}
	if err := r.check(""); err != nil {
		return cli.WrongUsage(flags, err, std)
	}
	if explain {
		d, err := job.DeriveRun(r.Run, r.delta)
		if errors.Is(err, accounting.ErrUnsupported) {
			err = &cli.Problem{Cause: "no derivation is written with --replace-one, or of laplace noise",
				Advice: "Leave out --explain.", Err: err}
		}
		if err != nil {
			cli.Complain(std.Err, "hushsum account", r.problem(err))
			return cli.ExitFailure
		}
		return show.Derivation(d, r.json, std)
	}
	var spent accounting.Claim
	err := cli.Interruptible(ctx, func() (err error) {
		spent, err = r.spent(r.View)
		return err
	})
	if ctx.Err() != nil {
		return cli.Interrupted("account", std)
	}
	if err != nil {
		cli.Complain(std.Err, "hushsum account", r.problem(err))
		return cli.ExitFailure
	}
	if r.json {
		return show.JSON(std, r.jsonPrivacy(ctx, spent))
	}
	r.print(ctx, spent, std)
	return cli.ExitOK
}

// print prints what is spent, also in the view that was not asked for, if it differs and has a
// figure, and answers to questions that a reader may have.
func (r *release) print(ctx context.Context, spent accounting.Claim, std cli.Streams) {
	r.describe(std)
	claims := []accounting.Claim{spent}
	if other, ok := r.other(ctx); ok {
		claims = append(claims, other)
	}
	show.Claims(std, claims...)
	s := &show.Screen{Std: std}
	if caution := privacy.LargeDelta(r.delta, r.units); caution != "" {
		s.Sentence("Caution: %s.", caution)
	}
	each := r.NoiseMultiplier * r.Sensitivity / math.Sqrt(float64(r.Shares))
	if r.Shares > 1 && each < 1 {
		s.Sentence("The parameter of one share is %.2g units: so small that discrete Gaussian shares do "+
			"not add up to a discrete Gaussian: epsilon is larger, or not known to be finite. Count in "+
			"smaller units: raise --sensitivity.", each)
	}
}

// other accounts for the view that was not asked for, if it differs and has a figure.
func (r *release) other(ctx context.Context) (spent accounting.Claim, ok bool) {
	if r.Rate >= 1 || r.Unit == accounting.RecordUnit {
		return spent, false
	}
	view := accounting.PublicView
	if r.View == view {
		view = accounting.ServerView
	}
	err := cli.Interruptible(ctx, func() (err error) {
		spent, err = r.spent(view)
		return err
	})
	return spent, err == nil
}

func (r *release) jsonPrivacy(ctx context.Context, spent accounting.Claim) jsonPrivacy {
	j := jsonPrivacy{
		Mechanism: r.Mechanism, NoiseMultiplier: r.NoiseMultiplier, Rounds: r.In(),
		Of: r.Of, Factorise: r.Factorise, Rate: r.Rate,
		Sensitivity: r.Sensitivity, Dimension: r.Dimension, Shares: r.Shares,
		Claim: spent, Caution: privacy.LargeDelta(r.delta, r.units),
	}
	if other, ok := r.other(ctx); ok {
		j.Other = &other
	}
	return j
}

// describe prints the header of the output for people.
func (r *release) describe(std cli.Streams) {
	what := fmt.Sprintf("%s noise, multiplier %s, sensitivity %v", r.Mechanism,
		shortest(r.NoiseMultiplier), r.Sensitivity)
	if r.Dimension > 1 {
		what += fmt.Sprintf(", %s", show.Plural(r.Dimension, "coordinate"))
	}
	if r.Shares > 1 {
		what += fmt.Sprintf(", the sum of %s", show.Plural(r.Shares, "share"))
	}
	fmt.Fprintln(std.Out, strings.Join(cli.Wrap(what, cli.Width), "\n"))
	if r.Rate < 1 {
		fmt.Fprintf(std.Out, "%s, each %v in each with probability %s\n",
			show.Plural(r.Rounds, "round"), r.Unit, shortest(r.Rate))
	} else if r.Factorise > 0 {
		fmt.Fprintf(std.Out, "%s in bands of %d: a party is charged %s\n",
			show.Plural(r.Rounds, "round"), r.Factorise, show.Plural(r.Charges(), "time"))
	} else if r.Of > 0 {
		fmt.Fprintf(std.Out, "%s of %s with a %v, no matter who picks them\n", show.Grouped(r.In()),
			show.Plural(r.Of, "round"), r.Unit)
	} else {
		fmt.Fprintf(std.Out, "%s, with every %v\n", show.Plural(r.Rounds, "round"), r.Unit)
	}
}

// problem explains what to do about errors of the accountant.
func (r *release) problem(err error) error {
	var said *cli.Problem
	switch {
	case errors.As(err, &said):
		return err
	case errors.Is(err, accounting.ErrTooLarge):
		p := &cli.Problem{
			Cause:  "the noise is too large to tabulate: " + cli.Plain(err),
			Advice: "Count in larger units, so that --sensitivity is smaller.",
			Err:    err,
		}
		if r.Mechanism == "discrete-gaussian" || r.Mechanism == "skellam" {
			p.Advice = "Use --dimension 2, which is accounted for by a Gaussian, or count " +
				"in larger units."
		}
		return p
	case errors.Is(err, accounting.ErrUnsupported):
		return &cli.Problem{
			Cause:  fmt.Sprintf("there is no bound for %s noise with these flags", r.Mechanism),
			Advice: "Leave out --replace-one.",
			Err:    err,
		}
	case errors.Is(err, accounting.ErrUnreachable) && r.delta == 0 &&
		!strings.HasSuffix(r.Mechanism, "laplace"):
		return &cli.Problem{
			Cause: fmt.Sprintf("target cannot be reached: at delta 0 no amount of %s noise has a finite "+
				"epsilon", r.Mechanism),
			Advice: "Give a --delta such as 1e-5, or use discrete-laplace or laplace noise.",
			Err:    err,
		}
	case errors.Is(err, accounting.ErrUnreachable):
		return &cli.Problem{
			Cause: "target cannot be reached",
			Advice: "Ask for a larger --epsilon or --delta, or change what is taken as given: " +
				"more noise, fewer rounds, a smaller rate.",
			Err: err,
		}
	}
	return err
}
