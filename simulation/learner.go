package simulation

import (
	"math"

	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/learning"
	"github.com/hushsum/hushsum/training"
)

// learner is the state of a training, however the parties' vectors are summed.
type learner struct {
	*training.Learner
	factor float64 // of Clipping
}

// newLearner makes the first model.
func (o *setting) newLearner() *learner { return o.learnerOf(*o.Options) }

func (o *setting) learnerOf(t training.Options) *learner {
	parties := o.Parties
	if o.federation != nil { // what a party trains on may differ from round to round
		parties = make([]*learning.Dataset, o.federation.Size())
	}
	return &learner{training.NewLearner(t, parties), t.Clip.Factor}
}

// newBeside makes the learner of the training in the clear next to this one: without
// noise, but clipped alike.
func (o *setting) newBeside() *learner {
	t := *o.Options
	if t.NoiseClip > 0 {
		t.Clip = training.Clipping{Kind: training.DifferenceClip, Norm: t.NoiseClip,
			Adaptive: t.Clip.Adaptive}
		t.NoiseClip = 0
	}
	if t.Records != nil {
		t.Clip = training.Clipping{}
		seeded := *t.Records
		seeded.Seeded = true
		t.Records = &seeded
	}
	l := o.learnerOf(t)
	l.Quiet = o.noise() != nil
	return l
}

// total sums the parties' own messages, in the clear.
func (l *learner) total(included []int, works []training.Work) (t job.Total, err error) {
	included = l.Beginning(included)
	t.Parties = len(included)
	weight := func(i int) float64 { return float64(l.Samples(i)) }
	t.Mean = meanOf(included, weight, func(i int) []float64 { return works[i].Message.Vector })
	if l.Records != nil { // what is drawn is divided by what is expected
		for j := range t.Mean {
			t.Mean[j] *= float64(len(included)) / float64(l.Records.Batch)
		}
	}
	if l.Client.Stored() {
		t.Control = meanOf(included, nil, func(i int) []float64 { return works[i].Message.Control })
	}
	if l.Mask.Kind != aggregation.NoMask {
		signed := make([][]float64, len(included))
		for k, i := range included {
			signed[k] = works[i].Message.Signed
		}
		t.Signs, err = aggregation.SumSigns(signed...)
	}
	if l.Adaptive != nil {
		t.Votes = []int64{0}
		for _, i := range included {
			t.Votes[0] += int64(works[i].Message.Voted[0])
		}
	}
	return t, err
}

// meanOf is the mean of the given parties' vectors, added in their order; without
// weights all are equal.
func meanOf(parties []int, weight func(party int) float64, of func(party int) []float64) []float64 {
	var mean []float64
	total := 0.0
	for _, i := range parties {
		v, n := of(i), 1.0
		if weight != nil {
			n = weight(i)
		}
		if mean == nil {
			mean = make([]float64, len(v))
		}
		for j, y := range v {
			mean[j] += n * y
		}
		total += n
	}
	for j := range mean {
		mean[j] /= total
	}
	return mean
}

// move applies the server's rule, and all else that changes from round to round; r is
// told what the mask and clipping did.
func (l *learner) move(r *RoundResult, sum job.Total, included []int, works []training.Work) error {
	if err := l.observe(r, l.Beginning(included), works); err != nil {
		return err
	}
	masked, err := l.Move(r.Round, sum, included, func(i int) []float64 { return works[i].Own })
	r.Masked, r.Disagreed = masked.Weight, masked.Disagreed
	if err == nil && l.factor > 0 {
		l.Norm, err = aggregation.MeanNormClip(l.factor, []float64{r.MeanNorm})
	}
	return err
}

// observe says what training and clipping did.
func (l *learner) observe(r *RoundResult, included []int, works []training.Work) (err error) {
	r.ClipNorm = l.Norm
	if len(included) == 0 {
		return nil
	}
	clipped, n := 0, float64(len(included))
	for _, i := range included {
		w := &works[i]
		r.Norms = append(r.Norms, min(w.Norm, math.MaxFloat64))
		r.Cosines = append(r.Cosines, w.Cosine)
		r.MaxNorm = max(r.MaxNorm, w.Norm)
		r.MeanNorm += w.Norm / n
		r.Cosine += w.Cosine / n
		if w.Clipped {
			clipped++
		}
	}
	r.Clipped = float64(clipped) / n
	r.Left = 1
	if l.Norm > 0 {
		r.Left, r.Spread, err = aggregation.ClipSpread(r.Norms, l.Norm)
	}
	return err
}
