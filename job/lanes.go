package job

import (
	"io"
	"math"
	"slices"

	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/privacy"
)

// Update holds what a party submits in a round, before it is encoded. F is how its program holds
// vectors: float64, or float32 in half the memory, which other parties need not do.
type Update[F aggregation.Float] struct {
	Vector []F // its update, or its weights: Length numbers
	// Samples is how many rows the vector counts with, from 1, at most sum.max_weight; of no use
	// where all have equal weight.
	Samples int
	// Loss, from 0 to 10, and Accuracy, from 0 to 1, are means over the party's rows, of a job with
	// metrics.share. What is outside counts as the nearest bound, and NaN as 0.
	Loss, Accuracy float64

	// The others are of a job that trains its model itself: package training fills them.

	Trained bool      // package training made the update, and has clipped it
	Signed  []float64 // whose signs are sent, for a gradient mask
	Voted   []float64 // for a clip that follows a quantile
	Control []float64 // SCAFFOLD's change of a control variate
	Offset  int       // at which offset of a band the vector is, with correlated noise
}

// Weighed returns an update multiplied by 1/√(1 + rounds), the weight of an update that was made
// from the broadcast of the given number of rounds before, in a job with sum.buffer: see "Federated
// Learning with Buffered Asynchronous Aggregation" (Nguyen et al. 2022). Call Weighed before the
// vector is clipped.
func (u Update[F]) Weighed(rounds uint64) Update[F] {
	if rounds == 0 {
		return u
	}
	weight := 1 / math.Sqrt(1+float64(rounds))
	u.Vector, u.Signed = times(u.Vector, weight), times(u.Signed, weight)
	return u
}

func times[F aggregation.Float](x []F, factor float64) []F {
	y := slices.Clone(x)
	for i := range y {
		y[i] = F(float64(y[i]) * factor)
	}
	return y
}

// Total holds the decoded sum of updates: means, except that signs and votes are sums.
type Total struct {
	Mean, Control []float64
	Signs, Votes  []int64
	Metric        *Metric // of a job with metrics.share
	Parties       int
	Samples       int // rows that the mean is over, 0 where the sum does not say
}

// lanes lay out the parts of a party's message next to each other in one submission, and read the
// sum. A lane that a job does not use is missing. They are safe for concurrent use.
type lanes struct {
	noisy   *privacy.Mechanism   // all that is sent with noise, or
	keyed   *aggregation.Encoder // with noise of keys alone, else the others
	shape   laneOptions
	mean    meanLane
	signs   *aggregation.Signs
	votes   *aggregation.Signs
	control *aggregation.Mean // which has no noise
}

// laneOptions say what parties send.
type laneOptions struct {
	Parties   int // most of a sum
	Dimension int // of the vector
	// Range and FractionBits apply to coordinates without noise: see aggregation.Mean.
	Range        float64
	FractionBits int
	// MaxWeight weights means by rows, up to this many per party; 0: all have equal weight.
	MaxWeight             int
	Signs, Votes, Control bool // the lanes that there are
	// Noise is the mechanism of all lanes, nil for none, and Clip the norm of a vector in it.
	Noise *privacy.Mechanism
	Clip  float64
	// Keyed encodes a vector that has only the noise that hides keys, in its masks; nil: another lane.
	Keyed *aggregation.Encoder
	// Hidden is the probability that a party's secret coin lets it take part; otherwise it sends
	// zeros, and means are over the expected number of parties that take part. 0: there is no coin.
	Hidden float64
	// Batch is how many records a mean is over, if parties send sums over records; 0: they do not.
	Batch int
	// Masked leaves the noise to the masks of one-message sums.
	Masked bool
}

// newLanes settles what a submission contains. Only [lanes.Layout] finds whether it fits the ring.
func newLanes(o laneOptions) *lanes {
	l := &lanes{noisy: o.Noise, keyed: o.Keyed, shape: o}
	if l.noisy != nil || l.keyed != nil {
		return l
	}
	plain := aggregation.Mean{Parties: o.Parties, Dimension: o.Dimension, Range: o.Range,
		FractionBits: o.FractionBits}
	l.mean = equalMean{plain}
	if o.MaxWeight > 0 {
		l.mean = weightedMean{aggregation.FedAvg{Parties: o.Parties, Dimension: o.Dimension,
			Range: o.Range, FractionBits: o.FractionBits, MaxSamples: o.MaxWeight}}
	}
	if o.Control {
		l.control = &plain
	}
	if o.Signs {
		l.signs = &aggregation.Signs{Parties: o.Parties, Dimension: o.Dimension}
	}
	if o.Votes {
		l.votes = &aggregation.Signs{Parties: o.Parties, Dimension: 1}
	}
	return l
}

// meanLane is a lane for means of vectors without noise, weighted or not.
type meanLane interface {
	aggregation.Lane
	encode(v []float64, samples int) ([][]uint64, error)
	decode(sum [][]uint64, parties int) (mean []float64, samples int, err error)
}

type equalMean struct{ aggregation.Mean }

func (m equalMean) encode(v []float64, _ int) ([][]uint64, error) { return m.Encode(v) }

func (m equalMean) decode(sum [][]uint64, parties int) (mean []float64, samples int, err error) {
	mean, err = m.Decode(sum, parties)
	return mean, 0, err
}

type weightedMean struct{ aggregation.FedAvg }

func (m weightedMean) encode(v []float64, samples int) ([][]uint64, error) {
	return m.Encode(v, samples)
}

func (m weightedMean) decode(sum [][]uint64, _ int) (mean []float64, samples int, err error) {
	return m.Decode(sum)
}

