package drive

import "slices"

// This file has whom the steps of sessions wait for. How long is in room.go.

// turn is a session's step, as it waits for parties.
type turn struct {
	*server
	x *session
}

// mark finds out anew whom a session waits for, and who has let the step pass.
func (s *server) mark(x *session) { s.markAll(&x.waiting, s.now, turn{s, x}) }

// touch finds out anew whether sessions wait for a party.
func (s *server) touch(party int) {
	for _, x := range s.sessions() {
		if x != nil {
			x.stuck = false
			s.markOne(&x.waiting, s.now, turn{s, x}, party)
		}
	}
}

func (t turn) awaits(party int) bool {
	s, x := t.server, t.x
	switch {
	case x.stage == Resting || x.stage == Applying || !s.machine(x).Awaits(party),
		s.faults.excluded(party):
		return false
	case x.stage == Announcing && !s.mayJoin(party, x):
		return false
	}
	return x != s.present || !s.away(party)
}

func (t turn) able(party int) bool { return t.x.stage == Announcing || t.holds(party, t.x) }

func (t turn) passed(party int) bool {
	return t.x == t.present && t.x.stage >= Submitting && t.peers[party].passed == t.round
}

// mayJoin reports whether a party may announce keys for a session, and is willing to, as far as
// is known.
func (s *server) mayJoin(party int, x *session) bool {
	p := &s.peers[party]
	return !s.faults.excluded(party) &&
		(p.least <= x.number || slices.Contains(p.sessions, x.number))
}

func (t turn) patience(party int) Time {
	return t.room.patience(&t.faults, party, t.round, t.x.stage, t.spare())
}

func (turn) begins(int) Time { return 0 }

// spare is half of StepTime for submissions, since parties may have more or less to work on, and a
// sixteenth for messages; and all of it for a set-up next to a session that holds rounds, which do
// not wait for it.
func (t turn) spare() Time {
	if t.x == t.forming && t.present != nil {
		return t.config.StepTime
	}
	return t.config.spare(t.x.stage == Submitting)
}

func (c *Settings) spare(work bool) Time {
	if work {
		return c.StepTime / 2
	}
	return c.StepTime / 16
}

// stall notes that a party which is here has let a step pass. One that is at work for the round
// that is open cannot answer another session.
func (t turn) stall(party int) {
	s, x, p := t.server, t.x, t.present
	if x != p && p != nil && p.stage == Submitting && s.machine(p).Awaits(party) {
		return
	}
	s.faults.stall(party, s.round)
	if x == p {
		s.peers[party].passed = s.round
	}
	s.notices = append(s.notices,
		Notice{Kind: Stall, Session: x.number, Round: s.round, Party: party})
}

// Until is a method of [Lead].
func (s *server) Until() (latest Time) {
	for _, x := range s.sessions() {
		if x != nil {
			latest = max(latest, s.room.until(&x.waiting, s.now, turn{s, x}))
		}
	}
	return latest
}

// over reports whether a step need not wait any longer.
func (s *server) over(x *session) bool {
	over, tell := s.room.over(&x.waiting, s.now, turn{s, x})
	if tell {
		s.notices = append(s.notices, Notice{Kind: Awaited, Session: x.number, Round: s.round,
			Parties: s.waitedFor(&x.waiting, s.now)})
	}
	return over
}

// share is the part of what a step took that it waits longer.
func (t turn) share() Time {
	switch {
	case t.x.stage == Announcing && t.present == nil:
		return 1 // nobody knows how many will come, and who comes later takes another session
	case t.x.stage == Announcing:
		return 4
	}
	return 8
}

func (t turn) enough() (is, soon bool) {
	is = t.server.enough(t.x)
	return is, is && t.x.stage >= Submitting
}

// enough reports whether a step succeeds with those who have answered.
func (s *server) enough(x *session) bool {
	switch {
	case x.stage == Preparing:
		return len(s.machine(x).Holders())-x.awaited >= x.least
	case x.stage < Preparing:
		return len(x.delays) >= x.least
	}
	return s.recovers && len(x.delays) >= s.config.Survivors
}

// wakeFor returns when a session's step may be over.
func (s *server) wakeFor(x *session) Time {
	if x.stage == Resting || x.stage == Applying {
		return Never
	}
	return s.room.wake(&x.waiting, s.now, turn{s, x})
}

// sweepAway counts those as gone who have not been heard of for long enough.
func (s *server) sweepAway() {
	s.room.sweepAway(s.now, s.leave, func(party int) {
		s.fade(party)
		s.touch(party)
	})
}
