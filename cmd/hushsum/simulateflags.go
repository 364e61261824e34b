package main

import (
	"flag"
	"fmt"
	"strings"

	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/privacy"
	"github.com/hushsum/hushsum/protocol"
	"github.com/hushsum/hushsum/simulation"
)

// simulateFlags are the values of the command's flags.
type simulateFlags struct {
	set  map[string]bool // which were given
	json bool
	dealing
	perRound int
	byRows   bool

	// What is trained, and how.
	model                 string
	rounds, steps         int
	batch, epochs         int
	rate, momentum, decay float64
	lambda                float64
	rule                  string
	mu, beta, serverRate  float64
	mask                  string
	maskThreshold         float64
	rangeLimit            float64 // the largest number to encode
	fractionBits          int

	// How sums are taken, and who drops out.
	drop         float64
	oneshot      bool // the protocol
	committee    simulation.Oneshot
	recovery     bool
	withRecovery protocol.Recovery
	colluders    int

	noise  privacy.Noise // of no family: none
	budget privacy.Budget
}

// start is what flags are without being given, for one kind of data.
type start struct {
	model                string
	clients, rows        int
	steps, epochs, batch int
	rate, lambda         float64
}

// The kinds of data.
var (
	censusStart = start{model: "logistic", clients: 100, rows: 200, steps: 50, rate: 2, lambda: 1e-4}
	imagesStart = start{model: "softmax", clients: 10, epochs: 1, batch: 32, rate: .1}
)

// The binary places of weights times rows, and of updates, unless --fraction-bits says
// otherwise. A weight of the average of 100 parties with 200 rows is off by at most
// 2^-11/200, about 2.5e-6, and a coordinate takes exactly 32 bits.
const (
	weightBits = 10
	updateBits = 20
)

// protocols names what the value of --protocol sets.
var protocols = map[bool]string{false: "pairwise", true: "oneshot"}

// flagOf names the flag that sets a field of simulation.Options.
var flagOf = map[string]string{
	"Parties":               "clients",
	"PerRound":              "per-round",
	"Rounds":                "rounds",
	"Model":                 "model",
	"Local.Steps":           "local-steps",
	"Local.Epochs":          "epochs",
	"Local.Batch":           "batch",
	"Local.Rate":            "rate",
	"Local.Momentum":        "momentum",
	"Local.WeightDecay":     "weight-decay",
	"Client.Kind":           "rule",
	"Client.Mu":             "mu",
	"Client.Beta":           "beta",
	"Server":                "server-rate",
	"Mask":                  "mask-threshold",
	"Clip.Norm":             "clip",
	"Range":                 "range",
	"FractionBits":          "fraction-bits",
	"Drop":                  "drop",
	"Oneshot":               "protocol",
	"Oneshot.Members":       "members",
	"Recovery":              "recovery",
	"Recovery.Adversary":    "adversary",
	"Colluders":             "colluders",
	"Recovery.MinSurvivors": "min-survivors",
	"Noise":                 "noise",
	"Noise.Family":          "noise",
	"Noise.Multiplier":      "noise-multiplier",
	"Noise.Clip":            "clip",
	"Noise.Bits":            "bits",
	"Budget.Epsilon":        "epsilon",
	"Budget.Delta":          "delta",
}

