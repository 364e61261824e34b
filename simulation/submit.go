package simulation

import (
	"cmp"
	"errors"
	"math"
	"slices"

	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/learning"
	"github.com/hushsum/hushsum/training"
)

// trained has a party train for a round, and returns what it submits. With noise, what rows do must
// show in the sum only: where training diverges on them that is zeros.
func (r *timed) trained(p *party) (w training.Work, rows int, err error) {
	d, err := r.rowsOf(p)
	if err != nil {
		return w, 0, err
	}
	r.learner.Parties[p.index] = d
	if w, err = r.learner.TakePart(r.ctx, r.round, p.index, nil); err != nil {
		return w, d.Len(), r.failed(p, err)
	}
	if w.Diverged {
		r.course.note("round %d: the training of %s diverged, and it submitted zeros with noise",
			r.round, p.name)
	}
	r.works[p.index] = training.Work{Own: w.Own, Norm: w.Norm, Cosine: w.Cosine, Largest: w.Largest,
		Clipped: w.Clipped}
	if !r.compares() { // thousands of models are not kept
		w.Trained = nil
		return w, d.Len(), nil
	}
	p.local = w.Trained
	begin := slices.Clone(p.alone)
	if r.learner.Restart {
		copy(begin, r.first)
	}
	_, err = r.learner.Local.Train(r.learner.Model, begin, d,
		training.DerivedSeed(r.Seed, "batches", r.round, p.index))
	switch {
	case err == nil:
		p.alone = begin
	case !r.Noisy() || !errors.Is(err, learning.ErrDiverged):
		return w, d.Len(), r.failed(p, err)
	}
	return w, d.Len(), nil
}

// submission makes what a party submits in this round.
func (r *timed) submission(c *codec, p *party) (*submission, error) {
	made := &submission{codec: c, broadcast: r.digest}
	var err error
	if made.work, made.rows, err = r.trained(p); err != nil {
		return nil, err
	}
	made.values, err = c.encode(p, made.work.Message, r.digest, r.source("noise", p.index))
	if err != nil {
		return nil, r.failed(p, err)
	}
	return made, nil
}

// failed says with whom a round failed, and which field of the job helps.
func (r *timed) failed(p *party, err error) error {
	switch {
	case errors.Is(err, learning.ErrDiverged):
		e := r.Mistake("training.rate", "lower it, or training.lambda",
			"the training of %s diverged in round %d", p.name, r.round)
		e.Err = err
		return e
	case errors.Is(err, aggregation.ErrSaturated):
		e := r.Mistake("sum.range", "raise it, or lower training.rate",
			"a coordinate of %s, with what noise there is, was above %v in round %d", p.name, r.Sum.Range,
			r.round)
		e.Err = err
		return e
	}
	return &RoundError{Round: r.round, Party: p.index, Name: p.name, Err: err}
}

// move makes the next model of the sums of some servers, of these parties.
func (r *timed) move(sums []job.Total, included []int) error {
	all, rows := together(sums), 0
	included = slices.Sorted(slices.Values(included))
	for _, i := range included {
		rows += r.rowsNow(r.parties[i])
	}
	r.summed, r.out.Samples = len(included), cmp.Or(all.Samples, rows)
	return r.course.learned.move(r.out, all, included, r.works)
}

// together returns the sum of the parties of several servers, from those of each.
func together(sums []job.Total) job.Total {
	all := sums[0]
	for _, s := range sums[1:] {
		mix := func(a, b []float64, wa, wb int) {
			for k := range a {
				a[k] = (a[k]*float64(wa) + b[k]*float64(wb)) / float64(wa+wb)
			}
		}
		mix(all.Mean, s.Mean, cmp.Or(all.Samples, all.Parties), cmp.Or(s.Samples, s.Parties))
		mix(all.Control, s.Control, all.Parties, s.Parties)
		for k := range s.Signs {
			all.Signs[k] += s.Signs[k]
		}
		for k := range s.Votes {
			all.Votes[k] += s.Votes[k]
		}
		all.Parties += s.Parties
		all.Samples += s.Samples
	}
	return all
}

// near reports whether no weight is further away than the tolerance.
func near(a, b []float64, tolerance float64) bool {
	for k := range a {
		if !(math.Abs(a[k]-b[k]) <= tolerance) {
			return false
		}
	}
	return true
}
