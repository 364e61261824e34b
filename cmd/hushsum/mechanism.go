package main

import (
	"flag"
	"fmt"
	"math"
	"strings"

	"github.com/hushsum/hushsum/accounting"
)

// release is a mechanism with its repetitions, as flags say it.
type release struct {
	law         string
	noise       float64 // scale over sensitivity
	rate        float64
	rounds      int
	delta       float64
	sensitivity float64
	dimension   int
	shares      int
	view        accounting.View
	replaceOne  bool
	json        bool
}

// releaseLaws are the mechanisms of account and calibrate, in the order of help.
var releaseLaws = []struct{ name, about string }{
	{"gaussian",
		"continuous Gaussian; Z is the standard deviation over the L2 sensitivity; for vectors " +
			"of any length"},
	{"laplace",
		"continuous Laplace; Z is the scale over the L1 sensitivity; for vectors of any length"},
	{"discrete-gaussian",
		"on the integers; Z is the parameter sigma over the L2 sensitivity; see --dimension and " +
			"--shares for sums of vectors"},
	{"discrete-laplace",
		"on the integers; Z is the scale over the L1 sensitivity; for vectors of any length"},
	{"skellam",
		"on the integers; Z is the standard deviation over the L2 sensitivity; see --dimension " +
			"for vectors"},
}

// mechanismHelp lists the laws.
func mechanismHelp() string {
	var b strings.Builder
	b.WriteString("\nMechanisms, with what Z of --noise-multiplier is:\n")
	for _, l := range releaseLaws {
		for i, line := range wrap(l.about, width-21) {
			name := ""
			if i == 0 {
				name = l.name
			}
			fmt.Fprintf(&b, "  %-18s %s\n", name, line)
		}
	}
	return b.String()
}

// privacyHelp is what the helps of account and calibrate share.
const privacyHelp = `
With --rate below 1, each client takes part in each round with that probability,
independently of all others (Poisson sampling). That counts against the public
only, which must not know who took part: with --adversary server the rate is
ignored, since a server sees who takes part. A client is added or removed
(against the server: its vector or zero); with --replace-one it is exchanged for
another, which doubles the distance.

Every epsilon is an upper bound that is proved, with a lower bound beside it
where the accountant has one. PLD composes privacy-loss distributions; RDP, by
Renyi divergence, is used for vectors under discrete Gaussian or Skellam noise.
`

// takeMechanism takes the name of the law off the arguments.
func (r *release) takeMechanism(
	command string, args []string, std streams,
) (rest []string, code int, ok bool) {
	var names []string
	for _, l := range releaseLaws {
		names = append(names, l.name)
	}
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		for _, name := range names {
			if args[0] == name {
				r.law = name
				return args[1:], exitOK, true
			}
		}
	}
	if len(args) > 0 && asksHelp(args[0]) {
		r.law = names[0]
		return args, exitOK, true
	}
	err := &problem{
		cause:  "the first argument must be the mechanism",
		advice: "Use one of " + strings.Join(names, ", ") + ".",
	}
	if len(args) > 0 {
		err.cause = fmt.Sprintf("%q is no mechanism", args[0])
		err.advice = didYouMean(args[0], names, "%s", err.advice)
		if strings.HasPrefix(args[0], "-") {
			err.cause = "the mechanism must come first, before all flags"
		}
	}
	complain(std.err, "hushsum "+command, err)
	fmt.Fprintf(std.err, "Run 'hushsum %s -h' for help.\n", command)
	return nil, exitUsage, false
}

// flags defines what account and calibrate both take.
func (r *release) flags(name string) *flag.FlagSet {
	*r = release{
		law:         r.law,
		noise:       1,
		rate:        1,
		rounds:      1,
		delta:       1e-5,
		sensitivity: 1,
		dimension:   1,
		shares:      1,
		view:        accounting.PublicView,
	}
	f := flag.NewFlagSet(name, flag.ContinueOnError)
	f.Var((*floatValue)(&r.noise), "noise-multiplier", "`Z` noise over sensitivity, see above")
	f.Var((*floatValue)(&r.rate), "rate",
		"`Q` probability with which a client is in a round, above 0 to 1")
	f.Var((*intValue)(&r.rounds), "rounds", "`T` rounds with fresh noise each")
	f.Var((*floatValue)(&r.delta), "delta",
		"`D` probability with which epsilon may fail to hold, 0 to 1; 0 asks for pure privacy")
	f.Var((*floatValue)(&r.sensitivity), "sensitivity",
		"`S` of the sum to one client: of discrete laws in integer units, and with --dimension 1 "+
			"or discrete-laplace a whole number")
	f.Var((*intValue)(&r.dimension), "dimension",
		"`D` coordinates of a vector under discrete Gaussian or Skellam noise, whose L2 norm is "+
			"at most --sensitivity")
	f.Var((*intValue)(&r.shares), "shares",
		"`M` independent shares that the discrete Gaussian noise is the sum of; "+
			"--noise-multiplier is of all together")
	f.Var(oneOf(&r.view, views, "public or server"), "adversary",
		"`public|server` who is to learn nothing")
	f.BoolVar(&r.replaceOne, "replace-one", false,
		"exchange a client for another, in place of adding or removing it")
	f.BoolVar(&r.json, "json", false, "print one JSON object")
	return f
}

