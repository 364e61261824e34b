package aggregation

import (
	"fmt"
	"math"
)

// ChooseScale returns the encoder with the largest Scale that its Bits allow, and with the
// NoiseStdDev for that scale: noise of standard deviation multiplier·Δ₂ from each set of the given
// number of shares, so that the sum of all Parties has multiplier·Δ₂·√(Parties/shares). A party's
// own share then has the standard deviation NoiseStdDev/√Parties = multiplier·Δ₂/√shares, where
// shares is the number of honest parties that must suffice, MinSurvivors less the colluders. With
// multiplier 0 there is no noise. Scale and NoiseStdDev of the receiver are not read. The search is
// in float64, whose last places differ between machines: choose once, and give all parties the
// result.
//
// The larger the scale, the less rounding adds to the error and, because Δ₂ > Clip·Scale, to the
// noise: [Sensitivity].L2/(Clip·Scale) says how much, and is close to 1 for ample bits. One more
// bit at least doubles the scale. The bound that [Encoder] states under Wrapping has to fit, and
// not three or four standard deviations as in (Kairouz, Liu, Steinke 2021, §5): at 100,000
// coordinates and with discrete Gaussian noise the bound is nine standard deviations, which takes
// 1.2 to 1.6 bits more.
//
// It fails with [ErrConfig] if a field is outside its range, Bits is 0, the
// multiplier is negative or not finite or shares is not between 1 and Parties;
// and with [ErrBits] if not even Clip·Scale = 1 fits, that is, one integer unit
// for the whole of a clipped update.
func (e Encoder) ChooseScale(multiplier float64, shares int) (Encoder, error) {
	if e.Bits == 0 {
		return Encoder{}, fmt.Errorf("%w: Bits is 0; a scale is chosen for given bits", ErrConfig)
	}
	if !(multiplier >= 0 && multiplier <= maxStdDev) {
		return Encoder{}, fmt.Errorf("%w: the noise multiplier is %v, want a finite number of 0 or more",
			ErrConfig, multiplier)
	}
	if shares < 1 || shares > e.Parties {
		return Encoder{}, fmt.Errorf("%w: %d shares of noise, want 1 to Parties", ErrConfig, shares)
	}
	if err := checkClip(e.Clip); err != nil {
		return Encoder{}, err
	}
	ratio := multiplier * math.Sqrt(float64(e.Parties)/float64(shares))
	// at sets what goes with a scale. Without Bits there is no limit but 64, and
	// what is invalid apart from the bits comes out.
	at := func(scale float64) (Encoder, error) {
		try := e
		try.Scale, try.NoiseStdDev, try.Bits = scale, 0, 0
		p, err := try.coding()
		if err != nil {
			return Encoder{}, err
		}
		try.NoiseStdDev = ratio * p.sensitivity().L2
		try.Bits = e.Bits
		if try.NoiseStdDev > maxStdDev {
			return Encoder{}, fmt.Errorf("%w: the noise alone is too much", ErrBits)
		}
		_, err = try.coding()
		return try, err
	}

	// Steps inwards, so that the product is in range however it is rounded.
	low := math.Nextafter(minUnits/e.Clip, math.Inf(1))
	high := math.Nextafter(maxUnits/e.Clip, 0)
	best, err := at(low)
	if err != nil {
		return Encoder{}, err
	}
	if all, err := at(high); err == nil {
		return all, nil
	}
	// Every bound grows with the scale. Bisect its logarithm until it is known
	// to one part in 2^30.
	for high/low > 1+0x1p-30 {
		middle := low * math.Sqrt(high/low)
		if try, err := at(middle); err == nil {
			low, best = middle, try
		} else {
			high = middle
		}
	}
	return best, nil
}
