package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"
	"time"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/learning"
	"github.com/hushsum/hushsum/protocol"
	"github.com/hushsum/hushsum/simulation"
)

const simulateAbout = `Usage: hushsum simulate [flags]

Trains a model of many parties on this machine by federated averaging. Every
round, each party trains on rows of its own, masks the outcome, and submits it;
the server sees nothing but the sum of all. Beside it runs the same training in
the clear, from the same seed, to show what privacy costs the model.

With --drop, parties drop out of each round: before they submit, before they
sign who is left, or before they reveal the shares that take the masks off the
sum. They come back for the next round. The sum, and the training in the clear,
is then over those who submitted. A round with too few parties left is lost, and
training goes on with the old model. Without recovery nobody may drop out.

With --protocol oneshot a party sends one message a round, whatever the number
of parties, and a committee of --members takes the key off the sum; a fourth of
those beside one may collude with the server. Noise must then be
discrete-gaussian, and is what hides the parties' keys: privacy against the
server is computational. Drop-outs are those who do not submit.

With --noise, what is summed is each party's update: its new weights less the
model it began from, clipped to an L2 norm of --clip, turned at random, and
rounded to whole numbers. Every party adds a share of noise, so large that the
shares of the fewest survivors less the colluders have a standard deviation of
--noise-multiplier times the L2 sensitivity after rounding; all three laws are
measured like that. The next model is the old one plus the mean update. The
training in the clear clips alike, and neither rounds nor adds noise. Noise is
new in every run, whatever the seed.

What the rounds until then have spent of a party's privacy is printed with each
round as epsilon at --delta, an upper bound: "eps server" against the server and
the colluders, "eps public" against those who see the released models only. They
differ when rounds are sampled in secret, and here every party is in all rounds.
With --epsilon the noise is calibrated so that all rounds together stay within
it, against the server, and the run ends before a round that would overspend.

One line is printed per round:
  parties      in the sum, of all; or that the round is lost
  up, down     bytes from and to each party: messages and the broadcast model
  train ms     a party's local training
  sum ms       a party's work for the private sum: encoding its weights and
               masking; with recovery also shares and signatures
  server ms    the server's work for all parties
  eps server,  with noise in place of train ms, down and server ms: what has
  eps public   been spent, see above
  accuracy     of the model, on rows that no party has
  MCC          its Matthews correlation: 1 is perfect, 0 is no better than
               giving every row the same answer
Bytes and times of parties are means over all, drop-outs included. Ctrl-C ends
the run early and prints what was done. A run without any sum ends with code 1,
and standard error says why.

With --json there is one object per line, first one for each round:
  round                      its number, from 1
  clients                    parties in the sum; 0 if the round is lost
  accuracy, mcc              of the model out of the private sum
  clear_accuracy, clear_mcc  of the model trained in the clear
  max_abs_diff               largest difference between two of their weights
  largest_weight             largest magnitude of any party's weight
  bytes_up, bytes_down       from and to each party
  train_ms, client_ms        a party's training, and its work for the sum
  server_ms                  the server's work for all parties
  dropped                    parties that dropped out, at whatever moment
  lost                       whether too few were left
  epsilon, epsilon_public    spent so far against the server and the public,
                             upper bounds; null without noise or finite bound
  epsilon_lower              a lower bound of epsilon for the same mechanism
  accountant                 what proves them: "PLD" or "RDP"
then one with "summary": true. It has the same keys, of the last round; but
bytes, times and dropped are totals over all rounds, and largest_weight is the
largest of all. Besides:
  complete                   whether all rounds were run
  rows_per_client            training rows of each party
  parameters                 weights of the model
  ring_bits, count_bits      bits on the wire of a weight times rows, and of
                             the number of rows; with noise of an update's
                             coordinate, and 0
  setup_bytes_up, setup_bytes_down, setup_client_ms, setup_server_ms
                             the key exchange, and with recovery the material
                             for the first round: done once, and in no other
                             key but total_ms
  total_ms                   the whole run, on the clock, loading data included
  protocol                   "pairwise" or "oneshot"
  members                    of the committee; 0 without
  member_ms, member_bytes_down
                             one member's work in all rounds, and what it gets
  recovery                   "off", or the adversary: "cheating" or "curious"
  drop, colluders            as the flags say
  threshold                  shares that rebuild a secret; 0 without recovery
  min_survivors              the fewest parties in a sum
  lost_rounds                how many rounds were lost
  noise                      "none", or the law, as the flag says
  noise_multiplier, clip     as the flags say; 0 without noise
  noise_stddev               standard deviation of the noise that is left in
                             each weight of a sum of updates in any case
  noise_shares               honest shares that suffice for it; 0 without noise
  sensitivity                L2 norm of the largest update after rounding, in
                             units of the weights
  delta                      at which epsilon is stated; 0 without noise
  epsilon_budget             as --epsilon says; 0 without
  stopped                    whether the budget ended the run early
`

