package simulation

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/learning"
	"github.com/hushsum/hushsum/simulation/cost"
	"github.com/hushsum/hushsum/training"
)

// source is a stream of randomness for one purpose, party and round.
func (r *timed) source(purpose string, party int) *rand.ChaCha8 {
	h := fnv.New128a()
	fmt.Fprintf(h, "%d\x00%s\x00%d\x00%d", r.seed, purpose, r.round, party)
	var seed [32]byte
	h.Sum(seed[:0])
	binary.BigEndian.PutUint64(seed[16:], r.seed)
	binary.BigEndian.PutUint64(seed[24:], uint64(r.round)<<32|uint64(uint32(party)))
	return rand.NewChaCha8(seed)
}

// The ways to deal rows by round, other than "fixed".
const (
	drawNew     = "new"
	drawGrowing = "growing"
	drawAnew    = "anew"
)

// Rows of a party if nothing says how many: this number of a census, of images all that there are.
const someRows = 200

// images are the sets whose rows are all dealt.
var images = []string{"digits", "mnist", "fashion-mnist"}

// deal gives every party its rows.
func (r *timed) deal() error {
	if dealt := r.course.Rows.Parties; r.World.Data.Split != "" || r.course.Train == nil {
		if len(dealt) != len(r.parties) {
			return r.Mistake("world.data.split", "deal rows to each party", "%d of %d parties have rows",
				len(dealt), len(r.parties))
		}
		for i, p := range r.parties {
			p.fixed = dealt[i]
		}
		return nil
	}
	data, have, rounds := &r.World.Data, r.course.Train.Len(), 1
	if data.Draw == drawNew || data.Draw == drawGrowing {
		rounds = r.Rounds
	}
	if data.Rows == 0 {
		data.Rows = someRows
		if data.All || slices.Contains(images, data.Set) {
			data.Rows = max(1, have/len(r.parties)/rounds)
		}
	}
	need := int64(0)
	for _, k := range r.kinds {
		if k.Rows == 0 {
			k.Rows = data.Rows
		} else if data.Draw == drawAnew && k.Rows > have {
			return r.tooManyRows(k.path("rows"), k.Rows)
		}
		need += int64(k.count) * int64(k.Rows) * int64(rounds)
	}
	switch {
	case data.Draw == drawAnew && data.Rows > have:
		return r.tooManyRows("world.data.rows", data.Rows)
	case data.Draw == drawAnew:
		return nil
	case need > int64(have):
		advice := `write fewer rows, parties or rounds, or world.data.draw = "anew"`
		if most := int(float64(have) * float64(data.Rows) / float64(need)); most > 0 {
			advice = fmt.Sprintf(`write up to %d, fewer parties or rounds, or world.data.draw = "anew"`,
				most)
		}
		return r.Mistake("world.data.rows", advice, "all parties and rounds together take %d rows, and "+
			"there are %d to train on", need, have)
	}
	order := rand.New(rand.NewPCG(r.seed, 1)).Perm(r.course.Train.Len())
	for _, p := range r.parties {
		p.rows = order[:p.Rows*rounds]
		order = order[p.Rows*rounds:]
	}
	return nil
}

func (r *timed) tooManyRows(path string, rows int) error {
	return r.Mistake(path, fmt.Sprintf("write up to %d", r.course.Train.Len()),
		"%d rows are more than there are to train on", rows)
}

// rowsNow returns how many rows a party trains on in this round.
func (r *timed) rowsNow(p *party) int {
	switch {
	case p.fixed != nil:
		return p.fixed.Len()
	case r.World.Data.Draw == drawGrowing:
		return p.Rows * max(1, r.round)
	}
	return p.Rows
}

// rowsOf are the rows that a party trains on in this round.
func (r *timed) rowsOf(p *party) (*learning.Dataset, error) {
	k := p.Rows
	switch r.World.Data.Draw {
	case drawAnew:
		rng := rand.New(r.source("rows", p.index))
		rows := make([]int, k)
		for i := range rows {
			rows[i] = rng.IntN(r.course.Train.Len())
		}
		return r.course.Train.Subset(rows)
	case drawNew:
		return r.course.Train.Subset(p.rows[k*(r.round-1) : k*r.round])
	case drawGrowing:
		return r.course.Train.Subset(p.rows[:k*r.round])
	}
	if p.fixed == nil {
		var err error
		if p.fixed, err = r.course.Train.Subset(p.rows); err != nil {
			return nil, err
		}
	}
	return p.fixed, nil
}

// training returns how long a party needs to train on the given number of rows.
func (r *timed) training(rows int) time.Duration {
	t, batch := &r.Training, rows
	if t.Batch > 0 {
		batch = min(rows, t.Batch)
	}
	steps := t.Steps
	if steps == 0 { // an epoch goes through all rows
		batch, steps = rows, t.Epochs
	}
	return cost.Training(r.units, batch, len(r.first), steps)
}

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

// slowness returns the factor of the time of a party's work in this round.
func (r *timed) slowness(p *party) float64 {
	if p.Straggle > 0 && rand.New(r.source("straggle", p.index)).Float64() >= p.Straggle {
		return 1
	}
	return p.Slow
}

// given is the time that the job says a party works in this round.
func (r *timed) given(p *party) (time.Duration, bool) {
	if len(p.Compute) == 0 {
		return 0, false
	}
	return p.Compute[min(r.round, len(p.Compute))-1], true
}

// workRound returns how long a party trains, encodes and masks.
func (r *timed) workRound(p *party, made *submission, n int) time.Duration {
	took, ok := r.given(p)
	if !ok {
		took = r.load(n).Submit + r.training(made.rows)
	}
	took = time.Duration(float64(took) * r.slowness(p))
	p.worked += took
	return took
}

// work returns how long a party needs for another step.
func (r *timed) work(p *party, step string, n int) time.Duration {
	if len(p.Compute) > 0 {
		return 0
	}
	l := r.load(n)
	took := map[string]time.Duration{
		stepAnnounce:  l.Announce,
		stepKeys:      l.Keys,
		stepMembers:   l.Members,
		stepInvite:    l.Upload,
		stepBegin:     l.Begin,
		stepSurvivors: l.Sign,
		stepReveal:    l.Reveal,
	}[step]
	took = time.Duration(float64(took) * r.slowness(p))
	switch step {
	case stepAnnounce, stepKeys, stepMembers: // set-up is told apart
	default:
		p.worked += took
	}
	return took
}
