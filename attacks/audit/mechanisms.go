package audit

import (
	"math"
	"math/big"
	"math/rand/v2"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/attacks/internal/draw"
	"github.com/hushsum/hushsum/noise"
)

// auditDelta is δ of the audited claims, but for pure ones.
const claimDelta = 1e-5

// audited is a mechanism with a claim, and a way to run it.
type mechanism struct {
	name      string
	mechanism accounting.Mechanism
	delta     float64
	// scores draws runs with or without the canary; weak has a quarter of the noise.
	scores func(included, weak bool, runs int, r *rand.Rand) ([]float64, error)
}

// auditedMechanisms are those of package accounting, with claims from .9 to 1.9. The
// continuous ones are sampled by the references of package noise, which are seeded;
// the integer ones by its tables, with fresh randomness.
func allMechanisms() []mechanism {
	const sensitivity = 8
	reference := func(draw func(scale float64, r *rand.Rand) (float64, error), scale float64) func(bool, bool, int, *rand.Rand) ([]float64, error) {
		return func(included, weak bool, runs int, r *rand.Rand) ([]float64, error) {
			s := scale
			if weak {
				s /= 4
			}
			out := make([]float64, runs)
			for i := range out {
				x, err := draw(s, r)
				if err != nil {
					return nil, err
				}
				if out[i] = x; included {
					out[i]++
				}
			}
			return out, nil
		}
	}
	// integer takes the parameter as a number, as it stands and for a quarter of the
	// standard deviation.
	integer := func(law func(*big.Rat) (noise.Law, error), parameter, quarter int64) func(bool, bool, int, *rand.Rand) ([]float64, error) {
		return func(included, weak bool, runs int, _ *rand.Rand) ([]float64, error) {
			p := parameter
			if weak {
				p = quarter
			}
			l, err := law(big.NewRat(p, 1))
			if err != nil {
				return nil, err
			}
			samples, err := draw.Samples(l, runs)
			if err != nil {
				return nil, err
			}
			out := make([]float64, runs)
			for i, x := range samples {
				if included {
					x += sensitivity
				}
				out[i] = float64(x)
			}
			return out, nil
		}
	}
	return []mechanism{
		{"Gaussian", accounting.Gaussian{NoiseMultiplier: 3}, claimDelta, reference(func(s float64, r *rand.Rand) (float64, error) {
			return noise.ReferenceGaussian{Sigma: s}.Sample(r)
		}, 3)},
		{"Laplace", accounting.Laplace{Scale: 1}, 0, reference(func(s float64, r *rand.Rand) (float64, error) {
			return noise.ReferenceLaplace{Scale: s}.Sample(r)
		}, 1)},
		{"discrete Laplace", accounting.DiscreteLaplace{Scale: 8, Sensitivity: sensitivity}, 0, integer(noise.DiscreteLaplace, 8, 2)},
		{"discrete Gaussian", accounting.DiscreteGaussian{Sigma: 24, Sensitivity: sensitivity}, claimDelta, integer(noise.DiscreteGaussian, 576, 36)},
		{"Skellam", accounting.Skellam{Variance: 576, Sensitivity: sensitivity}, claimDelta, integer(noise.Skellam, 576, 36)},
		{"randomised response", accounting.RandomisedResponse{Epsilon: 1, Categories: 2}, 0, randomisedResponse},
	}
}

// randomisedResponse answers truthfully with probability e/(e+1); the weak form has
// ε = 4 in place of 1.
func randomisedResponse(included, weak bool, runs int, _ *rand.Rand) ([]float64, error) {
	epsilon := 1.0
	if weak {
		epsilon = 4
	}
	truth, err := noise.Rational(1 / (1 + math.Exp(-epsilon)))
	if err != nil {
		return nil, err
	}
	source := noise.NewSource(nil)
	out := make([]float64, runs)
	for i := range out {
		honest, err := source.Bernoulli(truth)
		if err != nil {
			return nil, err
		}
		if honest == included {
			out[i] = 1
		}
	}
	return out, nil
}

// audit returns what runs with and as many without the canary show.
func (a mechanism) audit(weak bool, runs int, r *rand.Rand) (Result, error) {
	without, err := a.scores(false, weak, runs, r)
	if err != nil {
		return Result{}, err
	}
	with, err := a.scores(true, weak, runs, r)
	if err != nil {
		return Result{}, err
	}
	return Scores(without, with, a.delta, Alpha)
}

// upper is the accountant's bound on ε at the mechanism's δ.
func (a mechanism) upper() (float64, error) {
	c, err := accounting.Compose(accounting.Step{Mechanism: a.mechanism, Count: 1})
	if err != nil {
		return 0, err
	}
	bound, err := c.Epsilon(a.delta)
	return bound.Upper, err
}
