package account

import (
	"errors"
	"flag"
	"fmt"
	"strings"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/cli"
	"github.com/hushsum/hushsum/privacy"
	"github.com/hushsum/hushsum/privacy/spending"
)

// release is a run of noisy sums, as declared by flags.
type release struct {
	spending.Run
	delta float64
	units int // that epsilon protects; 0: unknown
	json  bool
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

// mechanisms returns the names of the mechanisms.
func mechanisms() (names []string) {
	for _, l := range releaseLaws {
		names = append(names, l.name)
	}
	return names
}

// mechanismHelp lists the laws.
func mechanismHelp() string {
	var b strings.Builder
	b.WriteString("\nMechanisms, and what Z in --noise-multiplier means:\n")
	for _, l := range releaseLaws {
		for i, line := range cli.Wrap(l.about, cli.Width-21) {
			name := ""
			if i == 0 {
				name = l.name
			}
			fmt.Fprintf(&b, "  %-18s %s\n", name, line)
		}
	}
	return b.String()
}

// privacyHelp holds the text that the help of account and of calibrate share.
const privacyHelp = `
With --rate below 1, each party takes part in each round with that probability,
independently of all others (Poisson sampling). That helps only against the
public, which must not know who took part: with --adversary server the rate is
ignored, since a server sees who takes part. With --unit record the rate is that
of secret coins that parties toss for their records: it helps against both. A
party is added or removed (against the server: its vector or zero); with
--replace-one it is replaced by another, which doubles the distance.

With --factorise B a party makes a vector in every Bth round and submits parts
of it in B rounds: --sensitivity bounds the norm of all parts together, and
--noise-multiplier is relative to that.

Every epsilon is a proven upper bound, shown with a lower bound where the
accountant has one, which a vector of one party attains. PLD composes
privacy-loss distributions, for vectors those of a Gaussian that is no better
than the noise; RDP, by Renyi divergence, is used where it proves a smaller
epsilon.
`

// takeMechanism takes the name of the law from the arguments.
func (r *release) takeMechanism(
	command string, args []string, std cli.Streams,
) (rest []string, code int, ok bool) {
	names := mechanisms()
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		for _, name := range names {
			if args[0] == name {
				r.Mechanism = name
				return args[1:], cli.ExitOK, true
			}
		}
	}
	if len(args) > 0 && cli.AsksHelp(args[0]) {
		r.Mechanism = names[0]
		return args, cli.ExitOK, true
	}
	err := &cli.Problem{
		Cause:  "the first argument must be the mechanism",
		Advice: "Use one of " + strings.Join(names, ", ") + ".",
	}
	if len(args) > 0 {
		err.Cause = fmt.Sprintf("%q is not a mechanism", args[0])
		err.Advice = cli.DidYouMean(args[0], names, "%s", err.Advice)
		if strings.HasPrefix(args[0], "-") {
			err.Cause = "the mechanism must come first, before all flags"
		}
	}
	cli.Complain(std.Err, "hushsum "+command, err)
	fmt.Fprintf(std.Err, "Run 'hushsum %s -h' for help.\n", command)
	return nil, cli.ExitUsage, false
}

