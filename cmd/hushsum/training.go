package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/learning"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/simulation"
)

// trainingAbout is the part of simulate's help about other models and rules.
const trainingAbout = `
Other data, models and rules. With any flag of this part, or data that is not a
census, parties submit updates of equal weight:
  --data     adult, digits, mnist or fashion-mnist, found in the folder
             HUSHSUM_DATA or in ../shared/data; or the folder with its files
  --model    softmax (multinomial logistic regression), mlp:N,N,... with N units
             in each hidden layer, lenet or lenet-norm (with batch norm) for
             images, or logistic for two classes
  --split    how rows are dealt: ` + "%s" + `
  --rule     fedavg, fedprox, scaffold or fedga of the parties, or momentum,
             fedadagrad, fedadam or fedyogi of the server; two with a plus sign,
             as in fedprox+fedadam
  --mask     soft or hard: weigh each coordinate by how far the signs of the
             updates agree. The signs are summed beside the updates, and get
             half of the privacy budget if there is noise
  --clip     without noise: updates are clipped to this L2 norm
--local-steps takes the place of --epochs, and --fraction-bits is 20. A census
is trained as without these flags: logistic, 100 parties of 200 rows, rate 2,
lambda 1e-4, 50 steps over all rows. Images have --model softmax, --clients 10,
all rows dealt unless --rows-per-client limits them, --rate 0.1, --lambda 0, and
one epoch in batches of 32. Columns are
  norm       of the updates before clipping, a mean
  clipped    the share of updates that was clipped
  mask       the mean factor of the mask
in place of bytes down and server ms; these, and accuracy, are what whoever runs
the simulation sees of the parties, and no epsilon covers them. With --json the
keys of a round are round, clients, accuracy, mcc, mean_norm, max_norm, cosine
(of updates and the last step), clipped, clip_norm, mask, bytes_up, bytes_down,
train_ms, client_ms, server_ms, dropped, lost, epsilon, epsilon_lower,
epsilon_public and accountant; of the last line summary, complete, data, model,
split, rule, mask, parameters, accuracy, mcc, clear_accuracy, clear_mcc,
max_abs_diff, the privacy keys of a round, and as below setup_bytes_up,
setup_bytes_down, setup_client_ms, setup_server_ms, recovery, drop, colluders,
threshold, min_survivors, lost_rounds, ring_bits, noise, noise_multiplier, clip,
delta, epsilon_budget, stopped and total_ms.
`

// trainingFlags are the values of flags that go with other models and rules.
type trainingFlags struct {
	model, split, rule, mask       string
	threshold, mu, beta            float64
	serverRate                     float64
	batch, epochs, perRound        int
	momentum, decay, concentration float64
}

// trainingNames are the flags, any of which asks for a training of this kind.
var trainingNames = []string{"model", "split", "rule", "mask", "mask-threshold", "mu", "beta", "server-rate", "batch", "epochs", "per-round", "momentum", "weight-decay", "concentration"}

func (v *trainingFlags) define(f *flag.FlagSet) {
	*v = trainingFlags{mu: .1, beta: .1, model: "softmax", split: "iid", rule: "fedavg", mask: "none", threshold: aggregation.DefaultThreshold, batch: 32, epochs: 1}
	f.StringVar(&v.model, "model", v.model, "`softmax|mlp:N,...|lenet|logistic` what is trained\t; for a census logistic")
	f.StringVar(&v.split, "split", v.split, "`NAME` how rows are dealt to parties")
	f.StringVar(&v.rule, "rule", v.rule, "`NAME` rule of the parties, of the server, or both with a plus sign")
	f.StringVar(&v.mask, "mask", v.mask, "`none|soft|hard` gradient mask")
	f.Var((*floatValue)(&v.threshold), "mask-threshold", "`T` agreement from which on a coordinate counts in full, 0 to 1")
	f.Var((*floatValue)(&v.mu), "mu", "`X` pull of fedprox towards the round's model")
	f.Var((*floatValue)(&v.beta), "beta", "`X` displacement of fedga")
	f.Var((*floatValue)(&v.serverRate), "server-rate", "`X` learning rate of the server; 0: 1, with momentum 0.1, with adaptive rules 0.01")
	f.Var((*intValue)(&v.batch), "batch", "`N` rows of a local step; 0 for all\t; for a census 0")
	f.Var((*intValue)(&v.epochs), "epochs", "`N` passes over a party's rows in a round\t; for a census see --local-steps")
	f.Var((*intValue)(&v.perRound), "per-round", "`N` parties in a round, drawn by the seed; 0 for all")
	f.Var((*floatValue)(&v.momentum), "momentum", "`X` of local steps, 0 to below 1")
	f.Var((*floatValue)(&v.decay), "weight-decay", "`X` of local steps")
	f.Var((*floatValue)(&v.concentration), "concentration", "`X` of the Dirichlet splits; 0 for 0.5")
}

