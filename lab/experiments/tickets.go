package experiments

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/learning"
	"github.com/hushsum/hushsum/simulation"
)

// ticketArm is a row of the table of sparse personalised models.
type ticketArm struct {
	name   string
	change func(*simulation.Personal)
	// alone trains every party by itself for as many epochs, in place of a federation.
	alone bool
	noise bool
}

// tickets is the table of chapter 4 of the thesis: FedLTN and what it is compared with,
// and what of it survives private sums and noise.
func tickets(ctx context.Context, o Options) (*Table, error) {
	few := ticketSize{clients: 10, perRound: 5, rounds: 50, jump: 25}
	least := ticketSize{clients: 4, perRound: 2, rounds: 3, jump: 1}
	return ticketsOf(ctx, o, pick(o, few, few, least))
}

// manyTickets is the same with a hundred parties, without some of the variants.
func manyTickets(ctx context.Context, o Options) (*Table, error) {
	return ticketsOf(ctx, o, pick(o,
		ticketSize{clients: 100, perRound: 5, rounds: 100, jump: 50, core: true},
		ticketSize{clients: 100, perRound: 5, rounds: 2000, jump: 1000, core: true},
		ticketSize{clients: 6, perRound: 2, rounds: 3, jump: 1, core: true}))
}

// unevenTickets is the same with proportions of all classes that parties draw from a Dirichlet law.
func unevenTickets(ctx context.Context, o Options) (*Table, error) {
	s := pick(o, ticketSize{clients: 100, perRound: 5, rounds: 100},
		ticketSize{clients: 100, perRound: 5, rounds: 2000},
		ticketSize{clients: 6, perRound: 2, rounds: 3})
	s.concentrations = []float64{0.5, 0.7}
	return ticketsOf(ctx, o, s)
}

// meanMin is a mean and a minimum over parties, in percent; 0: not published.
type meanMin [2]float64

// measures returns them by measure.
func (m meanMin) measures() map[string]float64 {
	if m == (meanMin{}) {
		return nil
	}
	return map[string]float64{"mean": m[0] / 100, "min": m[1] / 100}
}

// ticketsPublished is the thesis's table for CIFAR-10, by parties or alpha, and method.
var ticketsPublished = map[string]map[string]meanMin{
	"10": {"FedAvg": {72.8, 64.9}, "FedBN": {78.72, 65.75}, "LotteryFL .1": {72.0, 56.3},
		"LotteryFL .5": {75.8, 52.5}, "FedLTN .1": {74.5, 59.8}, "FedLTN .5": {81.1, 61.5},
		"FedLTN .9": {82.6, 63.0}, "FedLTN .9, Jump-Start": {82.2, 64.8},
		"FedLTN .9, rewind": {71.5, 53.0}},
	"100": {"FedAvg": {50.6, 42.0}, "LotteryFL .1": {75.1, 47.5}, "LotteryFL .5": {74.9, 51.3},
		"FedLTN .1": {77.9, 50.5}, "FedLTN .5": {76.3, 54.3}, "FedLTN .9": {75.4, 50.5}},
	"0.5": {"LotteryFL .5": {61.19, 24}, "FedLTN .5": {67.2, 40}, "FedLTN .9": {64.8, 40}},
	"0.7": {"LotteryFL .5": {54, 36}, "FedLTN .5": {56, 40}, "FedLTN .9": {55.6, 36}},
}

// ticketSize is the size of a table of tickets.
type ticketSize struct {
	clients, perRound, rounds int
	jump                      int  // rounds of Jump-Start
	core                      bool // only the rows that the thesis has, and one of each other kind
	// concentrations are those of the Dirichlet law of a party's classes; nil: two classes a party.
	concentrations []float64
}