// laplaceBits are the bits of discrete Laplace noise if --bits says nothing: its
// shares have long tails, and the tables of wide ones do not fit.
const laplaceBits = 14

// simulateManual is the help.
func simulateManual() *manual {
	names := strings.Join(wrap(strings.Join(learning.PartitionNames(), ", "), width-34), "\n             ")
	before, json, _ := strings.Cut(simulateAbout, "\nWith --json there")
	return &manual{
		about:  before + fmt.Sprintf(trainingAbout, names),
		topics: []topic{{"json", "what --json prints", "With --json there" + json}},
		examples: []string{
			"hushsum simulate",
			"hushsum simulate --clients 10 --rounds 5",
			"hushsum simulate --drop 0.1",
			"hushsum simulate --protocol oneshot --clients 1000 --rows-per-client 20",
			"hushsum simulate --noise discrete-gaussian --noise-multiplier 0.5",
			"hushsum simulate --epsilon 4 --delta 1e-5",
			"hushsum simulate --data path/to/adult --json",
		},
	}
}

// simulateFlags are the values of the command's flags.
type simulateFlags struct {
	options      simulation.Options
	data         string
	json         bool
	recovery     bool
	withRecovery protocol.Recovery
	withNoise    simulation.Noise
	calibrate    bool // the noise multiplier, to the budget
	oneshot      bool // the protocol
	committee    simulation.Oneshot
	train        trainingFlags
}

// protocols names what the value of --protocol sets.
var protocols = map[bool]string{false: "pairwise", true: "oneshot"}

// flagOf names the flag that sets an option.
var flagOf = map[string]string{
	"Clients":               "clients",
	"RowsPerClient":         "rows-per-client",
	"Rounds":                "rounds",
	"LocalSteps":            "local-steps",
	"Local.Steps":           "local-steps",
	"Rate":                  "rate",
	"Local.Rate":            "rate",
	"Lambda":                "lambda",
	"Seed":                  "seed",
	"Range":                 "range",
	"FractionBits":          "fraction-bits",
	"Drop":                  "drop",
	"Recovery":              "recovery",
	"Oneshot":               "protocol",
	"Oneshot.Members":       "members",
	"Oneshot.Covered":       "covered",
	"Recovery.Adversary":    "adversary",
	"Colluders":             "colluders",
	"Recovery.MinSurvivors": "min-survivors",
	"Noise":                 "noise",
	"Noise.Law":             "noise",
	"Noise.Multiplier":      "noise-multiplier",
	"Noise.Clip":            "clip",
	"Noise.Bits":            "bits",
	"Noise.Epsilon":         "epsilon",
	"Noise.Delta":           "delta",

	"Parties":           "clients",
	"PerRound":          "per-round",
	"Client.Kind":       "rule",
	"Client.Mu":         "mu",
	"Client.Beta":       "beta",
	"Local.Momentum":    "momentum",
	"Local.Epochs":      "epochs",
	"Local.Batch":       "batch",
	"Local.WeightDecay": "weight-decay",
	"Server":            "server-rate",
	"Model":             "model",
	"Mask":              "mask-threshold",
	"Clip.Norm":         "clip",
}

