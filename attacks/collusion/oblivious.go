package collusion

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/hushsum/hushsum/attacks"
)

var collusionOblivious = attacks.Attack{
	Name:      "CollusionOblivious",
	Adversary: "n−1 clients, or curious server",
	About:     "the same against package oblivious: from what its parties hold, send and see",
	Defence:   "oblivious transfer",
	Run:       runOblivious,
}

// publishedCases returns the cases with candidates, at n parties of the real protocol.
// The views are full ones, so that all poolings can be compared.
func publishedCases(n int) (plain, sybil []tableCase) {
	for _, c := range tableCases(n) {
		switch {
		case c.form.transfer:
		case c.form.equal:
			sybil = append(sybil, c)
		default:
			plain = append(plain, c)
		}
	}
	return plain, sybil
}

// obliviousSizes are how much is played of each form.
type obliviousSizes struct {
	parties, length int // of the published protocol
	runs, sybilRuns int
	transferRounds  int
}

// runOblivious turns the estimators on package oblivious itself.
func runOblivious(ctx context.Context, o attacks.Options) (*attacks.Report, error) {
	sizes := obliviousSizes{
		parties:        20,
		length:         1000,
		runs:           4,
		sybilRuns:      2,
		transferRounds: 8,
	}
	if o.Long {
		sizes = obliviousSizes{
			parties:        tableParties,
			length:         100,
			runs:           100,
			sybilRuns:      20,
			transferRounds: 80,
		}
	}
	published, err := publishedFindings(ctx, o, sizes)
	if err != nil {
		return nil, err
	}
	transfer, err := transferFindings(o, sizes.transferRounds)
	if err != nil {
		return nil, err
	}
	report := &attacks.Report{}
	var violins []violin
	for _, f := range append(published, transfer...) {
		report.Rows = append(report.Rows, f.rows()...)
		violins = append(violins, f.missedViolin())
	}
	figures := violinFigures{
		name:  "oblivious-errors",
		title: "Package oblivious: what n−1 colluders miss the honest input by",
		y:     "error in λ",
	}
	report.Figures = figures.draw(violins)
	rows, err := serverRows(o, sizes.parties)
	if err != nil {
		return nil, err
	}
	report.Rows = append(report.Rows, rows...)
	return report, nil
}

// publishedFindings returns what colluders find about the published protocol.
func publishedFindings(
	ctx context.Context, o attacks.Options, sizes obliviousSizes,
) ([]finding, error) {
	var found []finding
	plain, sybil := publishedCases(sizes.parties)
	for _, part := range []struct {
		part  uint64
		cases []tableCase
		runs  int
	}{
		{partPublished, plain, sizes.runs},
		{partPublishedEqual, sybil, sizes.sybilRuns},
	} {
		inputs, estimates, err := publishedEstimates(
			ctx, o, part.part, sizes.length, part.runs, part.cases)
		if err != nil {
			return nil, err
		}
		for k, c := range part.cases {
			found = append(found, finding{
				name:      c.name,
				figure:    c.figure(),
				inputs:    inputs,
				estimates: estimates[k],
				left:      c.form.left(c.pooling, c.guess),
				note:      fmt.Sprintf("oblivious.Published, n = %d", sizes.parties),
			})
		}
	}
	return found, nil
}

// publishedEstimates plays runs of the published protocol and has the colluders of
// each case, which are of one form, estimate all coordinates of all of them.
func publishedEstimates(
	ctx context.Context, o attacks.Options, part uint64, length, runs int, cases []tableCase,
) (inputs []float64, estimates [][]float64, err error) {
	inputs = make([]float64, runs*length)
	for range cases {
		estimates = append(estimates, make([]float64, runs*length))
	}
	form := cases[0].form
	err = o.Parallel(ctx, part, runs, func(run int, r *rand.Rand) error {
		p, err := runPublished(form.parties, length, form.equal, r)
		if err != nil {
			return err
		}
		views, err := p.colluders()
		if err != nil {
			return err
		}
		copy(inputs[run*length:], p.inputs)
		for i, c := range cases {
			for k, v := range views {
				estimates[i][run*length+k] = v.estimate(c.pooling, c.guess, r)
			}
		}
		return nil
	})
	return inputs, estimates, err
}

