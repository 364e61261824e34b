package accounting

import "math"

// A vector release under discrete Laplace noise of scale t, the same in every
// coordinate, is dominated by the scalar release that one client shifts by Δ₁:
// for every integer vector v of L1 norm at most Δ₁, the product over coordinates
// of the pairs (noise + v_i, noise) has a hockey-stick curve below that of
// (noise + Δ₁, noise), at every ε.
//
// Proof. Let ρ = e^{−1/t} and δ_k be the curve of shift k ≥ 0. Signs do not matter:
// the noise is symmetric. By induction over coordinates it is enough that shift
// k = a+b dominates shifts a ≥ b ≥ 1 in two of them, because domination survives
// taking the product with any other pair.
//
// The losses of shift k are (2j−k)/t, 0 ≤ j ≤ k; their probabilities with the
// client are ρ^k/(1+ρ) at j = 0, ρ^{k−j}(1−ρ)/(1+ρ) between, and 1/(1+ρ) at j = k.
// Losses of a and b add up to losses of k. So δ_k and δ_{a⊗b} are both linear in
// e^ε between those points, and are compared at ε = (2j−k)/t alone. There
// 1−δ(ε) = Σ min(P, e^ε·Q) is, with u = ρ^{k−j}, for the one shift
//
//	1 − δ_k = (ρ^{k−j} + ρ^{k−j+1})/(1+ρ) = u.
//
// Swapping the hypotheses leaves both curves as they are, so 1−δ(ε) =
// e^ε(1−δ(−ε)), and ε ≥ 0 is enough: j ≥ k/2 ≥ b. Given the loss (2y−b)/t of the
// second coordinate, the first one's 1−δ_a at what is left of ε is min(1, ρ^{a−j+y}).
// Averaging over y,
//
//	j ≤ a:  1 − δ_{a⊗b} = u·(2 + (1−ρ)(b−1))/(1+ρ) ≥ u,
//	j > a:  1 − δ_{a⊗b} = u·(1 + (1−ρ)(k−j)/(1+ρ)) ≥ u.  ∎
//
// Continuous Laplace noise of scale b follows in the limit t = nb, shifts n·v_i,
// n → ∞: real vectors of L1 norm at most Δ₁ are dominated by the scalar shift Δ₁.
// Poisson sampling of the whole release keeps the domination, since it maps
// both pairs by the same affine change of e^ε.
//
// laplaceVector returns the scalar mechanism for an L1 bound. An integer
// vector's norm is an integer, so the bound is rounded down.
func laplaceVector(scale, delta1 float64) DiscreteLaplace {
	return DiscreteLaplace{scale, integerNorm(delta1)}
}

// integerNorm is the largest integer norm that the bound allows, at least 1. A
// bound that float64 arithmetic left just below an integer counts as it.
func integerNorm(bound float64) int {
	return max(1, int(math.Floor(bound*(1+1e-9))))
}

// laplaceVectorRDP is the Rényi curve of the same release; for a large Δ₁ that of
// randomised response, which dominates every mechanism of the same pure ε.
func laplaceVectorRDP(scale, delta1 float64) (RDP, error) {
	m := laplaceVector(scale, delta1)
	if e := float64(m.Sensitivity) / scale; m.Sensitivity > 1<<12 || e > 300 {
		return MechanismRDP(RandomisedResponse{e, 2}, nil)
	}
	return MechanismRDP(m, nil)
}
