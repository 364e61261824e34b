package drive

import (
	"fmt"
	"slices"

	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/oneshot"
)

// This file has what tests see of a committee's machines, and copies and shapes of them.

// Has reports whether a lead has a party's submission.
func Has(l Lead, party int) bool {
	return slices.Contains(l.(*committee).server.Received(), party)
}

// Batches is how many batches have gone to the members.
func Batches(l Lead) int { return l.(*committee).server.BatchNumber() }

// Moot reports whether nothing that a party says, or a member after the parties, changes what comes
// any more, in a job of one round.
func Moot(l Lead, seat int) bool {
	s := l.(*committee)
	if member := seat - len(s.parties.peers); member >= 0 {
		return s.stage > Resting && !s.server.Awaits(member)
	}
	return s.stage > Submitting || s.stage == Submitting && Has(s, seat)
}

func (s *committee) clone(key *keyexchange.SealKey) (any, error) {
	saved, err := s.server.Save(key)
	if err != nil {
		return nil, err
	}
	out := *s
	out.server, err = oneshot.LoadServer(s.sums, s.batch, key, saved)
	out.course = s.course.clone()
	out.parties, out.members = s.parties.clone(&out.config), s.members.clone(&out.config)
	out.step, out.answers = s.step.clone(), s.answers.clone()
	out.sent, out.offers = slices.Clone(s.sent), slices.Clone(s.offers)
	out.queue, out.uploads = slices.Clone(s.queue), slices.Clone(s.uploads)
	out.granted = slices.Clone(s.granted)
	out.spoilers.of, out.lapses.of = slices.Clone(s.spoilers.of), slices.Clone(s.lapses.of)
	return &out, err
}

func (m *member) clone(key *keyexchange.SealKey) (any, error) {
	saved, err := m.of.Save(key)
	if err != nil {
		return nil, err
	}
	out, c := *m, m.config
	out.of, err = oneshot.LoadMember(c.Sums, c.Identity, c.Random, key, saved)
	out.out.Send = slices.Clone(m.out.Send)
	return &out, err
}

func (s *sender) clone(key *keyexchange.SealKey) (any, error) {
	saved, err := s.of.Save(key)
	if err != nil {
		return nil, err
	}
	out, c, guard := *s, s.config, *s.guard
	out.of, err = oneshot.LoadParty(c.Sums, c.Identity, c.Random, key, saved)
	out.guard, out.out.Away = &guard, slices.Clone(s.out.Away)
	out.out.Send = slices.Clone(s.out.Send)
	return &out, err
}

func (s *committee) shape(b *shape) {
	n, x := len(s.parties.peers), s.server
	b.add(s.stage, s.flight, s.invite != nil, s.counted, s.values != nil, s.tried)
	b.add(x.Round(), x.Keys(), x.Settled(), x.Taken(), x.Waiting(), x.BatchNumber(), x.Signed(),
		x.Parts(), x.NoiseTaken())
	for _, one := range s.sent {
		b.add(one.Name)
	}
	included := x.Included()
	for i, o := range s.offers {
		since := Time(0)
		if o.open {
			since = s.now - o.since
		}
		b.of(i, x.AwaitsParty(i), slices.Contains(included, i), slices.Contains(s.of, i), o.made,
			o.queued, o.open, since, o.granted, slices.Index(s.queue, i), slices.Contains(s.uploads, i),
			slices.Contains(s.granted, i))
	}
	for k := range s.members.peers {
		b.of(n+k, x.Awaits(k), slices.Contains(x.Members(), k), slices.Contains(x.Excluded(), k))
	}
	b.people(&s.parties, &s.spoilers, 0)
	b.people(&s.members, &s.lapses, n)
	at := n
	if s.stage == Submitting {
		at = 0
	}
	b.wait(&s.step, at)
	b.wait(&s.answers, n)
}

func (m *member) shape() string {
	h, _, _ := wire.ParseHeader(m.of.Output())
	return fmt.Sprintln(m.of.Round(), m.of.Opened(), m.of.Lost(), h.Type, h.Round)
}

func (s *sender) shape() string {
	return fmt.Sprintln(s.guard.last, s.guard.count, s.round, s.made, s.asked != nil, s.opening != nil,
		s.of.Round(), s.of.Output() != nil)
}