// transferFindings returns what colluders find about oblivious transfer.
func transferFindings(o attacks.Options, rounds int) ([]finding, error) {
	const parties, length = 5, 1000
	var found []finding
	for _, c := range []struct {
		name  string
		part  uint64
		equal bool
	}{
		{"Transfer, honest senders", partTransfer, false},
		{"Transfer, equal candidates", partTransferEqual, true},
	} {
		inputs, estimates, err := transferEstimates(
			o.Rand(c.part), parties, length, rounds, c.equal)
		if err != nil {
			return nil, err
		}
		form := noiseForm{parties: parties, equal: c.equal, transfer: true}
		found = append(found, finding{
			name:      c.name,
			inputs:    inputs,
			estimates: estimates,
			left:      form.left(pooled, guessMean),
			defended:  true,
			note:      fmt.Sprintf("oblivious.Transfer, n = %d", parties),
		})
	}
	return found, nil
}

// serverRows measures what the server alone sees of both forms.
func serverRows(o attacks.Options, n int) ([]attacks.Row, error) {
	const length = 4000
	r := o.Rand(partServer)
	input, err := serverInput(n, length/4, r)
	if err != nil {
		return nil, err
	}
	choice, err := serverChoice(length, r)
	if err != nil {
		return nil, err
	}
	seen, err := playTranscript(length, o.Rand(partTranscript))
	if err != nil {
		return nil, err
	}
	// A choice that is not fair would show nothing by its correlations.
	ones, _ := attacks.MeanAndError(numbers(seen.choices))
	largest := 2*ones - 1
	for _, bits := range seen.sent {
		c := attacks.Correlation(numbers(seen.choices), numbers(bits))
		if math.Abs(c) > math.Abs(largest) {
			largest = c
		}
	}
	// Of F independent correlations one is beyond 6/√N with probability F·2e-9.
	limit := 6 / math.Sqrt(length)
	return []attacks.Row{{
		Case:       "server alone",
		Metric:     "correlation of the input and what is seen",
		Undefended: input,
		Defended: attacks.Uncorrelated(
			attacks.Correlation(seen.inputs, seen.submitted), length),
		Note: fmt.Sprintf("published, n = %d, with no private sum on top: offers and "+
			"masked inputs are enough, without a colluder", n),
	}, {
		Case:       "server alone",
		Metric:     "largest correlation of a choice and what is sent",
		Undefended: choice.Within(limit, 1),
		Defended:   attacks.Correlated(largest, length).Within(-limit, limit),
		Note: fmt.Sprintf("undefended: published, n = 2, of a known input; defended: all "+
			"bits of messages and corrections, at each coordinate, and the bias of the "+
			"choice: at most 6/√N (%d correlations)", len(seen.sent)),
	}}, nil
}

// serverInput measures how the server's estimates of an input are correlated with it.
func serverInput(n, length int, r *rand.Rand) (attacks.Measure, error) {
	p, err := runPublished(n, length, false, r)
	if err != nil {
		return attacks.Measure{}, err
	}
	estimates, _, err := p.serverAlone()
	if err != nil {
		return attacks.Measure{}, err
	}
	want := math.Sqrt(determination(laplaceLeft.second))
	// ln r² has the standard error of determinationError, and r half of it.
	left := noiseForm{parties: n}.left(leaking, guessMean)
	standardError := want * determinationError(left, length) / 2
	correlation := attacks.Correlation(p.inputs, estimates)
	return attacks.Near(correlation, standardError, length, want), nil
}

// serverChoice measures how the server's guesses of a choice are correlated with it.
func serverChoice(length int, r *rand.Rand) (attacks.Measure, error) {
	pair, err := runPublished(2, length, false, r)
	if err != nil {
		return attacks.Measure{}, err
	}
	_, guesses, err := pair.serverAlone()
	if err != nil {
		return attacks.Measure{}, err
	}
	truth := pair.parties[0].View().Choices[1]
	return attacks.Correlated(attacks.Correlation(numbers(truth), numbers(guesses)), length), nil
}

// numbers returns bytes as numbers.
func numbers(b []byte) []float64 {
	values := make([]float64, len(b))
	for i, x := range b {
		values[i] = float64(x)
	}
	return values
}
