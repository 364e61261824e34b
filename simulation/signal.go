package simulation

import (
	"context"
	"math"

	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/training"
)

// Signal compares the noise in a run's means with the means themselves: L2 norms, in the units of
// the weights.
type Signal struct {
	// Noise is the norm of the noise in the mean of a round with all parties. For correlated noise,
	// which later rounds partly take back, it is the norm of the independent noise that would leave
	// as much noise in sums of rounds.
	Noise  float64
	Clip   float64 // the most that a mean can be
	Update float64 // the mean of the first round, without noise
}

// signalParties is how many parties are asked for their first updates.
const signalParties = 50

// SignalOf returns how large the noise is next to the first updates, which it computes as parties
// would in the first round. It is for an experimenter, who has all rows: nothing protects Update.
// Without noise all fields are 0. It fails with a [job.ConfigError], also in virtual time, and with
// the errors of training.
func SignalOf(ctx context.Context, settled *job.Settled, w World) (s Signal, err error) {
	if err := w.notTimed(); err != nil {
		return s, err
	}
	o, err := newSetting(settled, w)
	if err != nil || o.noise() == nil {
		return s, err
	}
	mechanism := o.noise()
	per := float64(o.expected())
	if o.Records != nil {
		per = float64(o.Records.Batch)
	}
	d := float64(mechanism.Encoder.Dimension)
	s.Noise = mechanism.SumStdDev(o.perRound) * math.Sqrt(d) / per
	if b := mechanism.Band(); b != nil {
		s.Noise *= b.Error(o.Rounds) / math.Sqrt(float64(o.Rounds+1)/2)
		o.Band = nil // all are asked
	}
	s.Clip = o.job.Privacy.Clip
	l := o.newBeside()
	asked := make([]int, min(len(o.Parties), signalParties))
	works := make([]training.Work, len(o.Parties))
	for i := range asked {
		asked[i] = i
		if works[i], err = l.TakePart(ctx, 1, i, nil); err != nil {
			return s, err
		}
	}
	total, err := l.total(asked, works)
	if err != nil {
		return s, err
	}
	for _, v := range total.Mean {
		s.Update = math.Hypot(s.Update, v)
	}
	if o.Records != nil { // of those asked, where the batch is of all
		s.Update *= float64(len(o.Parties)) / float64(len(asked))
	}
	return s, nil
}
