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

// Connected notes that a party has connected or reconnected.
func (s *Server) Connected(now Time, party int, h Hello) {
	s.clock(now)
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

// Told notes the last round of the job that a party says it knows of.
func (s *Server) Told(now Time, party int, round uint64) {
	s.clock(now)
	s.told(party, round)
}

func (s *Server) told(party int, round uint64) {
	p := &s.peers[party]
	if round != p.told && round > s.round {
		s.counted = true
	}
	p.told = round
}

// Gone notes the end of a party's connection.
func (s *Server) Gone(now Time, party int) {
	s.clock(now)
	p := &s.peers[party]
	p.connected, p.seen = false, s.now
	if s.config.Away == 0 {
		s.leave(party)
	}
}

// Heard notes a sign of life from a party that need not be connected. A party that has not asked
// for anything since the server was loaded, its message having been on its way, counts as expected,
// not as here.
func (s *Server) Heard(now Time, party int) {
	s.clock(now)
	if s.config.Away > 0 && s.peers[party].known {
		s.arrive(party)
	}
	s.peers[party].seen = s.now
}

// arrive counts a party as here, and near.
func (s *Server) arrive(party int) {
	if s.room.arrive(party, s.now) {
		s.look, s.failed = true, nil
	}
	s.touch(party)
}

// leave counts a party as gone.
func (s *Server) leave(party int) {
	if s.room.leave(party) {
		s.look, s.failed = true, nil
	}
	s.touch(party)
}

// Absent notes that a party says that it does not submit in a round of the job, and reports whether
// the round was waiting for that party.
func (s *Server) Absent(now Time, party int, round uint64) bool {
	s.clock(now)
	p := &s.peers[party]
	if p.absent == round || round != s.round || s.present == nil || s.present.stage != Submitting {
		return false
	}
	p.absent = round
	s.touch(party)
	return true
}

// ReadMessage takes one message of a party. It fails with the errors of protocol.ServerSeries, with
// [ErrExcluded], or with [ErrEnded]; all are the party's fault, and change nothing.
func (s *Server) ReadMessage(now Time, party int, message io.Reader) error {
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
func (s *Server) awaits(party int) (out [2]bool) {
	for k, x := range s.sessions() {
		out[k] = x != nil && s.machine(x).Awaits(party)
	}
	return out
}

// Due reports whether a message from a party is awaited.
func (s *Server) Due(party int) bool {
	due := s.awaits(party)
	return due[0] || due[1]
}

// Again has the waits of all steps begin anew, as after a load: nothing could be decided until now,
// since what is durable was out of reach, and nobody was let in.
func (s *Server) Again(now Time) {
	s.clock(now)
	s.expect(s.now, s.config.ComeBack)
	for _, x := range s.sessions() {
		if x != nil {
			x.anew(s.now)
			s.mark(x)
		}
	}
}

// End ends the job. A round that is open has no sum.
func (s *Server) End(now Time, why string) {
	s.clock(now)
	if s.ended == "" {
		s.end(why)
	}
}