func newSimulateFlags() (*flag.FlagSet, *simulateFlags) {
	v := &simulateFlags{noise: simulation.DefaultNoise(),
		budget: privacy.Budget{Delta: privacy.DefaultDelta}}
	v.noise.Family = noNoise
	f := flag.NewFlagSet("simulate", flag.ContinueOnError)
	text := func(p *string, name, value, usage string) { f.StringVar(p, name, value, usage) }
	number := func(p *float64, name string, value float64, usage string) {
		*p = value
		f.Var((*floatValue)(p), name, usage)
	}
	whole := func(p *int, name string, value int, usage string) {
		*p = value
		f.Var((*intValue)(p), name, usage)
	}
	census, images := censusStart, imagesStart
	text(&v.data, "data", synthetic,
		"`synthetic|PATH` made-up census rows, or the folder with adult.data and adult.test of the "+
			"UCI Adult census; or a data set by name: adult, digits, mnist, fashion-mnist")
	whole(&v.clients, "clients", census.clients, "`N` parties, at least 2\t; for images 10")
	whole(&v.rows, "rows-per-client", census.rows, "`N` training rows of each party\t; for images all")
	whole(&v.rounds, "rounds", 20, "`N` rounds, each one private sum")
	whole(&v.steps, "local-steps", census.steps,
		"`N` gradient steps of each party in a round\t; for images see --epochs")
	number(&v.rate, "rate", census.rate, "`X` learning rate of gradient descent\t; for images 0.1")
	number(&v.lambda, "lambda", census.lambda, "`X` strength of L2 regularisation\t; for images 0")
	number(&v.rangeLimit, "range", 64, "`X` largest weight to encode; a larger one ends the run")
	whole(&v.fractionBits, "fraction-bits", weightBits,
		"`N` binary places of weight times rows; each costs a bit\t; of updates 20")
	v.seed = 1
	f.Var((*seedValue)(&v.seed), "seed",
		"`N` makes and deals the rows and draws drop-outs; one seed, one outcome")
	number(&v.drop, "drop", 0, "`F` fraction of the parties, 0 to 1, that drop out of each round")
	f.Var(oneOf(&v.oneshot, protocols, "pairwise or oneshot"), "protocol",
		"`pairwise|oneshot` how sums are taken")
	whole(&v.committee.Members, "members", 0, "`N` members of the committee, 4 to 255; 0 for 13")
	f.BoolVar(&v.committee.Covered, "covered", false,
		"submissions stay covered until the committee agrees on who is in the sum")
	f.BoolVar(&v.recovery, "recovery", false,
		"rounds survive drop-outs; on if --drop is above 0, else off. Bytes and memory then grow with "+
			"the square of --clients")
	f.Var(oneOf(&v.withRecovery.Adversary, adversaries, "cheating or curious"), "adversary",
		"`cheating|curious` the server that recovery is to withstand")
	whole(&v.colluders, "colluders", 0, "`N` parties that may pool what they know with the server")
	whole(&v.withRecovery.MinSurvivors, "min-survivors", 0,
		"`N` fewest parties in a sum; 0 is the least that is safe")
	f.Var(oneOf(&v.noise.Family, laws, "none, discrete-laplace, discrete-gaussian or skellam"),
		"noise", "`none|discrete-laplace|discrete-gaussian|skellam` noise in every sum")
	number(&v.noise.Multiplier, "noise-multiplier", v.noise.Multiplier,
		"`Z` standard deviation of the noise over the L2 sensitivity")
	number(&v.noise.Clip, "clip", v.noise.Clip, "`C` L2 norm that updates are clipped to, with noise")
	whole(&v.noise.Bits, "bits", v.noise.Bits,
		"`B` bits of each coordinate of a sum with noise; by default more where --protocol "+
			"oneshot and many parties take them")
	number(&v.budget.Epsilon, "epsilon", 0,
		"`E` privacy budget of each party: calibrates the noise unless --noise-multiplier is given, "+
			"and stops the run; 0 for none. Sets --noise discrete-gaussian if there is none")
	number(&v.budget.Delta, "delta", v.budget.Delta,
		"`D` probability with which epsilon may fail to hold")

	text(&v.model, "model", images.model,
		"`softmax|mlp:N,...|lenet|logistic` what is trained\t; for a census logistic")
	text(&v.split, "split", "iid", "`NAME` how rows are dealt to parties")
	f.BoolVar(&v.byRows, "by-rows", false, "weigh updates by the parties' numbers of rows")
	text(&v.rule, "rule", "fedavg",
		"`NAME` rule of the parties, of the server, or both with a plus sign")
	text(&v.mask, "mask", "none", "`none|soft|hard` gradient mask")
	number(&v.maskThreshold, "mask-threshold", aggregation.DefaultThreshold,
		"`T` agreement from which on a coordinate counts in full, 0 to 1")
	number(&v.mu, "mu", .1, "`X` pull of fedprox towards the round's model")
	number(&v.beta, "beta", .1, "`X` displacement of fedga")
	number(&v.serverRate, "server-rate", 0,
		"`X` learning rate of the server; 0: 1, with momentum 0.1, with adaptive rules 0.01")
	whole(&v.batch, "batch", images.batch, "`N` rows of a local step; 0 for all\t; for a census 0")
	whole(&v.epochs, "epochs", images.epochs,
		"`N` passes over a party's rows in a round\t; for a census see --local-steps")
	whole(&v.perRound, "per-round", 0, "`N` parties in a round, drawn by the seed; 0 for all")
	number(&v.momentum, "momentum", 0, "`X` of local steps, 0 to below 1")
	number(&v.decay, "weight-decay", 0, "`X` of local steps")
	number(&v.concentration, "concentration", 0, "`X` of the Dirichlet splits; 0 for 0.5")
	f.BoolVar(&v.json, "json", false, "print one JSON object per line instead of a table")
	return f, v
}

