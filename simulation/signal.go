package simulation

import (
	"context"
	"math"

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

// Signal returns how large the noise is next to the first updates, which it computes as parties
// would in the first round. It is for an experimenter, who has all rows: nothing protects Update.
// Without Noise all fields are 0. It fails with a [job.ConfigError], and with the errors of
// training.
func (o Options) Signal(ctx context.Context) (s Signal, err error) {
	release, err := o.Release()
	if err != nil || o.Noise == nil {
		return s, err
	}
	mechanism, err := release.Mechanism()
	if err != nil {
		return s, ofPrivacy(err)
	}
	x := o.settled()
	per := float64(x.expected())
	if o.Records != nil {
		per = float64(o.Records.Batch)
	}
	d := float64(release.Dimension)
	s.Noise = mechanism.SumStdDev(x.PerRound) * math.Sqrt(d) / per
	if b := mechanism.Band(); b != nil {
		s.Noise *= b.Error(x.Rounds) / math.Sqrt(float64(x.Rounds+1)/2)
		x.Factorise = 0 // all are asked
	}
	s.Clip = o.Noise.Clip
	l := newBeside(x)
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
