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

// This file has what the exhaustive test needs of machines: copies, and their shapes.

// Clone returns a copy of the server, with what Save does not save.
func (s *Server) Clone(key *keyexchange.SealKey) (*Server, error) {
	saved, err := s.series.Save(key)
	if err != nil {
		return nil, err
	}
	out := *s
	c := s.config
	out.series, err = protocol.ReadServerSeries(c.Label, key, saved, c.Session, nil)
	if err != nil {
		return nil, err
	}
	for _, x := range []**session{&out.present, &out.forming} {
		if *x != nil {
			c := **x
			c.marks, c.delays = slices.Clone(c.marks), slices.Clone(c.delays)
			*x = &c
		}
	}
	out.peers = slices.Clone(s.peers)
	for i := range out.peers {
		out.peers[i].sessions = slices.Clone(out.peers[i].sessions)
	}
	out.faults = faults{slices.Clone(s.faults.of), slices.Clone(s.faults.doubts)}
	out.learned.absences = slices.Clone(s.learned.absences)
	out.notices = slices.Clone(s.notices)
	return &out, nil
}

// Clone returns a copy of a part.
func Clone(p Part, key *keyexchange.SealKey) (Part, error) {
	switch p := p.(type) {
	case *Party:
		return pointer(p.clone(key))
	case *Sender:
		return pointer(p.clone(key))
	}
	return pointer(p.(*Member).clone(key))
}

// Shape returns the shape of a part.
func Shape(p Part) string { return p.(interface{ shape() string }).shape() }

// clone returns a copy of the party. Its last submission is that of the original.
func (p *Party) clone(key *keyexchange.SealKey) (*Party, error) {
	saved, err := p.series.Save(key)
	if err != nil {
		return nil, err
	}
	out := *p
	guard := *p.guard
	out.guard = &guard
	c := p.config
	out.series, err = protocol.LoadClientSeries(c.Label, c.Identity, c.Random, key, saved,
		c.Session)
	out.out.Send = slices.Clone(p.out.Send)
	out.out.Away = slices.Clone(p.out.Away)
	return &out, err
}

// shape collects what a machine will do follows from: in common, and for each party.
type shape struct {
	common strings.Builder
	each   []string
}

func (b *shape) add(values ...any) { fmt.Fprintln(&b.common, values...) }

func (b *shape) of(i int, values ...any) { b.each[i] += fmt.Sprintln(values...) }

// flags adds which parties are in a set.
func (b *shape) flags(set []int) {
	for i := range b.each {
		b.of(i, slices.Contains(set, i))
	}
}

// SavedShape returns the shape of what Save saves, without keys and sums.
func (s *Server) SavedShape() (common string, each []string) {
	b := shape{each: make([]string, len(s.peers))}
	s.shapeSaved(&b)
	return b.common.String(), b.each
}

func (s *Server) shapeSaved(b *shape) {
	b.add(s.round, s.lost, s.inRow, s.paused, s.ended, s.series.Least())
	b.flags(s.of)
	for i, f := range s.faults.of {
		b.of(i, f)
	}
	b.add(s.faults.doubts, s.learned.median)
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
	}
}

// Shape returns the shape of the server: times are relative to now.
func (s *Server) Shape() (common string, each []string) {
	b := shape{each: make([]string, len(s.peers))}
	s.shapeSaved(&b)
	past := func(t Time) Time { return max(t-s.now, 0) }
	b.add(s.look, past(s.lookAt), s.counted, s.failed != nil, s.held, s.late, s.save, s.ask)
	b.add(s.learned.absences, past(s.again()), s.came, past(s.room.late))
	if s.held {
		b.add(s.now - s.saved)
	}
	b.flags(s.failed)
	for _, x := range s.sessions() {
		if x == nil {
			continue
		}
		slices.Sort(x.delays)
		b.add(x.fresh, s.now-x.since, x.heard != 0, s.now-max(x.since, x.heard), past(x.recheck), x.told,
			x.looked, x.stuck, x.delays)
		for i, m := range x.marks {
			b.of(i, m)
		}
	}
	for i, p := range s.peers {
		gone := Time(0)
		if !p.here && p.known {
			gone = s.now - p.seen
		}
		b.of(i, p.connected, p.here, p.known, past(p.expected), past(p.came+s.config.StepTime), gone,
			p.sessions, p.least, p.told, p.absent == s.round, p.passed == s.round)
	}
	return b.common.String(), b.each
}

func (p *Party) shape() string {
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

// Until returns the round from which on another session forms for a party, after sessions were
// formed for it in some rounds.
func Until(rounds ...uint64) uint64 {
	f := newFaults(1)
	for _, round := range rounds {
		f.cause(0, round)
	}
	return f.of[0].Until
}