func newSimulateFlags() (*flag.FlagSet, *simulateFlags) {
	v := &simulateFlags{options: simulation.Defaults(), withNoise: simulation.DefaultNoise()}
	v.withNoise.Law = noNoise
	v.withNoise.Delta = simulation.DefaultDelta
	o, r, n := &v.options, &v.withRecovery, &v.withNoise
	f := flag.NewFlagSet("simulate", flag.ContinueOnError)
	option := func(name string) string { return flagOf[name] }
	f.StringVar(&v.data, "data", synthetic, "`synthetic|PATH` made-up census rows, or the folder with adult.data and adult.test of the UCI Adult census; or a data set by name, see above")
	f.Var((*intValue)(&o.Clients), option("Clients"), "`N` parties, at least 2\t; for images 10")
	f.Var((*intValue)(&o.RowsPerClient), option("RowsPerClient"), "`N` training rows of each party\t; for images all")
	f.Var((*intValue)(&o.Rounds), option("Rounds"), "`N` rounds, each one private sum")
	f.Var((*intValue)(&o.LocalSteps), option("LocalSteps"), "`N` gradient steps of each party in a round\t; for images see --epochs")
	f.Var((*floatValue)(&o.Rate), option("Rate"), "`X` learning rate of gradient descent\t; for images 0.1")
	f.Var((*floatValue)(&o.Lambda), option("Lambda"), "`X` strength of L2 regularisation\t; for images 0")
	f.Var((*floatValue)(&o.Range), option("Range"), "`X` largest weight to encode; a larger one ends the run")
	f.Var((*intValue)(&o.FractionBits), option("FractionBits"), "`N` binary places of weight times rows; each costs a bit\t; of updates 20")
	f.Var((*seedValue)(&o.Seed), option("Seed"), "`N` makes and deals the rows and draws drop-outs; one seed, one outcome")
	f.Var((*floatValue)(&o.Drop), option("Drop"), "`F` fraction of the parties, 0 to 1, that drop out of each round")
	f.Var(oneOf(&v.oneshot, protocols, "pairwise or oneshot"), option("Oneshot"), "`pairwise|oneshot` how sums are taken, see above")
	f.Var((*intValue)(&v.committee.Members), option("Oneshot.Members"), "`N` members of the committee, 4 to 255; 0 for 13")
	f.BoolVar(&v.committee.Covered, option("Oneshot.Covered"), false, "submissions stay covered until the committee agrees on who is in the sum")
	f.BoolVar(&v.recovery, option("Recovery"), false, "rounds survive drop-outs; on if --drop is above 0, else off. Bytes and memory then grow with the square of --clients")
	f.Var(oneOf(&r.Adversary, adversaries, "cheating or curious"), option("Recovery.Adversary"), "`cheating|curious` the server that recovery is to withstand")
	f.Var((*intValue)(&o.Colluders), option("Colluders"), "`N` parties that may pool what they know with the server")
	f.Var((*intValue)(&r.MinSurvivors), option("Recovery.MinSurvivors"), "`N` fewest parties in a sum; 0 is the least that is safe")
	f.Var(oneOf(&n.Law, laws, "none, discrete-laplace, discrete-gaussian or skellam"), option("Noise.Law"), "`none|discrete-laplace|discrete-gaussian|skellam` noise in every sum")
	f.Var((*floatValue)(&n.Multiplier), option("Noise.Multiplier"), "`Z` standard deviation of the noise over the L2 sensitivity")
	f.Var((*floatValue)(&n.Clip), option("Noise.Clip"), "`C` L2 norm that updates are clipped to, with noise")
	f.Var((*intValue)(&n.Bits), option("Noise.Bits"), "`B` bits of each coordinate of a sum with noise; with discrete-laplace 14 unless given")
	f.Var((*floatValue)(&n.Epsilon), option("Noise.Epsilon"), "`E` privacy budget of each party: calibrates the noise unless --noise-multiplier is given, and stops the run; 0 for none. Sets --noise discrete-gaussian if there is none")
	f.Var((*floatValue)(&n.Delta), option("Noise.Delta"), "`D` probability with which epsilon may fail to hold")
	v.train.define(f)
	f.BoolVar(&v.json, "json", false, "print one JSON object per line instead of a table")
	return f, v
}

