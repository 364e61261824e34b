package accounting

import "math"

// A vector release under discrete Laplace noise of scale t, the same in every
// coordinate, has three upper bounds. [Round.Spent] takes the least.
//
// # By the L1 norm
//
// The release is dominated by the scalar one that one client shifts by Δ₁:
// for every integer vector v of L1 norm at most Δ₁, the product over coordinates
// of the pairs (noise + v_i, noise) has a hockey-stick curve below that of
// (noise + Δ₁, noise), at every ε. A vector of many coordinates with that L1 norm and an
// L2 norm of Δ₂ = Δ₁/√d is far from it: then the two others are smaller.
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
// # By both norms, in Rényi divergence
//
// For integer vectors of |v|₁ ≤ Δ₁ and |v|₂ ≤ Δ₂, and D(k) the divergence of order α of
// shift k, Σ D(|v_i|) ≤ Δ₁·φ(Δ₂²/Δ₁), where φ(k) = D(k)/k at integers and is linear
// between them: what Δ₁²/Δ₂² coordinates of Δ₂²/Δ₁ each would spend.
//
// Proof. Let g = (α−1)·D, u = 1/t, ρ = e^{−u}, a = (α−1)u, b = αu. Summing over the losses
// above, e^{g(k)} = A·e^{ak} + B·e^{−bk} with
//
//	A = (1−e^{−2b})/((1−e^{−a−b})(1+ρ)),  B = ρ(1−e^{−2a})/((1−e^{−a−b})(1+ρ)),  A + B = 1.
//
// Take that as g for real k ≥ 0. Then g′(k) = a − (a+b)/(1 + (A/B)·e^{(a+b)k}), which is
// concave in k ≥ 0 because A > B. At 0, g′ = Aa − Bb ≥ 0, which says sinh(b)/b ≥
// sinh(a)/a. As g(0) = 0, g(k)/k is the average of g′ over [0, k]: not negative, not
// decreasing, concave. So is its interpolation φ at k ≥ 1, and the line λk + μ through the
// piece of φ that holds k₀ = Δ₂²/Δ₁ has λ ≥ 0, μ ≥ g′(0) ≥ 0, and is above φ at all integers
// k ≥ 1. Hence Σ D(|v_i|) ≤ Σ λv_i² + μ|v_i| ≤ λΔ₂² + μΔ₁ = Δ₁(λk₀ + μ) = Δ₁·φ(k₀). ∎
//
// Both directions are the same, since the noise is symmetric. Rounds add, also if the
// client picks each vector after seeing earlier sums. For Δ₂²/Δ₁ ≪ t it is αΔ₂²/2t², the
// figure of zero-concentrated privacy.
//
// # As a Gaussian
//
// The release is dominated by N(μ,1), N(0,1) with μ = 2Φ⁻¹((1+p₀)/2)·Δ₂, p₀ = P[noise = 0]
// = tanh(1/2t) (Dong, Roth, Su 2022: μ-GDP). It loses a quarter in μ; it is the least
// where Rényi divergence is weak: with sampling, or a large δ.
//
// Proof. Let H(j) = −Φ⁻¹(P[noise ≥ j]). Likelihood ratios of shift k ≥ 1 are monotone, so
// the best tests are thresholds and the trade-off curve is a polygon with vertices
// (P[noise ≥ j], P[noise ≥ j−k]). The Gaussian's of kμ₁, x ↦ Φ(Φ⁻¹(x) + kμ₁), is concave and
// above every vertex if no step H(j+1) − H(j) exceeds μ₁. For j ≥ 0 the tail is
// ρ^j/(1+ρ); as −ln of the tail grows by u a step and H is a concave function of it (the
// normal hazard grows), the step from 0 to 1 is the largest; steps below 0 mirror those
// above. That step is 2Φ⁻¹(1/(1+ρ)) = μ₁. Squares of μ add over coordinates and rounds. ∎

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

// laplaceVectorRDP is the Rényi curve by both norms, rounded up by more than sums and
// multiples of it are rounded later. s has been checked.
func laplaceVectorRDP(scale float64, s Sensitivity, orders []float64) (RDP, error) {
	const up = 1 + 1e-12
	l1 := math.Max(1, math.Floor(s.L1*(1+1e-9)))
	square := math.Max(1, math.Floor(s.L2*s.L2*(1+1e-9)))
	each := math.Min(math.Max(square/l1, 1), l1)
	low := math.Floor(each)
	return NewRDP(orders, func(a float64) float64 {
		v := laplaceShiftRDP(scale, low, a) / low
		if each > low {
			v += (each - low) * (laplaceShiftRDP(scale, low+1, a)/(low+1) - v)
		}
		return l1 * v * up
	})
}

// laplaceShiftRDP is the divergence of order alpha of one coordinate that is shifted by k,
// rounded up. It is +Inf where the losses overflow.
func laplaceShiftRDP(scale, k, alpha float64) float64 {
	a, b := (alpha-1)/scale, alpha/scale
	if tooLoud(a*k, b*k) {
		return math.Inf(1)
	}
	below := -math.Expm1(-a-b) * (1 + math.Exp(-1/scale))
	if below == 0 {
		return math.Inf(1) // noise beyond the range of a float64
	}
	grown := -math.Expm1(-2*b) / below
	shrunk := math.Exp(-1/scale) * -math.Expm1(-2*a) / below
	if a*k > 1 {
		g := logAdd(math.Log(grown)+a*k, math.Log(shrunk)-b*k)
		return (g + 64*unit*(1+a*k)) / (alpha - 1)
	}
	// e^g − 1, whose terms of first order in 1/t cancel.
	x, y := grown*math.Expm1(a*k), shrunk*-math.Expm1(-b*k)
	return math.Log1p(math.Max(0, x-y)+64*unit*(x+y)) / (alpha - 1)
}

// laplaceVectorMu is μ of the release as a Gaussian, rounded up.
func laplaceVectorMu(scale float64, s Sensitivity) float64 {
	const up = 1 + 1e-11
	p0 := math.Tanh(1 / (2 * scale))
	step := math.Sqrt2 * math.Erfinv(p0)
	if p0 > 0.5 {
		rho := math.Exp(-1 / scale)
		step = normalQuantile(rho / (1 + rho) / up)
	}
	norm := math.Max(1, math.Min(s.L2, s.L1)*(1+1e-9))
	return 2 * step * norm * up
}
