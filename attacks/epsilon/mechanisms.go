package epsilon

import (
	"context"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/attacks"
	"github.com/hushsum/hushsum/attacks/internal/draw"
	"github.com/hushsum/hushsum/audit"
	"github.com/hushsum/hushsum/internal/continuous"
	"github.com/hushsum/hushsum/noise"
)

var auditMechanisms = attacks.Attack{
	Name:      "AuditMechanisms",
	Adversary: "tester",
	About: "tell runs with a canary from runs without, for every mechanism of the " +
		"accountant, and with too little noise",
	Defence: soundClaim,
	Run:     runMechanisms,
}

// claimDelta is δ of the audited claims, but for pure ones.
const claimDelta = 1e-5

// The canary adds canarySize to a run of integer noise, and 1 to the others.
const canarySize = 8

// mechanism is a mechanism of the accountant with a claim, and two ways to run it.
type mechanism struct {
	name    string
	account accounting.Mechanism
	delta   float64
	// sound draws runs with or without the canary, weak the same with a quarter of the
	// noise, and halved with half of it: nil for those that weak is enough for.
	sound, weak, halved scores
	size                float64 // what the canary adds
}

// scores draws runs of a mechanism, with or without the canary.
type scores func(included bool, runs int, r *rand.Rand) ([]float64, error)

// auditedMechanisms returns those of package accounting, with claims from .9 to 1.9. The
// continuous ones are sampled by internal/continuous, which is seeded;
// the integer ones by its tables, with fresh randomness.
func auditedMechanisms() []mechanism {
	gaussian := func(sigma float64) scores {
		return reference(func(r *rand.Rand) (float64, error) {
			return continuous.Gaussian{Sigma: sigma}.Sample(r)
		})
	}
	laplace := func(scale float64) scores {
		return reference(func(r *rand.Rand) (float64, error) {
			return continuous.Laplace{Scale: scale}.Sample(r)
		})
	}
	return []mechanism{{
		name:    "Gaussian",
		account: accounting.Gaussian{NoiseMultiplier: 3},
		delta:   claimDelta,
		sound:   gaussian(3),
		weak:    gaussian(3. / 4),
		halved:  gaussian(3. / 2),
		size:    1,
	}, {
		name:    "Laplace",
		account: accounting.Laplace{Scale: 1},
		sound:   laplace(1),
		weak:    laplace(1. / 4),
	}, {
		name:    "discrete Laplace",
		account: accounting.DiscreteLaplace{Scale: 8, Sensitivity: canarySize},
		sound:   integer(noise.DiscreteLaplace, 8),
		weak:    integer(noise.DiscreteLaplace, 2),
	}, {
		name:    "discrete Gaussian",
		account: accounting.DiscreteGaussian{Sigma: 24, Sensitivity: canarySize},
		delta:   claimDelta,
		sound:   integer(noise.DiscreteGaussian, 24*24),
		weak:    integer(noise.DiscreteGaussian, 6*6),
		halved:  integer(noise.DiscreteGaussian, 12*12),
		size:    canarySize,
	}, {
		name:    "Skellam",
		account: accounting.Skellam{Variance: 576, Sensitivity: canarySize},
		delta:   claimDelta,
		sound:   integer(noise.Skellam, 24*24),
		weak:    integer(noise.Skellam, 6*6),
		halved:  integer(noise.Skellam, 12*12),
		size:    canarySize,
	}, {
		name:    "randomised response",
		account: accounting.RandomisedResponse{Epsilon: 1, Categories: 2},
		sound:   randomisedResponse(1),
		weak:    randomisedResponse(4),
	}}
}

// reference draws runs of continuous noise.
func reference(sample func(r *rand.Rand) (float64, error)) scores {
	return func(included bool, runs int, r *rand.Rand) ([]float64, error) {
		values := make([]float64, runs)
		for i := range values {
			x, err := sample(r)
			if err != nil {
				return nil, err
			}
			if included {
				x++
			}
			values[i] = x
		}
		return values, nil
	}
}

// integer draws runs of the law of the given parameter, a scale or a variance.
func integer(newLaw func(*big.Rat) (noise.Law, error), parameter int64) scores {
	return func(included bool, runs int, _ *rand.Rand) ([]float64, error) {
		law, err := newLaw(big.NewRat(parameter, 1))
		if err != nil {
			return nil, err
		}
		samples, err := draw.Samples(law, runs)
		if err != nil {
			return nil, err
		}
		values := make([]float64, runs)
		for i, x := range samples {
			if included {
				x += canarySize
			}
			values[i] = float64(x)
		}
		return values, nil
	}
}

