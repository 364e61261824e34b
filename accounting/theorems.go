package accounting

import "math"

// ClippingTheorem returns the noise multiplier that Theorem 3.2 of
// "Understanding Clipping for Federated Learning" asks for: with N clients, P of
// them in each of T rounds and per-client noise σ² ≥ v·c²·P·T·ln(1/δ)/(N²·ε²),
// the sum of P clients carries σ√P, which relative to the clipping bound c is
// z = (P/N)·√(v·T·ln(1/δ))/ε.
//
// The theorem says that constants u and v exist such that this noise is sufficient for ε ≤
// u(P/N)²T, but gives neither constant; v is therefore an argument. v = 2 is its value in the limit
// of large z, where Poisson-sampled Rényi divergence is (P/N)²·α/(2z²). A named reference, not a
// certified figure: use [Compose].
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
