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

// alignment compares the parties' rules as "Implicit Gradient Alignment" does: one class
// a party, few of them in a round, and two exchanges counted where there are two.
func alignment(ctx context.Context, o Options) (*Table, error) {
	return alignmentForm{"one-class", "one class a party", "of one class each", []alignedRule{
		{"FedAvg", job.Training{}, 82.90},
		{"FedProx 0.01", job.Training{Rule: "fedprox", Mu: 0.01}, 83.20},
		{"SCAFFOLD", job.Training{Rule: "scaffold", Variates: "fresh"}, 84.67},
		{"SCAFFOLD, stored", job.Training{Rule: "scaffold"}, 0},
		{"FedGA 0.025", job.Training{Rule: "fedga", Beta: 0.025}, 85.95},
		{"FedGA 0.05", job.Training{Rule: "fedga", Beta: 0.05}, 85.95}, // best β's
		{"FedGA 0.1", job.Training{Rule: "fedga", Beta: 0.1}, 0},
	}, []string{"FedGA 0.025", "FedGA 0.05"}}.run(ctx, o)
}

// alignmentIID is the same with rows dealt at random.
func alignmentIID(ctx context.Context, o Options) (*Table, error) {
	return alignmentForm{"iid", "rows dealt at random", "with rows dealt at random", []alignedRule{
		{"FedAvg", job.Training{}, 88.32},
		{"FedProx 0.01", job.Training{Rule: "fedprox", Mu: 0.01}, 88.18},
		{"SCAFFOLD", job.Training{Rule: "scaffold", Variates: "fresh"}, 88.56},
		{"FedGA 0.5", job.Training{Rule: "fedga", Beta: 0.5}, 0},
		{"FedGA 1.5", job.Training{Rule: "fedga", Beta: 1.5}, 88.66},
		{"FedGA 2.5", job.Training{Rule: "fedga", Beta: 2.5}, 88.66}, // best β's
	}, []string{"FedGA 1.5", "FedGA 2.5"}}.run(ctx, o)
}

// alignedRule is a rule of parties in the tables of alignment.
type alignedRule struct {
	name      string
	client    job.Training // its rule
	published float64
}

// alignmentForm has all in which the experiments of alignment differ.
type alignmentForm struct {
	split, dealt, parties string
	rules                 []alignedRule
	claimed               []string // that the paper says are better
}

func (f alignmentForm) run(ctx context.Context, o Options) (*Table, error) {
	rows := pick(o, 6000, 60000, 600)
	updates := pick(o, 200, 3000, 12)
	last := pick(o, 40, 300, 4)
	clients := pick(o, 50, 50, 10)
	perRound := pick(o, 10, 10, 4)
	d, err := newDealer(o, "fashion-mnist", rows, pick(o, 2000, 10000, 200))
	if err != nil {
		return nil, err
	}
	if !o.Long {
		d.smaller(o, 14)
	}
	hidden := pick(o, 48, 200, 8)
	title := fmt.Sprintf("Client rules: MLP %d-%d-10 on Fashion-MNIST, %s",
		d.train.Features, hidden, f.dealt)
	t := &Table{
		Title: title, Labels: []string{"rule"},
		Measures: []Measure{accuracyMeasure, {Name: "equal exchanges", Percent: true, Digits: 2},
			{Name: "train", Percent: true, Digits: 2}, {Name: "exchanges", Digits: 0}},
		Figures: []Figure{
			learningFigure("updates", title),
			{Name: "exchanges", Title: title, X: "exchange", Y: "test accuracy, %", Percent: true},
		},
		Notes: []string{
			fmt.Sprintf("accuracy: the mean of the last %d updates; equal exchanges: the mean "+
				"over those of as many exchanges, which two-exchange rules reach in half of the "+
				"updates; train: of the last model on the training rows.", last),
			"FedGA and SCAFFOLD with fresh variates sum gradients before every update, two " +
				"exchanges for each. The published figures are of balanced EMNIST with 47 " +
				"classes and a convolutional network.",
		},
	}
	t.Settings = []string{
		fmt.Sprintf("%d training rows, %d test rows; %d parties %s, %d in each of %d "+
			"updates", min(rows, d.train.Len()), d.test.Len(), clients, f.parties, perRound, updates),
		"of the paper: 10 local steps, batches of a tenth of a party's rows, weight decay 1e-3, " +
			"no momentum, server rate 1; local rate 0.1, of its grid",
		"SCAFFOLD corrects by fresh gradients of the round's parties; stored: by control " +
			"variates of option II",
	}
	batch := max(1, rows/clients/10)
	var arms []arm
	for _, rule := range f.rules {
		a := arm{labels: []string{rule.name}, steps: updates}
		if rule.published != 0 {
			a.published = percent(rule.published)
		}
		a.run = func(ctx context.Context, seed uint64, step func()) (outcome, error) {
			with, err := d.deal(f.split, clients, seed)
			if err != nil {
				return outcome{}, err
			}
			var model []float64
			exchanges := 1
			x := setting{rows: with, Job: job.Job{Rounds: updates, Seed: seed, Model: mlp(hidden),
				Parties: job.Parties{PerRound: perRound}, Training: rule.client}}
			x.Training.Rate, x.Training.Batch, x.Training.Steps = 0.1, batch, 10
			x.Training.WeightDecay = 1e-3
			trained, err := x.run(ctx, func(r simulation.RoundResult) {
				step()
				model, exchanges = r.Model, r.Exchanges
			})
			if err != nil {
				return outcome{}, err
			}
			all, hits := 0.0, 0.0
			for _, p := range with.parties {
				judged, err := learning.Evaluate(d.network(hidden), model, p)
				if err != nil {
					return outcome{}, err
				}
				all += float64(p.Len())
				hits += judged.Accuracy() * float64(p.Len())
			}
			l := learned(trained)
			at, _ := l.meanOver(updates, last)
			equal, _ := l.meanOver(updates/exchanges, last/exchanges)
			spent := line{y: l.y}
			for _, round := range l.x {
				spent.x = append(spent.x, round*float64(exchanges))
			}
			return outcome{[]float64{at, equal, hits / all, float64(exchanges * updates)}, []line{l, spent}},
				nil
		}
		arms = append(arms, a)
	}
	err = t.fill(ctx, o, arms)
	for k, a := range arms[1:] {
		expected := 0
		if f.rules[k+1].published != 0 {
			expected = 1
		}
		t.compare(a.labels[0]+" less FedAvg, after as many updates", a.labels, arms[0].labels, 0,
			expected)
		if r := t.row(a.labels...); r != nil {
			if n, _, seeds := r.Mean(3); seeds > 0 && math.Abs(n-float64(updates)) > 0.5 {
				t.compare(a.labels[0]+" less FedAvg, after as many exchanges", a.labels, arms[0].labels, 1,
					expected)
			}
		}
	}
	for _, rule := range f.claimed { // and that its β is best
		for _, other := range f.rules {
			if other.client.Rule == "fedga" && !slices.Contains(f.claimed, other.name) {
				t.compare(rule+" less "+other.name, []string{rule}, []string{other.name}, 0, 1)
			}
		}
		t.compare(rule+" less FedAvg on training rows", []string{rule}, []string{"FedAvg"}, 2, -1)
	}
	return t, err
}