// ruleFlags are those of other models and rules, any of which has parties submit
// updates.
var ruleFlags = []string{
	"model", "split", "by-rows", "rule", "mask", "mask-threshold", "mu", "beta", "server-rate",
	"batch", "epochs", "per-round", "momentum", "weight-decay", "concentration",
}

// given returns the flags that were given.
func given(flags *flag.FlagSet) map[string]bool {
	set := make(map[string]bool)
	flags.Visit(func(f *flag.Flag) { set[f.Name] = true })
	return set
}

// averaging reports whether the flags ask for nothing but federated averaging of a
// census, as it was first described: parties submit weights, and their numbers of rows.
// With noise they submit updates all the same.
func (v *simulateFlags) averaging() bool {
	for _, name := range ruleFlags {
		if v.set[name] {
			return false
		}
	}
	return !isImages(v.data)
}

// noisy reports whether there is noise.
func (v *simulateFlags) noisy() bool { return v.noise.Family != noNoise }

// settle brings the flags together after parsing: it fills in what others, and the
// data, decide, and finds what does not go together.
func (v *simulateFlags) settle(flags *flag.FlagSet) error {
	v.set = given(flags)
	if v.data == "" {
		return &problem{cause: "--data is empty",
			advice: "Give the folder that holds " + whatAdultIs + ", or leave --data out."}
	}
	v.settleData()
	if v.set["epsilon"] && !v.set["noise"] {
		v.noise.Family = simulation.DefaultNoise().Family
	}
	for _, check := range []func() error{v.checkRecovery, v.checkCommittee, v.checkNoise,
		v.checkNumbers, v.checkRules} {
		if err := check(); err != nil {
			return err
		}
	}
	if v.averaging() {
		v.split = shuffledSplit
	}
	return nil
}

// settleData fills in what depends on the kind of data.
func (v *simulateFlags) settleData() {
	kind := censusStart
	if isImages(v.data) {
		kind = imagesStart
		if v.split == "writers" {
			kind.clients = 0 // all
		}
	}
	if !v.set["model"] {
		v.model = kind.model
	}
	for name, number := range map[string]struct {
		value *int
		start int
	}{
		"clients":         {&v.clients, kind.clients},
		"rows-per-client": {&v.rows, kind.rows},
		"batch":           {&v.batch, kind.batch},
	} {
		if !v.set[name] {
			*number.value = number.start
		}
	}
	if !v.set["rate"] {
		v.rate = kind.rate
	}
	if !v.set["lambda"] {
		v.lambda = kind.lambda
	}
	if !v.set["fraction-bits"] && !v.averaging() {
		v.fractionBits = updateBits
	}
	// Steps or epochs, whichever is given.
	switch {
	case v.set["local-steps"] && v.set["epochs"]: // checkNumbers refuses it
	case v.set["local-steps"]:
		v.epochs = 0
	case v.set["epochs"]:
		v.steps = 0
	default:
		v.steps, v.epochs = kind.steps, kind.epochs
	}
}

