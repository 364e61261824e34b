package accounting

import "math"

// BasicComposition returns (kε, kδ) for k adaptive uses of an (ε, δ) mechanism.
func BasicComposition(epsilon, delta float64, k int) (totalEpsilon, totalDelta float64, err error) {
	if err := checkTheorem(epsilon, delta, k); err != nil {
		return 0, 0, err
	}
	return float64(k) * epsilon, math.Min(1, float64(k)*delta), nil
}

// AdvancedComposition returns the ε of k adaptive uses of an (ε, δ) mechanism at
// total δ of kδ + slack: ε√(2k·ln(1/slack)) + kε(e^ε−1) (Dwork, Rothblum, Vadhan
// 2010 Theorem III.3). A reference: composing RandomisedResponse by [Compose]
// gives the optimal value.
func AdvancedComposition(
	epsilon, delta float64, k int, slack float64,
) (totalEpsilon, totalDelta float64, err error) {
	if err := checkTheorem(epsilon, delta, k); err != nil {
		return 0, 0, err
	}
	if !(slack > 0 && slack < 1) {
		return 0, 0, configError("slack is %v, want between 0 and 1", slack)
	}
	n := float64(k)
	e := epsilon*math.Sqrt(2*n*math.Log(1/slack)) + n*epsilon*math.Expm1(epsilon)
	return e, math.Min(1, n*delta+slack), nil
}

func checkTheorem(epsilon, delta float64, k int) error {
	if !(epsilon >= 0) || !(delta >= 0 && delta <= 1) || k < 0 {
		return configError("epsilon %v, delta %v, k %d: want epsilon ≥ 0, 0 ≤ delta ≤ 1, k ≥ 0", epsilon,
			delta, k)
	}
	return nil
}

// ClippingTheorem returns the noise multiplier that Theorem 3.2 of
// "Understanding Clipping for Federated Learning" asks for: with N clients, P of
// them in each of T rounds and per-client noise σ² ≥ v·c²·P·T·ln(1/δ)/(N²·ε²),
// the sum of P clients carries σ√P, which relative to the clipping bound c is
// z = (P/N)·√(v·T·ln(1/δ))/ε.
//
// The theorem says that constants u and v exist with this sufficient for
// ε ≤ u(P/N)²T, and gives neither; v is therefore an argument. v = 2 is its
// value in the limit of large z, where Poisson-sampled Rényi divergence is
// (P/N)²·α/(2z²). A named reference, not a certified figure: use [Compose].
func ClippingTheorem(
	clients, perRound, rounds int, epsilon, delta, v float64,
) (noiseMultiplier float64, err error) {
	if clients < 1 || perRound < 1 || perRound > clients || rounds < 1 {
		return 0, configError("%d of %d clients, %d rounds: want 1 ≤ perRound ≤ clients, rounds ≥ 1",
			perRound, clients, rounds)
	}
	if err := checkPositive("epsilon", epsilon); err != nil {
		return 0, err
	}
	if !(delta > 0 && delta < 1) {
		return 0, configError("delta is %v, want between 0 and 1", delta)
	}
	if err := checkPositive("v", v); err != nil {
		return 0, err
	}
	q := float64(perRound) / float64(clients)
	return q * math.Sqrt(v*float64(rounds)*math.Log(1/delta)) / epsilon, nil
}
