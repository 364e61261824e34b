package audit

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

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
