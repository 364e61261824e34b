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

var collusionAdult = attacks.Attack{
	Name:      "CollusionAdult",
	Adversary: "n−1 clients",
	About: "estimate the weights of a model that was trained on a census, as in the " +
		"thesis's figures",
	Defence:  "noise shares with slack for n−1 colluders",
	DataSets: []string{"adult"},
	Run:      runAdult,
}

// partyRows is how many rows each party trains on.
const partyRows = 450

// partyWeights trains a logistic regression for each party on its own rows of Adult,
// or without the data of the synthetic census: what the parties of the thesis's
// Protocol 1 submit. It returns all weights of all of them.
func partyWeights(
	ctx context.Context, o attacks.Options, parties int, split uint64,
) ([]float64, error) {
	const steps, rate = 200, 1
	var data *learning.Dataset
	var err error
	if o.Data == "" {
		data, _, err = learning.Census(parties*partyRows, o.Seed)
	} else {
		data, err = learning.ReadAdult(filepath.Join(o.Data, "adult"))
	}
	if err != nil {
		return nil, err
	}
	shares, err := data.PartitionIID(parties, partyRows, o.Seed+split)
	if err != nil {
		return nil, err
	}
	model := learning.Logistic{Features: data.Features, Lambda: 1e-3}
	weights := make([]float64, parties*data.Features)
	part := partTraining + split
	return weights, o.Parallel(ctx, part, parties, func(i int, _ *rand.Rand) error {
		own := weights[i*data.Features : (i+1)*data.Features]
		return model.Train(own, shares[i], rate, steps)
	})
}

// adultInputs draws weights for the given number of runs, each a coordinate of a
// party without replacement as long as they last, and returns them in λ: such that
// their variance is weightVariance.
func adultInputs(
	ctx context.Context, o attacks.Options, parties, runs, trainings int,
) (inputs []float64, scale float64, err error) {
	var all []float64
	for split := range trainings {
		weights, err := partyWeights(ctx, o, parties, uint64(split))
		if err != nil {
			return nil, 0, err
		}
		all = append(all, weights...)
	}
	order := o.Rand(partAdultOrder).Perm(len(all))
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
	standardError := want * relative / 2
	low, high := squaredRange(want, 1-want*want, standardError)
	interval := attacks.Between(r, standardError, n, 0, 1)
	m := attacks.Between(r*r, 2*r*standardError, n, low, high)
	m.Lower = math.Pow(max(0, interval.Lower), 2)
	m.Upper = math.Pow(interval.Upper, 2)
	return m
}

// runAdult is the thesis's experiment: 100 parties, 1,000 runs, in each of
// which n−1 colluders estimate a weight of the honest party.
func runAdult(ctx context.Context, o attacks.Options) (*attacks.Report, error) {
	runs, trainings := 4000, 1
	if o.Long {
		runs, trainings = 10000, 10
	}
	inputs, scale, err := adultInputs(ctx, o, tableParties, runs, trainings)
	if err != nil {
		return nil, err
	}
	source := "Adult"
	if o.Data == "" {
		source = "the synthetic census"
	}
	times := "once"
	if trainings > 1 {
		times = fmt.Sprintf("%d times", trainings)
	}
	adult := adultReport{source: source, inputs: inputs}
	adult.violins = []violin{{label: "actual", sample: inputs}}
	if err := adult.nonOblivious(o, fmt.Sprintf("published .894; λ = %.4g; %d runs on the "+
		"weights that %d parties trained on %d rows each of %s, %s",
		scale, runs, tableParties, partyRows, source, times)); err != nil {
		return nil, err
	}
	if err := adult.candidates(ctx, o); err != nil {
		return nil, err
	}
	slack, left, err := slackEstimates(inputs, tableParties)
	if err != nil {
		return nil, err
	}
	adult.add(finding{
		name:      "Slack noise",
		estimates: slack,
		left:      left,
		defended:  true,
		note:      "shares of package noise with MinHonest = 1",
	})
	violins := violinFigures{
		name:  "adult-violins",
		title: fmt.Sprintf("Weights on %s and what n−1 colluders estimate", source),
		y:     "weight, λ",
	}
	adult.Figures = append(adult.Figures, violins.draw(adult.violins)...)
	return &adult.Report, nil
}

// adultReport collects what is found on the same inputs.
type adultReport struct {
	attacks.Report
	source  string // of the rows that were trained on
	inputs  []float64
	violins []violin
}

// add adds a row for a finding, a violin and figures.
func (a *adultReport) add(f finding) {
	f.inputs = a.inputs
	determined := givenInputs(attacks.Correlation(f.inputs, f.estimates), f.left, len(f.inputs))
	a.Rows = append(a.Rows, f.row("r²", determined, f.note))
	label := fmt.Sprintf("%s, r² = %.3f", f.name, determined.Value)
	a.Figures = append(a.Figures, f.figures("adult-", f.name+" on "+a.source, label)...)
	a.violins = append(a.violins, violin{figure: f.figure, label: f.name, sample: f.estimates})
}

// nonOblivious adds the case of a Laplace variable from each party.
func (a *adultReport) nonOblivious(o attacks.Options, note string) error {
	laplace := continuous.Laplace{Scale: 1}
	estimates := make([]float64, len(a.inputs))
	r := o.Rand(partAdultLaplace)
	for i, input := range a.inputs {
		x, err := laplace.Sample(r)
		if err != nil {
			return err
		}
		estimates[i] = input + x
	}
	a.add(finding{name: "Non-Oblivious", estimates: estimates, left: laplaceLeft, note: note})
	return nil
}

// candidates adds the cases with candidates, of the published protocol.
func (a *adultReport) candidates(ctx context.Context, o attacks.Options) error {
	notes := map[string]string{
		"T Naive": "the thesis's Naive: nothing is subtracted",
		"T Mean": "published .164 or worse: it needs v = 86, and T Mean (v = 100) is the " +
			"nearest, so its colluders did not pool their bits",
		"F Mean": "bits pooled",
		"L Mean": "bits pooled and differences known, as the published protocol has it: " +
			"no better than Non-Oblivious",
	}
	var cases []tableCase
	for _, c := range tableCases(tableParties) {
		if !c.form.equal {
			// One view serves all poolings.
			c.form = noiseForm{parties: tableParties, full: true}
			cases = append(cases, c)
		}
	}
	input := func(i int, _ *rand.Rand) float64 { return a.inputs[i] }
	_, estimates, err := estimatesOf(ctx, o, partAdultViews, len(a.inputs), input, cases)
	if err != nil {
		return err
	}
	for k, c := range cases {
		a.add(finding{
			name:      c.name,
			figure:    c.figure(),
			estimates: estimates[k],
			left:      c.form.left(c.pooling, c.guess),
			note:      notes[c.name],
		})
	}
	return nil
}
