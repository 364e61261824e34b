package experiments

import (
	"context"
	"fmt"

	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/learning"
	"github.com/hushsum/hushsum/simulation"
)

// softMask is that of "Gradient Masked Averaging for Federated Learning".
var softMask = aggregation.GradientMask{Kind: aggregation.SoftMask, Threshold: aggregation.DefaultThreshold}

// masked runs a training with plain and with masked averaging, for the table's
// figure of that index.
func masked(figure int, labels []string, published [2]map[string]float64, rounds int, training func(seed uint64) (simulation.Training, error)) []arm {
	one := func(k int, name string, mask aggregation.GradientMask) arm {
		return arm{
			labels:    append(append([]string(nil), labels...), name),
			published: published[k],
			steps:     rounds,
			run: func(ctx context.Context, seed uint64, step func()) (outcome, error) {
				x, err := training(seed)
				if err != nil {
					return outcome{}, err
				}
				x.Mask, x.Rounds, x.Seed = mask, rounds, seed
				trained, err := train(ctx, x, step)
				if err != nil {
					return outcome{}, err
				}
				kept := 0.0
				for _, r := range trained.Rounds {
					kept += r.Masked / float64(len(trained.Rounds))
				}
				return outcome{[]float64{accuracy(trained), mcc(trained), kept}, inFigure(figure, learned(trained))}, nil
			},
		}
	}
	return []arm{one(0, "plain", aggregation.GradientMask{}), one(1, "masked", softMask)}
}

// maskedTable is the table of such arms, without rows.
func maskedTable(title string, labels ...string) *Table {
	return &Table{
		Title:    title,
		Labels:   append(labels, "average"),
		Measures: []Measure{accuracyMeasure, mccMeasure, {Name: "mask", Digits: 3}},
		Figures:  []Figure{learningFigure("accuracy", title)},
		Notes: []string{
			"The column mask is the mean factor of the gradient mask over coordinates and rounds. It makes steps shorter, so that masked averaging may be behind after few rounds for that alone.",
			"The published effect is that masked averaging is better; where no figure is published beside a row, its size is not compared.",
		},
	}
}

// compareMasks compares the arms of masked, of which there were that many pairs.
func (t *Table) compareMasks(arms []arm) {
	for k := 0; k+1 < len(arms); k += 2 {
		plain, soft := arms[k].labels, arms[k+1].labels
		claim := ""
		for _, l := range plain[:len(plain)-1] {
			claim += l + ", "
		}
		t.compare(claim+"masked less plain", soft, plain, 0, 1)
	}
}

func percent(x float64) map[string]float64 { return map[string]float64{"accuracy": x / 100} }

// convex is thesis §3.5.4: multinomial logistic regression, 10 parties, soft mask
// with τ = 0.4, η_g = 1, η_l = 0.01.
func convex(ctx context.Context, o Options) (*Table, error) {
	rows := pick(o, 60000, 60000, 600)
	rounds := pick(o, 25, 100, 2)
	every := pick(o, 5, 10, 1)
	local := learning.SGD{Rate: .01, Batch: 10, Epochs: 1}
	d, err := newDealer(o, "mnist", rows, pick(o, 10000, 10000, 200))
	if err != nil {
		return nil, err
	}
	t := maskedTable("Multinomial logistic regression on MNIST, 10 parties", "split")
	t.Settings = []string{
		fmt.Sprintf("%d training rows, %d test rows", min(rows, d.train.Len()), d.test.Len()),
		fmt.Sprintf("%d rounds of all parties; soft mask, threshold 0.4, server rate 1, local rate 0.01", rounds),
		"not stated in the thesis and chosen here, for both averages: 1 local epoch, batches of 10, no momentum or weight decay, two main classes with 90 % of a party's rows, the number of rounds",
	}
	training := func(split string) func(uint64) (simulation.Training, error) {
		return func(seed uint64) (simulation.Training, error) {
			with, err := d.deal(split, 10, seed)
			return simulation.Training{
				Model:   learning.Softmax{Features: d.train.Features, Outputs: 10},
				Parties: with.parties, Test: with.test, Local: local, EvaluateEvery: every,
			}, err
		}
	}
	arms := masked(0, []string{"iid"}, [2]map[string]float64{percent(92.4), percent(92.5)}, rounds, training("iid"))
	arms = append(arms, masked(0, []string{"label-skew"}, [2]map[string]float64{percent(87.0), percent(88.5)}, rounds, training("label-skew"))...)
	err = t.fill(ctx, o, arms)
	t.compareMasks(arms)
	return t, err
}

