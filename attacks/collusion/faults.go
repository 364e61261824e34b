package collusion

import (
	"math"
	"math/rand/v2"

	"github.com/hushsum/hushsum/internal/continuous"
)

// laplaceSumAbsolute returns E|X₁ + … + X_m| = 2mλ·C(2m, m)/4^m of m ≥ 1 independent
// Laplace variables of scale λ: 11.2λ at m = 99, where the thesis has (n−1)λ.
//
// The sum is a difference of two Gamma(m) variables. Integrating their joint density
// gives 2m·C(2m, m)/4^m, which grows as 2√(m/π), as a sum's spread must.
func laplaceSumAbsolute(m int, scale float64) float64 {
	a, _ := math.Lgamma(float64(2*m + 1))
	b, _ := math.Lgamma(float64(m + 1))
	return 2 * float64(m) * scale * math.Exp(a-2*b-float64(2*m)*math.Ln2)
}

// thesisClaim is what the thesis's calibration of Protocol 1 is applied to: Laplace
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

// reusedCandidates plays rounds of the published protocol in which w = 0 and all
// candidates stay and only the honest party's bits are drawn anew, and returns the
// error of the mean of the colluders' estimates (Leaking, Mean).
func reusedCandidates(n, rounds int, r *rand.Rand) float64 {
	view := noiseForm{parties: n}.view(0, r)
	mean := 0.0
	for range rounds {
		mean += view.estimate(leaking, guessMean, nil) / float64(rounds)
		for i, g := range view.ToHonest {
			bit := uint8(r.Uint64() & 1)
			view.Masked += g[bit] - g[view.honestBits[i]]
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
