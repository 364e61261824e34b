package simulation

import (
	"crypto/rand"

	"github.com/hushsum/hushsum"
	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/privacy"
	"github.com/hushsum/hushsum/protocol"
)

// message is what a party sends, before it is encoded.
type message struct {
	vector  []float64 // its update, or its weights
	samples int       // that it counts with
	signed  []float64 // whose signs are sent for a gradient mask
	voted   []float64 // for an adaptive clipping norm
	control []float64 // SCAFFOLD's change of a control variate
}

// total is what a sum says: means, but of signs and votes the sums.
type total struct {
	mean, control []float64
	signs, votes  []int64
	parties       int
	samples       int // that the mean is over, as the sum has it; 0: it does not say
}

// lanes is how messages become submissions and a sum becomes a total. A lane that a
// rule has no use for is nil.
type lanes struct {
	noisy *noisyLanes // all that is sent with noise, else the others
	mean  meanLane
	signs *aggregation.Signs
	votes *aggregation.Signs
	// control is for control variates, which have no noise.
	control *aggregation.Mean
}

// newLanes settles the encoding, of sums in the given sessions; without a roster there
// are none.
func (o *Options) newLanes(session protocol.Config) (*lanes, error) {
	d := o.Model.NumParams()
	if o.Noise != nil {
		release, err := o.release()
		if err != nil {
			return nil, err
		}
		noisy, err := o.newNoisyLanes(release, session)
		if err != nil {
			return nil, err
		}
		return &lanes{noisy: noisy}, nil
	}
	l := &lanes{mean: o.meanLane(d)}
	if o.Client.stored() {
		control := o.plainMean(d)
		l.control = &control
	}
	if o.Mask.Kind != aggregation.NoMask {
		l.signs = &aggregation.Signs{Parties: o.mostInSum(), Dimension: d}
	}
	if o.Clip.Adaptive != nil {
		l.votes = &aggregation.Signs{Parties: o.mostInSum(), Dimension: 1}
	}
	return l, nil
}

// meanLane is a lane for means of vectors without noise, weighted or not.
type meanLane interface {
	aggregation.Lane
	encode(v []float64, samples int) ([][]uint64, error)
	decode(sum [][]uint64, parties int) (mean []float64, samples int, err error)
}

func (o *Options) plainMean(d int) aggregation.Mean {
	return aggregation.Mean{Parties: o.mostInSum(), Dimension: d, Range: o.Range,
		FractionBits: o.FractionBits}
}

func (o *Options) meanLane(d int) meanLane {
	if o.MaxSamples == 0 {
		return equalMean{o.plainMean(d)}
	}
	return weightedMean{aggregation.FedAvg{
		Parties:      o.mostInSum(),
		Dimension:    d,
		Range:        o.Range,
		FractionBits: o.FractionBits,
		MaxSamples:   o.MaxSamples,
	}}
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

func (l *lanes) layout() (masking.Layout, error) { return l.list().Layout() }

// encode makes a submission.
func (l *lanes) encode(round int, m message) ([][]uint64, error) {
	if l.noisy != nil {
		return l.noisy.encode(round, m)
	}
	var parts [][][]uint64
	add := func(part [][]uint64, err error) error {
		parts = append(parts, part)
		return err
	}
	err := add(l.mean.encode(m.vector, m.samples))
	if l.signs != nil && err == nil {
		err = add(l.signs.Encode(m.signed, nil))
	}
	if l.votes != nil && err == nil {
		err = add(l.votes.Encode(m.voted, nil))
	}
	if l.control != nil && err == nil {
		err = add(l.control.Encode(m.control))
	}
	if err != nil {
		return nil, err
	}
	return l.list().Join(parts...)
}

// decode returns what a sum of so many submissions says. The sum is cut to its rings.
func (l *lanes) decode(round int, sum [][]uint64, parties int) (t total, err error) {
	layout, err := l.layout()
	if err != nil {
		return t, err
	}
	for s, segment := range layout {
		cut(sum[s], segment.Bits)
	}
	if l.noisy != nil {
		return l.noisy.decode(round, sum, parties)
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
	t.parties = parties
	t.mean, t.samples, err = l.mean.decode(next(), parties)
	if l.signs != nil && err == nil {
		t.signs, err = l.signs.Decode(next(), parties)
	}
	if l.votes != nil && err == nil {
		t.votes, err = l.votes.Decode(next(), parties)
	}
	if l.control != nil && err == nil {
		t.control, err = l.control.Decode(next(), parties)
	}
	return t, err
}

// noisyLanes are the lanes of a run with noise, settled as for any other user of the
// library.
type noisyLanes struct {
	*privacy.Mechanism
	settled *hushsum.Settled
	options *Options
	// public stands for randomness that server and parties agree on before the run.
	public [32]byte
}

func (o *Options) newNoisyLanes(
	release *privacy.Release, session protocol.Config,
) (*noisyLanes, error) {
	terms := hushsum.Terms{Release: *release, Budget: o.Budget, Session: session}
	settled, err := terms.Settle()
	if err != nil {
		return nil, ofPrivacy(err)
	}
	l := &noisyLanes{Mechanism: settled.Mechanism(), settled: settled, options: o}
	if _, err := rand.Read(l.public[:]); err != nil {
		return nil, err
	}
	return l, nil
}

// rotation is one that no party could choose or foresee when it chose its rows.
func (l *noisyLanes) rotation(round int) [32]byte {
	return privacy.Rotation(l.public, uint64(round))
}

func (l *noisyLanes) encode(round int, m message) ([][]uint64, error) {
	o, v, beside := l.options, m.vector, m.signed
	if o.MaxSamples > 0 {
		v = aggregation.WeightedVector(v, m.samples, o.MaxSamples, o.countNorm())
	}
	if o.Clip.Adaptive != nil {
		beside = m.voted
	}
	if o.Oneshot != nil { // whose masks are the noise
		rotation := l.rotation(round)
		rounded := l.Encoder
		rounded.Rotate = &rotation
		return rounded.Encode(v, make([]int64, l.Vector.Sensitivity.Dimension), nil)
	}
	if l.Signs == nil {
		beside = nil
	}
	return l.Encode(l.rotation(round), v, beside, nil)
}

func (l *noisyLanes) decode(round int, sum [][]uint64, parties int) (total, error) {
	o, t := l.options, total{parties: parties}
	mean, beside, err := l.Decode(l.rotation(round), sum, parties)
	if err != nil {
		return t, err
	}
	if o.MaxSamples > 0 {
		mean, _ = aggregation.WeightedMean(mean, parties, o.countNorm())
	}
	t.mean, t.signs = mean, beside
	if o.Clip.Adaptive != nil {
		t.signs, t.votes = nil, beside
	}
	if o.hidden() {
		// How many were drawn is part of what sampling hides: means are over the number
		// expected, and weighted ones over the noisy sum of weights.
		t.parties = o.PerRound
		if o.MaxSamples == 0 {
			scale(t.mean, float64(parties)/float64(o.PerRound))
		}
	}
	return t, nil
}

// cut takes values modulo 2^bits.
func cut(values []uint64, bits int) {
	for i := range values {
		values[i] &= ^uint64(0) >> (64 - bits)
	}
}

func scale(v []float64, by float64) {
	if by == 1 {
		return
	}
	for i := range v {
		v[i] *= by
	}
}