// fashion is the paper's MLP on Fashion-MNIST under label skew, with all parties in
// a round and with a tenth of them.
func fashion(ctx context.Context, o Options) (*Table, error) {
	rows := pick(o, 10000, 60000, 1000)
	hidden := pick(o, 200, 200, 8)
	d, err := newDealer(o, "fashion-mnist", rows, pick(o, 5000, 10000, 200))
	if err != nil {
		return nil, err
	}
	local := learning.SGD{Rate: .05, Batch: 32, Epochs: 1, WeightDecay: 1e-5}
	t := maskedTable(fmt.Sprintf("MLP %d-%d-10 on Fashion-MNIST, label skew", d.train.Features, hidden), "parties", "rule")
	sizes := []struct {
		clients, rounds, every int
	}{
		{10, pick(o, 15, 60, 1), pick(o, 5, 10, 1)},
		{100, pick(o, 60, 300, 2), pick(o, 12, 30, 2)},
	}
	t.Settings = []string{
		fmt.Sprintf("%d training rows, %d test rows; two main classes with 90 %% of a party's rows", min(rows, d.train.Len()), d.test.Len()),
		fmt.Sprintf("10 of 10 parties for %d rounds, 10 of 100 for %d; soft mask, threshold 0.4", sizes[0].rounds, sizes[1].rounds),
		"chosen here: local rate 0.05, 1 epoch, batches of 32, weight decay 1e-5; server rate 1 for FedAvg, 0.01 for FedAdam and FedYogi with betas 0.9 and 0.99 and tau 1e-3",
	}
	var arms []arm
	t.Figures = nil
	for k, s := range sizes {
		t.Figures = append(t.Figures, learningFigure(fmt.Sprintf("of-%d", s.clients), fmt.Sprintf("%s, 10 of %d parties a round", t.Title, s.clients)))
		for _, rule := range []struct {
			name   string
			server aggregation.Optimizer
		}{
			{"FedAvg", aggregation.Optimizer{}},
			{"FedAdam", aggregation.Optimizer{Rule: aggregation.RuleFedAdam, Rate: .01, Beta1: .9}},
			{"FedYogi", aggregation.Optimizer{Rule: aggregation.RuleFedYogi, Rate: .01, Beta1: .9}},
		} {
			arms = append(arms, masked(k, []string{fmt.Sprintf("10 of %d", s.clients), rule.name}, [2]map[string]float64{}, s.rounds,
				func(seed uint64) (simulation.Training, error) {
					with, err := d.deal("label-skew", s.clients, seed)
					return simulation.Training{
						Model: d.network(hidden), Parties: with.parties, Test: with.test, Local: local,
						PerRound: 10, Server: rule.server, EvaluateEvery: s.every,
					}, err
				})...)
		}
	}
	err = t.fill(ctx, o, arms)
	t.compareMasks(arms)
	return t, err
}

// writers is the papers' evaluation on real parties: MNIST by the writer of each
// digit, tested on writers that no party is.
func writers(ctx context.Context, o Options) (*Table, error) {
	hidden := pick(o, 200, 200, 8)
	rounds := pick(o, 80, 500, 2)
	every := pick(o, 20, 50, 2)
	perRound := pick(o, 30, 30, 4)
	d, err := newDealer(o, "writers", 1<<30, pick(o, 10000, 10000, 200))
	if err != nil {
		return nil, err
	}
	local := learning.SGD{Rate: .05, Batch: 10, Epochs: 1, WeightDecay: 1e-5}
	title := fmt.Sprintf("MLP %d-%d-10 on MNIST by writer, tested on unseen writers", d.train.Features, hidden)
	t := maskedTable(title, "rule")
	clients := map[int]bool{}
	for _, w := range d.train.Writers {
		clients[w] = true
	}
	unseen := map[int]bool{}
	for _, w := range d.test.Writers {
		unseen[w] = true
	}
	t.Settings = []string{
		fmt.Sprintf("%d writers with %d rows, %d in a round; %d test rows of %d other writers", len(clients), d.train.Len(), perRound, d.test.Len(), len(unseen)),
		fmt.Sprintf("%d rounds; soft mask, threshold 0.4, server rate 1", rounds),
		"chosen here: local rate 0.05, 1 epoch, batches of 10, weight decay 1e-5",
	}
	arms := masked(0, []string{"FedAvg"}, [2]map[string]float64{}, rounds, func(seed uint64) (simulation.Training, error) {
		with, err := d.deal("writers", 0, seed)
		return simulation.Training{
			Model: d.network(hidden), Parties: with.parties, Test: with.test, Local: local,
			PerRound: perRound, EvaluateEvery: every,
		}, err
	})
	err = t.fill(ctx, o, arms)
	t.compareMasks(arms)
	return t, err
}