// list returns the lanes in the order of a submission.
func (l *lanes) list() aggregation.Lanes {
	if l.noisy != nil {
		return aggregation.Lanes{l.noisy}
	}
	if l.keyed != nil {
		return aggregation.Lanes{*l.keyed}
	}
	all := aggregation.Lanes{l.mean}
	for _, s := range []*aggregation.Signs{l.signs, l.votes} {
		if s != nil {
			all = append(all, *s)
		}
	}
	if l.control != nil {
		all = append(all, *l.control)
	}
	return all
}

// Layout returns the segments of a submission. It fails with the errors of package aggregation.
func (l *lanes) Layout() (masking.Layout, error) { return l.list().Layout() }

// Encode makes a submission. rotation is the round's rotation, which nobody could choose or
// foresee; random serves noise and rounding (nil: crypto/rand). It fails with the errors of package
// aggregation.
func (l *lanes) Encode(rotation [32]byte, m Update[float64], random io.Reader) ([][]uint64, error) {
	if l.noisy != nil {
		return l.encodeNoisy(rotation, m, random)
	}
	if l.keyed != nil {
		rounded := *l.keyed
		rounded.Rotate = &rotation
		return rounded.Encode(m.Vector, make([]int64, rounded.Dimension), random)
	}
	var parts [][][]uint64
	add := func(part [][]uint64, err error) error {
		parts = append(parts, part)
		return err
	}
	err := add(l.mean.encode(m.Vector, m.Samples))
	if l.signs != nil && err == nil {
		err = add(l.signs.Encode(m.Signed, nil))
	}
	if l.votes != nil && err == nil {
		err = add(l.votes.Encode(m.Voted, nil))
	}
	if l.control != nil && err == nil {
		err = add(l.control.Encode(m.Control))
	}
	if err != nil {
		return nil, err
	}
	return l.list().Join(parts...)
}

func (l *lanes) encodeNoisy(
	rotation [32]byte, m Update[float64], random io.Reader,
) ([][]uint64, error) {
	v, next := m.Vector, m.Signed
	if l.shape.MaxWeight > 0 {
		v = aggregation.WeightedVector(v, m.Samples, l.shape.MaxWeight, l.countNorm())
	}
	if l.shape.Masked {
		rounded := l.noisy.Encoder
		rounded.Rotate = &rotation
		return rounded.Encode(v, make([]int64, l.noisy.Vector.Sensitivity.Dimension), random)
	}
	if l.noisy.Band() != nil {
		return l.noisy.EncodeAt(rotation, m.Offset, v, random)
	}
	if l.shape.Votes {
		next = m.Voted
	}
	if l.noisy.Signs == nil {
		next = nil
	}
	return l.noisy.Encode(rotation, v, next, random)
}

// countNorm returns the number that stands for the weight of a party with MaxWeight rows, with
// noise.
func (l *lanes) countNorm() float64 { return aggregation.DefaultCountShare * l.shape.Clip }

// Decode decodes the sum of a given number of submissions. It reduces the sum to its rings, and
// fails with the errors of package aggregation.
func (l *lanes) Decode(rotation [32]byte, sum [][]uint64, parties int) (t Total, err error) {
	layout, err := l.Layout()
	if err != nil {
		return t, err
	}
	for s, segment := range layout {
		if s < len(sum) {
			cut(sum[s], segment.Bits)
		}
	}
	if l.noisy != nil {
		return l.decodeNoisy(rotation, sum, parties)
	}
	if l.keyed != nil {
		rounded := *l.keyed
		rounded.Rotate = &rotation
		t.Parties = parties
		t.Mean, err = rounded.Decode(sum, parties)
		return t, err
	}
	parts, err := l.list().Split(sum)
	if err != nil {
		return t, err
	}
	next := func() [][]uint64 {
		part := parts[0]
		parts = parts[1:]
		return part
	}
	t.Parties = parties
	t.Mean, t.Samples, err = l.mean.decode(next(), parties)
	if l.signs != nil && err == nil {
		t.Signs, err = l.signs.Decode(next(), parties)
	}
	if l.votes != nil && err == nil {
		t.Votes, err = l.votes.Decode(next(), parties)
	}
	if l.control != nil && err == nil {
		t.Control, err = l.control.Decode(next(), parties)
	}
	return t, err
}

func (l *lanes) decodeNoisy(rotation [32]byte, sum [][]uint64, parties int) (Total, error) {
	t := Total{Parties: parties}
	mean, signs, err := l.noisy.Decode(rotation, sum, parties)
	if err != nil {
		return t, err
	}
	if l.shape.MaxWeight > 0 {
		mean, _ = aggregation.WeightedMean(mean, parties, l.countNorm())
	}
	t.Mean, t.Signs = mean, signs
	if l.shape.Votes {
		t.Signs, t.Votes = nil, signs
	}
	if batch := l.shape.Batch; batch > 0 {
		scale(t.Mean, float64(parties)/float64(batch))
	}
	if q := l.shape.Hidden; q > 0 {
		// How many had luck is part of what a secret coin hides: means are over the number
		// expected, and weighted ones over the noisy sum of weights.
		t.Parties = max(1, int(math.Round(q*float64(parties))))
		if l.shape.MaxWeight == 0 {
			scale(t.Mean, 1/q)
		}
	}
	return t, nil
}

// scale multiplies a vector.
func scale[F aggregation.Float](v []F, by float64) {
	for i := range v {
		v[i] = F(float64(v[i]) * by)
	}
}

// cut takes values modulo 2^bits.
func cut(values []uint64, bits int) {
	for i := range values {
		values[i] &= ^uint64(0) >> (64 - bits)
	}
}