func ticketsOf(ctx context.Context, o Options, s ticketSize) (*Table, error) {
	const epsilon, delta = 8, 1e-5
	train, test, err := o.load("fashion-mnist")
	if err != nil {
		return nil, err
	}
	if o.made == nil && !o.Long {
		train, test = halved(train, 16), halved(test, 16)
	}
	base, ok := learning.LeNetFor(train.Features, 10)
	if !ok {
		return nil, fmt.Errorf("%w: no LeNet for %d features", ErrConfig, train.Features)
	}
	base.BatchNorm = true
	t := &Table{
		Title: "Sparse personal models: LeNet with batch norm on Fashion-MNIST, 2 classes of " +
			"25 rows a party",
		Labels: []string{"parties", "method"},
		Measures: []Measure{
			{Name: "mean", Percent: true, Digits: 1}, {Name: "min", Percent: true, Digits: 1},
			{Name: "mean received", Percent: true, Digits: 1},
			{Name: "min received", Percent: true, Digits: 1},
			{Name: "kept", Percent: true, Digits: 0}, {Name: "sparse MB", Digits: 2},
			{Name: "masked MB", Digits: 2}, {Name: "epsilon", Digits: 2},
		},
		Notes: []string{
			"mean, min: over parties, accuracy on 200 test rows of a party's own classes of the " +
				"model that it uses: the one that it received, trained once more on its own " +
				"rows. received: before that training.",
			"sparse MB: all uploads of all rounds if each party sent the weights that it keeps, " +
				"4 bytes each, and let them be seen: the thesis's count. masked MB: the same " +
				"rounds in packed lanes under masks. kept: the mean share of weights that " +
				"parties keep in the end.",
			"Under masks a party's own sparsity saves nothing: lanes are dense. owners: the " +
				"mean over those who keep a weight takes a second lane of counts. voted: " +
				"weights that fewer than half of a round's parties keep leave the lanes for " +
				"all. public: the server prunes the public model by magnitude, parties keep no " +
				"masks of their own; that tells nothing about a party, and is free with noise " +
				"too. coarse: 8 binary places in place of 20.",
			"alone: no federation; as many epochs as a party has in the mean over the rounds. " +
				"Jump-Start shows the model of one party to all and is no private sum.",
			"The published figures are of CIFAR-10: ResNet18 at 10 parties, a smaller network at 100.",
		},
	}
	sgd := learning.SGD{Rate: 0.02, Batch: 8, Epochs: 3}
	uneven := s.concentrations != nil
	classes := "two classes"
	if uneven {
		classes = "all classes in proportions of a Dirichlet law of the concentration alpha"
		t.Title = "Sparse personal models: LeNet with batch norm on Fashion-MNIST, classes by a " +
			"Dirichlet law"
		t.Labels[0] = "alpha"
		t.Notes[4] = "The published figures are of CIFAR-10."
	} else {
		s.concentrations = []float64{0}
	}
	t.Settings = []string{
		fmt.Sprintf("%d parties, %d of them in each of %d rounds, with Jump-Start %d less; images "+
			"of %d pixels; 50 training, 50 validation and 200 test rows of %s a party",
			s.clients, s.perRound, s.rounds, s.jump, train.Features, classes),
		fmt.Sprintf("of the thesis: 3 local epochs of batches of 8, tau 0.5, accuracy threshold "+
			"0.6 (0.5 for LotteryFL), pruning by 0.1 of the weights that remain; local rate %v "+
			"without momentum, lambda 0.85 and the weight 0.001 of the norm in the loss are "+
			"chosen here", sgd.Rate),
		"all sums over the ring, which private sums equal bit for bit, but for the row in the " +
			"clear; pruned weights count as 0 in means unless said",
		fmt.Sprintf("noise: discrete Gaussian, calibrated to epsilon(server) %v at delta 1e-5, "+
			"updates clipped to 0.5", epsilon),
	}
	own := base.Normalisation()
	ltn := func(target float64, more func(*simulation.Personal)) func(*simulation.Personal) {
		return func(p *simulation.Personal) {
			p.Own, p.Mix, p.Lookahead, p.Pull = own, 0.5, 0.85, 1e-3
			p.Prune = simulation.Pruning{Kind: simulation.PostPrune, Target: target, Threshold: 0.6}
			if more != nil {
				more(p)
			}
		}
	}
	lottery := func(target float64) func(*simulation.Personal) {
		return func(p *simulation.Personal) {
			p.Prune = simulation.Pruning{Kind: simulation.PrePrune, Target: target, Threshold: 0.5}
		}
	}
	mean := func(m simulation.SparseMean) func(*simulation.Personal) {
		return func(p *simulation.Personal) {
			p.Mean = m
			if m == simulation.PublicMask {
				p.Prune.Kind = simulation.NoPrune
			}
		}
	}
	plain := func(*simulation.Personal) {}
	kinds := func() []ticketArm {
		all := []ticketArm{
			{name: "alone", change: plain, alone: true},
			{name: "FedAvg", change: plain},
			{name: "FedBN", change: func(p *simulation.Personal) { p.Own = own }},
			{name: "LotteryFL .1", change: lottery(0.1)},
			{name: "LotteryFL .5", change: lottery(0.5)},
			{name: "FedLTN .1", change: ltn(0.1, nil)},
			{name: "FedLTN .5", change: ltn(0.5, nil)},
			{name: "FedLTN .9", change: ltn(0.9, nil)},
			{name: "FedLTN .9, clear",
				change: ltn(0.9, func(p *simulation.Personal) { p.Job.World.Fidelity = simulation.Clear })},
			{name: "FedLTN .9, rewind",
				change: ltn(0.9, func(p *simulation.Personal) { p.Prune.Rewind = true })},
			{name: "FedLTN .9, owners", change: ltn(0.9, mean(simulation.OverOwners))},
			{name: "FedLTN .9, voted", change: ltn(0.9, mean(simulation.VotedMask))},
			{name: "FedLTN .9, public", change: ltn(0.9, mean(simulation.PublicMask))},
			{name: "FedLTN .9, public, coarse", change: ltn(0.9, func(p *simulation.Personal) {
				mean(simulation.PublicMask)(p)
				p.Job.Sum = job.Sum{Range: 8, FractionBits: 8}
			})},
			{name: "FedBN, noise", change: func(p *simulation.Personal) { p.Own = own }, noise: true},
			{name: "FedLTN .9, noise", change: ltn(0.9, nil), noise: true},
			{name: "FedLTN .9, public, noise", change: ltn(0.9, mean(simulation.PublicMask)), noise: true},
		}
		if uneven {
			return slices.DeleteFunc(all, func(a ticketArm) bool {
				return !slices.Contains([]string{"alone", "FedAvg", "LotteryFL .5", "FedLTN .5", "FedLTN .9"},
					a.name)
			})
		}
		if s.core {
			all = slices.DeleteFunc(all, func(a ticketArm) bool {
				return slices.Contains([]string{"FedLTN .9, clear", "FedLTN .9, owners",
					"FedLTN .9, public, coarse", "FedBN, noise", "FedLTN .9, public, noise"}, a.name)
			})
		}
		return append(all, ticketArm{name: "FedLTN .9, Jump-Start",
			change: ltn(0.9, func(p *simulation.Personal) {
				p.JumpStart, p.Job.Rounds = s.jump, s.rounds-s.jump
			})})
	}
	group := func(concentration float64) string {
		if uneven {
			return fmt.Sprint(concentration)
		}
		return fmt.Sprint(s.clients)
	}
	var arms []arm
	add := func(concentration float64, kind ticketArm) {
		arms = append(arms, arm{labels: []string{group(concentration), kind.name}, steps: s.rounds,
			published: ticketsPublished[group(concentration)][kind.name].measures(),
			run: func(ctx context.Context, seed uint64, step func()) (outcome, error) {
				parties, err := learning.PartitionPersonal(train, test, learning.PersonalOptions{
					Clients: s.clients, Test: pick(o, 200, 200, 20), Seed: seed,
					Concentration: concentration,
				})
				if err != nil {
					return outcome{}, err
				}
				p := simulation.Personal{Model: base, Parties: parties, Local: sgd, Job: &job.Job{
					Rounds: s.rounds, Seed: seed, Parties: job.Parties{PerRound: s.perRound},
					World: job.World{Fidelity: simulation.Ring}}}
				kind.change(&p)
				if kind.alone {
					return trainAlone(p, s.rounds*s.perRound*sgd.Epochs/s.clients)
				}
				if kind.noise {
					p.Job.Privacy = job.Privacy{Noise: "discrete-gaussian", Epsilon: epsilon, Delta: delta,
						Clip: 0.5, Bits: 22}
				}
				return trainPersonal(ctx, p, step)
			}})
	}
	for _, concentration := range s.concentrations {
		for _, kind := range kinds() {
			add(concentration, kind)
		}
	}
	err = t.fill(ctx, o, arms)
	for _, c := range []struct {
		a, b     string
		measure  int
		expected int
	}{
		{"FedBN", "FedAvg", 0, 1}, {"FedLTN .9", "FedAvg", 0, 1}, {"FedLTN .9", "FedBN", 0, 1},
		{"FedLTN .5", "LotteryFL .5", 0, 1}, {"FedLTN .5", "LotteryFL .5", 1, 1},
		{"FedLTN .1", "LotteryFL .1", 0, 1},
		{"FedLTN .9", "FedLTN .1", 0, 1}, {"FedLTN .9", "FedLTN .9, rewind", 0, 1},
		{"FedLTN .9, Jump-Start", "FedLTN .9", 1, 1},
		{"FedLTN .9", "FedAvg", 1, 1}, {"FedLTN .9", "FedBN", 1, 1}, {"FedLTN .9", "LotteryFL .5", 1, 1},
		{"FedLTN .5", "FedAvg", 1, 1}, {"FedLTN .5", "FedBN", 1, 1},
		{"FedLTN .9, Jump-Start", "FedAvg", 1, 1}, {"FedLTN .9, Jump-Start", "FedBN", 1, 1},
		{"FedLTN .9", "LotteryFL .5", 5, -1}, {"FedLTN .9", "FedAvg", 5, -1},
		{"FedLTN .9", "FedAvg", 6, 0}, {"FedLTN .9", "alone", 0, 0}, {"FedAvg", "alone", 0, 0},
		{"FedLTN .9, owners", "FedLTN .9", 0, 0}, {"FedLTN .9, voted", "FedLTN .9", 0, 0},
		{"FedLTN .9, public", "FedLTN .9", 0, 0},
		{"FedLTN .9, public, coarse", "FedLTN .9, public", 0, 0}, {"FedLTN .9, voted", "FedAvg", 6, 0},
		{"FedLTN .9, public", "FedAvg", 6, 0},
		{"FedLTN .9, public, coarse", "FedAvg", 6, 0}, {"FedLTN .9, clear", "FedLTN .9", 0, 0},
		{"FedLTN .9, public, noise", "FedLTN .9, noise", 0, 0},
		{"FedLTN .9, public, noise", "alone", 0, 0},
	} {
		for _, concentration := range s.concentrations {
			of := group(concentration)
			says := of + " parties"
			if uneven {
				says = "alpha " + of
			}
			t.compare(fmt.Sprintf("%s: (%s) less (%s)", says, c.a, c.b), []string{of, c.a},
				[]string{of, c.b}, c.measure, c.expected)
		}
	}
	return t, err
}

