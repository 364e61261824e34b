package experiments

import (
	"context"
	"fmt"

	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/learning"
	"github.com/hushsum/hushsum/simulation"
)

// ablation is one setting of the table of ablations.
type ablation struct {
	what, value   string
	split         string
	clients       int
	perRound      int // 0: all
	epochs        int
	momentum      float64
	concentration float64
	published     [2]float64
	rounds        map[string][2]float64 // published of single rounds, by measure
}

// ablationSettings are the journal's and the thesis's, on Fashion-MNIST.
func ablationSettings(o Options) []ablation {
	base := ablation{split: "label-skew", clients: 10, epochs: 1, momentum: momentum}
	with := func(what, value string, change func(*ablation)) ablation {
		a := base
		a.what, a.value = what, value
		change(&a)
		return a
	}
	published := func(plain, masked float64) [2]float64 { return [2]float64{plain, masked} }
	var all []ablation
	clients := map[int][2]float64{10: published(88.10, 88.38), 50: published(82.42, 83.11),
		100: published(74.39, 76.11), 250: published(71.11, 72.87)}
	for _, n := range pick(o, []int{10, 50}, []int{10, 50, 100, 250}, []int{10}) {
		all = append(all, with("clients", fmt.Sprint(n),
			func(a *ablation) { a.clients, a.published = n, clients[n] }))
	}
	epochs := map[int][2]float64{3: published(89.91, 91.73), 5: published(85.71, 87.29),
		10: published(84.13, 87.11), 20: published(80.27, 86.66)}
	for _, n := range pick(o, []int{3, 10}, []int{3, 5, 10, 20}, []int{2}) {
		all = append(all, with("local epochs", fmt.Sprint(n),
			func(a *ablation) { a.epochs, a.published = n, epochs[n] }))
	}
	momenta := map[string][2]float64{"iid 0": published(88.61, 88.49),
		"iid 0.9": published(89.14, 90.52), "label-skew 0": published(86.95,
			87.8), "label-skew 0.9": published(88.1, 88.38)}
	for _, split := range pick(o, []string{"label-skew"}, []string{"iid", "label-skew"},
		[]string{"iid"}) {
		for _, m := range []float64{0, momentum} {
			if m == momentum && split == "label-skew" {
				continue // as clients 10
			}
			all = append(all, with("momentum, "+split, fmt.Sprint(m), func(a *ablation) {
				a.split, a.momentum, a.published = split, m, momenta[fmt.Sprint(split, " ", m)]
			}))
		}
	}
	for _, alpha := range pick(o, []float64{0.1, 1, 100},
		[]float64{0.1, 0.5, 1, 10, 100}, []float64{1}) {
		all = append(all, with("Dirichlet labels", fmt.Sprint(alpha),
			func(a *ablation) { a.split, a.concentration = "dirichlet-labels", alpha }))
	}
	all = append(all, with("Dirichlet quantity", "0.5", func(a *ablation) {
		a.split, a.concentration = "dirichlet-quantity", 0.5
		a.published = published(84.78, 86.28) // the journal's, on CIFAR-10
	}))
	parts := map[int]map[string][2]float64{
		5: {"in round": {86.97, 89.07}, "others": {75.07, 78.53}},
		2: {"in round": {89.64, 86.67}, "others": {71.57, 75.77}},
	}
	for _, n := range []int{5, 2} {
		all = append(all, with("in a round", fmt.Sprintf("%d of 10", n),
			func(a *ablation) { a.perRound, a.epochs, a.rounds = n, 3, parts[n] }))
	}
	return all
}

