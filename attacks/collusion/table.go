package collusion

import (
	"context"
	"math"
	"math/big"
	"math/rand/v2"

	"github.com/hushsum/hushsum/attacks"
	"github.com/hushsum/hushsum/attacks/internal/draw"
	"github.com/hushsum/hushsum/internal/continuous"
	"github.com/hushsum/hushsum/noise"
)

var collusionTable = attacks.Attack{
	Name:      "Collusion",
	Adversary: "n−1 clients",
	About: "pool candidates, choices and own noise of the thesis's Protocol 1, " +
		"and subtract all that they explain",
	Defence: "noise shares with slack for n−1 colluders; oblivious transfer",
	Run:     runTable,
}

// tableCase is a row of the thesis's table in its completed form.
type tableCase struct {
	name    string
	form    noiseForm
	pooling pooling
	guess   guess
}

// tableCases lists the cases with candidates. Those of one form are adjacent.
func tableCases(n int) []tableCase {
	var cases []tableCase
	for _, p := range []pooling{separate, pooled, leaking} {
		for _, g := range []guess{guessNaive, guessRandom, guessDiff, guessMean} {
			cases = append(cases, tableCase{
				name:    poolingNames[p] + " " + guessNames[g],
				form:    noiseForm{parties: n, full: p == separate},
				pooling: p,
				guess:   g,
			})
		}
	}
	return append(cases, tableCase{
		name:    "Sybil",
		form:    noiseForm{parties: n, equal: true},
		pooling: leaking,
		guess:   guessMean,
	}, tableCase{
		name:    "Transfer",
		form:    noiseForm{parties: n, equal: true, transfer: true},
		pooling: pooled,
		guess:   guessMean,
	})
}

// figure returns the pooling in whose figure the case is, or 0: in all of them.
func (c tableCase) figure() pooling {
	if c.form.equal {
		return 0
	}
	return c.pooling
}

// sameForm returns the first of the cases, as many as are of one form.
func sameForm(cases []tableCase) []tableCase {
	for i, c := range cases {
		if c.form != cases[0].form {
			return cases[:i]
		}
	}
	return cases
}

// estimatesOf takes honest inputs from input, and for each of the cases, which are of one
// form, the colluders' estimates of them from the same views.
func estimatesOf(
	ctx context.Context, o attacks.Options, part uint64, runs int,
	input func(i int, r *rand.Rand) float64, cases []tableCase,
) (inputs []float64, estimates [][]float64, err error) {
	inputs = make([]float64, runs)
	for range cases {
		estimates = append(estimates, make([]float64, runs))
	}
	err = o.Parallel(ctx, part, runs, func(i int, r *rand.Rand) error {
		inputs[i] = input(i, r)
		view := cases[0].form.view(inputs[i], r)
		for k, c := range cases {
			estimates[k][i] = view.estimate(c.pooling, c.guess, r)
		}
		return nil
	})
	return inputs, estimates, err
}

// drawWeight draws an honest input.
func drawWeight(r *rand.Rand) float64 { return math.Sqrt(weightVariance) * r.NormFloat64() }

// noisyWeights draws honest inputs, and estimates that are off by noise alone.
func noisyWeights(
	ctx context.Context, o attacks.Options, part uint64, runs int,
	sample func(rand.Source) (float64, error),
) (inputs, estimates []float64, err error) {
	inputs, estimates = make([]float64, runs), make([]float64, runs)
	return inputs, estimates, o.Parallel(ctx, part, runs, func(i int, r *rand.Rand) error {
		inputs[i] = drawWeight(r)
		x, err := sample(r)
		estimates[i] = inputs[i] + x
		return err
	})
}

// slackEstimates is the same adversary against shares of discrete Laplace noise of
// which any one suffices: all but the honest party's own are subtracted. Inputs and
// estimates are in units of λ.
func slackEstimates(inputs []float64, n int) (estimates []float64, left cumulants, err error) {
	const scale = 64
	laplace, err := noise.DiscreteLaplace(big.NewRat(scale, 1))
	if err != nil {
		return nil, left, err
	}
	own, err := noise.Shares{Parties: n, MinHonest: 1, Law: laplace}.Party()
	if err != nil {
		return nil, left, err
	}
	samples, err := draw.Samples(own, len(inputs))
	if err != nil {
		return nil, left, err
	}
	estimates = make([]float64, len(inputs))
	for i, x := range samples {
		estimates[i] = inputs[i] + float64(x)/scale
	}
	left.second = laplace.Variance() / (scale * scale)
	left.fourth = laplaceLeft.fourth // the lattice changes it by 1/scale²
	return estimates, left, nil
}