// check finds what no accountant can be asked.
func (r *release) check() error {
	discrete := strings.HasPrefix(r.law, "discrete-") || r.law == "skellam"
	vector := r.law == "discrete-gaussian" || r.law == "skellam"
	scale := r.noise * r.sensitivity
	bad := func(flag, advice, format string, a ...any) error {
		return &problem{cause: "--" + flag + ": " + fmt.Sprintf(format, a...), advice: advice}
	}
	switch {
	case !(r.noise > 0) || math.IsInf(r.noise, 1):
		return bad("noise-multiplier", "Use a number above 0, such as 1.", "%v is no noise", r.noise)
	case !(r.rate > 0 && r.rate <= 1):
		return bad("rate", "Use a number above 0, at most 1.",
			"%v is no probability of taking part", r.rate)
	case r.rounds < 1:
		return bad("rounds", "Use 1 or more.", "%d is too few", r.rounds)
	case r.rounds > mostRounds:
		return bad("rounds", "Use up to 2^40.", "%d is too many", r.rounds)
	case !(r.delta >= 0 && r.delta < 1):
		return bad("delta", "Use a small number, such as 1e-5.", "%v is no probability below 1", r.delta)
	case !(r.sensitivity > 0) || math.IsInf(r.sensitivity, 1):
		return bad("sensitivity", "Use a number above 0.", "%v bounds nothing", r.sensitivity)
	case r.dimension < 1:
		return bad("dimension", "Use 1 or more.", "%d is too few", r.dimension)
	case r.shares < 1:
		return bad("shares", "Use 1 or more.", "%d is too few", r.shares)
	case r.dimension > 1 && !vector:
		return bad("dimension", "Leave it out.", "under %s noise all vectors are as one coordinate",
			r.law)
	case r.shares > 1 && r.law != "discrete-gaussian":
		return bad("shares", "Leave it out.", "shares of %s noise add up exactly", r.law)
	case discrete && !r.lanes() && r.sensitivity != math.Trunc(r.sensitivity):
		return bad("sensitivity", "Count in units of the integers.",
			"%v is not whole, and the noise is on the integers", r.sensitivity)
	case discrete && r.sensitivity > 1<<30:
		return bad("sensitivity", "", "%v is more than 2^30", r.sensitivity)
	case discrete && !(scale >= 0x1p-300 && scale <= 0x1p300):
		return bad("noise-multiplier", "Use a number nearer to 1.",
			"%v times --sensitivity is beyond what can be squared", r.noise)
	case r.replaceOne && r.lanes():
		return bad("replace-one", "Leave it out.", "there is no bound for vectors")
	case r.replaceOne && r.law == "laplace" && r.rateFor(r.view) < 1:
		return bad("replace-one", "Leave out one of the two, or use gaussian or discrete-laplace.",
			"there is no bound for laplace noise with --rate below 1")
	}
	return nil
}

// mostRounds is what the accountant takes.
const mostRounds = 1 << 40

// lanes reports whether the release is a vector without a one-dimensional worst
// case.
func (r *release) lanes() bool { return r.dimension > 1 || r.shares > 1 }

// spent accounts for the release.
func (r *release) spent(view accounting.View) (accounting.Spent, error) {
	if r.lanes() {
		return r.round().Spent(view, r.rounds, r.delta)
	}
	c, err := accounting.Compose(r.steps(view)...)
	if err != nil {
		return accounting.Spent{}, err
	}
	b, err := c.Epsilon(r.delta)
	return accounting.Spent{Bound: b, View: view, Accountant: "PLD"}, err
}

// rateFor is the sampling rate that counts in a view.
func (r *release) rateFor(view accounting.View) float64 {
	if view == accounting.ServerView {
		return 1
	}
	return r.rate
}

// steps returns a one-dimensional release.
func (r *release) steps(view accounting.View) []accounting.Step {
	scale := r.noise * r.sensitivity
	whole := int(r.sensitivity)
	m := map[string]accounting.Mechanism{
		"gaussian":          accounting.Gaussian{NoiseMultiplier: r.noise},
		"laplace":           accounting.Laplace{Scale: r.noise},
		"discrete-gaussian": accounting.DiscreteGaussian{Sigma: scale, Sensitivity: whole},
		"discrete-laplace":  accounting.DiscreteLaplace{Scale: scale, Sensitivity: whole},
		"skellam":           accounting.Skellam{Variance: scale * scale, Sensitivity: whole},
	}[r.law]
	q := r.rateFor(view)
	switch {
	case r.replaceOne:
		m = accounting.ReplaceOne{Mechanism: m, Rate: q}
	case q < 1:
		m = accounting.Sampled{Mechanism: m, Rate: q}
	}
	return []accounting.Step{{Mechanism: m, Count: r.rounds}}
}

// round returns a release of vectors.
func (r *release) round() accounting.Round {
	sigma := r.noise * r.sensitivity
	out := accounting.Round{
		Family: accounting.FamilySkellam, Shares: r.shares, MinSurvivors: r.shares,
		Rate: r.rate, HiddenSchedule: true,
		Update: accounting.Lane{
			ShareVariance: sigma * sigma,
			Sensitivity: accounting.Sensitivity{
				L1:        accounting.RoundedL1(r.sensitivity, r.dimension),
				L2:        r.sensitivity,
				Dimension: r.dimension,
			},
		},
	}
	if r.law == "discrete-gaussian" {
		out.Family = accounting.FamilyDiscreteGaussian
		out.Update.ShareVariance, out.Update.ShareSigma = 0, sigma/math.Sqrt(float64(r.shares))
	}
	return out
}
