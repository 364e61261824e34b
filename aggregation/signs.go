package aggregation

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/hushsum/hushsum/masking"
)

// Signs is the lane that a [GradientMask] needs beside the updates: it takes the
// sign of every coordinate, −1, 0 or 1, into a ring, and the sum of all parties
// back to Σ sign(Δ_n). Without noise a coordinate takes ⌈log₂(2·Parties + 1)⌉
// bits, and the mask is that in the clear bit for bit. Whoever decodes learns two
// sums, of updates and of signs, and nothing else.
//
// The sign that counts is that of the update before clipping, rotation and
// rounding. Clipping changes no sign, but for a coordinate that it takes below
// the smallest float64; rounding would lose the signs of small coordinates.
//
// # Privacy
//
// A party adds d signs: Δ₁ = d, Δ₂ = √d ([Signs.Sensitivity]), whatever its
// update. With Gaussian noise of standard deviation σ_u on an update lane of
// sensitivity C and σ_s on this one, both together have the noise multiplier z of
//
//	1/z² = C²/σ_u² + d/σ_s²
//
// which [JointMultiplier] computes. So σ_s is above z·√d. With fewer clients than
// that the sum is mostly noise, which looks like agreement: the mask is mostly ones.
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
	NoiseTail   NoiseTail
}

// plan returns the bits and the largest magnitude in a sum.
func (s Signs) plan() (b int, bound int64, err error) {
	switch {
	case s.Parties < 1:
		return 0, 0, fmt.Errorf("%w: Parties is %d, want at least 1", ErrConfig, s.Parties)
	case s.Dimension < 1 || s.Dimension > masking.MaxLength:
		return 0, 0, fmt.Errorf("%w: Dimension is %d, want 1 to %d", ErrConfig, s.Dimension, masking.MaxLength)
	case s.Bits < 0 || s.Bits > 64:
		return 0, 0, fmt.Errorf("%w: Bits is %d, want 1 to 64, or 0 for the fewest", ErrConfig, s.Bits)
	case !(s.NoiseStdDev >= 0 && s.NoiseStdDev <= maxStdDev):
		return 0, 0, fmt.Errorf("%w: NoiseStdDev is %v, want 0 to 2^60", ErrConfig, s.NoiseStdDev)
	case s.NoiseTail < LaplaceTail || s.NoiseTail > GaussianTail:
		return 0, 0, fmt.Errorf("%w: NoiseTail is %d, want one of the constants", ErrConfig, s.NoiseTail)
	}
	const guard = 1 + 0x1p-40 // over the roundings in the float64 formulas
	l := math.Log(float64(s.Dimension)) + 42*math.Ln2
	tail := s.NoiseTail.quantile(s.NoiseStdDev, l) * guard
	if !(float64(s.Parties)+tail < 1<<62) {
		return 0, 0, fmt.Errorf("%w: more than 64 bits", ErrBits)
	}
	bound = int64(s.Parties) + int64(tail)
	needed := bits.Len64(uint64(bound)) + 1
	if s.Bits == 0 {
		return needed, bound, nil
	}
	if s.Bits < needed {
		return 0, 0, fmt.Errorf("%w: Bits is %d and %d are needed", ErrBits, s.Bits, needed)
	}
	return s.Bits, bound, nil
}

// Validate returns [ErrConfig] if a field is outside its range, and [ErrBits] if
// a sum and its noise could leave the ring with a probability above 2^-40.
func (s Signs) Validate() error {
	_, _, err := s.plan()
	return err
}

// Layout returns the one segment of an encoded vector. It fails as
// [Signs.Validate] does.
func (s Signs) Layout() (masking.Layout, error) {
	b, _, err := s.plan()
	if err != nil {
		return nil, err
	}
	return masking.Layout{{Length: s.Dimension, Bits: b}}, nil
}

// Sensitivity returns the bounds on a party's signs, before noise: Δ₁ = d and
// Δ₂ = √d. It fails as [Signs.Validate] does.
func (s Signs) Sensitivity() (Sensitivity, error) {
	if err := s.Validate(); err != nil {
		return Sensitivity{}, err
	}
	d := uint64(s.Dimension)
	return Sensitivity{L2Squared: d, L2: rootUp(d), L1: float64(d), Dimension: s.Dimension}, nil
}

// Encode returns the signs of one party's update, with its share of the noise:
// one integer per coordinate if NoiseStdDev is above 0, and nil otherwise. It
// fails as [Signs.Validate] does, with [ErrLength] or with [ErrNotFinite].
func (s Signs) Encode(update []float64, noise []int64) ([][]uint64, error) {
	b, _, err := s.plan()
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
	out := make([]uint64, s.Dimension)
	for i, x := range update {
		if !finite(x) {
			return nil, fmt.Errorf("%w: coordinate %d", ErrNotFinite, i)
		}
		v := sign(x)
		if noise != nil {
			v += noise[i]
		}
		out[i] = uint64(v) & (^uint64(0) >> (64 - b))
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
	b, bound, err := s.plan()
	if err != nil {
		return nil, err
	}
	if survivors < 1 || survivors > s.Parties {
		return nil, fmt.Errorf("%w: %d survivors, want 1 to %d", ErrConfig, survivors, s.Parties)
	}
	if len(sum) != 1 || len(sum[0]) != s.Dimension {
		return nil, fmt.Errorf("%w: want 1 segment of %d coordinates", ErrLength, s.Dimension)
	}
	out, err := Integers(sum[0], b)
	if err != nil {
		return nil, err
	}
	limit := bound - int64(s.Parties-survivors)
	for i, x := range out {
		if x < -limit || x > limit {
			return nil, fmt.Errorf("%w: coordinate %d is too large", ErrSum, i)
		}
	}
	return out, nil
}

// JointMultiplier is the noise multiplier z of several Gaussian releases about
// the same parties at once, each with the given sensitivity Δ₂ over its noise's
// standard deviation: 1/z² = Σ ratio². A ratio must be 0 or more; the result is
// +Inf if all are 0. It fails with [ErrConfig].
func JointMultiplier(ratios ...float64) (float64, error) {
	var norm float64
	for _, r := range ratios {
		if !(r >= 0 && finite(r)) {
			return 0, fmt.Errorf("%w: a ratio of %v, want a finite number of 0 or more", ErrConfig, r)
		}
		norm = math.Hypot(norm, r)
	}
	return 1 / norm, nil
}
