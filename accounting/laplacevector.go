package accounting

import "math"

// A vector release under discrete Laplace noise of scale t, the same in every
// coordinate, has three upper bounds. [Round.Spent] takes the least.
//
// By the L1 norm it is dominated by the scalar release that one client shifts by Δ₁ (Lemma 1 of
// docs/privacy-proofs.md). A vector of many coordinates with that L1 norm and an L2 norm of
// Δ₂ = Δ₁/√d is far from it.
//
// By both norms, the Rényi divergence of order α is at most Δ₁·φ(Δ₂²/Δ₁), where φ(k) = D(k)/k at
// integers and linear between them and D(k) is that of shift k (Lemma 2).
//
// As a Gaussian it has μ = 2Φ⁻¹((1+p₀)/2)·Δ₂, p₀ = P[noise = 0] = tanh(1/2t) (Lemma 3). It loses a
// quarter in μ; it is the least where Rényi divergence is weak: with sampling, or a large δ.

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

// laplaceStep is μ₁, rounded up.
func laplaceStep(scale float64) float64 {
	const up = 1 + 1e-11
	p0 := math.Tanh(1 / (2 * scale))
	step := math.Sqrt2 * math.Erfinv(p0)
	if p0 > 0.5 {
		rho := math.Exp(-1 / scale)
		step = normalQuantile(rho / (1 + rho) / up)
	}
	return 2 * step * up
}
