package accounting

import "math"

// ZCDP is a bound ρ of zero-concentrated differential privacy (Bun, Steinke
// 2016): Rényi divergence at most ρα at every order α > 1. It adds under
// composition. A Gaussian of noise multiplier z has ρ = 1/(2z²).
type ZCDP float64

// GaussianZCDP returns ρ = 1/(2z²), for the Gaussian and for the discrete Gaussian
// alike (Canonne, Kamath, Steinke 2020 Proposition 5).
func GaussianZCDP(noiseMultiplier float64) (ZCDP, error) {
	if err := checkPositive("noise multiplier", noiseMultiplier); err != nil {
		return 0, err
	}
	return ZCDP(1 / (2 * noiseMultiplier * noiseMultiplier)), nil
}

func (z ZCDP) check(delta float64) error {
	if !(z >= 0) || math.IsInf(float64(z), 1) {
		return configError("rho is %v, want 0 or more and finite", float64(z))
	}
	if !(delta > 0 && delta < 1) {
		return configError("delta is %v, want between 0 and 1", delta)
	}
	return nil
}

// Epsilon returns the least ε that the Rényi conversion of [RDP.Epsilon] gives
// over all real orders (Canonne, Kamath, Steinke 2020 Proposition 12).
func (z ZCDP) Epsilon(delta float64) (float64, error) {
	if err := z.check(delta); err != nil {
		return 0, err
	}
	if z == 0 {
		return 0, nil
	}
	f := func(lnX float64) float64 {
		a := 1 + math.Exp(lnX)
		return rdpToEpsilon(a, float64(z)*a, delta)
	}
	// The minimum is near α−1 = √(ln(1/δ)/ρ); f is unimodal in ln(α−1).
	mid := 0.5 * math.Log(math.Log(1/delta)/float64(z))
	lo, hi := mid-6, mid+6
	for range 120 {
		a, b := lo+(hi-lo)*0.382, lo+(hi-lo)*0.618
		if f(a) < f(b) {
			hi = b
		} else {
			lo = a
		}
	}
	return math.Max(0, f((lo+hi)/2)), nil
}
