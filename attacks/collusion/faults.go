package collusion

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/hushsum/hushsum/attacks"
	"github.com/hushsum/hushsum/audit"
	"github.com/hushsum/hushsum/internal/continuous"
)

var collusionFaults = attacks.Attack{
	Name:      "CollusionFaults",
	Adversary: "n−1 clients, or outsider",
	About: "exploit the faults of the published protocol: too much noise, a claim n times too " +
		"small, reused candidates",
	Defence: "noise calibrated to the sum; fresh noise in every round",
	Run:     runFaults,
}

func runFaults(ctx context.Context, o attacks.Options) (*attacks.Report, error) {
	runs := 20000
	if o.Long {
		runs *= 10
	}
	total, err := totalNoise(ctx, o, runs)
	if err != nil {
		return nil, err
	}
	calibration, err := calibrationFault(o, 10*runs)
	if err != nil {
		return nil, err
	}
	reuse, err := reuseFault(ctx, o, runs/2)
	if err != nil {
		return nil, err
	}
	return &attacks.Report{Rows: []attacks.Row{total, calibration, reuse}}, nil
}

// totalNoise measures the noise in the sum: n² terms are n Laplace variables.
func totalNoise(ctx context.Context, o attacks.Options, runs int) (attacks.Row, error) {
	const terms = tableParties - 1
	laplace := continuous.Laplace{Scale: 1}
	sums := make([]float64, runs)
	err := o.Parallel(ctx, partSum, runs, func(i int, r *rand.Rand) error {
		for range terms {
			x, err := laplace.Sample(r)
			if err != nil {
				return err
			}
			sums[i] += x
		}
		sums[i] = math.Abs(sums[i])
		return nil
	})
	if err != nil {
		return attacks.Row{}, err
	}
	want := laplaceSumAbsolute(terms, 1)
	mean, _ := attacks.MeanAndError(sums)
	// The variance of |S| is 2m − E|S|².
	standardError := math.Sqrt((2*terms - want*want) / float64(runs))
	return attacks.Row{
		Case:       "total noise",
		Metric:     "E|sum of 99 terms|, λ",
		Undefended: attacks.Near(mean, standardError, runs, want),
		Note:       "the thesis has (n−1)λ",
	}, nil
}

// laplaceSumAbsolute returns E|X₁ + … + X_m| = 2mλ·C(2m, m)/4^m of m ≥ 1 independent
// Laplace variables of scale λ: 11.2λ at m = 99, where the thesis has (n−1)λ.
//
// The sum is a difference of two Gamma(m) variables. Integrating their joint density
// gives 2m·C(2m, m)/4^m, which grows as 2√(m/π), as a sum's spread must.
func laplaceSumAbsolute(m int, scale float64) float64 {
	factorial2m, _ := math.Lgamma(float64(2*m + 1)) // its logarithm
	factorialm, _ := math.Lgamma(float64(m + 1))
	return 2 * float64(m) * scale * math.Exp(factorial2m-2*factorialm-float64(2*m)*math.Ln2)
}

// calibrationFault audits a claim of ε = 0.1 for 20 parties, which is really one of 2.
// Next to it stands noise of scale 1/ε in the same units, which honours it; there are runs enough
// to show that half of that does not.
func calibrationFault(o attacks.Options, runs int) (attacks.Row, error) {
	published := thesisClaim{
		epsilon:         0.1,
		parties:         20,
		records:         1,
		smallest:        1,
		dimension:       1,
		rounds:          1,
		recordsOfClient: 1,
	}
	honest := published
	honest.parties = 1
	undefended, err := published.audit(runs, o.Rand(partCalibration))
	if err != nil {
		return attacks.Row{}, err
	}
	defended, err := honest.audit(runs, o.Rand(partCalibration))
	if err != nil {
		return attacks.Row{}, err
	}
	return attacks.Row{
		Case:       "calibration",
		Metric:     "ε shown, of a claimed 0.1",
		Undefended: attacks.BoundOf(undefended, 2*published.epsilon, published.pure()),
		Defended:   attacks.BoundOf(defended, 0, honest.pure()),
		Note:       "the scale carries 1/n, but the noise is in the sum",
	}, nil
}

