package aggregation

import (
	"fmt"
	"math"

	"github.com/hushsum/hushsum/masking"
)

// Lane is one part of a submission: what [Encoder], [Signs], [FedAvg] and
// [Mean] have in common.
type Lane interface {
	Layout() (masking.Layout, error)
}

// Lanes lays parts side by side in one submission, in the given order, so that
// all go under the same masks and one sum brings them all back: updates and
// signs, updates and the control variates of [Scaffold], or a gradient and one
// more bit. Each part is encoded and decoded by its own type.
type Lanes []Lane

// Layout returns the segments of all lanes in order. It fails with [ErrConfig] if
// there is no lane or one is nil, with the error of a lane's Layout, and with
// [masking.ErrLayout] if all together are too large.
func (l Lanes) Layout() (masking.Layout, error) {
	if len(l) == 0 {
		return nil, fmt.Errorf("%w: no lanes", ErrConfig)
	}
	var all masking.Layout
	for i, lane := range l {
		if lane == nil {
			return nil, fmt.Errorf("%w: lane %d is nil", ErrConfig, i)
		}
		part, err := lane.Layout()
		if err != nil {
			return nil, err
		}
		all = append(all, part...)
	}
	if err := all.Validate(); err != nil {
		return nil, err
	}
	return all, nil
}

// Join makes one submission of the lanes' encoded parts, one per lane and in
// their order; it shares memory with them. It fails as [Lanes.Layout] does, and
// with [ErrLength] if a part does not have the segments of its lane.
func (l Lanes) Join(parts ...[][]uint64) ([][]uint64, error) {
	var all [][]uint64
	for _, p := range parts {
		all = append(all, p...)
	}
	split, err := l.Split(all)
	if err != nil {
		return nil, err
	}
	for i := range split {
		if len(parts) != len(l) || len(parts[i]) != len(split[i]) {
			return nil, fmt.Errorf("%w: part %d is not that of its lane", ErrLength, i)
		}
	}
	return all, nil
}

// Split returns the parts of a submission or of a sum of submissions, one per
// lane; they share memory with it. It fails as [Lanes.Layout] does, and with
// [ErrLength] if the segments are not those of the layout.
func (l Lanes) Split(submission [][]uint64) ([][][]uint64, error) {
	layout, err := l.Layout()
	if err != nil {
		return nil, err
	}
	if err := checkSegments(layout, submission); err != nil {
		return nil, err
	}
	parts := make([][][]uint64, len(l))
	for i, lane := range l {
		part, err := lane.Layout()
		if err != nil {
			return nil, err
		}
		parts[i], submission = submission[:len(part):len(part)], submission[len(part):]
	}
	return parts, nil
}

// Mean is a lane for the unweighted mean of real vectors, without clipping and without noise:
// SCAFFOLD's control variates, FedGA's gradients. It is exact but for the rounding of [FixedPoint],
// and not differentially private. For differential privacy use an [Encoder] for this lane too, and
// account for both.
type Mean struct {
	Parties      int     // most parties in a sum, at least 1
	Dimension    int     // coordinates, at least 1
	Range        float64 // largest magnitude of a value; see FixedPoint
	FractionBits int     // binary places of a value
}

func (m Mean) fixedPoint() FixedPoint {
	return FixedPoint{Range: m.Range, FractionBits: m.FractionBits}
}

// Layout returns the one segment of an encoded vector, with the fewest bits in
// which the sum of all parties cannot wrap. It fails with [ErrConfig] or
// [ErrWrap].
func (m Mean) Layout() (masking.Layout, error) {
	b, err := m.fixedPoint().Bits(m.Parties)
	if err != nil {
		return nil, err
	}
	if m.Dimension < 1 || m.Dimension > masking.MaxLength {
		return nil, fmt.Errorf("%w: Dimension is %d, want 1 to %d", ErrConfig, m.Dimension,
			masking.MaxLength)
	}
	return masking.Layout{{Length: m.Dimension, Bits: b}}, nil
}

// Encode returns one party's values, rounded to fixed point. It fails as
// [Mean.Layout] does, with [ErrLength], [ErrNotFinite] or [ErrSaturated].
func (m Mean) Encode(values []float64) ([][]uint64, error) {
	layout, err := m.Layout()
	if err != nil {
		return nil, err
	}
	if len(values) != m.Dimension {
		return nil, fmt.Errorf("%w: %d coordinates, want %d", ErrLength, len(values), m.Dimension)
	}
	ring, err := m.fixedPoint().Encode(values, layout[0].Bits)
	if err != nil {
		return nil, err
	}
	return [][]uint64{ring}, nil
}

// Decode returns the mean over the survivors of a sum of encoded vectors; with
// survivors 1, the sum itself. It fails as [Mean.Layout] does, with [ErrConfig]
// if survivors is not between 1 and Parties, [ErrLength], [ErrRing], and
// [ErrSum] if a coordinate is larger than Parties values can make it.
func (m Mean) Decode(sum [][]uint64, survivors int) ([]float64, error) {
	layout, err := m.Layout()
	if err != nil {
		return nil, err
	}
	if err := checkSurvivors(survivors, m.Parties); err != nil {
		return nil, err
	}
	most, err := m.fixedPoint().peak(1)
	if err != nil {
		return nil, err
	}
	// The limit is below 2^63: see FixedPoint.Bits.
	integers, err := decodeSum(layout, sum, int64(most)*int64(m.Parties))
	if err != nil {
		return nil, err
	}
	mean := make([]float64, m.Dimension)
	for i, x := range integers {
		mean[i] = math.Ldexp(float64(x), -m.FractionBits) / float64(survivors)
	}
	return mean, nil
}
