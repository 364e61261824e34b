package aggregation

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/hushsum/hushsum/masking"
)

// Owners is a lane for the mean over owners of sparse models: a party sends m⊙θ and m, the weights
// that it keeps and its mask of zeros and ones, and the mean of a coordinate is Σ m⊙θ / Σ m. Only
// sums are visible: how many parties keep a coordinate, and never which. Both parts are dense, so
// that sparsity saves no bytes: a part as short as a party's mask would show the mask. It is exact
// but for the rounding of [FixedPoint], and not differentially private.
type Owners struct {
	Parties      int     // most parties in a sum, at least 1
	Dimension    int     // coordinates, at least 1
	Range        float64 // largest magnitude of a value; see FixedPoint
	FractionBits int     // binary places of a value
}

func (o Owners) values() Mean { return Mean(o) }

// Layout returns the two segments of a submission, each of Dimension coordinates: the
// values, with the fewest bits in which the sum of all parties cannot wrap, and the
// counts, of ⌈log₂(Parties + 1)⌉ bits. It fails with [ErrConfig] or [ErrWrap].
func (o Owners) Layout() (masking.Layout, error) {
	layout, err := o.values().Layout()
	if err != nil {
		return nil, err
	}
	layout = append(layout, masking.Segment{Length: o.Dimension, Bits: bits.Len(uint(o.Parties))})
	if err := layout.Validate(); err != nil {
		return nil, err
	}
	return layout, nil
}

// Encode returns one party's submission: values where kept is true and zeros elsewhere,
// whatever values has there. It fails as [Owners.Layout] does, with [ErrLength],
// [ErrNotFinite] or [ErrSaturated].
func (o Owners) Encode(values []float64, kept []bool) ([][]uint64, error) {
	if len(kept) != o.Dimension || len(values) != o.Dimension {
		return nil, fmt.Errorf("%w: %d values and %d marks of what is kept, want %d", ErrLength,
			len(values), len(kept), o.Dimension)
	}
	owned := make([]float64, len(values))
	count := make([]uint64, len(values))
	for i, k := range kept {
		if k {
			owned[i], count[i] = values[i], 1
		}
	}
	parts, err := o.values().Encode(owned)
	if err != nil {
		return nil, err
	}
	return append(parts, count), nil
}

// Decode returns, for every coordinate of a sum of submissions, how many parties own it and the
// mean over its owners; 0 where nobody owns it. It fails as [Owners.Layout] does, with [ErrLength],
// [ErrRing], and [ErrSum] if there are more owners than Parties or a sum is larger than its owners
// can make it.
func (o Owners) Decode(sum [][]uint64) (mean []float64, owners []int, err error) {
	layout, err := o.Layout()
	if err != nil {
		return nil, nil, err
	}
	if err := checkSegments(layout, sum); err != nil {
		return nil, nil, err
	}
	total, err := o.values().Decode(sum[:1], 1)
	if err != nil {
		return nil, nil, err
	}
	owners = make([]int, o.Dimension)
	for i, n := range sum[1] {
		switch {
		case n>>layout[1].Bits != 0:
			return nil, nil, fmt.Errorf("%w: count %d, in a ring of %d bits", ErrRing, i, layout[1].Bits)
		case n > uint64(o.Parties):
			return nil, nil, fmt.Errorf("%w: coordinate %d has more owners than there are parties", ErrSum,
				i)
		case math.Abs(total[i]) > float64(n)*(o.Range+math.Ldexp(1, -o.FractionBits)):
			return nil, nil, fmt.Errorf("%w: coordinate %d is larger than its owners can make it", ErrSum, i)
		case n > 0:
			total[i] /= float64(n)
		}
		owners[i] = int(n)
	}
	return total, owners, nil
}
