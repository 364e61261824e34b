package audit

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/hushsum/hushsum/attacks"
	"gonum.org/v1/gonum/stat/distuv"
)

// ErrAudit: the counts of an audit do not fit together, or a probability is not
// between 0 and 1.
var ErrCounts = errors.New("attacks: counts or probabilities that no audit has")

// auditAlpha is the error of each one-sided interval of an audit here: its lower
// bound is above the truth with probability 2·auditAlpha = 1e-6 at most.
const Alpha = 5e-7

// OneRunAudit returns the lower bound on ε that one run of a mechanism shows
// (Steinke, Nasr, Jagielski 2023): each of m canaries was included by a fair coin, r
// of the coins were guessed, and v guesses were right. The mechanism is not (ε, δ)-
// differentially private for any ε below the result, at the given confidence. The
// result is 0 if the guesses show nothing. It fails with [ErrAudit].
func OneRun(m, r, v int, delta, confidence float64) (float64, error) {
	if m < 1 || r < 1 || r > m || v < 0 || v > r || !(delta >= 0 && delta <= 1) || !(confidence > 0 && confidence < 1) {
		return 0, fmt.Errorf("%w: m = %d, r = %d, v = %d, δ = %v, confidence %v", ErrCounts, m, r, v, delta, confidence)
	}
	low, high := 0.0, 1.0
	refuted := func(epsilon float64) bool { return oneRunPValue(epsilon, delta, m, r, v) <= 1-confidence }
	if !refuted(0) {
		return 0, nil
	}
	for refuted(high) {
		if low, high = high, 2*high; high > 1e3 {
			return low, nil
		}
	}
	for high-low > 1e-10*high {
		if mid := (low + high) / 2; refuted(mid) {
			low = mid
		} else {
			high = mid
		}
	}
	return low, nil
}

// oneRunPValue bounds the probability that an (ε, δ)-differentially private
// mechanism gives v right guesses or more of r: with q = 1/(1+e^−ε),
//
//	β = P[Bin(r, q) ≥ v],  α = max_i P[v−i ≤ Bin(r, q) < v]/i,  p = min(1, β + 2mαδ).
func oneRunPValue(epsilon, delta float64, m, r, v int) float64 {
	b := distuv.Binomial{N: float64(r), P: 1 / (1 + math.Exp(-epsilon))}
	beta := 0.0
	for k := r; k >= v; k-- {
		beta += b.Prob(float64(k))
	}
	if delta == 0 {
		return min(1, beta)
	}
	alpha, sum := 0.0, 0.0
	for i := 1; i <= v; i++ {
		sum += b.Prob(float64(v - i))
		alpha = max(alpha, sum/float64(i))
	}
	return min(1, beta+2*float64(m)*alpha*delta)
}

// Audited is what a test between two hypotheses shows about ε.
type Result struct {
	Lower float64 // lower bound on ε, 0 if nothing was shown
	// TruePositives of Positives runs with the canary were judged to be so, and
	// FalsePositives of Negatives runs without it.
	TruePositives, Positives, FalsePositives, Negatives int
}

// shown returns an audit's lower bound on ε, which must not exceed upper.
func Shown(a Result, upper float64) attacks.Measure {
	return attacks.Measure{
		Value: a.Lower, Lower: a.Lower, Upper: a.Lower, Confidence: 1 - 2*Alpha,
		Samples: a.Positives + a.Negatives, Max: upper,
	}
}

// ClopperPearson returns the lower bound on ε that a test's counts show at a given
// δ: ln((TPR_lo − δ)/FPR_hi), or the same of the test's negation, whichever is more,
// with Clopper–Pearson bounds at error alpha each. It is above the truth with
// probability 2·alpha at most: both forms use the same two bounds. It fails with
// [ErrAudit].
func ClopperPearson(truePositives, positives, falsePositives, negatives int, delta, alpha float64) (Result, error) {
	a := Result{TruePositives: truePositives, Positives: positives, FalsePositives: falsePositives, Negatives: negatives}
	if truePositives < 0 || truePositives > positives || positives < 1 ||
		falsePositives < 0 || falsePositives > negatives || negatives < 1 ||
		!(delta >= 0 && delta <= 1) || !(alpha > 0 && alpha < 0.5) {
		return Result{}, fmt.Errorf("%w: %+v, δ = %v, α = %v", ErrCounts, a, delta, alpha)
	}
	tpr := attacks.BinomialLower(truePositives, positives, alpha)
	fpr := attacks.BinomialUpper(falsePositives, negatives, alpha)
	for _, ratio := range []float64{(tpr - delta) / fpr, (1 - fpr - delta) / (1 - tpr)} {
		if ratio > 1 {
			a.Lower = max(a.Lower, math.Log(ratio))
		}
	}
	return a, nil
}

// AuditScores audits scores of runs without and with the canary, the latter being
// larger if anything. The first half of each chooses the threshold that shows most,
// the second half alone is counted. It fails with [ErrAudit].
func Scores(without, with []float64, delta, alpha float64) (Result, error) {
	if len(without) < 2 || len(with) < 2 {
		return Result{}, fmt.Errorf("%w: %d and %d runs", ErrCounts, len(without), len(with))
	}
	a, b := without[:len(without)/2], with[:len(with)/2]
	candidates := append(slices.Clone(a), b...)
	slices.Sort(candidates)
	best, threshold := -1.0, 0.0
	for i := 0; i < len(candidates); i += max(1, len(candidates)/100) {
		shown, err := scoresAt(a, b, candidates[i], delta, alpha)
		if err != nil {
			return Result{}, err
		}
		if shown.Lower > best {
			best, threshold = shown.Lower, candidates[i]
		}
	}
	return scoresAt(without[len(a):], with[len(b):], threshold, delta, alpha)
}

// auditAt judges a run to be with the canary if its score is at least the threshold,
// which must not come from the same scores.
func scoresAt(without, with []float64, threshold, delta, alpha float64) (Result, error) {
	count := func(scores []float64) (k int) {
		for _, s := range scores {
			if s >= threshold {
				k++
			}
		}
		return k
	}
	return ClopperPearson(count(with), len(with), count(without), len(without), delta, alpha)
}

// AuditPower is the probability that an audit of the given number of runs with and
// as many without the canary shows more than the claimed ε, if its test has these
// true and false positive rates: the sum over both counts, which are binomial.
func powerOf(runs int, tpr, fpr, claim, delta, alpha float64) (float64, error) {
	if runs < 1 || !(tpr >= 0 && tpr <= 1) || !(fpr >= 0 && fpr <= 1) {
		return 0, fmt.Errorf("%w: %d runs, rates %v and %v", ErrCounts, runs, tpr, fpr)
	}
	positives, negatives := distuv.Binomial{N: float64(runs), P: tpr}, distuv.Binomial{N: float64(runs), P: fpr}
	power := 0.0
	for fp := 0; fp <= runs; fp++ {
		weight := negatives.Prob(float64(fp))
		if weight < 1e-15 {
			continue
		}
		// The bound grows with tp where tpr > fpr, so that there is a least tp.
		low, high := fp, runs+1
		for low < high {
			mid := (low + high) / 2
			shown, err := ClopperPearson(mid, runs, fp, runs, delta, alpha)
			if err != nil {
				return 0, err
			}
			if shown.Lower > claim {
				high = mid
			} else {
				low = mid + 1
			}
		}
		if low <= runs {
			power += weight * (1 - positives.CDF(float64(low-1)))
		}
	}
	return power, nil
}
