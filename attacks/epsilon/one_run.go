package epsilon

import (
	"cmp"
	"context"
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"

	"github.com/hushsum/hushsum/attacks"
	"github.com/hushsum/hushsum/attacks/internal/draw"
	"github.com/hushsum/hushsum/audit"
	"github.com/hushsum/hushsum/noise"
)

var auditOneRun = attacks.Attack{
	Name:      "AuditOneRun",
	Adversary: "tester",
	About:     "guess which of many canaries were in a single run",
	Defence:   soundClaim,
	Run:       runOneRun,
}

// playOneRun includes each canary by a fair coin, adds noise to each one's sum, guesses
// the coins of the most extreme sums, half from each end, and counts the right guesses.
// A canary adds sensitivity to its own sum, in whole units.
func playOneRun(
	law noise.Law, sensitivity int64, canaries, guesses int, coins *rand.Rand,
) (audit.OneRun, error) {
	samples, err := draw.Samples(law, canaries)
	if err != nil {
		return audit.OneRun{}, err
	}
	type canary struct {
		sum      int64
		included bool
	}
	all := make([]canary, canaries)
	for i := range all {
		all[i] = canary{sum: samples[i], included: coins.Uint64()&1 == 1}
		if all[i].included {
			all[i].sum += sensitivity
		}
	}
	// Ties are in random order, as the coins are.
	slices.SortStableFunc(all, func(a, b canary) int { return cmp.Compare(a.sum, b.sum) })
	outcome := audit.OneRun{Canaries: canaries, Guesses: guesses}
	for i := range guesses / 2 {
		if !all[i].included {
			outcome.Right++
		}
		if all[canaries-1-i].included {
			outcome.Right++
		}
	}
	return outcome, nil
}

func runOneRun(_ context.Context, o attacks.Options) (*attacks.Report, error) {
	const (
		sensitivity, claim = 16, 1.0
		canaries, guesses  = 10000, 2000
		confidence         = 1 - 1e-6
	)
	// measure audits noise of the given scale.
	measure := func(scale int64, low, high float64) (attacks.Measure, error) {
		law, err := noise.DiscreteLaplace(big.NewRat(scale, 1))
		if err != nil {
			return attacks.Measure{}, err
		}
		coins := o.Rand(partOneRun + uint64(scale))
		outcome, err := playOneRun(law, sensitivity, canaries, guesses, coins)
		if err != nil {
			return attacks.Measure{}, err
		}
		lower, err := outcome.Epsilon(0, confidence)
		return attacks.Measure{
			Value:      lower,
			Lower:      lower,
			Upper:      lower,
			Confidence: confidence,
			Samples:    canaries,
			Min:        low,
			Max:        high,
		}, err
	}
	sound, err := measure(sensitivity, 0, claim)
	if err != nil {
		return nil, err
	}
	halved, err := measure(sensitivity/2, claim, 2*claim)
	if err != nil {
		return nil, err
	}
	return &attacks.Report{Rows: []attacks.Row{{
		Metric:     fmt.Sprintf("ε shown, claim %g", claim),
		Undefended: halved,
		Defended:   sound,
		Note: fmt.Sprintf("%d canaries, %d guesses, confidence 1 − 1e-6; "+
			"undefended: half the noise", canaries, guesses),
	}}}, nil
}