// flags defines the flags that account and calibrate share.
func (r *release) flags(name string) *flag.FlagSet {
	*r = release{delta: 1e-5, Run: spending.Run{
		Mechanism:       r.Mechanism,
		NoiseMultiplier: 1,
		Rate:            1,
		Rounds:          1,
		Sensitivity:     1,
		Dimension:       1,
		Shares:          1,
		View:            accounting.PublicView,
	}}
	f := flag.NewFlagSet(name, flag.ContinueOnError)
	f.Var((*cli.FloatValue)(&r.NoiseMultiplier), "noise-multiplier", "`Z` noise over sensitivity, see above")
	f.Var((*cli.FloatValue)(&r.Rate), "rate",
		"`Q` probability that a party is in a round, above 0 to 1")
	f.Var((*cli.IntValue)(&r.Rounds), "rounds", "`T` rounds with fresh noise each")
	f.Var((*cli.IntValue)(&r.Participations), "participations",
		"`K` most rounds that a party submits in, by its own ledger, instead of --rounds; goes with "+
			"--of")
	f.Var((*cli.IntValue)(&r.Of), "of", "`T` rounds in total, of which anybody picks the K")
	f.Var((*cli.IntValue)(&r.Factorise), "factorise",
		"`B` rounds that noise is correlated over: a party is charged once in B of the --rounds, for "+
			"what it makes in one and submits in parts until its next turn; 0: independent noise")
	f.Var((*cli.FloatValue)(&r.delta), "delta",
		"`D` probability that epsilon may fail to hold, 0 to 1; 0 asks for pure privacy")
	f.Var((*cli.FloatValue)(&r.Sensitivity), "sensitivity",
		"`S` of the sum to one party: of discrete laws in integer units, and with --dimension 1 "+
			"or discrete-laplace a whole number")
	f.Var((*cli.IntValue)(&r.Dimension), "dimension",
		"`D` coordinates of a vector under discrete Gaussian or Skellam noise, whose L2 norm is "+
			"at most --sensitivity")
	f.Var((*cli.IntValue)(&r.Shares), "shares",
		"`M` independent shares that the discrete Gaussian noise is the sum of; "+
			"--noise-multiplier is of all together")
	f.Var(cli.OneOf(&r.View, views, "public or server"), "adversary",
		"`public|server` against whom privacy holds")
	f.Var(cli.OneOf(&r.Unit, units, "party or record"), "unit",
		"`party|record` whom epsilon protects; whether a record is in a round is decided by a coin that "+
			"its party keeps secret")
	f.Var((*cli.IntValue)(&r.units), "units",
		"`N` number of parties, or with --unit record of records: a delta above 1/N is pointed out; 0: "+
			"unknown")
	f.BoolVar(&r.ReplaceOne, "replace-one", false,
		"replace a party by another, instead of adding or removing it")
	f.BoolVar(&r.json, "json", false, "print one JSON object")
	return f
}

// check finds questions that no accountant can answer. found is the flag whose value is to be
// found, or empty.
func (r *release) check(found string) error {
	if !(r.delta >= 0 && r.delta < 1) {
		return &cli.Problem{
			Cause:  fmt.Sprintf("--delta: %v is not a probability below 1", r.delta),
			Advice: "Use a small number, such as 1e-5.",
		}
	}
	if r.units < 0 {
		return &cli.Problem{Cause: fmt.Sprintf("--units: %d is not a number of parties", r.units),
			Advice: "Give how many there are, or leave it out."}
	}
	if r.Unit.OfRecords() { // coins are secret: what holds against the server is said
		r.View = accounting.ServerView
	}
	err := r.Check(fields[found])
	var e *privacy.ConfigError
	if !errors.As(err, &e) {
		return err
	}
	flag := e.Field
	for name, field := range fields {
		if field == e.Field {
			flag = name
		}
	}
	p := &cli.Problem{Cause: "--" + flag + ": " + e.Reason}
	if e.Advice != "" {
		p.Advice = strings.ToUpper(e.Advice[:1]) + e.Advice[1:] + "."
	}
	return p
}

var units = map[accounting.Unit]string{accounting.PartyUnit: "party",
	accounting.RecordUnit: "record"}

// fields maps flags to the fields of a run.
var fields = map[string]string{
	"noise-multiplier": "NoiseMultiplier",
	"rate":             "Rate",
	"rounds":           "Rounds",
	"participations":   "Participations",
	"sensitivity":      "Sensitivity",
	"dimension":        "Dimension",
	"shares":           "Shares",
	"factorise":        "Factorise",
	"replace-one":      "ReplaceOne",
}

// spent accounts for the release in a view.
func (r *release) spent(view accounting.View) (accounting.Claim, error) {
	in := r.Run
	in.View = view
	return in.Epsilon(r.delta)
}

// views maps views to the values of --adversary of account and calibrate.
var views = map[accounting.View]string{
	accounting.PublicView: accounting.PublicView.String(),
	accounting.ServerView: accounting.ServerView.String(),
}
