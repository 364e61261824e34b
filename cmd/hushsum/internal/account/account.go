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
	"github.com/hushsum/hushsum/privacy"
)

const accountAbout = `Usage: hushsum account MECHANISM [flags]

Computes how much of a client's privacy rounds of noisy sums spend: the epsilon
that holds at --delta.
`

const accountJSON = `With --json there is one object:
  mechanism, rounds, rate, sensitivity, dimension, shares
                    as called
  of                with --participations, which rounds then holds: as --of
  factorise         with --factorise: as called; a client is then charged
                    once in this many rounds
  unit              "party" or "record", whom epsilon protects
  noise_multiplier  as --noise-multiplier
  delta             as --delta
  adversary         "public" or "server", whom epsilon is against
  epsilon           upper bound, to be claimed; null if there is no finite one
  epsilon_lower     lower bound of the same epsilon; 0 if none is proved
  neighbour         only with --dimension or --shares and a lower bound: by what
                    vector of one client, in units, it is attained
  accountant        what proves them: "PLD" or "RDP"
  adjacency         "add-remove", "zero-out" (against the server, with
                    --shares or with --factorise), "replace-one"
  reason            only if epsilon is null: why
  caution           only with --units and a delta above one in them: why that is
                    too large
  other             if --rate is below 1 and the unit a party, the same for the
                    other adversary: adversary, adjacency, accountant, epsilon,
                    epsilon_lower and reason; null if both have the same
                    epsilon, or if there is no bound against the other
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
	Mechanism       string  `json:"mechanism"`
	NoiseMultiplier float64 `json:"noise_multiplier"`
	Rounds          int     `json:"rounds"`
	Of              int     `json:"of,omitempty"`
	Factorise       int     `json:"factorise,omitempty"`
	Rate            float64 `json:"rate"`
	Sensitivity     float64 `json:"sensitivity"`
	Dimension       int     `json:"dimension"`
	Shares          int     `json:"shares"`
	Unit            string  `json:"unit"`
	Delta           float64 `json:"delta"`
	jsonView
	Other   *jsonView `json:"other"`
	Caution string    `json:"caution,omitempty"`
}

// jsonView reports the spending against one adversary.
type jsonView struct {
	Adversary    string   `json:"adversary"`
	Adjacency    string   `json:"adjacency"`
	Accountant   string   `json:"accountant"`
	Epsilon      *float64 `json:"epsilon"`
	EpsilonLower *float64 `json:"epsilon_lower"`
	Neighbour    string   `json:"neighbour,omitempty"`
	Reason       string   `json:"reason,omitempty"`
}

func (r *release) jsonView(s accounting.Spent) jsonView {
	return jsonView{
		Adversary: s.View.String(), Adjacency: r.adjacency(s.View), Accountant: s.Accountant,
		Epsilon: show.Finite(s.Upper), EpsilonLower: show.Finite(s.Lower), Neighbour: s.Neighbour,
		Reason: s.Reason,
	}
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
	if code, ok := cli.ParseFlags(flags, accountManual(), args, std); !ok {
		return code
	}
	if err := r.check(""); err != nil {
		return cli.WrongUsage(flags, err, std)
	}
	var spent accounting.Spent
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
	r.describe(std)
	r.printSpent(spent, std)
	r.printOther(ctx, std)
	return cli.ExitOK
}

// printOther prints the view that was not asked for, if it differs and has a figure, and answers to
// questions that a reader may have.
func (r *release) printOther(ctx context.Context, std cli.Streams) {
	if spent, ok := r.other(ctx); ok {
		r.printSpent(spent, std)
	}
	if caution := privacy.LargeDelta(r.delta, r.units); caution != "" {
		fmt.Fprintln(std.Out, strings.Join(cli.Wrap("Caution: "+caution+".", cli.Width), "\n"))
	}
	each := r.NoiseMultiplier * r.Sensitivity / math.Sqrt(float64(r.Shares))
	if r.Shares > 1 && each < 1 {
		text := fmt.Sprintf(
			"The parameter of one share is %.2g units: so small that discrete Gaussian shares do not add "+
				"up to a discrete Gaussian: epsilon is larger, or not known to be finite. Count in smaller "+
				"units: raise --sensitivity.",
			each)
		fmt.Fprintln(std.Out, strings.Join(cli.Wrap(text, cli.Width), "\n"))
	}
}

// other accounts for the view that was not asked for, if it differs and has a figure.
func (r *release) other(ctx context.Context) (spent accounting.Spent, ok bool) {
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

// adjacency says what changes of a client between neighbours. With shares of noise a missing client
// would show in the variance, so the client takes part in any case, as in bands.
func (r *release) adjacency(view accounting.View) string {
	switch {
	case r.ReplaceOne:
		return "replace-one"
	case view == accounting.ServerView || r.Shares > 1 || r.Factorise > 0 ||
		r.Unit == accounting.RecordUnit:
		return "zero-out"
	}
	return "add-remove"
}

func (r *release) jsonPrivacy(ctx context.Context, spent accounting.Spent) jsonPrivacy {
	j := jsonPrivacy{
		Mechanism: r.Mechanism, NoiseMultiplier: r.NoiseMultiplier, Rounds: r.In(),
		Of: r.Of, Factorise: r.Factorise, Rate: r.Rate,
		Sensitivity: r.Sensitivity, Dimension: r.Dimension, Shares: r.Shares,
		Unit:  r.Unit.String(),
		Delta: r.delta, jsonView: r.jsonView(spent),
		Caution: privacy.LargeDelta(r.delta, r.units),
	}
	if spent, ok := r.other(ctx); ok {
		other := r.jsonView(spent)
		j.Other = &other
	}
	return j
}

// who names the participants of rounds: a client, or a record.
func (r *release) who() string {
	if r.Unit == accounting.RecordUnit {
		return "record"
	}
	return "client"
}

// promise says whom an epsilon protects, and against whom. Coins of records are their party's
// secret, so they count against every adversary.
func (r *release) promise() string {
	against := r.View.String()
	if r.Unit == accounting.RecordUnit {
		against = "server and the public alike"
	}
	return fmt.Sprintf("for each %s, against the %s", r.who(), against)
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
		fmt.Fprintf(std.Out, "%s, each %s in each with probability %s\n",
			show.Plural(r.Rounds, "round"), r.who(), shortest(r.Rate))
	} else if r.Factorise > 0 {
		fmt.Fprintf(std.Out, "%s in bands of %d: a client is charged %s\n",
			show.Plural(r.Rounds, "round"), r.Factorise, show.Plural(r.Charges(), "time"))
	} else if r.Of > 0 {
		fmt.Fprintf(std.Out, "%s of %s with a %s, no matter who picks them\n", show.Grouped(r.In()),
			show.Plural(r.Of, "round"), r.who())
	} else {
		fmt.Fprintf(std.Out, "%s, with every %s\n", show.Plural(r.Rounds, "round"), r.who())
	}
	promise := r.promise()
	if r.Rate < 1 && r.Unit == accounting.PartyUnit { // there is a line for each
		promise = "for each client"
	}
	fmt.Fprintf(std.Out, "epsilon %s\n", promise)
	fmt.Fprintf(std.Out, "\n%-10s %-12s %12s %12s %10s %10s\n", "against", "adjacency", "epsilon",
		"at least", "delta", "proved by")
}

func (r *release) printSpent(s accounting.Spent, std cli.Streams) {
	fmt.Fprintf(std.Out, "%-10s %-12s %12s %12s %10v %10s\n", s.View, r.adjacency(s.View),
		show.Epsilon(s.Upper), show.LowerBound(s), r.delta, s.Accountant)
	if who := show.AttainedBy(s); who != "" {
		fmt.Fprintln(std.Out, strings.Join(cli.Wrap(
			fmt.Sprintf("Against the %v %s", s.View, who), cli.Width), "\n"))
	}
	if s.Reason != "" {
		for _, line := range cli.Wrap(
			fmt.Sprintf("%s against the %v: %s.", show.Unbounded(s), s.View, s.Reason), cli.Width) {
			fmt.Fprintln(std.Out, line)
		}
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
