package drive

import (
	"io"
	"slices"
)

// This file has what may happen to a server: it changes what the server knows, and decides nothing.

// Hello holds the numbers that a party reports when it connects.
type Hello struct {
	Sessions []uint64 // that it has keys for
	Least    uint64   // the least number of a session that it may join
	Told     uint64   // the last round of the job that it has submitted in, or knows to be begun
}

// Connected is a method of [Lead].
func (s *server) Connected(now Time, who Peer, h Hello) {
	s.clock(now)
	party := who.Index
	p := &s.peers[party]
	if !slices.Equal(p.sessions, h.Sessions) {
		p.sessions, s.look, s.failed = slices.Clone(h.Sessions), true, nil
	}
	if h.Least != p.least {
		p.least, s.look = h.Least, true
		if s.forming != nil && h.Least > s.forming.number+1 && !p.doubted {
			s.doubted, p.doubted = true, true
		}
	}
	s.told(party, h.Told)
	p.connected = true
	s.arrive(party)
}

// Said is a method of [Lead]. Nobody is told when to upload, so that an offer says nothing.
func (s *server) Said(now Time, who Peer, said Said) (waited bool) {
	s.clock(now)
	if said.Told > 0 {
		s.told(who.Index, said.Told)
	}
	p := &s.peers[who.Index]
	if said.Absent == 0 || p.absent == said.Absent || said.Absent != s.round || s.present == nil ||
		s.present.stage != Submitting {
		return false
	}
	p.absent = said.Absent
	s.touch(who.Index)
	return true
}

func (s *server) told(party int, round uint64) {
	p := &s.peers[party]
	if round != p.told && round > s.round {
		s.counted = true
	}
	p.told = round
}

// Gone is a method of [Lead].
func (s *server) Gone(now Time, who Peer) {
	s.clock(now)
	p := &s.peers[who.Index]
	p.connected, p.seen = false, s.now
	if s.config.Away == 0 {
		s.leave(who.Index)
	}
}

// Heard is a method of [Lead]. A party that has not asked for anything since the server was loaded,
// its message having been on its way, counts as expected, not as here.
func (s *server) Heard(now Time, who Peer) {
	s.clock(now)
	p := &s.peers[who.Index]
	if s.config.Away > 0 && p.known {
		s.arrive(who.Index)
	}
	p.seen = s.now
}

// arrive counts a party as here, and near.
func (s *server) arrive(party int) {
	if s.room.arrive(party, s.now) {
		s.look, s.failed = true, nil
	}
	s.touch(party)
}

// leave counts a party as gone.
func (s *server) leave(party int) {
	if s.room.leave(party) {
		s.look, s.failed = true, nil
	}
	s.touch(party)
}

// Check is a method of [Lead]: messages of sessions have no proofs.
func (s *server) Check([]Submission) {}

// Receive is a method of [Lead].
func (s *server) Receive(now Time, who Peer, message io.Reader) error {
	party := who.Index
	s.clock(now)
	if s.ended != "" {
		return ErrEnded
	}
	if s.faults.excluded(party) {
		return ErrExcluded
	}
	was := s.awaits(party)
	if err := s.series.ReadMessage(s.roster.Key(party), message); err != nil {
		return err
	}
	s.held, s.late = true, s.save
	p := &s.peers[party]
	for k, x := range s.sessions() {
		if x == nil || !was[k] || s.machine(x).Awaits(party) {
			continue
		}
		if x.stage == Announcing && !slices.Contains(p.sessions, x.number) {
			p.sessions = append(p.sessions, x.number)
		}
		s.learned.answered(&x.waiting, s.now)
		if x.stage == Resting {
			s.look = true
		}
	}
	s.failed = nil
	s.touch(party)
	return nil
}

// awaits reports whether the present and the forming session wait for a party.
func (s *server) awaits(party int) (out [2]bool) {
	for k, x := range s.sessions() {
		out[k] = x != nil && s.machine(x).Awaits(party)
	}
	return out
}

// Again is a method of [Lead].
func (s *server) Again(now Time) {
	s.clock(now)
	s.expect(s.now, s.config.ComeBack)
	for _, x := range s.sessions() {
		if x != nil {
			x.anew(s.now)
			s.mark(x)
		}
	}
}

// At is a method of [Lead].
func (s *server) At(who Peer) Standing {
	p, due := &s.peers[who.Index], s.awaits(who.Index)
	return Standing{Here: p.here, Ever: p.known, Due: due[0] || due[1],
		Excluded: s.faults.excluded(who.Index)}
}

// Order is a method of [Lead].
func (s *server) Order(now Time, o Order) {
	s.clock(now)
	switch {
	case s.ended != "":
	case o.Do == End:
		s.end(o.Why)
	case o.Do == Exclude, o.Do == Readmit:
		s.admit(o)
	default:
		s.course.order(o)
	}
}