// ablations varies one thing at a time. The AND mask is next to the others in the
// setting that all share.
func ablations(ctx context.Context, o Options) (*Table, error) {
	rows := pick(o, 1000, 55000, 600)
	rounds := pick(o, 30, 120, 2)
	rate := pick(o, 0.05, 0.01, 0.05)
	d, err := newImages(o, "fashion-mnist", rows, pick(o, 1000, 10000, 200), 0)
	if err != nil {
		return nil, err
	}
	t := &Table{
		Title:  "LeNet on Fashion-MNIST, one thing at a time",
		Labels: []string{"what", "value", "average"},
		Measures: []Measure{
			accuracyMeasure, riseMeasure, {Name: "mask", Digits: 3},
			{Name: "below", Percent: true, Digits: 0},
			{Name: "in round", Percent: true, Digits: 2}, {Name: "others", Percent: true, Digits: 2},
		},
		Figures: []Figure{learningFigure("kinds", "Plain, masked and AND mask on Fashion-MNIST, "+
			"label skew")},
		Notes: []string{
			"accuracy: the mean of the last ten rounds, of all parties unless said; rise: how " +
				"much that is above the mean of the ten before; below: the share of coordinates " +
				"whose agreement is under the threshold; in round, others: accuracy after each " +
				"of the last rounds on the rows of parties that were in it and of those that " +
				"were not, in the mean.",
			"The published figures for 2 and 5 of 10 parties are of single rounds; those for " +
				"quantity are of CIFAR-10.",
		},
	}
	t.Settings = []string{
		fmt.Sprintf("%d training rows of %s, %d test rows; %d rounds of 10 parties, two main "+
			"classes with 90 %% of a party's rows", rows, imagesAre(d.train), d.test.Len(), rounds),
		fmt.Sprintf("of the thesis: server rate 1, momentum 0.9, 1 local epoch (3 where fewer "+
			"than all are in a round), batches of 32, weight decay 1e-5, threshold 0.4; local "+
			"rate %v", rate),
	}
	all := ablationSettings(o)
	var arms []arm
	for k, a := range all {
		kinds := []struct {
			name string
			kind aggregation.MaskKind
		}{{"plain", aggregation.NoMask}, {"masked", aggregation.SoftMask}, {"masked, mean 1",
			aggregation.RescaledMask}}
		if k == 0 {
			kinds = append(kinds, struct {
				name string
				kind aggregation.MaskKind
			}{"AND mask", aggregation.HardMask})
		}
		for p, kind := range kinds {
			one := arm{labels: []string{a.what, a.value, kind.name}, steps: rounds}
			if p < 2 && a.published[p] != 0 {
				one.published = percent(a.published[p])
			}
			for measure, accuracies := range a.rounds {
				if p < 2 {
					if one.published == nil {
						one.published = map[string]float64{}
					}
					one.published[measure] = accuracies[p] / 100
				}
			}
			one.run = func(ctx context.Context, seed uint64, step func()) (outcome, error) {
				out, l, err := a.run(ctx, d, kind.kind, rounds, rate, seed, step)
				if k == 0 {
					out.lines = []line{l}
				}
				return out, err
			}
			arms = append(arms, one)
		}
	}
	err = t.fill(ctx, o, arms)
	for _, a := range all {
		row := func(name string) []string { return []string{a.what, a.value, name} }
		claim := a.what + " " + a.value + ": "
		t.compare(claim+"masked less plain", row("masked"), row("plain"), 0, 1)
		t.compare(claim+"the mask of mean 1 less plain", row("masked, mean 1"), row("plain"), 0, 0)
		t.compare(claim+"the AND mask less the soft one, which is ahead of it", row("AND mask"),
			row("masked"), 0, -1)
		if a.perRound > 0 {
			t.compare(claim+"masked less plain, on others", row("masked"), row("plain"), 5, 1)
		}
	}
	return t, err
}

func (a ablation) run(
	ctx context.Context, d *dealer, kind aggregation.MaskKind, rounds int, rate float64, seed uint64,
	step func(),
) (outcome, line, error) {
	with, err := d.dealWith(a.split, seed, false,
		learning.PartitionOptions{Clients: a.clients, Concentration: a.concentration})
	if err != nil {
		return outcome{}, line{}, err
	}
	model, _ := learning.LeNetFor(with.test.Features, 10)
	x := setting{rows: with, Job: job.Job{Rounds: rounds, Seed: seed, Model: lenet,
		Parties: job.Parties{PerRound: a.perRound}, Sum: job.Sum{MaxWeight: d.rows},
		Training: localTraining(rate, a.epochs)}}
	x.Training.Momentum = a.momentum
	x.mask(kind, threshold)
	nan := nan()
	values := []float64{0, nan, nan, nan, nan, nan}
	in, others, counted := 0.0, 0.0, 0.0
	var wrong error
	t, err := x.run(ctx, func(r simulation.RoundResult) {
		step()
		if a.perRound == 0 || r.Round <= rounds-lastRounds || wrong != nil {
			return
		}
		part := map[int]bool{}
		for _, i := range r.Included {
			part[i] = true
		}
		var hits, total [2]float64
		for i, p := range with.parties {
			judged, err := learning.Evaluate(model, r.Model, p)
			if err != nil {
				wrong = err
				return
			}
			k := 0
			if !part[i] {
				k = 1
			}
			hits[k] += judged.Accuracy() * float64(p.Len())
			total[k] += float64(p.Len())
		}
		in, others, counted = in+hits[0]/total[0], others+hits[1]/total[1], counted+1
	})
	if diverged(err) {
		return outcome{values: values}, line{}, nil
	}
	if err == nil {
		err = wrong
	}
	if err != nil {
		return outcome{}, line{}, err
	}
	l := learned(t)
	last, before := l.meanOver(rounds, min(lastRounds, rounds))
	values[0], values[1], values[2], values[3] = last, last-before, 0, 0
	for _, r := range t.Rounds {
		values[2] += r.Masked / float64(rounds)
		values[3] += r.Disagreed / float64(rounds)
	}
	if kind == aggregation.NoMask {
		values[3] = nan
	}
	if counted > 0 {
		values[4], values[5] = in/counted, others/counted
	}
	return outcome{values: values}, l, nil
}