// randomisedResponse answers truthfully with probability e^ε/(e^ε+1).
func randomisedResponse(epsilon float64) scores {
	return func(included bool, runs int, _ *rand.Rand) ([]float64, error) {
		truth, err := noise.Rational(1 / (1 + math.Exp(-epsilon)))
		if err != nil {
			return nil, err
		}
		source := noise.NewSource(nil)
		values := make([]float64, runs)
		for i := range values {
			honest, err := source.Bernoulli(truth)
			if err != nil {
				return nil, err
			}
			if honest == included {
				values[i] = 1
			}
		}
		return values, nil
	}
}

// auditMiddle returns δ at ε = 0 that runs with and as many without the canary show: by how much
// more often those with it are above the middle of the two. That is where a Gaussian law tells them
// apart best, and far better than in the tail that a small δ is about.
func (m mechanism) auditMiddle(run scores, runs int, r *rand.Rand) (attacks.Measure, error) {
	without, err := run(false, runs, r)
	if err != nil {
		return attacks.Measure{}, err
	}
	with, err := run(true, runs, r)
	if err != nil {
		return attacks.Measure{}, err
	}
	result, err := audit.ScoresAt(without, with, m.size/2, m.delta, audit.Alpha)
	result.Lower = result.Delta(audit.Alpha)
	return attacks.BoundOf(result, 0, 1), err
}

// middle returns a row of δ at ε = 0.
func (m mechanism) middle(o attacks.Options, part uint64, runs int) (attacks.Row, error) {
	claim, err := accounting.Compose(accounting.Step{Mechanism: m.account, Count: 1})
	if err != nil {
		return attacks.Row{}, err
	}
	delta, err := claim.Delta(0)
	if err != nil {
		return attacks.Row{}, err
	}
	asClaimed, err := m.auditMiddle(m.sound, runs, o.Rand(part))
	if err != nil {
		return attacks.Row{}, err
	}
	halved, err := m.auditMiddle(m.halved, runs, o.Rand(part))
	return attacks.Row{
		Case:       m.name,
		Metric:     fmt.Sprintf("δ shown at ε = 0, claim %.3f", delta.Upper),
		Undefended: halved.Within(delta.Upper, 1),
		Defended:   asClaimed.Within(0, delta.Upper),
		Note:       "undefended: half the noise",
	}, err
}

// audit returns what runs with and as many without the canary show.
func (m mechanism) audit(run scores, runs int, r *rand.Rand) (audit.Result, error) {
	without, err := run(false, runs, r)
	if err != nil {
		return audit.Result{}, err
	}
	with, err := run(true, runs, r)
	if err != nil {
		return audit.Result{}, err
	}
	return audit.Scores(without, with, m.delta, audit.Alpha)
}

// claim is the accountant's bound on ε at the mechanism's δ.
func (m mechanism) claim() (accounting.Claim, error) {
	c, err := accounting.Compose(accounting.Step{Mechanism: m.account, Count: 1})
	if err != nil {
		return accounting.Claim{}, err
	}
	bound, err := c.Epsilon(m.delta)
	return accounting.NewClaim(accounting.Statement{}, accounting.Figures{Bound: bound,
		Delta: m.delta}), err
}

func runMechanisms(_ context.Context, o attacks.Options) (*attacks.Report, error) {
	runs := 20000
	if o.Long {
		runs *= 25
	}
	report := &attacks.Report{}
	sound := attacks.Series{Label: "as claimed", Kind: attacks.Points}
	weak := attacks.Series{Label: "a quarter of the noise", Kind: attacks.Points}
	mechanisms := auditedMechanisms()
	for i, m := range mechanisms {
		o.Advance(i, len(mechanisms))
		stated, err := m.claim()
		if err != nil {
			return nil, err
		}
		claim := stated.Bare().Upper
		part := partMechanisms + uint64(i)
		asClaimed, err := m.audit(m.sound, runs, o.Rand(part))
		if err != nil {
			return nil, err
		}
		weakened, err := m.audit(m.weak, runs, o.Rand(part))
		if err != nil {
			return nil, err
		}
		report.Rows = append(report.Rows, attacks.Row{
			Case:       m.name,
			Metric:     "ε shown, claim " + stated.Most(),
			Undefended: attacks.BoundOf(weakened, claim, math.Inf(1)),
			Defended:   attacks.BoundOf(asClaimed, 0, claim),
			Note:       "undefended: a quarter of the noise",
		})
		if m.halved != nil {
			row, err := m.middle(o, partMiddle+uint64(i), runs)
			if err != nil {
				return nil, err
			}
			report.Rows = append(report.Rows, row)
		}
		sound.X, sound.Y = append(sound.X, claim), append(sound.Y, asClaimed.Lower)
		weak.X, weak.Y = append(weak.X, claim), append(weak.Y, weakened.Lower)
	}
	report.Figures = []attacks.Figure{{
		Name:   "audit-mechanisms",
		Title:  "ε shown and ε claimed",
		X:      "claimed",
		Y:      "shown",
		Series: []attacks.Series{sound, weak},
	}}
	return report, nil
}
