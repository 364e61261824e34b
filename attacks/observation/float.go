package observation

import (
	"math"
	"math/big"
)

// A textbook Laplace sample is ±ln U with U a multiple of 2^-53: of the floats around
// an output only some can come out, and which ones depends on what the noise was
// added to (Mironov 2012). An output on one input that cannot come out on another
// gives the input away with certainty.

// InLaplaceSupport reports whether y = ±ln U for a U = k/2^53, 0 < k ≤ 2^53: whether
// it can come out when the input is 0 and the scale 1. ln is the logarithm that the
// sampler uses.
func inLaplaceSupport(y float64, ln func(float64) float64) bool {
	a := math.Abs(y)
	k := math.Round(math.Exp(-a) * (1 << 53))
	// exp is good to an ulp, 2^-53 relative, so that k is off by about one.
	for d := -4.0; d <= 4; d++ {
		if k+d < 1 || k+d > 1<<53 {
			continue
		}
		u := (k + d) / (1 << 53)
		// A correctly rounded logarithm is slow: leave out those that cannot match.
		if math.Abs(math.Log(u)+a) <= 1e-15*(1+a) && -ln(u) == a {
			return true
		}
	}
	return false
}

// outsideSupport is the probability that 1 ± ln U, correctly rounded, cannot come out
// on input 0.
//
// Near y, the values ±ln(k/2^53) lie 2^-53·e^|y| apart, and floats 2^(k−52), k = ⌊log₂
// |y|⌋, apart. So 2^(k+1)·e^−|y| of the floats are taken, which is below 1 for every
// y; outputs on input 1 fall on them with just that probability, as the last bits
// of a logarithm are as good as random. The density of outputs on input 1 is
// e^−|y−1|/2. Integrated octave by octave:
func outsideSupport() float64 {
	inside := 0.0
	for k := -60; k < 10; k++ {
		low, high := math.Ldexp(1, k), math.Ldexp(1, k+1)
		// ∫ e^(−2y) dy over the octave, which has length low; 2^(k+1) is high.
		integral := (math.Exp(-2*low) - math.Exp(-2*high)) / 2
		inside += high * integral / (2 * math.E) // y < 0: e^(−1−|y|)/2
		if k < 0 {
			inside += high * low / (2 * math.E) // 0 < y < 1: e^(y−1)/2
		} else {
			inside += high * integral * math.E / 2 // y ≥ 1: e^(1−y)/2
		}
	}
	return 1 - inside
}

// logRounded is the correctly rounded natural logarithm of 0 < u ≤ 1, from 2·artanh
// at 160 bits: for u = m·2^e, ln u = e·ln 2 + 2·Σ z^(2i+1)/(2i+1), z = (m−1)/(m+1).
func logRounded(u float64) float64 {
	m, e := math.Frexp(u)
	if m < math.Sqrt2/2 {
		m, e = 2*m, e-1
	}
	sum := artanh2(m)
	two := new(big.Float).Mul(big.NewFloat(float64(e)), ln2)
	sum.Add(sum, two)
	rounded, _ := sum.Float64()
	return rounded
}

// ln2 is −2·artanh at ½.
var ln2 = new(big.Float).Neg(artanh2(0.5))

// artanh2 returns ln m for ½ ≤ m ≤ √2 to about 150 bits.
func artanh2(m float64) *big.Float {
	float := func(x float64) *big.Float { return new(big.Float).SetPrec(160).SetFloat64(x) }
	one := float(1)
	z := new(big.Float).Quo(new(big.Float).Sub(float(m), one), new(big.Float).Add(float(m), one))
	square := new(big.Float).Mul(z, z)
	sum := float(0)
	term := new(big.Float).Set(z)
	for i := 1.0; term.Sign() != 0 && term.MantExp(nil) > z.MantExp(nil)-150; i += 2 {
		sum.Add(sum, new(big.Float).Quo(term, float(i)))
		term.Mul(term, square)
	}
	return sum.Mul(sum, float(2))
}
