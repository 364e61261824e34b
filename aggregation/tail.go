package aggregation

import (
	"math"

	"github.com/hushsum/hushsum/accounting"
)

// tailQuantile returns a T such that the sum of all shares of noise, of standard
// deviation sigma, is above T, or below −T, with probability at most e^(−l) each. Of
// discrete Gaussians sigma² is the sum of their parameters, which is at least their
// variance. The bound of discrete Laplace noise, the sum of Pólya differences of
// total shape at least 1, is the widest and holds for all; that of Skellam noise
// holds for discrete Gaussians too. Each is Chernoff's bound
// P(X ≥ T) ≤ exp(log E[e^(θX)] − θT) with a fixed θ or the best one.
//
//   - Discrete Gaussian: log E[e^(θX)] ≤ σ²θ²/2 (Canonne, Kamath, Steinke 2020),
//     so T = σ√(2l).
//   - Skellam: log E[e^(θX)] = σ²(cosh θ − 1), best at θ = asinh(T/σ²), so that
//     T is the root of T·asinh(T/σ²) − √(T² + σ⁴) + σ² = l. Newton's steps come
//     from above and, the left side being convex, stay there. They start at
//     l/3 + √(l²/9 + 2σ²l), which is above by σ²(cosh θ − 1) ≤ σ²θ²/2/(1 − θ/3).
//   - Pólya differences of total shape r ≥ 1: log E[e^(θX)] =
//     −r·ln(1 − σ²(cosh θ − 1)/r), which falls with r, so at most its value at
//     r = 1. With θ such that σ²(cosh θ − 1) = 1 − 1/l: T = (l + ln l)/θ.
func tailQuantile(family accounting.Family, sigma, l float64) float64 {
	if sigma == 0 {
		return 0
	}
	switch family {
	case accounting.FamilyDiscreteGaussian:
		return sigma * math.Sqrt(2*l)
	case accounting.FamilySkellam:
		mu := sigma * sigma
		x := l/3 + math.Sqrt(l*l/9+2*mu*l)
		for range 10 {
			slope := math.Asinh(x / mu)
			// σ² − √(x² + σ⁴), without cancellation
			rest := -x * (x / (math.Hypot(x, mu) + mu))
			x -= (x*slope + rest - l) / slope
		}
		return x
	default:
		// cosh θ − 1 = 2·sinh²(θ/2), which keeps its digits for small θ.
		theta := 2 * math.Asinh(math.Sqrt((1-1/l)/2)/sigma)
		return (l + math.Log(l)) / theta
	}
}
