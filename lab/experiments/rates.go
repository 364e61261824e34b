package experiments

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/learning"
)

// diverged reports whether a training ended because its numbers did.
func diverged(err error) bool {
	return errors.Is(err, learning.ErrDiverged) || errors.Is(err, aggregation.ErrNotFinite)
}

// ratesPublished is the thesis's grid on Fashion-MNIST, label skew, all of 10 parties, by
// server and local rate.
var ratesPublished = map[[2]float64][2]float64{
	{0.01, 0.01}: {56.06, 57.72}, {0.01, 0.05}: {61.66, 65.13}, {0.01, 0.1}: {68.02, 72.56},
	{0.1, 0.001}: {56.93, 57.51}, {0.1, 0.01}: {73.66, 73.9}, {0.1, 0.05}: {83.39, 83.79},
	{0.1, 0.1}: {85.22, 87.22},
	{1, 0.001}: {72.69, 73.34}, {1, 0.01}: {86.49, 87.0}, {1, 0.05}: {87.76, 88.14},
	{1, 0.1}:     {88.31, 88.4},
	{1.5, 0.001}: {77.11, 75.63}, {1.5, 0.01}: {86.29, 87.04}, {1.5, 0.05}: {87.82, 88.21},
	{1.5, 0.1}: {86.96, 88.3},
	{2, 0.001}: {71.53, 77.59}, {2, 0.01}: {82.42, 86.9}, {2, 0.05}: {86.93, 87.6},
	{2, 0.1}: {87.63, 88.1},
}

