package aggregation

import (
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/masking"
)

// guard makes up for the roundings in the float64 formulas of a bound.
const guard = 1 + 0x1p-40

// noisyLane holds what [Encoder] and [Signs] have in common: their fields of these
// names, but for dimension, which is the number of coordinates with noise.
type noisyLane struct {
	parties, dimension, bits int
	noiseStdDev              float64
	noiseFamily              accounting.Family
}

func (l noisyLane) check() error {
	switch {
	case l.parties < 1:
		return fmt.Errorf("%w: Parties is %d, want at least 1", ErrConfig, l.parties)
	case l.dimension < 1 || l.dimension > masking.MaxLength:
		return fmt.Errorf("%w: Dimension is %d, want 1 to %d", ErrConfig, l.dimension, masking.MaxLength)
	case l.bits < 0 || l.bits > 64:
		return fmt.Errorf("%w: Bits is %d, want 1 to 64, or 0 for the fewest", ErrConfig, l.bits)
	case !(l.noiseStdDev >= 0 && l.noiseStdDev <= maxStdDev):
		return fmt.Errorf("%w: NoiseStdDev is %v, want 0 to 2^60", ErrConfig, l.noiseStdDev)
	case l.noiseFamily > 0 && !slices.Contains(accounting.Families(), l.noiseFamily):
		return fmt.Errorf("%w: NoiseFamily is %v, want one of package accounting's, or 0", ErrConfig,
			l.noiseFamily)
	}
	return nil
}

// tailExponent is the l for which tails of e^(−l), two to a coordinate, add up to
// 2^-41.
func (l noisyLane) tailExponent() float64 {
	return math.Log(float64(l.dimension)) + 42*math.Ln2
}

// fit returns the layout of the lane and the largest magnitude in a sum, but for
// 2^-41, where the sum without noise is at most the given one.
func (l noisyLane) fit(noiseless uint64) (layout masking.Layout, bound int64, err error) {
	tail := tailQuantile(l.noiseFamily, l.noiseStdDev, l.tailExponent()) * guard
	if !(float64(noiseless)+tail < 1<<62) {
		return nil, 0, fmt.Errorf("%w: more than 64 bits", ErrBits)
	}
	bound = int64(noiseless) + int64(tail)
	b := bits.Len64(uint64(bound)) + 1
	switch {
	case l.bits >= b:
		b = l.bits
	case l.bits > 0:
		return nil, 0, fmt.Errorf("%w: Bits is %d and %d are needed", ErrBits, l.bits, b)
	}
	return masking.Layout{{Length: l.dimension, Bits: b}}, bound, nil
}

// checkSegments returns [ErrLength] if a submission, or a sum of them, does not
// have the layout's shape.
func checkSegments(layout masking.Layout, submission [][]uint64) error {
	if len(submission) != len(layout) {
		return fmt.Errorf("%w: %d segments, want %d", ErrLength, len(submission), len(layout))
	}
	for i, s := range layout {
		if len(submission[i]) != s.Length {
			return fmt.Errorf("%w: segment %d has %d values, want %d", ErrLength, i, len(submission[i]),
				s.Length)
		}
	}
	return nil
}

// decodeSum returns the integers of the first segment of a sum. It fails with
// [ErrLength], with [ErrRing], and with [ErrSum] if one is above limit in magnitude.
func decodeSum(layout masking.Layout, sum [][]uint64, limit int64) ([]int64, error) {
	if err := checkSegments(layout, sum); err != nil {
		return nil, err
	}
	integers, err := Integers(sum[0], layout[0].Bits)
	if err != nil {
		return nil, err
	}
	for i, x := range integers {
		if x < -limit || x > limit {
			return nil, fmt.Errorf("%w: coordinate %d is too large", ErrSum, i)
		}
	}
	return integers, nil
}

func checkSurvivors(survivors, parties int) error {
	if survivors < 1 || survivors > parties {
		return fmt.Errorf("%w: %d survivors, want 1 to %d", ErrConfig, survivors, parties)
	}
	return nil
}