// trainPersonal runs one arm.
func trainPersonal(ctx context.Context, p simulation.Personal, step func()) (outcome, error) {
	out, err := p.Train(ctx, func(simulation.PersonalRound) { step() })
	if err != nil {
		return outcome{}, err
	}
	if out.Stopped != nil {
		return outcome{}, out.Stopped
	}
	var sparse, masked float64
	for _, r := range out.Rounds {
		sparse += float64(r.SparseBytes) / 1e6
		masked += float64(r.MaskedBytes) / 1e6
	}
	if p.Job.World.Fidelity == simulation.Clear {
		masked = nan()
	}
	last := out.Rounds[len(out.Rounds)-1]
	epsilon := last.Epsilon
	if math.IsInf(epsilon, 1) {
		epsilon = nan()
	}
	mean, least := simulation.MeanMin(last.Judged.Trained)
	received, worst := simulation.MeanMin(last.Judged.Received)
	return outcome{values: []float64{mean, least, received, worst, last.Kept, sparse, masked,
		epsilon}}, nil
}

// trainAlone has every party train by itself.
func trainAlone(p simulation.Personal, epochs int) (outcome, error) {
	accuracies := make([]float64, len(p.Parties))
	first := p.Model.Init(p.Job.Seed)
	for k, party := range p.Parties {
		w := append([]float64(nil), first...)
		local := p.Local
		local.Epochs = max(1, epochs) + p.Local.Epochs
		if _, err := local.Train(p.Model, w, party.Train, p.Job.Seed+uint64(k)); err != nil {
			return outcome{}, err
		}
		judged, err := learning.Evaluate(p.Model, w, party.Test)
		if err != nil {
			return outcome{}, err
		}
		accuracies[k] = judged.Accuracy()
	}
	mean, least := simulation.MeanMin(accuracies)
	return outcome{values: []float64{mean, least, nan(), nan(), 1, 0, 0, nan()}}, nil
}