// isTraining reports whether the flags ask for a training of this kind.
func (v *simulateFlags) isTraining(set map[string]bool) bool {
	for _, name := range trainingNames {
		if set[name] {
			return true
		}
	}
	return isImages(v.data)
}

// The names of --rule and --mask.
var (
	clientRules = map[string]simulation.ClientKind{
		"fedavg": simulation.FedAvg, "fedprox": simulation.FedProx, "scaffold": simulation.SCAFFOLD, "fedga": simulation.FedGA,
	}
	serverRules = map[string]aggregation.Rule{
		"momentum": aggregation.RuleMomentum, "fedadagrad": aggregation.RuleFedAdagrad, "fedadam": aggregation.RuleFedAdam, "fedyogi": aggregation.RuleFedYogi,
	}
	maskKinds = map[string]aggregation.MaskKind{"none": aggregation.NoMask, "soft": aggregation.SoftMask, "hard": aggregation.HardMask}
)

// training makes a training of the flags, for the data.
func (v *simulateFlags) training(set map[string]bool, train, test *learning.Dataset) (t simulation.Training, err error) {
	o, w := &v.options, &v.train
	t = simulation.Training{
		Test: test, Rounds: o.Rounds, PerRound: w.perRound, Seed: o.Seed, Sum: simulation.Private,
		Range: o.Range, FractionBits: updateBits,
		Local:    learning.SGD{Rate: .1, Momentum: w.momentum, WeightDecay: w.decay, Batch: w.batch, Epochs: w.epochs},
		Recovery: o.Recovery, Colluders: o.Colluders, Drop: o.Drop, Noise: o.Noise,
	}
	census := !isImages(v.data)
	lambda := 0.0
	clients := 10
	if set["rate"] || census {
		t.Local.Rate = o.Rate
	}
	if set["lambda"] || census {
		lambda = o.Lambda
	}
	if set["clients"] || census {
		clients = o.Clients
	} else if w.split == "writers" {
		clients = 0
	}
	if census && !set["model"] {
		w.model = "logistic"
	}
	if census && !set["batch"] {
		t.Local.Batch = 0
	}
	if census && !set["epochs"] {
		t.Local.Epochs, t.Local.Steps = 0, o.LocalSteps
	}
	switch {
	case set["mask-threshold"] && w.mask == "none":
		return t, &problem{cause: "--mask-threshold: there is no mask", advice: "Add --mask soft or hard."}
	case set["concentration"] && !strings.HasPrefix(w.split, "dirichlet"):
		return t, &problem{cause: "--concentration: the split is not drawn by a Dirichlet law", advice: "Use --split dirichlet-labels or dirichlet-quantity."}
	case set["fraction-bits"] && o.FractionBits < 1:
		return t, &problem{cause: fmt.Sprintf("--fraction-bits: %d is too few for updates", o.FractionBits), advice: "Use 1 or more, such as 20."}
	case o.Range == 0: // which Training takes for its default
		return t, &problem{cause: "--range: 0 bounds no update", advice: "Use a number above 0, such as 64."}
	case set["epochs"] && w.epochs < 1:
		return t, &problem{cause: fmt.Sprintf("--epochs: %d is too few", w.epochs), advice: "Use 1 or more."}
	}
	if set["local-steps"] {
		if set["epochs"] {
			return t, &problem{cause: "--epochs: --local-steps says how long parties train", advice: "Leave one of the two out."}
		}
		t.Local.Epochs, t.Local.Steps = 0, o.LocalSteps
	}
	if set["fraction-bits"] {
		t.FractionBits = o.FractionBits
	}
	if set["clip"] && t.Noise == nil {
		t.Clip = simulation.Clipping{Kind: simulation.DifferenceClip, Norm: v.withNoise.Clip}
	}
	if err := w.rules(&t, set); err != nil {
		return t, err
	}
	most := 0
	if set["rows-per-client"] || census {
		most = o.RowsPerClient
	}
	if t.Parties, t.Test, err = w.deal(train, test, clients, most, o.Seed); err != nil {
		return t, err
	}
	if t.Model, err = w.modelFor(t.Parties, t.Test, lambda); err != nil {
		return t, err
	}
	return t, explainTraining(t.Validate())
}