// given returns the flags that were given.
func given(flags *flag.FlagSet) map[string]bool {
	set := make(map[string]bool)
	flags.Visit(func(f *flag.Flag) { set[f.Name] = true })
	return set
}

// settle brings the flags together into options, after parsing.
func (v *simulateFlags) settle(flags *flag.FlagSet) error {
	set := given(flags)
	o := &v.options
	if v.data == "" {
		return &problem{cause: "--data is empty", advice: "Give the folder that holds " + whatAdultIs + ", or leave --data out."}
	}
	if !set["recovery"] {
		v.recovery = o.Drop > 0
	}
	switch {
	case v.recovery:
		o.Recovery = &v.withRecovery
	case o.Drop > 0:
		return &problem{
			cause:  "--drop: without recovery every party must submit, and none may drop out",
			advice: "Leave out --recovery=false, or --drop.",
		}
	default:
		for _, name := range []string{"adversary", "colluders", "min-survivors"} {
			if set[name] {
				return &problem{cause: "--" + name + ": it says something about recovery, which is off", advice: "Add --recovery or --drop."}
			}
		}
	}
	if v.oneshot {
		if v.isTraining(set) {
			return &problem{cause: "--protocol: images and the rules of training are summed pairwise", advice: "Leave out --protocol oneshot."}
		}
		o.Oneshot = &v.committee
	} else {
		for _, name := range []string{"members", "covered"} {
			if set[name] {
				return &problem{cause: "--" + name + ": it says something about a committee, and there is none", advice: "Add --protocol oneshot."}
			}
		}
	}
	if set["epsilon"] && !set["noise"] {
		v.withNoise.Law = simulation.DefaultNoise().Law
	}
	if v.withNoise.Law == accounting.FamilyDiscreteLaplace && !set["bits"] {
		v.withNoise.Bits = laplaceBits
	}
	if v.withNoise.Law != noNoise {
		v.calibrate = v.withNoise.Epsilon != 0 && !set["noise-multiplier"]
		o.Noise = &v.withNoise
		if v.withNoise.Delta == 0 {
			return &problem{cause: "--delta: rounds are accounted for with a delta above 0", advice: "Use a small number, such as 1e-5."}
		}
		for _, name := range []string{"range", "fraction-bits"} {
			if set[name] {
				return &problem{cause: "--" + name + ": it is of no use with noise", advice: "Use --clip and --bits, or leave out --noise."}
			}
		}
		if v.isTraining(set) {
			return nil // its own Validate comes later
		}
		return explain(o.Validate())
	}
	for _, name := range []string{"noise-multiplier", "clip", "bits", "epsilon", "delta"} {
		if set[name] && !(name == "clip" && v.isTraining(set)) {
			return &problem{cause: "--" + name + ": it says something about noise, which is off", advice: "Add --noise discrete-gaussian, or another law."}
		}
	}
	if v.isTraining(set) {
		return nil
	}
	return explain(o.Validate())
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
	if code, ok := parseFlags(flags, simulateManual(), args, std); !ok {
		return code
	}
	if err := v.settle(flags); err != nil {
		return wrongUsage(flags, err, std)
	}
	if set := given(flags); v.isTraining(set) {
		return simulateTraining(ctx, v, set, std)
	}
	options := &v.options
	start := time.Now()
	about, err := loadData(v.data, options)
	if err != nil {
		return failed(err, std)
	}
	recovery, err := options.EffectiveRecovery()
	if err != nil {
		return failed(err, std)
	}
	find := func() (float64, error) { return options.Calibrate(options.Train.Features) }
	if code, ok := v.calibrateNoise(ctx, std, find); !ok {
		return code
	}
	mechanism, err := options.Mechanism(options.Train.Features)
	if err != nil {
		return failed(err, std)
	}

	var report reporter = &table{screen: screen{std: std}, options: options, recovery: recovery, mechanism: mechanism}
	if v.json {
		report = &jsonLines{std: std, options: options, recovery: recovery, mechanism: mechanism}
	}
	report.begin(about, options)
	options.Now = time.Now
	options.Progress = report.progress
	summary, err := simulation.Run(ctx, *options, report.round)
	if summary == nil {
		return failed(err, std)
	}
	report.end(summary, time.Since(start))
	return v.ended(ctx, err, len(summary.Rounds), summary.Lost(), std)
}

