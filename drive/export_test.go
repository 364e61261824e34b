package drive

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/protocol"
)

// LimitsOf is that of the guard's tests.
var LimitsOf = limitsOf

// StateOf returns the state that a lead saves.
func StateOf(s Lead, key *keyexchange.SealKey) ([]byte, error) {
	saved, err := s.Save(key)
	return saved.State, err
}

// Until returns the round from which on another session forms for a party, after sessions were
// formed for it in some rounds.
func Until(rounds ...uint64) uint64 {
	f := newFaults(1)
	for _, round := range rounds {
		f.cause(0, round)
	}
	return f.of[0].Until
}

// This file has what the exhaustive test needs of machines: copies, and their shapes.

// Clone returns a copy of a lead or of a part, with what Save does not save. The last submission of
// a party is that of the original.
func Clone[M any](m M, key *keyexchange.SealKey) (M, error) {
	out, err := any(m).(interface {
		clone(key *keyexchange.SealKey) (any, error)
	}).clone(key)
	if err != nil {
		return m, err
	}
	return out.(M), nil
}

func (s *server) clone(key *keyexchange.SealKey) (any, error) {
	saved, err := s.series.Save(key)
	if err != nil {
		return nil, err
	}
	out := *s
	c := &s.config
	out.series, err = protocol.ReadServerSeries(c.Label, key, saved, c.Session, nil)
	for _, x := range []**session{&out.present, &out.forming} {
		if *x != nil {
			c := **x
			c.waiting = c.waiting.clone()
			*x = &c
		}
	}
	out.course, out.room = s.course.clone(), s.room.clone(&out.config)
	out.faults = faults{slices.Clone(s.faults.of), slices.Clone(s.faults.doubts)}
	return &out, err
}

func (s course) clone() course {
	s.counts, s.notices = slices.Clone(s.counts), slices.Clone(s.notices)
	return s
}

func (r room) clone(limits *Settings) room {
	r.limits, r.peers = limits, slices.Clone(r.peers)
	for i := range r.peers {
		r.peers[i].sessions = slices.Clone(r.peers[i].sessions)
	}
	r.learned.absences = slices.Clone(r.learned.absences)
	return r
}

func (w waiting) clone() waiting {
	w.marks, w.delays, w.took = slices.Clone(w.marks), slices.Clone(w.delays), slices.Clone(w.took)
	return w
}

func (p *party) clone(key *keyexchange.SealKey) (any, error) {
	saved, err := p.series.Save(key)
	if err != nil {
		return nil, err
	}
	out, c, guard := *p, p.config, *p.guard
	out.guard = &guard
	out.series, err = protocol.LoadClientSeries(c.Label, c.Identity, c.Random, key, saved, c.Session)
	out.out.Send = slices.Clone(p.out.Send)
	out.out.Away = slices.Clone(p.out.Away)
	return &out, err
}

// shape collects what a lead will do follows from: in common, and for each seat, those of the
// parties before those of the members. Times are relative to now.
type shape struct {
	*course
	common strings.Builder
	each   []string
}

// Shape returns the shape of a lead. With a committee it leaves out which batch a party is in, and
// what members have said that is not true.
func Shape(l Lead) (common string, each []string) {
	var b *shape
	switch s := l.(type) {
	case *server:
		b = &shape{course: &s.course, each: make([]string, len(s.peers))}
		s.shape(b)
	case *committee:
		b = &shape{course: &s.course, each: make([]string, len(s.parties.peers)+len(s.members.peers))}
		s.shape(b)
	}
	s := b.course
	b.add(s.round, s.lost, s.inRow, s.paused, s.ended, s.look, b.past(s.lookAt), s.save, s.ask)
	b.add(b.past(s.again()))
	return b.common.String(), b.each
}

func (b *shape) add(values ...any) { fmt.Fprintln(&b.common, values...) }

func (b *shape) of(i int, values ...any) { b.each[i] += fmt.Sprintln(values...) }

// past returns how long it is until an instant, 0 if that has passed.
func (b *shape) past(t Time) Time { return max(t-b.now, 0) }

// flags adds which parties are in a set.
func (b *shape) flags(set []int) {
	for i := range b.each {
		b.of(i, slices.Contains(set, i))
	}
}

// wait adds how a step waits for those from a seat on.
func (b *shape) wait(w *waiting, at int) {
	slices.Sort(w.delays)
	b.add(w.fresh, b.now-w.since, w.heard != 0, b.now-max(w.since, w.heard), b.past(w.recheck), w.told,
		w.looked, w.stuck, w.before, w.delays, len(w.marks))
	for i, mark := range w.marks {
		b.of(at+i, mark, w.took[i])
	}
}

// people adds who is here of those from a seat on.
func (b *shape) people(r *room, f *faults, at int) {
	b.add(r.learned, b.past(r.sweep), r.came, b.past(r.late), f.doubts)
	for i, p := range r.peers {
		gone := Time(0)
		if !p.here && p.known {
			gone = b.now - p.seen
		}
		b.of(at+i, p.connected, p.here, p.near, p.known, b.past(p.expected),
			b.past(p.came+b.config.StepTime), gone, p.sessions, p.least, p.doubted, p.told,
			p.absent == b.round, p.passed == b.round, f.of[i])
	}
}

func (s *server) shape(b *shape) {
	b.add(s.series.Least(), s.counted, s.doubted, s.failed != nil, s.held, s.late)
	if s.held {
		b.add(s.now - s.saved)
	}
	b.flags(s.of)
	b.flags(s.failed)
	b.people(&s.room, &s.faults, 0)
	for _, x := range s.sessions() {
		if x == nil {
			b.add("none")
			continue
		}
		m := s.machine(x)
		b.add(x.number, x.stage, m.Step(), m.Round())
		for _, set := range [][]int{m.Enrolled(), m.Holders(), m.Missing(), m.Excluded(), m.Included()} {
			b.flags(set)
		}
		b.wait(&x.waiting, 0)
	}
}

// PartShape returns the shape of a part, that of a member without what it has taken.
func PartShape(p Part) string { return p.(interface{ shape() string }).shape() }

func (p *party) shape() string {
	var b strings.Builder
	fmt.Fprintln(&b, p.guard.last, p.guard.count, p.least(), p.asked)
	for _, c := range p.series.Sessions() {
		h, _, _ := wire.ParseHeader(c.Output())
		round, due := c.Due()
		kept, is := c.Kept()
		fmt.Fprintln(&b, c.Number(), c.Enrolled() != nil, round, due, kept, is, h.Type, h.Round,
			c == p.series.Present())
	}
	return b.String()
}