// updateBits are the binary places of updates unless --fraction-bits says otherwise.
const updateBits = 20

// explainTraining is explain for what means something else where parties submit
// updates.
func explainTraining(err error) error {
	switch {
	case errors.Is(err, aggregation.ErrSaturated):
		return &problem{
			cause:  where(err) + "a coordinate of the update is larger than --range, as it is when training diverges",
			advice: "Lower --rate, or raise --range.",
			err:    err,
		}
	case errors.Is(err, aggregation.ErrWrap):
		err = explain(err)
		var p *problem
		if errors.As(err, &p) {
			p.advice = "Lower --fraction-bits, --range or --clients."
		}
		return err
	}
	return explain(err)
}

// adaptiveRate is the server's rate with adaptive rules, whose steps are about as
// large as their signs.
const adaptiveRate = 0.01

// rules sets the rules of parties and server, and the mask.
func (w *trainingFlags) rules(t *simulation.Training, set map[string]bool) error {
	parties, servers := 0, 0
	for _, name := range strings.Split(w.rule, "+") {
		if kind, ok := clientRules[name]; ok {
			t.Client.Kind = kind
			parties++
		} else if rule, ok := serverRules[name]; ok {
			t.Server.Rule = rule
			servers++
		} else {
			return &problem{cause: fmt.Sprintf("--rule: there is no %q", name), advice: "Use fedavg, fedprox, scaffold, fedga, momentum, fedadagrad, fedadam or fedyogi."}
		}
	}
	if parties > 1 || servers > 1 {
		return &problem{cause: fmt.Sprintf("--rule: %s has two rules for one side", w.rule), advice: "Use one rule of the parties and one of the server, as in fedprox+fedadam."}
	}
	switch {
	case !(w.serverRate >= 0) || math.IsInf(w.serverRate, 1):
		return &problem{cause: fmt.Sprintf("--server-rate: %v is no learning rate", w.serverRate), advice: "Use a number above 0, or 0 for the rule's own."}
	case !(w.threshold >= 0 && w.threshold <= 1):
		return &problem{cause: fmt.Sprintf("--mask-threshold: %v is no agreement", w.threshold), advice: "Use a number from 0 to 1, such as 0.4."}
	}
	t.Server.Rate = w.serverRate
	if t.Server.Rule != aggregation.RuleFedAvg {
		t.Server.Beta1 = .9
		if t.Server.Rate == 0 {
			t.Server.Rate = adaptiveRate
		}
		if t.Server.Rule == aggregation.RuleMomentum && w.serverRate == 0 {
			t.Server.Rate = 1 - t.Server.Beta1 // steps then add up to the updates
		}
	}
	if t.Client.Kind == simulation.FedProx || set["mu"] {
		t.Client.Mu = w.mu
	}
	if t.Client.Kind == simulation.FedGA || set["beta"] {
		t.Client.Beta = w.beta
	}
	kind, ok := maskKinds[w.mask]
	if !ok {
		return &problem{cause: fmt.Sprintf("--mask: there is no %q", w.mask), advice: "Use none, soft or hard."}
	}
	t.Mask = aggregation.GradientMask{Kind: kind, Threshold: w.threshold}
	return nil
}

// deal splits the rows; most, if above 0, limits those of a party.
func (w *trainingFlags) deal(train, test *learning.Dataset, clients, most int, seed uint64) ([]*learning.Dataset, *learning.Dataset, error) {
	if err := w.splitFits(train); err != nil {
		return nil, nil, err
	}
	parties, unseen, err := learning.Partition(w.split, train, test, learning.PartitionOptions{Clients: clients, Seed: seed, Concentration: w.concentration})
	if err != nil {
		p := &problem{cause: "--split: " + plain(err), err: err}
		if errors.Is(err, learning.ErrTooFewRows) {
			p.advice = "Lower --clients."
		}
		return nil, nil, p
	}
	for i, d := range parties {
		if most == 0 || d.Len() <= most {
			continue
		}
		first := make([]int, most)
		for k := range first {
			first[k] = k
		}
		if parties[i], err = d.Subset(first); err != nil {
			return nil, nil, err
		}
	}
	return parties, unseen, nil
}

// splitFits checks that the data has what the split asks for.
func (w *trainingFlags) splitFits(train *learning.Dataset) error {
	switch {
	case w.split == "writers" && train.Writers == nil:
		return &problem{cause: "--split writers: the data does not say who wrote which row", advice: "Use --data mnist, with the folder qmnist-writers beside it, or another split."}
	case (strings.Contains(w.split, "colour") || strings.Contains(w.split, "rotation")) && train.Pixels == nil:
		return &problem{cause: fmt.Sprintf("--split %s: it takes images such as those of mnist", w.split), advice: "Use --data mnist or fashion-mnist, or another split."}
	}
	return nil
}

