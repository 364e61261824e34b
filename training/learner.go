package training

import (
	"fmt"
	"hash/fnv"
	"math"

	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/learning"
	"github.com/hushsum/hushsum/privacy"
)

// Options say how a model is trained, no matter who sums what parties submit.
type Options struct {
	Model learning.Model
	Local learning.SGD // of a party in a round; its Adjust and Interrupt must be nil
	// Client is the parties' rule, Server the server's and Mask the gradient mask before
	// its step.
	Client ClientRule
	Server aggregation.Optimizer
	Mask   aggregation.GradientMask
	Clip   Clipping
	// MaxSamples, if above 0, weighs parties by their rows, up to that number.
	MaxSamples int
	Models     bool // parties submit weights, and not updates
	Restart    bool // parties train from the first model in each round
	// NoiseClip is the norm of an update in sums with noise, 0 without. A training that
	// diverges is then an update of zeros: what rows do must show in the sum only.
	NoiseClip float64
	Seed      uint64 // of the first model and the batches
	// Records, if not nil, has parties sum over records, in place of Local, Client and Clip.
	Records *Records
	// Band, if not nil, has the cohorts of parties take turns to train, and submit parts of what they
	// made in the rounds after: see [privacy.Band].
	Band privacy.Band
	// Rounds are those of the training. The mean of the models of the last Average of them is the
	// last model; 0: they count for nothing.
	Rounds, Average int
}

// Learner is the state of a training: the server's models, and what parties keep from
// round to round.
type Learner struct {
	Options
	Parties   []*learning.Dataset // rows; nil where only the number counts
	Weights   []float64           // the model
	Last      []float64           // the last step of the model, nil at first
	Variate   []float64           // SCAFFOLD's c
	Variates  [][]float64         // and c_i, nil for zero
	Norm      float64             // that updates are clipped to, 0: that they are not
	Adaptive  *aggregation.AdaptiveClip
	Optimizer aggregation.Optimizer
	Mean      []float64 // of the models that Average counts, nil before
	Standard  Standard  // of features, where Records standardise
	Begun     []Begun   // with a Band, what each party submits parts of
	// Earlier are, with a Band, the sums of the rounds before, and Number is the round's in the job,
	// where rounds without a sum count.
	Earlier []privacy.Decoded
	Number  uint64
	// Quiet lets a training that diverges count as an update of zeros.
	Quiet bool
	first []float64
}

// Work holds what one party made of a round.
type Work struct {
	Message job.Update[float64]
	Own     []float64 // SCAFFOLD's next c_i
	Begun   Begun     // with a Band, what the party has to keep before it submits
	Norm    float64   // before clipping: of the update, with ModelClip of the weights
	Cosine  float64   // of the angle to the model's last step
	Largest float64   // magnitude of a coordinate that it submits
	Clipped bool
	Trained []float64 // the weights that the training led to; nil where it has none of its own
	// Diverged says that the training did, and that the party submits zeros for it: see
	// [Learner].Quiet.
	Diverged bool
}

// NewLearner makes the first model.
func NewLearner(o Options, parties []*learning.Dataset) *Learner {
	l := &Learner{Options: o, Parties: parties, Weights: o.Model.Init(o.Seed), Optimizer: o.Server,
		Norm: o.Clip.Norm}
	l.first = l.Weights
	if o.Client.Stored() {
		l.Variate = make([]float64, len(l.Weights))
		l.Variates = make([][]float64, len(parties))
	}
	if o.Band != nil {
		l.Begun = make([]Begun, len(parties))
	}
	if o.NoiseClip > 0 {
		l.Norm, l.Quiet = o.NoiseClip, true
	}
	if o.Clip.Adaptive != nil {
		adaptive := *o.Clip.Adaptive
		adaptive.Norm = l.Norm
		l.Adaptive = &adaptive
	}
	return l
}

// Samples returns the number of rows that a party counts with.
func (l *Learner) Samples(party int) int {
	if l.MaxSamples == 0 {
		return 1
	}
	return min(l.Parties[party].Len(), l.MaxSamples)
}

// derived returns a seed for one purpose.
func (l *Learner) derived(purpose string, round, party int) uint64 {
	return DerivedSeed(l.Seed, purpose, round, party)
}

// DerivedSeed returns a seed for one purpose of a round and a party.
func DerivedSeed(seed uint64, purpose string, round, party int) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%d %s %d %d", seed, purpose, round, party)
	return h.Sum64()
}

// Masked says what a mask did to a mean.
type Masked struct {
	Weight    float64 // mean of the weights of all coordinates
	Disagreed float64 // share of those with a weight below 1
}

// Next returns the model that a sum makes, and what the mask did to it.
func (l *Learner) Next(sum job.Total) (next []float64, masked Masked, err error) {
	masked.Weight = 1
	if l.Models {
		return sum.Mean, masked, nil
	}
	if l.Records != nil {
		next, err = l.stepByRecords(sum.Mean)
		return next, masked, err
	}
	if l.NoiseClip > 0 {
		scale(sum.Mean, l.Norm/l.NoiseClip) // see clipped
	}
	var mask []float64
	if sum.Signs != nil {
		if mask, err = l.Mask.Weights(sum.Signs, sum.Parties); err != nil {
			return nil, masked, err
		}
		masked.Weight = 0
		for _, m := range mask {
			masked.Weight += m / float64(len(mask))
			if m < 1 {
				masked.Disagreed += 1 / float64(len(mask))
			}
		}
	}
	next, err = l.Optimizer.Apply(l.Weights, sum.Mean, mask)
	return next, masked, err
}

// Move goes on to the model that follows from a sum of what some parties made, all of a round: the
// server's rule, its control variates and those of the parties, which own returns, the clip that
// follows a quantile, and the mean of models.
func (l *Learner) Move(
	round int, sum job.Total, included []int, own func(party int) []float64,
) (Masked, error) {
	next, masked, err := l.Next(sum)
	if err != nil {
		return masked, err
	}
	if sum.Control != nil {
		if l.Variate, err = aggregation.AdvanceVariate(l.Variate, sum.Control, len(included),
			len(l.Parties)); err != nil {
			return masked, err
		}
		for _, i := range included {
			l.Variates[i] = own(i)
		}
	}
	if l.Adaptive != nil {
		if err := l.Adaptive.Update(sum.Votes[0], sum.Parties); err != nil {
			return masked, err
		}
		l.Norm = l.Adaptive.Norm
	}
	last := make([]float64, len(next))
	for j, v := range next {
		if last[j] = v - l.Weights[j]; math.IsNaN(last[j]) || math.IsInf(last[j], 0) {
			return masked, aggregation.ErrNotFinite
		}
	}
	l.Last, l.Weights = last, next
	return masked, l.settleMean(round)
}

func scale(v []float64, by float64) {
	if by == 1 {
		return
	}
	for i := range v {
		v[i] *= by
	}
}
