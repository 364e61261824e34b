package drive

import "slices"

// This file has how long a step waits, which follows from what parties do: a step is over once
// all have answered, or nobody that has not is both here and still has patience left, and those
// that have gone had the time to come back.

// waiting is whom a session waits for, in its stage.
type waiting struct {
	fresh    bool // Advance has not been called since the stage began
	since    Time // the stage began, as parties know
	heard    Time // the last answer; 0: none
	awaited  int  // parties that have not answered
	blocking int  // of these, parties that the step does wait for
	marks    []mark
	recheck  Time // when somebody's patience ends
	told     bool // who is waited for was reported
	stuck    bool // the step cannot end with what there is
	delays   []Time
}

// mark says what a party is for a session's step.
type mark uint8

const (
	markAwaited mark = 1 << iota
	markBlocking
	markPassed // it has let the step pass
)

// mark finds out anew whom a session waits for, and who has let the step pass.
func (s *Server) mark(x *session) {
	x.awaited, x.blocking, x.recheck, x.stuck = 0, 0, Never, false
	if x.marks == nil {
		x.marks = make([]mark, len(s.peers))
	}
	for i := range s.peers {
		x.marks[i] &= markPassed
		s.markOne(x, i)
	}
}

// touch finds out anew whether sessions wait for a party.
func (s *Server) touch(party int) {
	for _, x := range s.sessions() {
		if x != nil {
			x.stuck = false
			s.markOne(x, party)
		}
	}
}

func (s *Server) markOne(x *session, party int) {
	next := s.markOf(x, party)
	was := x.marks[party]
	if next == was {
		return
	}
	x.marks[party] = next
	x.awaited += int(next&markAwaited) - int(was&markAwaited)
	x.blocking += int(next&markBlocking)/int(markBlocking) - int(was&markBlocking)/int(markBlocking)
}

func (s *Server) markOf(x *session, party int) mark {
	p := &s.peers[party]
	switch {
	case x.stage == Resting || x.stage == Applying || !s.machine(x).Awaits(party):
		return 0
	case x.stage == Announcing && !s.mayJoin(party, x):
		return 0
	case x == s.present && s.away(party):
		return 0
	case x.marks[party]&markPassed != 0:
		return markAwaited | markPassed
	case !p.near, x.stage != Announcing && !s.holds(party, x),
		x == s.present && x.stage >= Submitting && p.passed == s.round:
		return markAwaited
	}
	// Who was not here yet since the server was loaded has not let anything pass until it came.
	if ends := max(x.since, p.came).after(s.patience(x, party)); x.fresh || s.now < ends {
		x.recheck = min(x.recheck, ends)
		return markAwaited | markBlocking
	}
	s.stall(x, party)
	return markAwaited | markPassed
}

// mayJoin reports whether a party may announce keys for a session, and is willing to, as far as
// is known.
func (s *Server) mayJoin(party int, x *session) bool {
	p := &s.peers[party]
	return !s.faults.excluded(party) &&
		(p.least <= x.number || slices.Contains(p.sessions, x.number))
}

// patience is how long a step waits for a party that is here: less for one that has let a step
// pass not long ago.
func (s *Server) patience(x *session, party int) Time {
	median := s.learned.median[x.stage]
	if !s.faults.stalling(party, s.round) || median == 0 {
		return s.config.StepTime
	}
	return min(max(s.config.Floor, 4*median), s.config.StepTime)
}