// rates is the thesis's grid of rates with the server rates that it lacks: where plain
// averaging is best, and whether masked averaging is better there.
func rates(ctx context.Context, o Options) (*Table, error) {
	rows := pick(o, 1000, 55000, 600)
	rounds := pick(o, 50, 120, 2)
	locals := pick(o, []float64{0.01, 0.05}, []float64{0.001, 0.01, 0.05, 0.1}, []float64{0.01})
	// The quick form has the papers' best cell too, which is on none of its lines.
	best := pick(o, []float64{0.1}, nil, nil)
	grid := pick(o, []float64{0.1, 0.25, 0.4, 0.55, 0.7, 0.8, 1, 1.5, 2},
		[]float64{0.01, 0.1, 0.25, 0.4, 0.55, 0.7, 0.8, 1, 1.5, 2}, []float64{0.5, 1})
	d, err := newImages(o, "fashion-mnist", rows, pick(o, 1000, 10000, 200), 0)
	if err != nil {
		return nil, err
	}
	t := &Table{
		Title:    "LeNet on Fashion-MNIST by rates, label skew, 10 parties",
		Labels:   []string{"local rate", "server rate", "average"},
		Measures: []Measure{accuracyMeasure, riseMeasure, {Name: "mask", Digits: 3}},
		Notes: []string{
			"accuracy: the mean of the last ten rounds; rise: how much that is above the mean " +
				"of the ten before. A training that diverges counts as accuracy 0.",
			"The papers' best accuracies of both averages are at local rate .1 and server rate 1.",
			"The papers' server rates are .01, .1, 1, 1.5 and 2: none between .1 and 1, so that " +
				"a mask, which makes steps shorter, cannot be told from a shorter step.",
		},
	}
	t.Settings = []string{
		fmt.Sprintf("%d training rows of %s, %d test rows; %d rounds of all 10 parties; two "+
			"main classes with 90 %% of a party's rows", rows, imagesAre(d.train), d.test.Len(), rounds),
		"of the thesis: momentum 0.9, 1 local epoch, batches of 32, weight decay 1e-5, soft " +
			"mask with threshold 0.4",
	}
	cell := func(local, rate float64, p int) arm {
		a := arm{labels: []string{fmt.Sprint(local), fmt.Sprint(rate), plainAndMasked[p]}, steps: rounds}
		if at, ok := ratesPublished[[2]float64{rate, local}]; ok {
			a.published = percent(at[p])
		}
		kind := [2]aggregation.MaskKind{aggregation.NoMask, aggregation.SoftMask}[p]
		a.run = func(ctx context.Context, seed uint64, step func()) (outcome, error) {
			s := study{rounds: rounds, training: func(seed uint64, _ bool) (setting, error) {
				with, err := d.deal("label-skew", 10, seed)
				return setting{rows: with, Job: job.Job{Model: lenet, Sum: job.Sum{MaxWeight: rows},
					Training: localTraining(local, 1)}}, err
			}}
			out, _, err := s.run(ctx, seed, false, kind, rate, step)
			if err == nil {
				out.values = out.values[:3]
			}
			return out, err
		}
		return a
	}
	var arms []arm
	for k, local := range locals {
		name := fmt.Sprint(local)
		t.Figures = append(t.Figures, Figure{
			Name: "local-" + strings.ReplaceAll(name, ".", "-"), Title: t.Title + ", local rate " + name,
			X: "server rate", Y: "test accuracy, %", Percent: true, LogX: true,
		})
		curves := map[string]map[uint64]*line{"plain": {}, "masked": {}}
		for i, rate := range grid {
			for p, average := range plainAndMasked {
				a := cell(local, rate, p)
				a.done = func(seed uint64, out outcome) {
					l := curves[average][seed]
					if l == nil {
						l = &line{}
						curves[average][seed] = l
					}
					l.x, l.y = append(l.x, rate), append(l.y, out.values[0])
					if i == len(grid)-1 {
						t.Figures[k].add(average, l.x, l.y)
					}
				}
				arms = append(arms, a)
			}
		}
	}
	for _, local := range best {
		arms = append(arms, cell(local, 1, 0), cell(local, 1, 1))
	}
	err = t.fill(ctx, o, arms)
	for _, local := range append(slices.Clone(locals), best...) {
		for _, rate := range grid {
			row := func(name string) []string { return []string{fmt.Sprint(local), fmt.Sprint(rate), name} }
			t.compare(fmt.Sprintf("local rate %v, server rate %v, masked less plain", local, rate),
				row("masked"), row("plain"), 0, 1)
		}
		if slices.Contains(best, local) {
			continue
		}
		// The best of each over the grid, by the mean over seeds.
		var chosen [2][]string
		var top [2]float64
		for _, rate := range grid {
			for p, average := range plainAndMasked {
				labels := []string{fmt.Sprint(local), fmt.Sprint(rate), average}
				if r := t.row(labels...); r != nil {
					if m, _, n := r.Mean(0); n > 0 && m > top[p] {
						top[p], chosen[p] = m, labels
					}
				}
			}
		}
		if chosen[0] != nil && chosen[1] != nil {
			t.compare(fmt.Sprintf("local rate %v, masked at its best server rate %s less plain "+
				"at its best %s", local, chosen[1][1], chosen[0][1]), chosen[1], chosen[0], 0, 1)
			t.Findings[len(t.Findings)-1].bestRates(local)
		}
	}
	return t, err
}

// bestRates gives the comparison of both averages at the best server rate of each the size that the
// thesis's grid has with this local rate, and that of the workshop form, which states no rates but
// says that they were chosen.
func (f *Finding) bestRates(local float64) {
	var best [2]float64
	for at, accuracies := range ratesPublished {
		for k, x := range accuracies {
			if at[1] == local {
				best[k] = max(best[k], x)
			}
		}
	}
	d := (best[1] - best[0]) / 100
	f.Published = &d
	const text = "workshop form"
	workshop := fashionElsewhere["label-skew 10 FedAvg"][text]
	f.Elsewhere = []Size{{text, (workshop[1] - workshop[0]) / 100}}
}

func percent(x float64) map[string]float64 { return map[string]float64{"accuracy": x / 100} }
