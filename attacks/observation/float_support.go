package observation

import (
	"context"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"

	"github.com/hushsum/hushsum/attacks"
	"github.com/hushsum/hushsum/attacks/internal/draw"
	"github.com/hushsum/hushsum/internal/continuous"
	"github.com/hushsum/hushsum/noise"
)

var floatSupport = attacks.Attack{
	Name:      "FloatSupport",
	Adversary: "outsider",
	About:     "look for outputs of floating-point Laplace noise that only one input can have",
	Defence:   "integer samplers",
	Run:       runFloatSupport,
}

// A textbook Laplace sample is ±ln U with U a multiple of 2^-53: of the floats around
// an output only some can come out, and which ones depends on what the noise was
// added to (Mironov 2012). An output on one input that cannot come out on another
// gives the input away with certainty.

// inLaplaceSupport reports whether y = ±ln U for a U = k/2^53, 0 < k ≤ 2^53: whether
// it can come out when the input is 0 and the scale 1. ln is the logarithm that the
// sampler uses.
func inLaplaceSupport(y float64, ln func(float64) float64) bool {
	a := math.Abs(y)
	k := math.Round(math.Exp(-a) * (1 << 53))
	// exp is good to an ulp, 2^-53 relative, so that k is off by about one.
	for offset := -4.0; offset <= 4; offset++ {
		if k+offset < 1 || k+offset > 1<<53 {
			continue
		}
		u := (k + offset) / (1 << 53)
		// A correctly rounded logarithm is slow: leave out those that cannot match.
		if math.Abs(math.Log(u)+a) <= 1e-15*(1+a) && -ln(u) == a {
			return true
		}
	}
	return false
}

// outsideSupport returns the probability that 1 ± ln U, correctly rounded, cannot come out
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

// logRounded returns the correctly rounded natural logarithm of 0 < u ≤ 1, from 2·artanh
// at 160 bits: for u = m·2^e, ln u = e·ln 2 + 2·Σ z^(2i+1)/(2i+1), z = (m−1)/(m+1).
func logRounded(u float64) float64 {
	mantissa, exponent := math.Frexp(u)
	if mantissa < math.Sqrt2/2 {
		mantissa, exponent = 2*mantissa, exponent-1
	}
	sum := logSeries(mantissa)
	sum.Add(sum, new(big.Float).Mul(big.NewFloat(float64(exponent)), ln2))
	rounded, _ := sum.Float64()
	return rounded
}

// ln2 is −ln ½.
var ln2 = new(big.Float).Neg(logSeries(0.5))

// logSeries returns ln m for ½ ≤ m ≤ √2 to about 150 bits.
func logSeries(m float64) *big.Float {
	precise := func(x float64) *big.Float { return new(big.Float).SetPrec(160).SetFloat64(x) }
	above := new(big.Float).Sub(precise(m), precise(1))
	below := new(big.Float).Add(precise(m), precise(1))
	z := new(big.Float).Quo(above, below)
	square := new(big.Float).Mul(z, z)
	sum := precise(0)
	term := new(big.Float).Set(z)
	for i := 1.0; term.Sign() != 0 && term.MantExp(nil) > z.MantExp(nil)-150; i += 2 {
		sum.Add(sum, new(big.Float).Quo(term, precise(i)))
		term.Mul(term, square)
	}
	return sum.Mul(sum, precise(2))
}

func runFloatSupport(ctx context.Context, o attacks.Options) (*attacks.Report, error) {
	samples, rounded := 40000, 8000
	if o.Long {
		samples, rounded = 50*samples, 10*rounded
	}
	outsideRounded, err := outsideOfRounded(ctx, o, rounded)
	if err != nil {
		return nil, err
	}
	outsideReference, err := outsideOfReference(o, samples)
	if err != nil {
		return nil, err
	}
	outsideIntegers, err := outsideOfIntegers(samples)
	if err != nil {
		return nil, err
	}
	want := outsideSupport()
	spread := attacks.Sigmas * math.Sqrt(want*(1-want)/float64(rounded))
	const metric = "outputs that only D = 1 has"
	return &attacks.Report{Rows: []attacks.Row{{
		Case:       "rounded logarithm",
		Metric:     metric,
		Undefended: attacks.Proportion(outsideRounded, rounded, want-spread, want+spread),
		Defended:   attacks.Proportion(outsideIntegers, samples, 0, 0),
		Note: fmt.Sprintf("U a multiple of 2^-53, scale 1, inputs 0 and 1; theory %.4f",
			want),
	}, {
		Case:       "math.Log",
		Metric:     metric,
		Undefended: attacks.Proportion(outsideReference, samples, want-0.05, want+spread),
		Note: "errors of up to an ulp make some values meet; published .578, " +
			"by another logarithm",
	}}}, nil
}

// outsideOfRounded counts outputs on input 1 that cannot come out on input 0, of a sampler
// with a correctly rounded logarithm.
func outsideOfRounded(ctx context.Context, o attacks.Options, samples int) (int, error) {
	outside := make([]bool, samples)
	err := o.Parallel(ctx, partRoundedLogarithm, samples, func(i int, r *rand.Rand) error {
		bits := r.Uint64()
		x := logRounded(float64(bits>>11+1) / (1 << 53))
		if bits&1 == 1 {
			x = -x
		}
		outside[i] = !inLaplaceSupport(1+x, logRounded)
		return nil
	})
	count := 0
	for _, out := range outside {
		if out {
			count++
		}
	}
	return count, err
}

// outsideOfReference counts the same of the continuous sampler of internal/continuous.
func outsideOfReference(o attacks.Options, samples int) (int, error) {
	law := continuous.Laplace{Scale: 1}
	r := o.Rand(partReferenceLaplace)
	count := 0
	for range samples {
		x, err := law.Sample(r)
		if err != nil {
			return 0, err
		}
		if !inLaplaceSupport(1+x, math.Log) {
			count++
		}
	}
	return count, nil
}

// outsideOfIntegers counts the same of discrete Laplace noise, with inputs that are a step of its
// lattice apart. All that can come out on input 0, up to four scales from it, are the values that
// the sampler draws for it: as many samples miss one of these values with a probability of 3e-20.
func outsideOfIntegers(samples int) (int, error) {
	const scale, reach = 8, 4 * 8
	law, err := noise.DiscreteLaplace(big.NewRat(scale, 1))
	if err != nil {
		return 0, err
	}
	values, err := draw.Samples(law, 2*samples)
	if err != nil {
		return 0, err
	}
	possible := make(map[int64]bool)
	for _, x := range values[:samples] {
		possible[x] = true
	}
	count := 0
	for _, x := range values[samples:] {
		if y := x + 1; max(y, -y) <= reach && !possible[y] {
			count++
		}
	}
	return count, nil
}
