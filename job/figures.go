package job

import (
	"cmp"
	"slices"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/oneshot"
	"github.com/hushsum/hushsum/privacy"
	"github.com/hushsum/hushsum/protocol"
)

// run says which kinds of sums, lanes, noise and rounds there are, and so which theorems are about
// them.
type run struct {
	oneshot, recovers, sparse, drawn bool
	adversary                        protocol.Adversary // where sums recover
	dealt, bounded, covered, stale   bool
	law                              accounting.Family
	records, asks                    bool
	weight, metrics, personal        bool // what is in the vector
	weighed                          bool // by declared weights
	signs, votes                     bool // the lane next to it
	coin, band, seldom, before       bool
	timed                            bool // all submit at one instant
	program                          bool // of each party makes what it sends
}

// runs is the run that a job with noise declares.
func (j *Job) runs() *run {
	r := &run{
		oneshot:  j.Oneshot(),
		recovers: j.Recovers() && !j.Oneshot(),
		sparse:   j.Sum.Sparse,
		drawn:    j.Parties.PerRound > 0,
		dealt:    j.noisyMembers(),
		bounded:  j.Sum.Bounded && j.Oneshot(),
		covered:  j.Sum.Covered && j.Oneshot(),
		stale:    j.Sum.Buffer > 0 && j.Oneshot(),
		records:  j.PerRecord(),
		asks:     j.Asks(),
		weight:   j.MaxRows() > 0,
		weighed:  len(j.Parties.Weights) > 0,
		metrics:  j.Metrics.Share > 0,
		personal: len(j.Model.Personal) > 0,
		signs:    j.Training.Mask != "" && j.Training.Mask != "none",
		votes:    j.Privacy.ClipQuantile > 0,
		coin:     j.Parties.Hidden > 0 && j.Parties.Hidden < 1,
		band:     j.Privacy.Factorise > 0,
		seldom:   j.submissions() < j.Rounds*j.Training.sums(),
		before:   j.Privacy.Before != "",
		timed:    j.Privacy.SubmitAfter > 0,
		program:  j.Model.Name == "" && !j.Asks(),
	}
	if r.recovers {
		r.adversary = adversaries[cmp.Or(j.Sum.Adversary, "cheating")]
	}
	_ = r.law.UnmarshalText([]byte(j.Privacy.Noise)) // of a job that is checked
	return r
}

// figures are the numbers of what runs: of sessions, noise, lanes and guard.
type figures struct {
	run
	parties   int
	ends      []size           // of a session that recovers: its smallest size and its largest
	colluders int              // that the sessions withstand; on a sparse graph next to a party
	terms     oneshot.Terms    // of one-message sums
	members   int              // of their committee
	heaviest  int              // of declared weights; 1 without
	fewest    int              // honest shares of a sum
	failure   float64          // probability that a sum of fewer can be read, a round
	charged   accounting.Round // of a round, or a band
	mechanism *privacy.Mechanism
	layout    masking.Layout
	lanes     []int // coordinates of each lane that has a bound, in order
	vector    int   // coordinates of a vector with metrics, without weight

	rounds, submissions, charges int
	rate                         float64 // of the coin that a party tosses, 0: none
}

// size is a session of some parties.
type size struct {
	parties, degree, threshold, survivors int
}

// figures of a job whose sessions are settled.
func (x *settling) figures() *figures {
	s := *x.out
	s.job = x.Job
	m, session := s.mechanism, &s.session
	f := &figures{
		parties:     session.Roster.Len(),
		colluders:   session.Colluders,
		charged:     m.Round(),
		mechanism:   m,
		layout:      session.Layout,
		lanes:       []int{m.Encoder.Dimension},
		vector:      s.lanes.shape.Dimension,
		rounds:      s.Rounds(),
		submissions: s.Submissions(),
		charges:     s.Charges(s.Submissions()),
		rate:        s.Hidden(),
	}
	if m.Signs != nil {
		f.lanes = append(f.lanes, m.Signs.Sensitivity.Dimension)
	}
	shape := &s.lanes.shape
	f.run = run{
		drawn:    s.PerRound() > 0,
		law:      f.charged.Family,
		records:  m.Records() != nil,
		asks:     s.job.Asks(),
		weight:   shape.MaxWeight > 0,
		weighed:  s.weights != nil,
		metrics:  s.job.Metrics.Share > 0,
		personal: len(s.job.Model.Personal) > 0,
		signs:    m.Signs != nil && !shape.Votes,
		votes:    m.Signs != nil && shape.Votes,
		coin:     f.charged.SecretRate > 0 && m.Records() == nil,
		band:     m.Band() != nil,
		seldom:   f.submissions < f.rounds,
		before:   s.before != nil,
		timed:    s.SubmitAfter() > 0,
		program:  s.job.Model.Name == "" && !s.job.Asks(),
	}
	if c := s.oneshot; c != nil {
		f.terms, f.members, f.heaviest = c.Terms, c.Committee.Len(), 1
		if s.weights != nil {
			f.heaviest = slices.Max(s.weights)
		}
		f.oneshot, f.bounded, f.dealt = true, c.Terms.Norm > 0, c.Terms.CommitteeNoise
		f.covered, f.stale = c.Terms.Covered, c.Terms.Stale > 0
		f.colluders = c.Terms.Colluders
		if p, err := c.Promise(); err == nil { // the configuration was checked
			f.fewest = p.Honest
		}
		f.layout = masking.Layout{{Length: c.Terms.Length, Bits: c.Terms.Bits}}
		return f
	}
	promise := s.pairwise()
	f.fewest, f.failure, f.sparse = promise.Honest, promise.Failure, promise.Sparse
	if session.Recovery == nil {
		return f
	}
	if f.sparse {
		f.colluders = session.Recovery.CorruptNeighbours
	}
	f.recovers, f.adversary = true, session.Recovery.Adversary
	for _, members := range []int{session.MinMembers, f.parties} {
		own := *session
		own.MinMembers = members
		r, err := own.EffectiveRecovery()
		if err != nil { // sessions were checked
			continue
		}
		f.ends = append(f.ends, size{members, r.Degree, r.Threshold, r.MinSurvivors})
	}
	return f
}
