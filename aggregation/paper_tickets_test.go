package aggregation_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/hushsum/hushsum/aggregation"
)

// TestPaperTicketsAcceleration: FedLTN's server, θ⁺ = τθ̄ + (1−τ)(θ − λΔ) with
// Δ⁺ = −(θ⁺ − θ), is server momentum with rate τ and β₁ = (1−τ)λ. τ = 1 is plain
// averaging and λ = 0 averaging with the last model. With Δ⁺ = +(θ⁺ − θ), as the
// thesis's running text has it, the term would undo the last step instead of
// anticipating it: on a mean model that stands still, the minus gets there in fewer
// rounds.
func TestPaperTicketsAcceleration(t *testing.T) {
	rng := rand.New(rand.NewPCG(80, 7))
	const d = 6
	run := func(tau, lambda, sign float64, means func(round int) []float64,
		visit func(round int, printed, ours []float64)) {
		o := aggregation.Optimizer{Rule: aggregation.RuleMomentum, Rate: tau, Beta1: (1 - tau) * lambda}
		theta, last := make([]float64, d), make([]float64, d)
		ours := make([]float64, d)
		for round := range 30 {
			m := means(round)
			next := make([]float64, d)
			for j := range next {
				next[j] = tau*m[j] + (1-tau)*(theta[j]-lambda*last[j])
				last[j] = sign * (next[j] - theta[j])
			}
			theta = next
			ours = must(o.Apply(ours, minus(m, ours), nil))
			visit(round, theta, ours)
		}
	}
	random := func(int) []float64 { return draw(rng, d) }
	for _, c := range []struct{ tau, lambda float64 }{{0.5, 0.85}, {0.5, 1}, {0.3, 0.9}, {1, 0.85},
		{0.5, 0}} {
		run(c.tau, c.lambda, -1, random, func(round int, printed, ours []float64) {
			if off := length(minus(printed, ours)); off > 1e-12 {
				t.Errorf("τ %v, λ %v, round %d: %v apart", c.tau, c.lambda, round, off)
			}
		})
	}
	target := draw(rng, d)
	still := func(int) []float64 { return target }
	distance := map[float64]float64{}
	for _, sign := range []float64{-1, 1} {
		run(0.1, 0.85, sign, still, func(round int, printed, _ []float64) {
			if round == 10 {
				distance[sign] = length(minus(printed, target))
			}
		})
	}
	if distance[-1] >= distance[1] || math.IsNaN(distance[1]) {
		t.Errorf("after ten rounds the minus is at %v, the plus at %v", distance[-1], distance[1])
	}
}
