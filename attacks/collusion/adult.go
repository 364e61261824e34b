package collusion

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"

	"github.com/hushsum/hushsum/attacks"
	"github.com/hushsum/hushsum/internal/continuous"
	"github.com/hushsum/hushsum/learning"
)

// partyWeights trains a logistic regression for each party on its own rows of Adult,
// or without the data of the synthetic census: what the parties of the thesis's
// Protocol 1 submit. It returns all weights of all of them.
func partyWeights(ctx context.Context, o attacks.Options, parties int, split uint64) ([]float64, error) {
	const rows, steps, rate = 450, 200, 1
	var data *learning.Dataset
	var err error
	if o.Data == "" {
		data, _, err = learning.Census(parties*rows, o.Seed)
	} else {
		data, err = learning.ReadAdult(filepath.Join(o.Data, "adult"))
	}
	if err != nil {
		return nil, err
	}
	shares, err := data.PartitionIID(parties, rows, o.Seed+split)
	if err != nil {
		return nil, err
	}
	model := learning.Logistic{Features: data.Features, Lambda: 1e-3}
	weights := make([]float64, parties*data.Features)
	return weights, o.Parallel(ctx, 400+split, parties, func(i int, _ *rand.Rand) error {
		return model.Train(weights[i*data.Features:(i+1)*data.Features], shares[i], rate, steps)
	})
}

// adultInputs draws weights for the given number of runs, each a coordinate of a
// party without replacement as long as they last, and returns them in λ: such that
// their variance is weightVariance.
func adultInputs(ctx context.Context, o attacks.Options, parties, runs, trainings int) (inputs []float64, scale float64, err error) {
	var all []float64
	for split := range trainings {
		weights, err := partyWeights(ctx, o, parties, uint64(split))
		if err != nil {
			return nil, 0, err
		}
		all = append(all, weights...)
	}
	order := o.Rand(499).Perm(len(all))
	inputs = make([]float64, runs)
	for i := range inputs {
		inputs[i] = all[order[i%len(order)]]
	}
	mean, _ := attacks.MeanAndError(inputs)
	variance := 0.0
	for _, w := range inputs {
		variance += (w - mean) * (w - mean) / float64(runs)
	}
	scale = math.Sqrt(variance / weightVariance)
	for i := range inputs {
		inputs[i] /= scale
	}
	return inputs, scale, nil
}

// givenInputs returns a measured r² between n inputs whose variance is weightVariance
// exactly and estimates with an independent error of the given cumulants. In the
// terms of determinationError A is fixed, whatever the law of the inputs, and B and E
// vary as they do there. The range is set on r, which is nearer to normal.
func givenInputs(r float64, c cumulants, n int) attacks.Measure {
	a, b := weightVariance, c.second
	s := a + b
	relative := math.Sqrt((4*b*b*b/a + c.fourth + 2*b*b) / (s * s) / float64(n))
	want := math.Sqrt(determination(b))
	se := want * relative / 2
	m := attacks.Between(r*r, 2*r*se, n, 0, 0)
	interval := attacks.Between(r, se, n, 0, 0)
	m.Lower, m.Upper = math.Pow(max(0, interval.Lower), 2), math.Pow(interval.Upper, 2)
	z, seZ := math.Atanh(want), attacks.Sigmas*se/(1-want*want)
	m.Min, m.Max = math.Pow(max(0, math.Tanh(z-seZ)), 2), math.Pow(math.Tanh(z+seZ), 2)
	return m
}

// runCollusionAdult is the thesis's experiment: 100 parties, 1,000 runs, in each of
// which n−1 colluders estimate a weight of the honest party.
func runAdult(ctx context.Context, o attacks.Options) (*attacks.Report, error) {
	const n = tableParties
	runs, trainings := 4000, 1
	if o.Long {
		runs, trainings = 10000, 10
	}
	inputs, scale, err := adultInputs(ctx, o, n, runs, trainings)
	if err != nil {
		return nil, err
	}
	source, times := "Adult", "once"
	if trainings > 1 {
		times = fmt.Sprintf("%d times", trainings)
	}
	if o.Data == "" {
		source = "the synthetic census"
	}
	report := &attacks.Report{}
	violins := []attacks.Series{{Label: "actual", Kind: attacks.Violin, Y: inputs}}
	add := func(name string, estimates []float64, left cumulants, defended bool, note string) {
		row := attacks.Row{Case: name, Metric: "r²", Undefended: givenInputs(attacks.Correlation(inputs, estimates), left, runs), Note: note}
		if defended {
			row.Undefended, row.Defended = row.Defended, row.Undefended
		}
		report.Rows = append(report.Rows, row)
		label := fmt.Sprintf("%s, r² = %.3f", name, max(row.Undefended.Value, row.Defended.Value))
		report.Figures = append(report.Figures, estimateFigures("adult-", name, name+" on "+source, label, inputs, estimates)...)
		violins = append(violins, attacks.Series{Label: name, Kind: attacks.Violin, Y: estimates})
	}

	estimates := make([]float64, runs)
	r := o.Rand(402)
	for i, w := range inputs {
		x, err := continuous.Laplace{Scale: 1}.Sample(r)
		if err != nil {
			return nil, err
		}
		estimates[i] = w + x
	}
	add("Non-Oblivious", estimates, cumulants{2, 12}, false, fmt.Sprintf(
		"published .894; λ = %.4g; %d runs on the weights that %d parties trained on 450 rows each of %s, %s", scale, runs, n, source, times))

	notes := map[string]string{
		"T Naive": "the thesis's Naive: nothing is subtracted",
		"T Mean":  "published .164 or worse: it needs v = 86, and T Mean (v = 100) is the nearest, so its colluders did not pool their bits",
		"F Mean":  "bits pooled",
		"L Mean":  "bits pooled and differences known, as the published protocol has it: no better than Non-Oblivious",
	}
	var cases []tableCase
	for _, c := range tableCases(n) {
		if !c.form.equal {
			c.form = noiseForm{parties: n, full: true} // one view serves all poolings
			cases = append(cases, c)
		}
	}
	_, all, err := caseEstimates(ctx, o, 403, runs, func(i int, _ *rand.Rand) float64 { return inputs[i] }, cases)
	if err != nil {
		return nil, err
	}
	for k, c := range cases {
		add(c.name, all[k], c.form.left(c.pooling, c.guess), false, notes[c.name])
	}

	slack, left, err := slackEstimates(inputs, n)
	if err != nil {
		return nil, err
	}
	add("Slack noise", slack, left, true, "shares of package noise with MinHonest = 1")
	report.Figures = append(report.Figures, violinFigures("adult-violins", fmt.Sprintf("Weights on %s and what n−1 colluders estimate", source), "weight, λ", violins)...)
	return report, nil
}