// thesisClaim says to what the thesis's calibration of Protocol 1 is applied: Laplace
// noise of scale 2/(n·k·α·ε) in each coordinate, as ε-differential privacy. n is the
// number of parties, k a party's records, α the regularisation.
type thesisClaim struct {
	epsilon  float64 // claimed
	parties  int
	records  int // of the party that calibrates
	smallest int // records of the smallest party
	// dimension and rounds are those of a whole run, and recordsOfClient those that
	// one client adds: all are 1 for a claim about one record, coordinate and round.
	dimension, rounds, recordsOfClient int
}

// pure returns the pure ε that the noise gives.
//
//   - The scale carries 1/n, which fits the mean of the parties' weights; the noise is
//     added to the sum, where one record moves a party's weights by 2/(k·α): × n.
//   - k is each party's own; the bound has to hold for the smallest party: × k/k_min.
//   - 2/(k·α) bounds the L2 norm of a vector; with noise in each coordinate the L1
//     norm counts, which is up to √d times that: × √d.
//   - Each round releases anew: × rounds.
//   - A client has many records, and group privacy multiplies: × records.
func (c thesisClaim) pure() float64 {
	return c.epsilon * float64(c.parties) * float64(c.records) / float64(c.smallest) *
		math.Sqrt(float64(c.dimension)) * float64(c.rounds) * float64(c.recordsOfClient)
}

// releases draws runs of the released sum under that calibration, in units of the
// sum's sensitivity 2/(k·α), without and with the record that moves it by 1. All
// other inputs are zero.
func (c thesisClaim) releases(runs int, r *rand.Rand) (without, with []float64, err error) {
	law := continuous.Laplace{Scale: 1 / (float64(c.parties) * c.epsilon)}
	without, with = make([]float64, runs), make([]float64, runs)
	for i := range runs {
		if without[i], err = law.Sample(r); err != nil {
			return nil, nil, err
		}
		if with[i], err = law.Sample(r); err != nil {
			return nil, nil, err
		}
		with[i]++
	}
	return without, with, nil
}

// audit returns what runs with and as many without the record show.
func (c thesisClaim) audit(runs int, r *rand.Rand) (audit.Result, error) {
	without, with, err := c.releases(runs, r)
	if err != nil {
		return audit.Result{}, err
	}
	return audit.Scores(without, with, 0, audit.Alpha)
}

// reuseFault has candidates stay over ten rounds.
func reuseFault(ctx context.Context, o attacks.Options, runs int) (attacks.Row, error) {
	const n, rounds = tableParties, 10
	missed := make([]float64, runs)
	err := o.Parallel(ctx, partReuse, runs, func(i int, r *rand.Rand) error {
		missed[i] = reusedCandidates(n, rounds, r)
		return nil
	})
	if err != nil {
		return attacks.Row{}, err
	}
	// The cumulants are those of L Mean, with the choices divided.
	fresh := noiseForm{parties: n}.left(leaking, guessMean)
	left := reusedVariance(n, rounds)
	standardError := math.Sqrt((fresh.fourth + 2*left*left) / float64(runs))
	return attacks.Row{
		Case:       "reuse",
		Metric:     "variance left after 10 rounds, λ²",
		Undefended: attacks.Near(attacks.MeanSquare(missed), standardError, runs, left),
		Note: fmt.Sprintf("2 after one round, %.2f in the end: no number of rounds averages "+
			"fresh noise shares of one round away", reusedVariance(n, math.MaxInt32)),
	}, nil
}

// reusedCandidates plays rounds of the published protocol in which w = 0 and all
// candidates stay and only the honest party's bits are drawn anew, and returns the
// error of the mean of the colluders' estimates (Leaking, Mean).
func reusedCandidates(n, rounds int, r *rand.Rand) float64 {
	view := noiseForm{parties: n}.view(0, r)
	mean := 0.0
	for range rounds {
		mean += view.estimate(leaking, guessMean, nil) / float64(rounds)
		for i, sent := range view.toHonest {
			bit := uint8(r.Uint64() & 1)
			view.masked += sent[bit] - sent[view.honestBits[i]]
			view.honestBits[i] = bit
		}
	}
	return mean
}

// reusedVariance is the variance that averaging over rounds leaves when candidates
// are reused, in λ²: of 2 in all, (n−1)/n are the honest party's choices and are
// divided by the rounds; the rest, (n+1)/n, are terms that stay. It is 1.11 after 10
// rounds and 1.01 in the end, for n = 100. Fresh candidates leave 2 of every round,
// and 2/rounds of the mean input, as any noise does.
func reusedVariance(n, rounds int) float64 {
	return float64(n-1)/float64(n)/float64(rounds) + float64(n+1)/float64(n)
}
