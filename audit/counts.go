package audit

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// Alpha is the usual error of each one-sided interval of an audit: its lower bound is above the
// truth with probability 2·Alpha = 1e-6 at most.
const Alpha = 5e-7

// ErrCounts: the counts of an audit do not fit together, or a probability is not
// between 0 and 1.
var ErrCounts = errors.New("audit: counts or probabilities that no audit has")

// Counts are the outcomes of a test that tells runs with a canary, the positives, from
// runs without it.
type Counts struct {
	TruePositives, Positives  int // judged to be with it, of all runs with it
	FalsePositives, Negatives int // judged to be with it, of all runs without it
}

// valid reports whether the counts fit together.
func (c Counts) valid() bool {
	return c.Positives >= 1 && 0 <= c.TruePositives && c.TruePositives <= c.Positives &&
		c.Negatives >= 1 && 0 <= c.FalsePositives && c.FalsePositives <= c.Negatives
}

// Epsilon returns the lower bound on ε that the counts show at a given δ:
// ln((TPR_lo − δ)/FPR_hi), or the same of the test's negation, whichever is more, with
// Clopper–Pearson bounds at error alpha each; 0 if they show nothing. It is above the
// truth with probability 2·alpha at most: both forms use the same two bounds. It fails
// with [ErrCounts].
func (c Counts) Epsilon(delta, alpha float64) (float64, error) {
	if !c.valid() || !(delta >= 0 && delta <= 1) || !(alpha > 0 && alpha < 0.5) {
		return 0, fmt.Errorf("%w: %+v, δ = %v, α = %v", ErrCounts, c, delta, alpha)
	}
	tpr := BinomialLower(c.TruePositives, c.Positives, alpha)
	fpr := BinomialUpper(c.FalsePositives, c.Negatives, alpha)
	epsilon := 0.0
	for _, ratio := range []float64{(tpr - delta) / fpr, (1 - fpr - delta) / (1 - tpr)} {
		if ratio > 1 {
			epsilon = max(epsilon, math.Log(ratio))
		}
	}
	return epsilon, nil
}

// Delta returns the lower bound on δ that the counts show at ε = 0, of the same bounds: by how much
// the rates differ. It is above the truth with probability 2·alpha at most.
func (c Counts) Delta(alpha float64) float64 {
	tpr := BinomialLower(c.TruePositives, c.Positives, alpha)
	fpr := BinomialUpper(c.FalsePositives, c.Negatives, alpha)
	return max(0, tpr-fpr)
}

// Result holds the outcome of an audit.
type Result struct {
	Counts
	Lower float64 // lower bound on ε, 0 if nothing was shown
	Alpha float64 // Lower is above the truth with probability 2·Alpha at most
}

// Scores audits scores of runs without and with the canary, the latter being
// larger if anything. The first half of each chooses the threshold that shows most,
// the second half alone is counted. It fails with [ErrCounts].
func Scores(without, with []float64, delta, alpha float64) (Result, error) {
	if len(without) < 2 || len(with) < 2 {
		return Result{}, fmt.Errorf("%w: %d and %d runs", ErrCounts, len(without), len(with))
	}
	firstWithout, firstWith := without[:len(without)/2], with[:len(with)/2]
	candidates := slices.Concat(firstWithout, firstWith)
	slices.Sort(candidates)
	best, threshold := -1.0, 0.0
	for i := 0; i < len(candidates); i += max(1, len(candidates)/100) {
		result, err := ScoresAt(firstWithout, firstWith, candidates[i], delta, alpha)
		if err != nil {
			return Result{}, err
		}
		if result.Lower > best {
			best, threshold = result.Lower, candidates[i]
		}
	}
	return ScoresAt(
		without[len(firstWithout):], with[len(firstWith):], threshold, delta, alpha)
}

// ScoresAt judges a run to be with the canary if its score is at least the threshold,
// which must not come from the same scores.
func ScoresAt(without, with []float64, threshold, delta, alpha float64) (Result, error) {
	count := func(scores []float64) (above int) {
		for _, score := range scores {
			if score >= threshold {
				above++
			}
		}
		return above
	}
	counts := Counts{
		TruePositives:  count(with),
		Positives:      len(with),
		FalsePositives: count(without),
		Negatives:      len(without),
	}
	lower, err := counts.Epsilon(delta, alpha)
	if err != nil {
		return Result{}, err
	}
	return Result{Counts: counts, Lower: lower, Alpha: alpha}, nil
}