// calibrateNoise finds the noise multiplier, if the flags ask for it. If the command
// is not to go on, ok is false and code the exit code.
func (v *simulateFlags) calibrateNoise(ctx context.Context, std streams, calibrate func() (float64, error)) (code int, ok bool) {
	if !v.calibrate {
		return exitOK, true
	}
	err := interruptible(ctx, func() (err error) {
		v.withNoise.Multiplier, err = calibrate()
		return err
	})
	switch {
	case ctx.Err() != nil:
		return interrupted("simulate", std), false
	case err != nil:
		return failed(err, std), false
	}
	return exitOK, true
}

// ended returns the exit code of a run with so many rounds, of which some were lost;
// err is what ended it early.
func (v *simulateFlags) ended(ctx context.Context, err error, rounds, lost int, std streams) int {
	switch {
	case err == nil && lost < rounds:
		return exitOK
	case err == nil && rounds == 0:
		return failed(&problem{cause: "there is no sum: the privacy budget does not allow a round", advice: "Raise --epsilon or --noise-multiplier."}, std)
	case err == nil:
		return failed(&problem{cause: "there is no sum: every round was lost", advice: "Lower --drop."}, std)
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		complain(std.err, "hushsum simulate", &problem{
			cause: fmt.Sprintf("interrupted after %s of %s", grouped(rounds), plural(v.options.Rounds, "round")),
		})
		return exitInterrupted
	}
	return failed(err, std)
}

// failed says why a run did not begin or go on.
func failed(err error, std streams) int {
	complain(std.err, "hushsum simulate", explain(err))
	return exitFailure
}

// explain says in the words of the command what is wrong and which flag helps.
func explain(err error) error {
	var bad *simulation.OptionError
	var said *problem
	switch {
	case err == nil:
		return nil
	case errors.As(err, &said):
		return err
	case errors.Is(err, aggregation.ErrSaturated):
		return &problem{
			cause:  where(err) + "a weight is larger than --range",
			advice: "Raise --range, or lower --rate or --local-steps.",
			err:    err,
		}
	case errors.Is(err, learning.ErrDiverged), errors.Is(err, aggregation.ErrNotFinite):
		return &problem{
			cause:  where(err) + "training diverged: the weights grew beyond all bounds",
			advice: "Lower --rate or --lambda.",
			err:    err,
		}
	case errors.As(err, &bad) && flagOf[bad.Option] != "":
		p := &problem{
			cause:  fmt.Sprintf("--%s: %s", flagOf[bad.Option], bad.Reason),
			advice: sentence(bad.Advice),
			err:    err,
		}
		if errors.Is(err, aggregation.ErrWrap) {
			p.advice = "Lower --range, --fraction-bits, --rows-per-client or --clients."
		}
		return p
	}
	return err
}

// where says in which round and with which party a run failed.
func where(err error) string {
	var failed *simulation.RoundError
	if !errors.As(err, &failed) || failed.Party < 0 {
		return ""
	}
	return fmt.Sprintf("round %d, party-%d: ", failed.Round, failed.Party+1)
}
