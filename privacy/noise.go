package privacy

import (
	"math"
	"slices"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/noise"
)

// Noise declares how vectors are bounded and how much noise of which family their sums have.
type Noise struct {
	Family accounting.Family
	// Multiplier is z: the standard deviation of the noise in each coordinate of a sum, over the L2
	// sensitivity Δ₂ of the sum after rounding, for all families; both in integers. The noise counted
	// is that of the shares of [Promise.Honest] parties. Multiplier is above 0 and at most
	// 2^40. For a discrete Gaussian z is the parameter σ over Δ₂, and σ is a little above the
	// standard deviation if σ is small. With [Signs] z is the multiplier of both lanes together.
	Multiplier float64
	Clip       float64 // L2 norm that vectors are clipped to, 2^-500 to 2^500
	Bits       int     // of each coordinate of the sum in the ring, 1 to 64
}

// Validate returns a [ConfigError] for the first field that is outside its range.
func (n Noise) Validate() error {
	if err := n.validateVector(); err != nil {
		return err
	}
	if !(n.Multiplier > 0 && n.Multiplier <= 0x1p40) {
		return bad("Noise.Multiplier", "use a number above 0, such as 1",
			"%v is not a multiple of the sensitivity", n.Multiplier)
	}
	return nil
}

// validateVector is Validate but for the Multiplier.
func (n Noise) validateVector() error {
	switch {
	case !slices.Contains(accounting.Families(), n.Family):
		return bad("Noise.Family", "use discrete Laplace, discrete Gaussian or Skellam noise",
			"%v is not for sums", n.Family)
	case !(n.Clip >= 0x1p-500 && n.Clip <= 0x1p500):
		return bad("Noise.Clip", "use a number above 0, such as 1", "%v bounds no norm", n.Clip)
	case n.Bits < 1 || n.Bits > 64:
		return bad("Noise.Bits", "", "%d is outside 1 to 64", n.Bits)
	}
	return nil
}

// lawOf returns the law of a family of the given standard deviation, in integers.
func lawOf(family accounting.Family, stdDev float64) (noise.Law, error) {
	scale, law := stdDev*stdDev, noise.DiscreteGaussian
	switch family {
	case accounting.FamilySkellam:
		law = noise.Skellam
	case accounting.FamilyDiscreteLaplace:
		// The variance is 2p/(1−p)² = 1/(2·sinh²(1/2t)), with p = exp(−1/t). The
		// factor keeps float64 from making it smaller than was asked for.
		law = noise.DiscreteLaplace
		scale = (1 + 1e-12) / (2 * math.Asinh(1/(math.Sqrt2*stdDev)))
	}
	rational, err := noise.Rational(scale)
	if err != nil {
		return noise.Law{}, err
	}
	return law(rational)
}
