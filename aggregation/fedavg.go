package aggregation

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/hushsum/hushsum/masking"
)

// FedAvg is federated averaging (McMahan 2017, Algorithm 1) by sums alone: party
// k sends n_k·w_k and n_k, its weights times its number of samples and that
// number, and Σ n_k·w_k / Σ n_k is the weighted average. Neither a party's
// weights nor its number of samples is seen.
//
// All parties and the decoder must use the same values.
type FedAvg struct {
	Parties      int     // most parties in a sum, at least 1
	Dimension    int     // weights of a model, at least 1
	Range        float64 // largest magnitude of a weight; see FixedPoint
	FractionBits int     // binary places of a weight times samples
	MaxSamples   int     // most samples of a party, at least 1
}

// Validate returns [ErrConfig] if a field is outside its range, and [ErrWrap] if
// the sum of all parties could wrap in 64 bits.
func (a FedAvg) Validate() error {
	_, err := a.Layout()
	return err
}

// Layout returns the two segments of a submission: Dimension coordinates for
// n_k·w_k and one for n_k, each with the fewest bits in which the sum of all
// parties cannot wrap. It fails as [FedAvg.Validate] does.
func (a FedAvg) Layout() (masking.Layout, error) {
	peak, err := a.peak()
	if err != nil {
		return nil, err
	}
	b, err := signedBits(peak, uint64(a.Parties))
	if err != nil {
		return nil, err
	}
	count, err := a.maxCount()
	if err != nil {
		return nil, err
	}
	// The count has no sign: 2^b > count is enough.
	return masking.Layout{
		{Length: a.Dimension, Bits: b},
		{Length: 1, Bits: bits.Len64(count)},
	}, nil
}

// peak is the largest magnitude of a coordinate of one party.
func (a FedAvg) peak() (uint64, error) {
	switch {
	case a.Parties < 1:
		return 0, fmt.Errorf("%w: Parties is %d, want at least 1", ErrConfig, a.Parties)
	case a.Dimension < 1 || a.Dimension >= masking.MaxLength:
		return 0, fmt.Errorf("%w: Dimension is %d, want 1 to %d", ErrConfig, a.Dimension,
			masking.MaxLength-1)
	case a.MaxSamples < 1:
		return 0, fmt.Errorf("%w: MaxSamples is %d, want at least 1", ErrConfig, a.MaxSamples)
	}
	return a.fixedPoint().peak(a.MaxSamples)
}

// maxCount is the largest sum of sample numbers.
func (a FedAvg) maxCount() (uint64, error) {
	hi, lo := bits.Mul64(uint64(a.Parties), uint64(a.MaxSamples))
	if hi != 0 || lo > math.MaxInt {
		return 0, fmt.Errorf("%w: %d parties of %d samples", ErrWrap, a.Parties, a.MaxSamples)
	}
	return lo, nil
}

func (a FedAvg) fixedPoint() FixedPoint {
	return FixedPoint{Range: a.Range, FractionBits: a.FractionBits}
}

// Encode returns one party's submission in the form of [FedAvg.Layout]:
// n·w·2^FractionBits of every weight, rounded once to the nearest integer, ties
// to even, and n, the number of samples. It fails as [FedAvg.Validate] does, with
// [ErrLength] if there are not Dimension weights, with [ErrSamples] if samples is
// not between 1 and MaxSamples, and with [ErrNotFinite] or [ErrSaturated].
func (a FedAvg) Encode(weights []float64, samples int) ([][]uint64, error) {
	layout, err := a.Layout()
	if err != nil {
		return nil, err
	}
	if len(weights) != a.Dimension {
		return nil, fmt.Errorf("%w: %d weights, want %d", ErrLength, len(weights), a.Dimension)
	}
	if samples < 1 || samples > a.MaxSamples {
		return nil, fmt.Errorf("%w: want 1 to %d", ErrSamples, a.MaxSamples)
	}
	rounded, err := a.fixedPoint().round(weights, samples)
	if err != nil {
		return nil, err
	}
	ring, err := toRing(rounded, layout[0].Bits)
	if err != nil {
		return nil, err
	}
	return [][]uint64{ring, {uint64(samples)}}, nil
}

// Decode turns a sum of submissions, in the form of [FedAvg.Layout], into the
// weighted mean and the number of samples behind it. The integers of the sum are
// exact; the mean is their quotient in float64, so that a weight is off by the
// parties' roundings, at most Parties/(2·samples·2^FractionBits), and by float64
// arithmetic.
//
// It fails as [FedAvg.Validate] does, with [ErrLength], with [ErrRing], and with
// [ErrSum] if the number of samples is 0 or above Parties·MaxSamples, or a
// coordinate is larger than Parties updates can make it.
func (a FedAvg) Decode(sum [][]uint64) (mean []float64, samples int, err error) {
	layout, err := a.Layout()
	if err != nil {
		return nil, 0, err
	}
	peak, err := a.peak()
	if err != nil {
		return nil, 0, err
	}
	// The limit is below 2^63: see Layout.
	integers, err := decodeSum(layout, sum, int64(peak)*int64(a.Parties))
	if err != nil {
		return nil, 0, err
	}
	count := sum[1][0]
	if count>>layout[1].Bits != 0 {
		return nil, 0, fmt.Errorf("%w: the number of samples, in a ring of %d bits", ErrRing,
			layout[1].Bits)
	}
	maxCount, err := a.maxCount()
	if err != nil {
		return nil, 0, err
	}
	if count == 0 || count > maxCount {
		return nil, 0, fmt.Errorf("%w: %d samples, want 1 to %d", ErrSum, count, maxCount)
	}
	mean = make([]float64, len(integers))
	for i, x := range integers {
		mean[i] = math.Ldexp(float64(x)/float64(count), -a.FractionBits)
	}
	return mean, int(count), nil
}
