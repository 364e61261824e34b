package collusion

import (
	"context"
	"fmt"
	"math"
	"math/big"

	"github.com/hushsum/hushsum/attacks"
	"github.com/hushsum/hushsum/noise"
)

var collusionLaw = attacks.Attack{
	Name:      "CollusionLaw",
	Adversary: "n−1 clients",
	About: "tell two inputs apart by the law that is left, at λ and at equal noise in the " +
		"released sum",
	Defence: "noise shares with slack for n−1 colluders; oblivious transfer",
	Run:     runLaw,
}

// lawScale is λ in units of the lattice; 32 and 64 change the third digit of δ by one.
const lawScale = 16

// publishedDelta is a point of the curve δ(ε) that the published protocol leaves for
// inputs that differ by λ. The figures count what is left of a received term as one of two
// values; the law given the difference is a little wider, so that δ may be .008 less.
type publishedDelta struct{ epsilon, delta float64 }

func runLaw(ctx context.Context, o attacks.Options) (*attacks.Report, error) {
	views := 1000
	if o.Long {
		views = 20000
	}
	report := &attacks.Report{}
	if err := deltasLeft(ctx, o, views, report); err != nil {
		return nil, err
	}
	if err := equalNoiseLeft(ctx, o, views/10, report); err != nil {
		return nil, err
	}
	return report, nil
}

// deltasLeft adds what δ is left of the published protocol, and of one Laplace variable.
func deltasLeft(
	ctx context.Context, o attacks.Options, views int, report *attacks.Report,
) error {
	const n, size = tableParties, 1 << 11
	published, err := newPublishedLaw(n, n-1, lawScale, size)
	if err != nil {
		return err
	}
	laplace, err := noise.DiscreteLaplace(big.NewRat(lawScale, 1))
	if err != nil {
		return err
	}
	sound, err := tabulate(laplace, size)
	if err != nil {
		return err
	}
	points := []publishedDelta{{1, 0.148}, {2, 0.084}, {3, 0.051}}
	deltas := make([][]float64, len(points))
	r := o.Rand(partLaw)
	for i := range views {
		if i%100 == 0 {
			o.Advance(i, views)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		law := published.view(r)
		for k, point := range points {
			deltas[k] = append(deltas[k], law.hockeyStick(point.epsilon, lawScale))
		}
	}
	for k, point := range points {
		mean, standardError := attacks.MeanAndError(deltas[k])
		margin := attacks.Sigmas * standardError
		soundDelta := attacks.Exactly(sound.hockeyStick(point.epsilon, lawScale), 1, 0)
		report.Rows = append(report.Rows, attacks.Row{
			Case:   "published, Δ = λ",
			Metric: fmt.Sprintf("δ at ε = %g", point.epsilon),
			Undefended: attacks.Between(mean, standardError, views,
				point.delta-0.008-margin, point.delta+margin),
			Defended: soundDelta.Within(0, 1e-12), // of rounding
			Note: "defended: transfer or slack noise, one Laplace variable; " +
				"pure ε = Δ/λ",
		})
	}
	return nil
}

// equalNoiseLeft adds what schemes leave at equal noise in the released sum.
func equalNoiseLeft(
	ctx context.Context, o attacks.Options, views int, report *attacks.Report,
) error {
	const n, delta = tableParties, 1e-3
	r := o.Rand(partEqualNoise)
	for _, colluders := range []int{0, n / 3, n - 1} {
		all, err := equalNoise(ctx, n, colluders, views, delta, r)
		if err != nil {
			return err
		}
		for _, p := range all {
			row := attacks.Row{
				Case:   fmt.Sprintf("%s, c = %d", p.scheme, p.colluders),
				Metric: "share of equal noise left",
				Note:   fmt.Sprintf("pure ε %.3g, ε = %.3g at δ = %g", p.pure, p.epsilon, delta),
			}
			if p.sound {
				row.Defended = p.measure(n, views)
			} else {
				row.Undefended = p.measure(n, views)
			}
			report.Rows = append(report.Rows, row)
		}
	}
	return nil
}

// measure returns the share of the noise that is left, of n parties and after that many
// views, as a measurement that must be near that of the honest parties.
func (p protection) measure(n, views int) attacks.Measure {
	honest := float64(n - p.colluders)
	want := honest / float64(n)
	// The lattice takes 1/(12·16²) off a Laplace variable's variance.
	margin := 0.002 * honest / float64(n)
	if p.leftError == 0 {
		return attacks.Exactly(p.left, 1, want).Within(want-margin, want+margin)
	}
	// What a view of the published protocol leaves varies: of each of 2ck terms,
	// (g⁰ − g¹)²/4 has the variance k/8 + v²/2, with the cumulants of termLeft. It is
	// skewed, so that two more standard errors are allowed.
	term := termLeft(guessNaive, n)
	terms := 2 * float64(p.colluders) * honest
	variance := terms * (term.fourth/8 + term.second*term.second/2)
	margin += (attacks.Sigmas + 2) * math.Sqrt(variance/float64(views)) / (2 * float64(n))
	return attacks.Between(p.left, p.leftError, views, want-margin, want+margin)
}
