package simulation

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/hushsum/hushsum/simulation/cost"
)

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

// load is the work of a party in a session of n.
func (r *timed) load(n int) cost.Load {
	l, ok := r.loads[n]
	if !ok {
		l = r.costs(n).Party(r.units)
		r.loads[n] = l
	}
	return l
}

// costs is a session of n parties as package cost has it.
func (r *timed) costs(n int) cost.Session {
	s := cost.Session{Parties: n, Bits: r.layout[0].Bits}
	for _, segment := range r.layout {
		s.Length += segment.Length
	}
	if !r.Recovers() {
		return s
	}
	s.Recovery, s.Classical = true, r.Sum.Classical
	// So few may be left of a session on a sparse graph that none could be set up among them.
	if recovery, err := r.Recovery(r.Parties.Fewest(n), n); err == nil {
		s.Neighbours, s.Threshold = recovery.Degree, recovery.Threshold
	}
	return s
}

// serverWork returns how long a server of some parties needs for a step of a session of n.
func (r *timed) serverWork(step string, parties []*party, n int) time.Duration {
	given := func(p *party) bool { return len(p.Compute) > 0 }
	if step == "" || slices.ContainsFunc(parties, given) {
		return 0 // all times are given
	}
	l := r.costs(n).Server(r.units)
	return map[string]time.Duration{
		stepMembers:   l.SetUp,
		stepSurvivors: l.Submissions,
		stepReveal:    l.Certify,
		"sum":         l.Sum,
	}[step]
}
