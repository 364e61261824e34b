package aggregation

import (
	"fmt"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/masking"
)

// Signs is the lane that a [GradientMask] needs in addition to the updates: it takes the sign of
// every coordinate, −1, 0 or 1, into a ring, and the sum of all parties back to Σ sign(Δ_n).
// Without noise a coordinate takes ⌈log₂(2·Parties + 1)⌉ bits, and the mask equals the mask
// computed in the clear bit for bit. The decoder learns two sums, of updates and of signs, and
// nothing else.
//
// Signs are those of the update before clipping, rotation and rounding. Clipping changes a sign
// only if it takes a coordinate below the smallest float64; rounding would lose the signs of small
// coordinates.
//
// # Privacy
//
// A party adds d signs: Δ₁ = d, Δ₂ = √d ([Signs.Sensitivity]), whatever its
// update. With Gaussian noise of standard deviation σ_u on an update lane of
// sensitivity C and σ_s on this one, both together have the noise multiplier z of
//
//	1/z² = C²/σ_u² + d/σ_s²
//
// by which package privacy divides a multiplier between the lanes. So σ_s is above z·√d. With fewer
// clients than z·√d the sum is mostly noise, which looks like agreement: the mask is mostly ones.
//
// # Wrapping
//
// As for [Encoder]: with noise of standard deviation NoiseStdDev, the sum leaves
// the ring with probability 2^-41 at most, over all coordinates; without noise
// never.
type Signs struct {
	Parties   int // most parties in a sum, at least 1
	Dimension int // coordinates, at least 1
	Bits      int // b, 1 to 64; 0: the fewest that fit

	// The noise in the sum of Parties encoded vectors, in signs: its standard
	// deviation and its family, as for Encoder. 0: no noise.
	NoiseStdDev float64
	NoiseFamily accounting.Family
}

// coding returns the layout and the largest magnitude in a sum.
func (s Signs) coding() (layout masking.Layout, bound int64, err error) {
	lane := noisyLane{s.Parties, s.Dimension, s.Bits, s.NoiseStdDev, s.NoiseFamily}
	if err := lane.check(); err != nil {
		return nil, 0, err
	}
	return lane.fit(uint64(s.Parties))
}

// Validate returns [ErrConfig] if a field is outside its range, and [ErrBits] if
// a sum and its noise could leave the ring with a probability above 2^-40.
func (s Signs) Validate() error {
	_, _, err := s.coding()
	return err
}

// Layout returns the one segment of an encoded vector. It fails as
// [Signs.Validate] does.
func (s Signs) Layout() (masking.Layout, error) {
	layout, _, err := s.coding()
	return layout, err
}

// Sensitivity returns the bounds on a party's signs, before noise: Δ₁ = d and
// Δ₂ = √d. It fails as [Signs.Validate] does.
func (s Signs) Sensitivity() (accounting.Sensitivity, error) {
	if err := s.Validate(); err != nil {
		return accounting.Sensitivity{}, err
	}
	d := uint64(s.Dimension)
	return accounting.Sensitivity{L2: rootUp(d), L1: float64(d), Dimension: s.Dimension}, nil
}

// Encode returns the signs of one party's update, with its share of the noise:
// one integer per coordinate if NoiseStdDev is above 0, and nil otherwise. It
// fails as [Signs.Validate] does, with [ErrLength] or with [ErrNotFinite].
func (s Signs) Encode(update []float64, noise []int64) ([][]uint64, error) {
	layout, _, err := s.coding()
	if err != nil {
		return nil, err
	}
	if len(update) != s.Dimension {
		return nil, fmt.Errorf("%w: %d coordinates, want %d", ErrLength, len(update), s.Dimension)
	}
	want := 0
	if s.NoiseStdDev > 0 {
		want = s.Dimension
	}
	if len(noise) != want {
		return nil, fmt.Errorf("%w: noise for %d coordinates, want %d", ErrLength, len(noise), want)
	}
	mask := ^uint64(0) >> (64 - layout[0].Bits)
	out := make([]uint64, s.Dimension)
	for i, x := range update {
		if !finite(x) {
			return nil, fmt.Errorf("%w: coordinate %d", ErrNotFinite, i)
		}
		v := sign(x)
		if noise != nil {
			v += noise[i]
		}
		out[i] = uint64(v) & mask
	}
	return [][]uint64{out}, nil
}

// Decode returns Σ sign(Δ_n), and the noise in it, from a sum of encoded vectors;
// [GradientMask.Weights] takes it. survivors is the number of parties in the sum.
//
// It fails as [Signs.Validate] does, with [ErrConfig] if survivors is not between
// 1 and Parties, with [ErrLength], with [ErrRing], and with [ErrSum] if a
// coordinate is larger than the survivors and the noise ever make it.
func (s Signs) Decode(sum [][]uint64, survivors int) ([]int64, error) {
	layout, bound, err := s.coding()
	if err != nil {
		return nil, err
	}
	if err := checkSurvivors(survivors, s.Parties); err != nil {
		return nil, err
	}
	return decodeSum(layout, sum, bound-int64(s.Parties-survivors))
}
