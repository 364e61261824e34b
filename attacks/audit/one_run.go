package audit

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/hushsum/hushsum/attacks"
	"github.com/hushsum/hushsum/attacks/internal/draw"
	"github.com/hushsum/hushsum/noise"
)

var auditOneRun = attacks.Attack{
	Name:      "AuditOneRun",
	Adversary: "tester",
	About:     "guess which of many canaries were in a single run",
	Defence:   soundClaim,
	Run:       runOneRun,
}

// OneRun is the outcome of one run of a mechanism in which each of m canaries was included
// by a fair coin, r of the coins were guessed, and v guesses were right.
type OneRun struct {
	Canaries int // m
	Guesses  int // r ≤ m
	Right    int // v ≤ r
}

// valid reports whether the counts fit together.
func (o OneRun) valid() bool {
	return 1 <= o.Guesses && o.Guesses <= o.Canaries && 0 <= o.Right && o.Right <= o.Guesses
}

// Epsilon returns the lower bound on ε that the run shows (Steinke, Nasr, Jagielski 2023):
// the mechanism is not (ε, δ)-differentially private for any ε below it, at the given
// confidence. It is 0 if the guesses show nothing. It fails with [ErrCounts].
func (o OneRun) Epsilon(delta, confidence float64) (float64, error) {
	if !o.valid() || !(delta >= 0 && delta <= 1) || !(confidence > 0 && confidence < 1) {
		return 0, fmt.Errorf("%w: %+v, δ = %v, confidence %v", ErrCounts, o, delta, confidence)
	}
	refuted := func(epsilon float64) bool { return o.pValue(epsilon, delta) <= 1-confidence }
	if !refuted(0) {
		return 0, nil
	}
	low, high := 0.0, 1.0
	for refuted(high) {
		if low, high = high, 2*high; high > 1e3 {
			return low, nil
		}
	}
	for high-low > 1e-10*high {
		if middle := (low + high) / 2; refuted(middle) {
			low = middle
		} else {
			high = middle
		}
	}
	return low, nil
}

// pValue bounds the probability that an (ε, δ)-differentially private mechanism gives v
// right guesses or more of r: with q = 1/(1+e^−ε),
//
//	β = P[Bin(r, q) ≥ v],  α = max_i P[v−i ≤ Bin(r, q) < v]/i,  p = min(1, β + 2mαδ).
func (o OneRun) pValue(epsilon, delta float64) float64 {
	right := distuv.Binomial{N: float64(o.Guesses), P: 1 / (1 + math.Exp(-epsilon))}
	beta := 0.0
	for k := o.Guesses; k >= o.Right; k-- {
		beta += right.Prob(float64(k))
	}
	if delta == 0 {
		return min(1, beta)
	}
	alpha, sum := 0.0, 0.0
	for i := 1; i <= o.Right; i++ {
		sum += right.Prob(float64(o.Right - i))
		alpha = max(alpha, sum/float64(i))
	}
	return min(1, beta+2*float64(o.Canaries)*alpha*delta)
}

// playOneRun includes each canary by a fair coin, adds noise to each one's sum, guesses
// the coins of the most extreme sums, half from each end, and counts the right guesses.
// A canary adds sensitivity to its own sum, in whole units.
func playOneRun(
	law noise.Law, sensitivity int64, canaries, guesses int, coins *rand.Rand,
) (OneRun, error) {
	samples, err := draw.Samples(law, canaries)
	if err != nil {
		return OneRun{}, err
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
	outcome := OneRun{Canaries: canaries, Guesses: guesses}
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
