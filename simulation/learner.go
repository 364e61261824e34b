package simulation

import (
	"math"

	"github.com/hushsum/hushsum/aggregation"
)

// learner is the state of a training, however the parties' vectors are summed: the
// server's models, and what parties keep from round to round.
type learner struct {
	*Options
	model     []float64
	last      []float64   // the last step of the model, nil at first
	variate   []float64   // SCAFFOLD's c
	variates  [][]float64 // and c_i, nil for zero
	norm      float64     // that updates are clipped to, 0: that they are not
	adaptive  *aggregation.AdaptiveClip
	optimizer aggregation.Optimizer
	// quiet has a training that diverges count as an update of zeros: see Options.Noise.
	quiet bool
}

// work is what one party made of a round.
type work struct {
	message message
	own     []float64 // SCAFFOLD's next c_i
	norm    float64   // before clipping: of the update, with ModelClip of the weights
	cosine  float64
	largest float64 // magnitude of a coordinate that it submits
	clipped bool
}

// newLearner makes the first model.
func newLearner(o *Options) *learner {
	l := &learner{Options: o, model: o.Model.Init(o.Seed), optimizer: o.Server, norm: o.Clip.Norm}
	if o.Client.stored() {
		l.variate = make([]float64, len(l.model))
		l.variates = make([][]float64, len(o.Parties))
	}
	if o.Noise != nil {
		l.norm, l.quiet = o.Noise.Clip, true
	}
	if o.Clip.Adaptive != nil {
		adaptive := *o.Clip.Adaptive
		adaptive.Norm = l.norm
		l.adaptive = &adaptive
	}
	return l
}

// newBeside makes the learner of the training in the clear beside this one: without
// noise, but clipped alike.
func newBeside(o *Options) *learner {
	c := *o
	if o.Noise != nil {
		c.Clip = Clipping{Kind: DifferenceClip, Norm: o.Noise.Clip, Adaptive: o.Clip.Adaptive}
	}
	c.Noise, c.Sum = nil, Clear
	l := newLearner(&c)
	l.quiet = o.Noise != nil
	return l
}

// total sums the parties' own messages, in the clear.
func (l *learner) total(included []int, works []work) (t total, err error) {
	t.parties = len(included)
	weight := func(i int) float64 { return float64(l.samples(i)) }
	t.mean = meanOf(included, weight, func(i int) []float64 { return works[i].message.vector })
	if l.Client.stored() {
		t.control = meanOf(included, nil, func(i int) []float64 { return works[i].message.control })
	}
	if l.Mask.Kind != aggregation.NoMask {
		signed := make([][]float64, len(included))
		for k, i := range included {
			signed[k] = works[i].message.signed
		}
		t.signs, err = aggregation.SumSigns(signed...)
	}
	if l.adaptive != nil {
		t.votes = []int64{0}
		for _, i := range included {
			t.votes[0] += int64(works[i].message.voted[0])
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
func (l *learner) move(r *Round, sum total, included []int, works []work) error {
	next, err := l.next(r, sum)
	if err != nil {
		return err
	}
	if sum.control != nil {
		if l.variate, err = aggregation.AdvanceVariate(l.variate, sum.control, len(included),
			len(l.Parties)); err != nil {
			return err
		}
		for _, i := range included {
			l.variates[i] = works[i].own
		}
	}
	if err := l.observe(r, included, works); err != nil {
		return err
	}
	switch {
	case l.adaptive != nil:
		if err := l.adaptive.Update(sum.votes[0], sum.parties); err != nil {
			return err
		}
		l.norm = l.adaptive.Norm
	case l.Clip.Factor > 0:
		if l.norm, err = aggregation.MeanNormClip(l.Clip.Factor, []float64{r.MeanNorm}); err != nil {
			return err
		}
	}
	last := make([]float64, len(next))
	for j, v := range next {
		if last[j] = v - l.model[j]; !finite(last[j]) {
			return aggregation.ErrNotFinite
		}
	}
	l.last, l.model = last, next
	return nil
}

// next is the model that a sum makes.
func (l *learner) next(r *Round, sum total) ([]float64, error) {
	r.Masked = 1
	if l.Models {
		return sum.mean, nil
	}
	if l.Noise != nil {
		scale(sum.mean, l.norm/l.Noise.Clip) // see clipped
	}
	var mask []float64
	if sum.signs != nil {
		var err error
		if mask, err = l.Mask.Weights(sum.signs, sum.parties); err != nil {
			return nil, err
		}
		r.Masked = 0
		for _, m := range mask {
			r.Masked += m / float64(len(mask))
			if m < 1 {
				r.Disagreed += 1 / float64(len(mask))
			}
		}
	}
	return l.optimizer.Apply(l.model, sum.mean, mask)
}

// observe says what training and clipping did.
func (l *learner) observe(r *Round, included []int, works []work) (err error) {
	r.ClipNorm = l.norm
	if len(included) == 0 {
		return nil
	}
	clipped, n := 0, float64(len(included))
	for _, i := range included {
		w := &works[i]
		r.Norms = append(r.Norms, min(w.norm, math.MaxFloat64))
		r.Cosines = append(r.Cosines, w.cosine)
		r.MaxNorm = max(r.MaxNorm, w.norm)
		r.MeanNorm += w.norm / n
		r.Cosine += w.cosine / n
		if w.clipped {
			clipped++
		}
	}
	r.Clipped = float64(clipped) / n
	r.Left = 1
	if l.norm > 0 {
		r.Left, r.Spread, err = aggregation.ClipSpread(r.Norms, l.norm)
	}
	return err
}
