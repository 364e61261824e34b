package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/hushsum/hushsum/accounting"
)

const accountAbout = `Usage: hushsum account MECHANISM [flags]

Says what rounds of noisy sums spend of a client's privacy: the epsilon that
holds at --delta.
`

const accountJSON = `
With --json there is one object:
  mechanism, rounds, rate, sensitivity, dimension, shares
                    as called
  noise_multiplier  as --noise-multiplier
  delta             as --delta
  adversary         "public" or "server", whom epsilon is against
  epsilon           upper bound, to be claimed; null if there is no finite one
  epsilon_lower     lower bound of the same epsilon; 0 if none is proved
  accountant        what proves them: "PLD" or "RDP"
  adjacency         "add-remove", "zero-out" (against the server), "replace-one"
  reason            only if epsilon is null: why
`

const accountExamples = `
Examples:
  hushsum account gaussian --noise-multiplier 1 --rate 0.01 --rounds 10000
  hushsum account discrete-laplace --sensitivity 4 --delta 0
  hushsum account skellam --sensitivity 1000 --dimension 4096 --rounds 20 --json
`

// jsonPrivacy is the object of account and calibrate.
type jsonPrivacy struct {
	Mechanism       string   `json:"mechanism"`
	NoiseMultiplier float64  `json:"noise_multiplier"`
	Rounds          int      `json:"rounds"`
	Rate            float64  `json:"rate"`
	Sensitivity     float64  `json:"sensitivity"`
	Dimension       int      `json:"dimension"`
	Shares          int      `json:"shares"`
	Adversary       string   `json:"adversary"`
	Adjacency       string   `json:"adjacency"`
	Accountant      string   `json:"accountant"`
	Epsilon         *float64 `json:"epsilon"`
	EpsilonLower    *float64 `json:"epsilon_lower"`
	Delta           float64  `json:"delta"`
	Reason          string   `json:"reason,omitempty"`
}

func account(ctx context.Context, args []string, std streams) int {
	var r release
	args, code, ok := r.takeMechanism("account", args, std)
	if !ok {
		return code
	}
	flags := r.flags("account")
	if code, ok := parseFlags(flags, accountAbout+mechanismHelp()+privacyHelp+accountJSON+"\n"+exitCodes+accountExamples, args, std); !ok {
		return code
	}
	if err := r.check(); err != nil {
		return wrongUsage(flags, err, std)
	}
	var spent accounting.Spent
	err := interruptible(ctx, func() (err error) {
		spent, err = r.spent(accounting.View(r.view))
		return err
	})
	if ctx.Err() != nil {
		return interrupted("account", std)
	}
	if err != nil {
		complain(std.err, "hushsum account", r.problem(err))
		return exitFailure
	}
	if r.json {
		return printJSON(std, r.jsonPrivacy(spent))
	}
	r.describe(std)
	r.printSpent(spent, std)
	r.printOther(ctx, std)
	return exitOK
}

// printOther prints the view that was not asked for, if it differs and has a figure,
// and what else a reader may wonder about.
func (r *release) printOther(ctx context.Context, std streams) {
	if other, ok := r.otherView(); ok {
		var spent accounting.Spent
		err := interruptible(ctx, func() (err error) {
			spent, err = r.spent(other)
			return err
		})
		if err == nil {
			r.printSpent(spent, std)
		}
	}
	if each := r.noise * r.sensitivity / math.Sqrt(float64(r.shares)); r.shares > 1 && each < 1 {
		text := fmt.Sprintf("The parameter of one share is %.2g units: so small that discrete Gaussian shares do not add up to another, which is charged. Count in smaller units: raise --sensitivity.", each)
		fmt.Fprintln(std.out, strings.Join(wrap(text, width), "\n"))
	}
}

// otherView returns the view that was not asked for, if it differs.
func (r *release) otherView() (accounting.View, bool) {
	if accounting.View(r.view) == accounting.Public {
		return accounting.Server, r.rate < 1
	}
	return accounting.Public, r.rate < 1
}

// adjacency is what of a client changes.
func (r *release) adjacency(view accounting.View) string {
	switch {
	case r.replaceOne:
		return "replace-one"
	case view == accounting.Server:
		return "zero-out"
	}
	return "add-remove"
}

func (r *release) jsonPrivacy(spent accounting.Spent) jsonPrivacy {
	return jsonPrivacy{
		Mechanism: r.law, NoiseMultiplier: r.noise, Rounds: r.rounds, Rate: r.rate,
		Sensitivity: r.sensitivity, Dimension: r.dimension, Shares: r.shares,
		Adversary: spent.View.String(), Adjacency: r.adjacency(spent.View), Accountant: spent.Accountant,
		Epsilon: finite(spent.Upper), EpsilonLower: finite(spent.Lower), Delta: r.delta, Reason: spent.Reason,
	}
}

// printJSON prints one object. All numbers in it are finite.
func printJSON(std streams, v any) int {
	b, err := json.Marshal(v)
	if err != nil {
		complain(std.err, "hushsum", err)
		return exitFailure
	}
	fmt.Fprintf(std.out, "%s\n", b)
	return exitOK
}

// describe prints the header of the human form.
func (r *release) describe(std streams) {
	what := fmt.Sprintf("%s noise, multiplier %s, sensitivity %v", r.law, shortest(r.noise), r.sensitivity)
	if r.dimension > 1 {
		what += fmt.Sprintf(", %s", plural(r.dimension, "coordinate"))
	}
	if r.shares > 1 {
		what += fmt.Sprintf(", the sum of %s", plural(r.shares, "share"))
	}
	fmt.Fprintln(std.out, strings.Join(wrap(what, width), "\n"))
	if r.rate < 1 {
		fmt.Fprintf(std.out, "%s, each client in one with probability %s\n", plural(r.rounds, "round"), shortest(r.rate))
	} else {
		fmt.Fprintf(std.out, "%s, with every client\n", plural(r.rounds, "round"))
	}
	fmt.Fprintf(std.out, "\n%-10s %-12s %12s %12s %10s %10s\n", "against", "adjacency", "epsilon", "at least", "delta", "proved by")
}

func (r *release) printSpent(s accounting.Spent, std streams) {
	fmt.Fprintf(std.out, "%-10s %-12s %12s %12s %10v %10s\n", s.View, r.adjacency(s.View), epsilon(s.Upper), lowerBound(s), r.delta, s.Accountant)
	if s.Reason != "" {
		for _, line := range wrap("There is no finite epsilon against the "+s.View.String()+": "+s.Reason+".", width) {
			fmt.Fprintln(std.out, line)
		}
	}
}

// problem says what to do about errors of the accountant.
func (r *release) problem(err error) error {
	switch {
	case errors.Is(err, accounting.ErrTooLarge):
		p := &problem{cause: plain(err), advice: "Count in larger units, so that --sensitivity is smaller.", err: err}
		if r.law == "discrete-gaussian" || r.law == "skellam" {
			p.advice = "Use --dimension 2, which is accounted for by Renyi divergence, or count in larger units."
		}
		return p
	case errors.Is(err, accounting.ErrUnreachable):
		return &problem{cause: plain(err), advice: "Ask for a larger --epsilon or --delta, or change what is taken as given: more noise, fewer rounds, a smaller rate.", err: err}
	}
	return err
}