// runTable measures every row of the table. A row with candidates shows the
// published protocol, without a defence; next to it stands the same adversary
// against the noise shares of package noise with slack for n−1 colluders.
func runTable(ctx context.Context, o attacks.Options) (*attacks.Report, error) {
	full, others := 4000, 10000
	if o.Long {
		full, others = 10000, 100000
	}
	const n = tableParties
	var table tableReport
	if err := table.baselines(ctx, o, others); err != nil {
		return nil, err
	}
	notes := map[string]string{
		"T Mean": "published: .164 or worse, which holds only while colluders do not " +
			"pool their bits",
		"L Mean": "the published protocol against colluders that pool: no better than " +
			"Non-Oblivious",
		"Sybil": "colluders send equal candidates",
		"Transfer": "malicious senders, on plain numbers; CollusionOblivious has the " +
			"protocol itself",
	}
	input := func(_ int, r *rand.Rand) float64 { return drawWeight(r) }
	cases := tableCases(n)
	for first := 0; first < len(cases); {
		o.Advance(first, len(cases))
		group := sameForm(cases[first:])
		runs := others
		if group[0].form.full {
			runs = full
		}
		part := partTable + uint64(first)
		inputs, estimates, err := estimatesOf(ctx, o, part, runs, input, group)
		if err != nil {
			return nil, err
		}
		for k, c := range group {
			table.add(finding{
				name:      c.name,
				figure:    c.figure(),
				inputs:    inputs,
				estimates: estimates[k],
				left:      c.form.left(c.pooling, c.guess),
				defended:  c.form.transfer,
				note:      notes[c.name],
			})
		}
		first += len(group)
	}
	if err := table.slackNoise(o, 10*others); err != nil {
		return nil, err
	}
	violins := violinFigures{
		name:  "collusion-errors",
		title: "What n−1 colluders miss the honest input by",
		y:     "error in λ",
	}
	table.Figures = append(table.Figures, violins.draw(table.violins)...)
	return &table.Report, nil
}

// tableReport collects the rows of the table, and what is to be drawn.
type tableReport struct {
	attacks.Report
	violins []violin
}

// add adds rows of a case, a violin, and figures for some.
func (t *tableReport) add(f finding) {
	t.Rows = append(t.Rows, f.rows()...)
	t.violins = append(t.violins, f.missedViolin())
	switch f.name {
	case "Non-Oblivious", "T Mean", "L Mean", "Slack noise":
		shown := f
		shown.inputs = f.inputs[:min(len(f.inputs), shownPoints)]
		shown.estimates = f.estimates[:len(shown.inputs)]
		t.Figures = append(t.Figures, shown.figures("collusion-", f.name, f.name)...)
	}
}

// baselines are the two cases in which one Laplace variable, or one gamma share, is all
// that is left.
func (t *tableReport) baselines(ctx context.Context, o attacks.Options, runs int) error {
	laplace := continuous.Laplace{Scale: 1}
	inputs, estimates, err := noisyWeights(ctx, o, partNonOblivious, 10*runs, laplace.Sample)
	if err != nil {
		return err
	}
	t.add(finding{
		name:      "Non-Oblivious",
		inputs:    inputs,
		estimates: estimates,
		left:      laplaceLeft,
		note:      "a Laplace variable from each party",
	})
	share := continuous.GammaDifference{Shape: 1.0 / tableParties, Scale: 1}
	inputs, estimates, err = noisyWeights(ctx, o, partGammaShare, 20*runs, share.Sample)
	if err != nil {
		return err
	}
	t.add(finding{
		name:      "Gamma share",
		inputs:    inputs,
		estimates: estimates,
		left:      termLeft(guessNaive, tableParties),
		note:      "without slack for colluders",
	})
	return nil
}

// slackNoise is the case of the defence.
func (t *tableReport) slackNoise(o attacks.Options, runs int) error {
	r := o.Rand(partSlack)
	inputs := make([]float64, runs)
	for i := range inputs {
		inputs[i] = drawWeight(r)
	}
	estimates, left, err := slackEstimates(inputs, tableParties)
	if err != nil {
		return err
	}
	t.add(finding{
		name:      "Slack noise",
		inputs:    inputs,
		estimates: estimates,
		left:      left,
		defended:  true,
		note:      "shares of package noise with MinHonest = 1",
	})
	return nil
}
