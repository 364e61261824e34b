package simulation

import (
	"crypto/rand"

	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/privacy"
)

// lanes make submissions of what parties send, and totals of sums.
type lanes struct {
	*job.Lanes
	noisy *noisyLanes // nil without noise
}

// noisyLanes have the noise of a run.
type noisyLanes struct {
	*privacy.Mechanism
	// public stands for randomness that server and parties agree on before the run.
	public [32]byte
}

// newLanes settles the encoding.
func (o *Options) newLanes() (*lanes, error) {
	shape := job.LaneOptions{
		Parties:      o.PerRound,
		Dimension:    o.Model.NumParams(),
		Range:        o.Range,
		FractionBits: o.FractionBits,
		MaxWeight:    o.MaxSamples,
		Signs:        o.Mask.Kind != aggregation.NoMask,
		Votes:        o.Clip.Adaptive != nil,
		Control:      o.Client.Stored(),
	}
	if o.Noise == nil {
		return &lanes{Lanes: job.NewLanes(shape)}, nil
	}
	release, err := o.release()
	if err != nil {
		return nil, err
	}
	return o.newNoisyLanes(shape, release)
}

// newNoisyLanes settles the encoding with noise.
func (o *Options) newNoisyLanes(shape job.LaneOptions, release *privacy.Release) (*lanes, error) {
	mechanism, err := release.Mechanism()
	if err != nil {
		return nil, ofPrivacy(err)
	}
	noisy := &noisyLanes{Mechanism: mechanism}
	if _, err := rand.Read(noisy.public[:]); err != nil {
		return nil, err
	}
	shape.Noise, shape.Clip, shape.Masked = noisy.Mechanism, o.Noise.Clip, o.Oneshot != nil
	shape.Hidden = o.Hidden
	if o.Records != nil {
		shape.Batch = o.Records.Batch
	}
	return &lanes{job.NewLanes(shape), noisy}, nil
}

// plainMean is the lane of vectors without noise that are not those of the training.
func (o *Options) plainMean(d int) aggregation.Mean {
	return aggregation.Mean{Parties: o.PerRound, Dimension: d, Range: o.Range,
		FractionBits: o.FractionBits}
}

// rotation is one that no party could choose or foresee when it chose its rows.
func (l *lanes) rotation(round int) (r [32]byte) {
	if l.noisy == nil {
		return r
	}
	return privacy.Rotation(l.noisy.public, uint64(round))
}

func (l *lanes) encode(round int, m job.Update[float64]) ([][]uint64, error) {
	return l.Lanes.Encode(l.rotation(round), m, nil)
}

func (l *lanes) decode(round int, sum [][]uint64, parties int) (job.Total, error) {
	return l.Lanes.Decode(l.rotation(round), sum, parties)
}

// layout returns the segments of a submission.
func (l *lanes) layout() (masking.Layout, error) { return l.Lanes.Layout() }

// cut takes values modulo 2^bits.
func cut(values []uint64, bits int) {
	for i := range values {
		values[i] &= ^uint64(0) >> (64 - bits)
	}
}
