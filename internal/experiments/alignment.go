package experiments

import (
	"context"
	"fmt"
	"strings"

	"github.com/hushsum/hushsum/learning"
	"github.com/hushsum/hushsum/simulation"
)

// alignment compares the parties' rules: FedAvg, FedProx, SCAFFOLD, and FedGA of
// "Implicit Gradient Alignment".
func alignment(ctx context.Context, o Options) (*Table, error) {
	rows := pick(o, 10000, 60000, 600)
	hidden := pick(o, 200, 200, 8)
	rounds := pick(o, 15, 60, 2)
	every := pick(o, 3, 10, 1)
	d, err := newDealer(o, "fashion-mnist", rows, pick(o, 5000, 10000, 200))
	if err != nil {
		return nil, err
	}
	title := fmt.Sprintf("Client rules: MLP %d-%d-10 on Fashion-MNIST, label skew", d.train.Features, hidden)
	t := &Table{
		Title: title, Labels: []string{"rule"},
		Measures: []Measure{accuracyMeasure, mccMeasure, {Name: "update norm", Digits: 3}},
		Figures:  []Figure{learningFigure("accuracy", title)},
		Notes:    []string{"The update norm is the mean over parties in the last round. The published effect is that FedGA is better than FedAvg."},
	}
	t.Settings = []string{
		fmt.Sprintf("%d training rows, %d test rows, 10 parties in %d rounds; two main classes with 90 %% of a party's rows", min(rows, d.train.Len()), d.test.Len(), rounds),
		"local rate 0.05, 1 epoch, batches of 32, no momentum or weight decay, server rate 1",
		"SCAFFOLD takes control variates by option II; FedGA sums gradients before each round",
	}
	var arms []arm
	for _, rule := range []struct {
		name   string
		client simulation.ClientRule
	}{
		{"FedAvg", simulation.ClientRule{}},
		{"FedProx 0.01", simulation.ClientRule{Kind: simulation.FedProx, Mu: .01}},
		{"FedProx 1", simulation.ClientRule{Kind: simulation.FedProx, Mu: 1}},
		{"SCAFFOLD", simulation.ClientRule{Kind: simulation.SCAFFOLD}},
		{"FedGA 0.01", simulation.ClientRule{Kind: simulation.FedGA, Beta: .01}},
		{"FedGA 0.1", simulation.ClientRule{Kind: simulation.FedGA, Beta: .1}},
	} {
		arms = append(arms, arm{labels: []string{rule.name}, steps: rounds, run: func(ctx context.Context, seed uint64, step func()) (outcome, error) {
			with, err := d.deal("label-skew", 10, seed)
			if err != nil {
				return outcome{}, err
			}
			trained, err := train(ctx, simulation.Training{
				Model: d.network(hidden), Parties: with.parties, Test: with.test, Rounds: rounds,
				Local: learning.SGD{Rate: .05, Batch: 32, Epochs: 1}, Client: rule.client, Seed: seed, EvaluateEvery: every,
			}, step)
			if err != nil {
				return outcome{}, err
			}
			last := trained.Rounds[len(trained.Rounds)-1]
			return outcome{[]float64{accuracy(trained), mcc(trained), last.MeanNorm}, []line{learned(trained)}}, nil
		}})
	}
	err = t.fill(ctx, o, arms)
	for _, a := range arms[1:] {
		expected := 0
		if strings.HasPrefix(a.labels[0], "FedGA") {
			expected = 1
		}
		t.compare(a.labels[0]+" less FedAvg", a.labels, arms[0].labels, 0, expected)
	}
	return t, err
}
