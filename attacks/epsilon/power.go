package epsilon

import (
	"context"
	"fmt"
	"math"
	"math/big"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/hushsum/hushsum/attacks"
	"github.com/hushsum/hushsum/attacks/internal/draw"
	"github.com/hushsum/hushsum/audit"
	"github.com/hushsum/hushsum/noise"
)

var auditPower = attacks.Attack{
	Name:      "AuditPower",
	Adversary: "tester",
	About:     "catch noise that is half of what is claimed, many times over",
	Defence:   soundClaim,
	Run:       runPower,
}

// Each audit is of discrete Laplace noise that claims ε = 1, by powerRuns runs with the
// canary, which adds powerSensitivity, and as many without. The test is whether the output
// is at least that, fixed in advance, so that both its rates are known and the power can be
// computed.
const (
	powerSensitivity = 16
	powerClaim       = 1
	powerRuns        = 600
)

func runPower(ctx context.Context, o attacks.Options) (*attacks.Report, error) {
	audits := 500
	if o.Long {
		audits *= 20
	}
	const scale = powerSensitivity / powerClaim
	refutedSound, err := countRefuted(ctx, scale, audits)
	if err != nil {
		return nil, err
	}
	refutedHalved, err := countRefuted(ctx, scale/2, audits)
	if err != nil {
		return nil, err
	}
	// P(X ≥ k) = p^k/(1+p) for discrete Laplace and k ≥ 0.
	p := math.Exp(-1 / float64(scale/2))
	tpr, fpr := 1/(1+p), math.Pow(p, powerSensitivity)/(1+p)
	power, err := powerOf(powerRuns, tpr, fpr, powerClaim, 0, audit.Alpha)
	if err != nil {
		return nil, err
	}
	margin := attacks.Sigmas * math.Sqrt(power*(1-power)/float64(audits))
	single := 1 / float64(audits) // one audit more or less
	return &attacks.Report{Rows: []attacks.Row{{
		Case:   "noise halved",
		Metric: fmt.Sprintf("audits that refute ε = %d", powerClaim),
		Undefended: attacks.Proportion(refutedHalved, audits,
			power-margin-single, power+margin+single),
		Defended: attacks.Proportion(refutedSound, audits, 0, 0),
		Note: fmt.Sprintf("%d runs with and without: computed power %.4f",
			powerRuns, power),
	}}}, nil
}

// countRefuted audits noise of the given scale, and counts the audits that refute the
// claim.
func countRefuted(ctx context.Context, scale int64, audits int) (refuted int, err error) {
	law, err := noise.DiscreteLaplace(big.NewRat(scale, 1))
	if err != nil {
		return 0, err
	}
	samples, err := draw.Samples(law, 2*powerRuns*audits)
	if err != nil {
		return 0, err
	}
	for range audits {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		counts := audit.Counts{Positives: powerRuns, Negatives: powerRuns}
		for range powerRuns {
			with, without := samples[0]+powerSensitivity, samples[1]
			if samples = samples[2:]; with >= powerSensitivity {
				counts.TruePositives++
			}
			if without >= powerSensitivity {
				counts.FalsePositives++
			}
		}
		lower, err := counts.Epsilon(0, audit.Alpha)
		if err != nil {
			return 0, err
		}
		if lower > powerClaim {
			refuted++
		}
	}
	return refuted, nil
}

// powerOf returns the probability that an audit of the given number of runs with and
// as many without the canary shows more than the claimed ε, if its test has these
// true and false positive rates: the sum over both counts, which are binomial.
func powerOf(runs int, tpr, fpr, claim, delta, alpha float64) (float64, error) {
	if runs < 1 || !(tpr >= 0 && tpr <= 1) || !(fpr >= 0 && fpr <= 1) {
		return 0, fmt.Errorf("%w: %d runs, rates %v and %v", audit.ErrCounts, runs, tpr, fpr)
	}
	truePositives := distuv.Binomial{N: float64(runs), P: tpr}
	falsePositives := distuv.Binomial{N: float64(runs), P: fpr}
	power := 0.0
	for count := 0; count <= runs; count++ {
		weight := falsePositives.Prob(float64(count))
		if weight < 1e-15 {
			continue
		}
		counts := audit.Counts{Positives: runs, FalsePositives: count, Negatives: runs}
		least, err := leastRefuting(counts, claim, delta, alpha)
		if err != nil {
			return 0, err
		}
		if least <= runs {
			power += weight * (1 - truePositives.CDF(float64(least-1)))
		}
	}
	return power, nil
}

// leastRefuting returns the least number of true positives, at least that of false ones,
// with which the counts refute the claim, or one more than there can be.
func leastRefuting(counts audit.Counts, claim, delta, alpha float64) (int, error) {
	// The bound grows with the true positives where they are more frequent than the others.
	low, high := counts.FalsePositives, counts.Positives+1
	for low < high {
		middle := (low + high) / 2
		counts.TruePositives = middle
		lower, err := counts.Epsilon(delta, alpha)
		if err != nil {
			return 0, err
		}
		if lower > claim {
			high = middle
		} else {
			low = middle + 1
		}
	}
	return low, nil
}