// checkRecovery settles recovery.
func (v *simulateFlags) checkRecovery() error {
	if !v.set["recovery"] {
		v.recovery = v.drop > 0
	}
	switch {
	case v.recovery:
		return nil
	case v.drop > 0:
		return &problem{
			cause:  "--drop: without recovery every party must submit, and none may drop out",
			advice: "Leave out --recovery=false, or --drop.",
		}
	}
	return v.refuse("it says something about recovery, which is off", "Add --recovery or --drop.",
		"adversary", "colluders", "min-survivors")
}

func (v *simulateFlags) checkCommittee() error {
	if v.oneshot {
		return nil
	}
	return v.refuse("it says something about a committee, and there is none",
		"Add --protocol oneshot.",
		"members", "covered")
}

func (v *simulateFlags) checkNoise() error {
	if v.noisy() {
		if v.budget.Delta == 0 {
			return &problem{cause: "--delta: rounds are accounted for with a delta above 0",
				advice: "Use a small number, such as 1e-5."}
		}
		return v.refuse("it is of no use with noise", "Use --clip and --bits, or leave out --noise.",
			"range", "fraction-bits")
	}
	about := []string{"noise-multiplier", "bits", "epsilon", "delta"}
	if v.averaging() {
		about = append(about, "clip")
	}
	return v.refuse("it says something about noise, which is off",
		"Add --noise discrete-gaussian, or another law.", about...)
}

// checkNumbers finds numbers that would otherwise stand for something else, or that data
// cannot be made for.
func (v *simulateFlags) checkNumbers() error {
	tooFew := func(name string, n int, advice string) error {
		return &problem{cause: fmt.Sprintf("--%s: %d is too few", name, n), advice: advice}
	}
	switch {
	case v.clients < 2 && !(v.clients == 0 && v.split == "writers"):
		return tooFew("clients", v.clients,
			"The sum of one party is that party's update, so use at least 2.")
	case v.clients > simulation.MaxParties && !v.oneshot:
		return &problem{
			cause:  fmt.Sprintf("--clients: %d is too many", v.clients),
			advice: fmt.Sprintf("Every pair shares keys, so use at most %d.", simulation.MaxParties),
		}
	case v.set["rows-per-client"] && v.rows < 1:
		return tooFew("rows-per-client", v.rows, "Every party needs at least 1 row.")
	case v.set["local-steps"] && v.set["epochs"]:
		return &problem{cause: "--epochs: --local-steps says how long parties train",
			advice: "Leave one of the two out."}
	case v.set["local-steps"] && v.steps < 1:
		return tooFew("local-steps", v.steps, "Use at least 1.")
	case v.set["epochs"] && v.epochs < 1:
		return tooFew("epochs", v.epochs, "Use 1 or more.")
	case v.fractionBits == 0:
		return tooFew("fraction-bits", v.fractionBits,
			"Use 1 or more, such as 10 for weights and 20 for updates.")
	case v.rangeLimit == 0:
		return &problem{cause: "--range: 0 bounds nothing", advice: "Use a number above 0, such as 64."}
	}
	return nil
}

func (v *simulateFlags) checkRules() error {
	switch {
	case v.set["mask-threshold"] && v.mask == "none":
		return &problem{cause: "--mask-threshold: there is no mask", advice: "Add --mask soft or hard."}
	case v.set["concentration"] && !strings.HasPrefix(v.split, "dirichlet"):
		return &problem{cause: "--concentration: the split is not drawn by a Dirichlet law",
			advice: "Use --split dirichlet-labels or dirichlet-quantity."}
	}
	return nil
}

// refuse finds the first of the named flags that was given.
func (v *simulateFlags) refuse(why, advice string, names ...string) error {
	for _, name := range names {
		if v.set[name] {
			return &problem{cause: "--" + name + ": " + why, advice: advice}
		}
	}
	return nil
}
