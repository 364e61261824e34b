package drive

import (
	"fmt"
	"slices"

	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/oneshot"
)

// This file has copies and shapes of a committee's machines.

// Clone returns a copy of the server, with what Save does not save.
func (s *Committee) Clone(key *keyexchange.SealKey) (*Committee, error) {
	saved, err := s.server.Save(key)
	if err != nil {
		return nil, err
	}
	out := *s
	if out.server, err = oneshot.LoadServer(s.sums, s.batch, key, saved); err != nil {
		return nil, err
	}
	for _, r := range []*room{&out.parties, &out.members} {
		r.limits, r.peers = &out.config, slices.Clone(r.peers)
		r.learned.absences = slices.Clone(r.learned.absences)
	}
	for _, w := range []*waiting{&out.step, &out.answers} {
		w.marks, w.delays = slices.Clone(w.marks), slices.Clone(w.delays)
	}
	out.sent, out.offers = slices.Clone(s.sent), slices.Clone(s.offers)
	out.queue, out.uploads = slices.Clone(s.queue), slices.Clone(s.uploads)
	out.counts = slices.Clone(s.counts)
	out.granted, out.notices = slices.Clone(s.granted), slices.Clone(s.notices)
	out.spoilers.of, out.lapses.of = slices.Clone(s.spoilers.of), slices.Clone(s.lapses.of)
	return &out, nil
}

func (m *Member) clone(key *keyexchange.SealKey) (*Member, error) {
	saved, err := m.of.Save(key)
	if err != nil {
		return nil, err
	}
	out, c := *m, m.config
	out.of, err = oneshot.LoadMember(c.Sums, c.Identity, c.Random, key, saved)
	out.out.Send = slices.Clone(m.out.Send)
	return &out, err
}

func (s *Sender) clone(key *keyexchange.SealKey) (*Sender, error) {
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

// Shape returns the shape of the server: times are relative to now. What it leaves out is which
// batch a party is in, and what members have said that is not true.
func (s *Committee) Shape() (common string, parties, members []string) {
	n, m := len(s.parties.peers), len(s.members.peers)
	b := shape{each: make([]string, n+m)}
	past := func(t Time) Time { return max(t-s.now, 0) }
	b.add(s.round, s.lost, s.inRow, s.paused, s.ended, s.stage, s.flight, s.invite != nil)
	b.add(s.look, past(s.lookAt), s.counted, s.save, s.ask, s.values != nil, s.tried)
	b.add(past(s.again()))
	x := s.server
	b.add(x.Round(), x.Keys(), x.Settled(), x.Taken(), x.Waiting(), x.BatchNumber(), x.Signed(),
		x.Parts(), x.NoiseTaken())
	for _, one := range s.sent {
		b.add(one.Name)
	}
	for _, w := range []*waiting{&s.step, &s.answers} {
		slices.Sort(w.delays)
		b.add(w.fresh, s.now-w.since, w.heard != 0, s.now-max(w.since, w.heard), past(w.recheck), w.told,
			w.looked, w.stuck, w.delays)
	}
	included := x.Included()
	for i, o := range s.offers {
		since := Time(0)
		if o.open {
			since = s.now - o.since
		}
		b.of(i, x.AwaitsParty(i), slices.Contains(included, i), slices.Contains(s.of, i), o.made,
			o.queued, o.open, since, o.granted, slices.Index(s.queue, i), slices.Contains(s.uploads, i),
			slices.Contains(s.granted, i), s.spoilers.of[i])
	}
	for k := range m {
		b.of(n+k, x.Awaits(k), slices.Contains(x.Members(), k), slices.Contains(x.Excluded(), k),
			s.lapses.of[k])
	}
	at := 0
	for _, r := range []*room{&s.parties, &s.members} {
		b.add(r.learned, past(r.sweep), r.came, past(r.late))
		for _, p := range r.peers {
			gone := Time(0)
			if !p.here && p.known {
				gone = s.now - p.seen
			}
			b.of(at, p.connected, p.here, p.near, p.known, past(p.expected), past(p.came+s.config.StepTime),
				gone, p.told, p.absent == s.round, p.passed == s.round)
			at++
		}
	}
	for i, mark := range s.step.marks {
		if at = i; s.stage != Submitting {
			at += n
		}
		b.of(at, "step", mark)
	}
	for k, mark := range s.answers.marks {
		b.of(n+k, "batch", mark)
	}
	return b.common.String(), b.each[:n], b.each[n:]
}

// Has reports whether the server has a party's submission.
func (s *Committee) Has(party int) bool { return slices.Contains(s.server.Received(), party) }

// Moot reports whether nothing that a party says, or a member after the parties, changes what comes
// any more, in a job of one round.
func (s *Committee) Moot(seat int) bool {
	if member := seat - len(s.parties.peers); member >= 0 {
		return s.stage > Resting && !s.server.Awaits(member)
	}
	return s.stage > Submitting || s.stage == Submitting && s.Has(seat)
}

// Batches is how many batches have gone to the members.
func (s *Committee) Batches() int { return s.server.BatchNumber() }

// shape is without what the member has taken.
func (m *Member) shape() string {
	h, _, _ := wire.ParseHeader(m.of.Output())
	return fmt.Sprintln(m.of.Round(), m.of.Opened(), m.of.Lost(), h.Type, h.Round)
}

func (s *Sender) shape() string {
	return fmt.Sprintln(s.guard.last, s.guard.count, s.round, s.made, s.asked != nil, s.opening != nil,
		s.of.Round(), s.of.Output() != nil)
}