// alignmentSteps is the paper's setting of a data centre: rows dealt at random, one step a round on
// a large batch, where FedGA is GradAlign and FedAvg is gradient descent. The paper shows curves.
func alignmentSteps(ctx context.Context, o Options) (*Table, error) {
	rows := pick(o, 3000, 60000, 600)
	updates, last := pick(o, 300, 3000, 6), pick(o, 30, 300, 2)
	const clients, rate, target = 10, 0.4, 0.76
	d, err := newDealer(o, "fashion-mnist", rows, pick(o, 1000, 10000, 200))
	if err != nil {
		return nil, err
	}
	if !o.Long {
		d.smaller(o, 14)
	}
	hidden := pick(o, 48, 200, 8)
	title := fmt.Sprintf("One step of large batches: MLP %d-%d-10 on Fashion-MNIST, rows dealt at "+
		"random", d.train.Features, hidden)
	t := &Table{
		Title: title, Labels: []string{"batch", "rule"},
		Measures: []Measure{accuracyMeasure, {Name: "equal exchanges", Percent: true, Digits: 2},
			{Name: "updates", Digits: 0}},
		Figures: []Figure{learningFigure("updates", title)},
		Notes: []string{
			fmt.Sprintf("accuracy: the mean of the last %d updates; equal exchanges: the mean over those "+
				"of as many exchanges, which GradAlign reaches in half of the updates; updates: until the "+
				"model is first right on %v of the test rows, all if it never is.", last, target),
		},
		Settings: []string{
			fmt.Sprintf("%d training rows, %d test rows; %d parties, all in each of %d updates",
				min(rows, d.train.Len()), d.test.Len(), clients, updates),
			fmt.Sprintf("of the paper: 1 local step, batches of all or a fifth of a party's rows, weight "+
				"decay 1e-3, no momentum; local rate %v, of its grid", rate),
		},
	}
	var arms []arm
	for _, batch := range []struct {
		name string
		rows int
	}{{"all", rows / clients}, {"a fifth", rows / clients / 5}} {
		for _, beta := range []float64{0, 0.5, 1.5, 2.5} {
			a := arm{labels: []string{batch.name, "descent"}, steps: updates}
			rule := job.Training{}
			if beta > 0 {
				a.labels[1] = fmt.Sprintf("GradAlign %v", beta)
				rule = job.Training{Rule: "fedga", Beta: beta}
			}
			a.run = func(ctx context.Context, seed uint64, step func()) (outcome, error) {
				with, err := d.deal("iid", clients, seed)
				if err != nil {
					return outcome{}, err
				}
				exchanges := 1
				x := setting{rows: with, Job: job.Job{Rounds: updates, Seed: seed, Model: mlp(hidden),
					Training: rule}}
				x.Training.Rate, x.Training.Batch, x.Training.Steps = rate, batch.rows, 1
				x.Training.WeightDecay = 1e-3
				trained, err := x.run(ctx, func(r simulation.RoundResult) {
					step()
					exchanges = r.Exchanges
				})
				if err != nil {
					return outcome{}, err
				}
				l := learned(trained)
				at, _ := l.meanOver(updates, last)
				equal, _ := l.meanOver(updates/exchanges, last/exchanges)
				until := slices.IndexFunc(l.y, func(y float64) bool { return y >= target })
				if until < 0 {
					until = updates - 1
				}
				return outcome{[]float64{at, equal, float64(until + 1)}, []line{l}}, nil
			}
			arms = append(arms, a)
		}
	}
	err = t.fill(ctx, o, arms)
	for _, a := range arms {
		descent := []string{a.labels[0], "descent"}
		if a.labels[1] == descent[1] {
			continue
		}
		claim := fmt.Sprintf("batches of %s: %s less descent", a.labels[0], a.labels[1])
		t.compare(claim+", after as many updates", a.labels, descent, 0, 1)
		t.compare(claim+", after as many exchanges", a.labels, descent, 1, 1)
		t.compare(claim, a.labels, descent, 2, -1)
	}
	return t, err
}