// modelFor makes the model for the rows.
func (w *trainingFlags) modelFor(parties []*learning.Dataset, test *learning.Dataset, lambda float64) (learning.Model, error) {
	features, classes := test.Features, 2
	for _, d := range append([]*learning.Dataset{test}, parties...) {
		for _, y := range d.Labels {
			classes = max(classes, y+1)
		}
	}
	if widths, ok := strings.CutPrefix(w.model, "mlp:"); ok {
		var hidden []int
		for _, text := range strings.Split(widths, ",") {
			n, err := strconv.Atoi(text)
			if err != nil || n < 1 || n > 1<<14 {
				return nil, &problem{cause: fmt.Sprintf("--model: %q is no number of hidden units", text), advice: "Use 1 to 16384, as in mlp:200 or mlp:100,50."}
			}
			hidden = append(hidden, n)
		}
		m := learning.MLP{Features: features, Hidden: hidden, Outputs: classes, Lambda: lambda}
		if n := m.NumParams(); n < 1 || n > masking.MaxLength { // 0 stands for too many to count
			return nil, &problem{cause: fmt.Sprintf("--model: %s is too large: sums take up to %s weights", w.model, grouped(masking.MaxLength)), advice: "Use fewer or smaller layers."}
		}
		return m, nil
	}
	switch w.model {
	case "lenet", "lenet-norm":
		m, ok := learning.LeNetFor(features, classes)
		if !ok {
			return nil, &problem{cause: fmt.Sprintf("--model: %s takes square images of 16 pixels a side or more, and rows here have %d features", w.model, features), advice: "Use --data mnist or fashion-mnist, or another model."}
		}
		m.BatchNorm, m.Lambda = w.model == "lenet-norm", lambda
		return m, nil
	case "softmax":
		return learning.Softmax{Features: features, Outputs: classes, Lambda: lambda}, nil
	case "logistic":
		if classes > 2 {
			return nil, &problem{cause: fmt.Sprintf("--model: the data has %d classes, and logistic regression two", classes), advice: "Use softmax."}
		}
		return learning.Logistic{Features: features, Lambda: lambda}, nil
	}
	return nil, &problem{cause: fmt.Sprintf("--model: there is no %q", w.model), advice: "Use softmax, mlp:200, lenet or logistic."}
}

// simulateTraining is simulate for other models and rules.
func simulateTraining(ctx context.Context, v *simulateFlags, set map[string]bool, std streams) int {
	start := time.Now()
	train, test, about, err := loadAny(v.data, &v.options)
	if err != nil {
		return failed(err, std)
	}
	t, err := v.training(set, train, test)
	if err != nil {
		complain(std.err, "hushsum simulate", err)
		fmt.Fprintln(std.err, "Run 'hushsum simulate -h' for help.")
		return exitUsage
	}
	if code, ok := v.calibrateNoise(ctx, std, t.Calibrate); !ok {
		return code
	}
	perRound := simulation.Options{Clients: cmp.Or(t.PerRound, len(t.Parties)), Recovery: t.Recovery, Colluders: t.Colluders}
	recovery, err := perRound.EffectiveRecovery()
	if err != nil {
		return failed(err, std)
	}
	show := &trainingTable{screen: screen{std: std}, flags: v, training: &t, about: about, recovery: recovery}
	if !v.json {
		show.begin()
	}
	t.Now = time.Now
	t.Progress = show.progress
	private, err := simulation.Train(ctx, t, show.round)
	if private == nil {
		return failed(explainTraining(err), std)
	}
	if err == nil && private.Stopped == nil {
		inClear := t
		inClear.Sum, inClear.Noise, inClear.Recovery, inClear.Drop = simulation.Clear, nil, nil, 0
		inClear.EvaluateEvery, inClear.Replay = t.Rounds, make([][]int, t.Rounds)
		for i, r := range private.Rounds {
			inClear.Replay[i] = r.Included
		}
		if t.Noise != nil {
			inClear.Clip = simulation.Clipping{Kind: simulation.DifferenceClip, Norm: t.Noise.Clip}
		}
		show.inClear = true
		var clear *simulation.Trained
		if clear, err = simulation.Train(ctx, inClear, nil); err == nil {
			show.clear = clear
		}
	}
	show.end(private, time.Since(start))
	return v.ended(ctx, explainTraining(err), len(private.Rounds), lostRounds(private), std)
}
