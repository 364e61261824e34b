package aggregation

import (
	"fmt"
	"io"

	"github.com/hushsum/hushsum/masking"
)

// Weighted is an [Encoder] for weighted means with differential privacy: a party
// submits (ω·Δ, s·ω), its update clipped to Clip and weighted, and its weight, where
//
//	ω = min(samples, MaxSamples)/MaxSamples,   s = CountShare·Clip
//
// so that the mean is the quotient of two sums, Σω·Δ / Σω, and no party's number of
// samples is seen. Whatever that number, one party adds a vector of norm at most
// Clip·√(1 + CountShare²), which is what the Encoder underneath clips to, rounds and
// states the sensitivity of. A cap is what bounds it: who has more rows than
// MaxSamples counts as if it had as many. Without noise, [FedAvg] does the same
// exactly.
//
// All parties and whoever decodes must use the same values.
type Weighted struct {
	// Encoder has the Clip and the Dimension of an update. One more coordinate is
	// encoded, the last one.
	Encoder    Encoder
	MaxSamples int // most samples that count, at least 1
	// CountShare is the norm of a full weight over Clip, above 0 and up to 1;
	// 0: DefaultCountShare. More makes the sum of weights less noisy, and that of updates
	// noisier by √(1 + CountShare²).
	CountShare float64
}

// DefaultCountShare is the CountShare of a [Weighted] that leaves it at 0. It costs the
// updates 3 % more noise.
const DefaultCountShare = 0.25

// Joint returns the encoder that both go through, of one coordinate more and a Clip
// that bounds them together: what ChooseScale, noise shares and accounting are for. It
// fails with [ErrConfig] if a field of Weighted is outside its range, and as
// [Encoder.Validate] does.
func (w Weighted) Joint() (Encoder, error) {
	e, _, err := w.joint()
	return e, err
}

func (w Weighted) joint() (e Encoder, share float64, err error) {
	share = w.CountShare
	if share == 0 {
		share = DefaultCountShare
	}
	switch {
	case w.MaxSamples < 1:
		return e, 0, fmt.Errorf("%w: MaxSamples is %d, want at least 1", ErrConfig, w.MaxSamples)
	case !(share > 0 && share <= 1):
		return e, 0, fmt.Errorf("%w: CountShare is %v, want above 0 and up to 1", ErrConfig, w.CountShare)
	}
	if err := w.Encoder.Validate(); err != nil {
		return e, 0, err
	}
	joint := w.Encoder
	joint.Dimension++
	joint.Clip *= WeightedClip(share)
	if err := joint.Validate(); err != nil {
		return e, 0, err
	}
	return joint, share, nil
}

// WeightedClip is the factor by which a count lane of the given share of the norm takes a
// clipping norm up: 1 + share²/2, a little more than √(1 + share²) and the same on all
// machines.
func WeightedClip(share float64) float64 { return 1 + float64(share*share)/2 }

// Validate returns [ErrConfig] if a field is outside its range, and [ErrBits] as that of
// the [Encoder] does.
func (w Weighted) Validate() error {
	_, err := w.Joint()
	return err
}

// Layout returns the one segment of a submission. It fails as [Weighted.Validate] does.
func (w Weighted) Layout() (masking.Layout, error) {
	e, err := w.Joint()
	if err != nil {
		return nil, err
	}
	return e.Layout()
}

// Encode returns one party's submission. samples is how many rows are behind the
// update; noise and random are as for [Encoder.Encode], of the coordinates of
// [Weighted.Layout]. It fails as that does, and with [ErrSamples] if samples is below 1.
func (w Weighted) Encode(
	update []float64, samples int, noise []int64, random io.Reader,
) ([][]uint64, error) {
	e, share, err := w.joint()
	if err != nil {
		return nil, err
	}
	if len(update) != w.Encoder.Dimension {
		return nil, fmt.Errorf("%w: %d coordinates, want %d", ErrLength, len(update), w.Encoder.Dimension)
	}
	if samples < 1 {
		return nil, fmt.Errorf("%w: want at least 1", ErrSamples)
	}
	clipped := make([]float64, len(update))
	if _, err := clipInto(clipped, update, w.Encoder.Clip); err != nil {
		return nil, err
	}
	return e.Encode(WeightedVector(clipped, samples, w.MaxSamples, share*w.Encoder.Clip), noise,
		random)
}

// Decode turns a sum of submissions of the given number of survivors into the weighted
// mean and the sum of weights behind it, in units of a full weight. With noise, either
// may be off; a sum of weights below 1 counts as 1 in the mean, so that noise is never
// blown up by more than if one party with a full weight had taken part. It fails as
// [Encoder.Decode] does.
func (w Weighted) Decode(
	sum [][]uint64, survivors int,
) (mean []float64, weight float64, err error) {
	e, share, err := w.joint()
	if err != nil {
		return nil, 0, err
	}
	joint, err := e.Decode(sum, survivors)
	if err != nil {
		return nil, 0, err
	}
	mean, weight = WeightedMean(joint, survivors, share*w.Encoder.Clip)
	return mean, weight, nil
}

// WeightedVector returns (ω·Δ, s·ω) for an update, as Weighted describes it, for any way
// to sum vectors: samples and maxSamples are at least 1, and countNorm is s, above 0.
func WeightedVector(update []float64, samples, maxSamples int, countNorm float64) []float64 {
	weight := float64(min(samples, maxSamples)) / float64(maxSamples)
	joint := make([]float64, len(update)+1)
	for i, x := range update {
		joint[i] = weight * x
	}
	joint[len(update)] = weight * countNorm
	return joint
}

// WeightedMean returns the weighted mean from the mean of the given number of vectors of
// [WeightedVector], and the sum of their weights; a sum of less than 1 counts as 1.
func WeightedMean(
	joint []float64, vectors int, countNorm float64,
) (mean []float64, weight float64) {
	d := len(joint) - 1
	weight = joint[d] * float64(vectors) / countNorm
	mean = make([]float64, d)
	for i := range mean {
		mean[i] = joint[i] * float64(vectors) / max(weight, 1)
	}
	return mean, weight
}