// stall notes that a party which is here has let a step pass. One that is at work for the round
// that is open cannot answer another session.
func (s *Server) stall(x *session, party int) {
	p := s.present
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

// over reports whether a step need not wait any longer.
func (s *Server) over(x *session) bool {
	if x.fresh && x.awaited > 0 {
		return false // its time has not begun
	}
	if x.blocking > 0 && s.now >= x.recheck {
		s.mark(x)
	}
	if x.blocking > 0 && !x.told && s.now >= x.since+s.untold() {
		x.told = true
		s.notices = append(s.notices, Notice{Kind: Awaited, Session: x.number, Round: s.round,
			Parties: x.waitedFor()})
	}
	switch {
	case x.stuck:
		return false
	case x.awaited == 0:
		return true
	}
	return x.blocking == 0 && s.now >= s.quiet(x)
}

// untold is how long a step waits for somebody before that is reported.
func (s *Server) untold() Time { return min(s.config.StepTime/4, longestTold) }

// waitedFor lists the parties that a step does wait for.
func (x *waiting) waitedFor() (out []int) {
	for i, m := range x.marks {
		if m&markBlocking != 0 {
			out = append(out, i)
		}
	}
	return out
}

// quiet is the time until which a step waits for parties that are not here: they may be coming
// back, and while others take long to answer they may do so too. A round that has enough without
// them is not lost for want of them, and waits for a second, or half as long again as it took, at
// most.
func (s *Server) quiet(x *session) Time {
	last := max(x.since, x.heard)
	share := Time(8)
	switch {
	case x.stage == Announcing && s.present == nil:
		share = 1 // nobody knows how many will come, and who comes later takes another session
	case x.stage == Announcing:
		share = 4
	}
	// A step that was stuck may have begun long ago.
	took := min(last-x.since, s.config.StepTime)
	least := last + max(s.config.Floor, took/share)
	enough, soon := s.enough(x), Never
	if enough && x.stage >= Submitting {
		soon = last + max(20*s.config.Floor, took/2)
	}
	until := last
	for i, m := range x.marks {
		p := &s.peers[i]
		switch {
		case m&markAwaited == 0 || p.near && (enough || x.stage != Announcing && !s.holds(i, x)):
		case p.near: // it may let the step pass only where that goes on without it
			until = max(until, x.since.after(s.config.StepTime))
		case p.known:
			until = max(until, least, min(p.expected, soon))
		default: // it is on its way to a server that was just started
			until = max(until, least, p.expected)
		}
	}
	return until
}

// enough reports whether a step succeeds with those who have answered.
func (s *Server) enough(x *session) bool {
	switch {
	case x.stage == Preparing:
		return len(s.machine(x).Holders())-x.awaited >= x.least
	case x.stage < Preparing:
		return len(x.delays) >= x.least
	}
	return s.recovers && len(x.delays) >= s.config.Survivors
}

// wakeFor is when a session's step may be over.
func (s *Server) wakeFor(x *session) Time {
	switch {
	case x.stage == Resting || x.stage == Applying || x.stuck:
		return Never
	case x.awaited == 0:
		return s.now
	case x.blocking == 0:
		return s.quiet(x)
	case x.told:
		return x.recheck
	}
	return min(x.recheck, x.since+s.untold())
}

// linger is how long a step waits for a party that was heard of and is not connected. A server
// that is busy with thousands of parties hears of each less often than that, and holds rounds
// among all of them: they are here for longer.
func (c *ServerConfig) linger() Time {
	if c.ComeBack == 0 {
		return c.Away
	}
	return min(c.Away, c.ComeBack)
}

// sweepAway counts those as gone who have not been heard of for long enough.
func (s *Server) sweepAway() {
	if s.now < s.sweep {
		return
	}
	linger := s.config.linger()
	s.sweep = s.now + max(1, linger/4)
	for i := range s.peers {
		p := &s.peers[i]
		if p.here && !p.connected && s.now >= p.seen+s.config.Away {
			s.leave(i)
		} else if p.near && !p.connected && s.now >= p.seen+linger {
			s.fade(i)
		}
	}
}

// learned holds what a server has seen of the parties' ways.
type learned struct {
	absences []Time             // of those who came back, the last few; not saved
	median   [Applying + 1]Time // of the time that an answer took, last
}

// mostAbsences is how many absences are remembered.
const mostAbsences = 64

// cameBack notes how long somebody was gone.
func (l *learned) cameBack(after Time) {
	if len(l.absences) == mostAbsences {
		l.absences = slices.Delete(l.absences, 0, 1)
	}
	l.absences = append(l.absences, after)
}

// back is how long somebody who has gone is expected: as long as nine of ten who came back took,
// and no longer than a carrier's next try.
func (l *learned) back(c *ServerConfig) Time {
	if len(l.absences) < 10 {
		return min(c.ComeBack, c.StepTime/10)
	}
	sorted := slices.Sorted(slices.Values(l.absences))
	return min(sorted[9*(len(sorted)-1)/10], c.ComeBack)
}

// answered notes an answer of a step.
func (l *learned) answered(x *session, now Time) {
	x.heard = now
	x.delays = append(x.delays, now-x.since)
}

// ended learns from a step that is over.
func (l *learned) ended(x *session) {
	if len(x.delays) > 0 {
		slices.Sort(x.delays)
		l.median[x.stage] = max(1, x.delays[len(x.delays)/2])
	}
}
