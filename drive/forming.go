package drive

import (
	"errors"
	"fmt"
	"slices"

	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/protocol"
)

// This file has how sessions form and follow each other, and who is gathered for a round.

// number is the next session's: above all that were used, also where more parties than may lie
// tell that their numbers are higher.
func (s *server) number() uint64 {
	own := max(s.series.Least(), 1)
	return min(max(own, min(s.leastTold(), own+numberJump)), protocol.MaxNumber)
}

// leastTold is the least number of a session that more parties than may lie tell they may join.
func (s *server) leastTold() uint64 {
	return s.beyond(s.liars(), func(p *peer) uint64 { return p.least })
}

// liars is how many parties may tell falsely what they know of numbers: as many as may collude, and
// one at least, since a server must not follow one party alone (SPEC.md §10.5).
func (s *server) liars() int { return max(s.config.Colluders, 1) }

// overtaken reports whether parties have used the number of the session that forms, by their
// word, and may join the next. A number that the next does not reach is no reason to give one up:
// the next would be given up too, and so on up to the last number that there is.
func (s *server) overtaken(x *session) bool {
	next := s.number()
	return next > x.number+1 && next == s.leastTold()
}

// barred reports whether enough parties for a session are here, although some of them may join only
// the session after x: those that have lost their state since they joined x.
func (s *server) barred(x *session) bool {
	some, enough := false, 0
	next := s.number()
	for i := range s.peers {
		if !s.peers[i].here || s.faults.excluded(i) {
			continue
		}
		if may := s.mayJoin(i, x); may || s.peers[i].least <= next {
			some = some || !may
			enough++
		}
	}
	return some && enough >= s.config.Survivors
}

// outside lists the parties that another session would bring in, and returns how many are here
// in all and in the present session.
func (s *server) outside() (out []int, here, inside int) {
	members := s.members()
	for i := range s.peers {
		if !s.peers[i].here || s.faults.excluded(i) {
			continue
		}
		here++
		if members.Has(i) && s.holds(i, s.present) {
			inside++
		} else {
			out = append(out, i)
		}
	}
	if s.present != nil && s.failed == nil && inside >= max(s.present.least, s.first()) {
		// Rounds can go on: who has cost sessions before waits for its turn.
		out = slices.DeleteFunc(out, func(i int) bool { return s.round < s.faults.of[i].Until })
	}
	return out, here, inside
}

// broken reports whether the present session can hold no further round, with the given number of
// its parties here: these are too few, and nobody is expected back.
func (s *server) broken(inside int) bool {
	if inside >= s.needed() {
		return false
	}
	for _, i := range s.series.Present().Enrolled() {
		if p := &s.peers[i]; !p.here && s.now < p.expected {
			s.later(p.expected)
			return false
		}
	}
	return true
}

// needed returns how many of its parties a round of the present session takes.
func (s *server) needed() int {
	if !s.recovers {
		return len(s.series.Present().Enrolled())
	}
	return s.present.least
}

// least returns how many parties a session takes.
func (s *server) least(c *protocol.Config) int {
	if c.MinMembers == 0 {
		return max(s.config.Survivors, c.Roster.Len())
	}
	return max(s.config.Survivors, c.MinMembers)
}

// eased reports whether those who are here are too few for the session that forms, as far as they
// may join it, and enough for the next.
func (s *server) eased(x *session) bool {
	number, now, then := s.number(), 0, 0
	for i := range s.peers {
		p := &s.peers[i]
		if !p.here || s.faults.excluded(i) {
			continue
		}
		if s.mayJoin(i, x) {
			now++
		}
		if p.least <= number {
			then++
		}
	}
	return now < s.least(s.config.Session(x.number)) && s.least(s.config.Session(number)) <= then
}

// newSession makes a session at a stage. A round takes as many parties as the session where parties
// are gathered for it, and as many as a sum where the graph is the session's.
func (s *server) newSession(c *protocol.Config, stage Stage) *session {
	x := &session{number: c.Number, stage: stage, least: s.least(c)}
	if s.recovers && !s.gathers {
		x.least = max(s.config.Survivors, c.Recovery.MinSurvivors)
	}
	return x
}

// members returns who is in the present session, nobody before the first.
func (s *server) members() wire.Set {
	out := wire.NewSet(len(s.peers))
	if s.present != nil {
		for _, i := range s.series.Present().Enrolled() {
			out.Add(i)
		}
	}
	return out
}

// form advances the next session's set-up by one step.
func (s *server) form(look bool) (again bool, err error) {
	x := s.forming
	if x == nil {
		return s.propose(look)
	}
	if x.stage == Announcing && s.doubted {
		if s.doubted = false; s.overtaken(x) {
			// Parties have used the number: what is saved was set back.
			s.drop(protocol.ErrNumber)
			return true, nil
		}
	}
	if x.stage == Resting || !s.over(x) {
		return false, nil
	}
	server := s.series.Successor()
	if x.stage == Preparing {
		s.decided(Notice{Kind: Formed, Session: x.number, Parties: server.Enrolled()})
		s.enter(x, Resting)
		return true, nil
	}
	if x.stage == Announcing && s.announced(server) < s.first() {
		err = errFirst
	} else {
		err = server.EndStep()
	}
	switch {
	case tooFew(err) && x.stage == Announcing && !s.barred(x) && !s.eased(x):
		x.stuck = true // some may still come
		return false, nil
	case tooFew(err):
		s.drop(err)
		return true, nil
	case err != nil:
		return false, err
	}
	if x.stage == Announcing {
		x.called = s.hereNow()
	}
	if server.Enrolled() == nil {
		s.enter(x, Encapsulating)
	} else {
		s.enter(x, Preparing)
	}
	return true, nil
}

// errFirst: the first round begins with more parties than have keys.
var errFirst = fmt.Errorf("%w: the first round begins with more", protocol.ErrTooFew)

// announced returns how many parties have announced keys for the session that forms.
func (s *server) announced(server *protocol.Server) (n int) {
	for i := range s.peers {
		if !server.Awaits(i) {
			n++
		}
	}
	return n
}

// hereNow returns who is here.
func (s *server) hereNow() wire.Set {
	out := wire.NewSet(len(s.peers))
	for i := range s.peers {
		if s.peers[i].here {
			out.Add(i)
		}
	}
	return out
}

// tooFew reports whether a step has not ended since somebody is missing.
func tooFew(err error) bool {
	return errors.Is(err, protocol.ErrTooFew) || errors.Is(err, protocol.ErrMissing)
}

// propose begins the set-up of a session, if there is a reason for one.
func (s *server) propose(look bool) (again bool, err error) {
	if !look || s.paused || s.present != nil && s.round == s.config.Rounds {
		return false, nil
	}
	if due := s.due(); s.now < due {
		s.later(due)
		return false, nil
	}
	outside, here, inside := s.outside()
	if len(outside) == 0 && !(s.present != nil && s.broken(inside)) {
		return false, nil
	}
	number := s.number()
	config := s.config.Session(number)
	if here < max(s.least(config), s.first()) {
		return false, nil
	}
	if err := s.series.Succeed(config); err != nil {
		return false, err
	}
	if s.present != nil {
		for _, i := range outside {
			s.faults.cause(i, s.round)
		}
	}
	s.forming = s.newSession(config, 0)
	s.decided(Notice{Kind: Forms, Session: number, Round: s.round})
	s.enter(s.forming, Announcing)
	return true, nil
}

// drop gives up the session that forms. The next has another number.
func (s *server) drop(why error) {
	s.decided(Notice{Kind: Dropped, Session: s.forming.number, Round: s.round, Err: why})
	s.forming = nil
}

// errSmaller: a session that has formed does not take over from a larger one.
var errSmaller = errors.New("drive: the session before it has more parties that are here")

// smaller reports whether the session that has formed has fewer parties that are here than the
// present one, which can hold rounds. Set-up takes more steps than a round: where many messages
// come late, each session would have fewer parties than the one before.
func (s *server) smaller() bool {
	if s.present == nil || s.failed != nil {
		return false
	}
	able := func(x *session) (n int) {
		for _, i := range s.machine(x).Enrolled() {
			if s.holds(i, x) && !s.faults.excluded(i) {
				n++
			}
		}
		return n
	}
	before := able(s.present)
	return before >= s.needed() && able(s.forming) < before
}

// refuse gives up the session that has formed. Parties that it would have brought in wait for their
// turn.
func (s *server) refuse() {
	members := s.members()
	for i := range s.peers {
		if s.peers[i].here && !(members.Has(i) && s.holds(i, s.present)) {
			s.faults.shun(i, s.round)
		}
	}
	s.drop(errSmaller)
}

// takeOver makes the session that has formed the present one.
func (s *server) takeOver() error {
	if err := s.carry(); err != nil {
		return err
	}
	if err := s.series.TakeOver(); err != nil {
		return err
	}
	s.present, s.forming, s.failed, s.tried = s.forming, nil, nil, nil
	members := s.members()
	for i := range s.peers {
		if s.peers[i].here && s.present.called.Has(i) && !members.Has(i) {
			s.faults.shun(i, s.round)
		}
	}
	s.decided(Notice{Kind: Following, Session: s.present.number, Round: s.round,
		Parties: s.series.Present().Enrolled()})
	return nil
}

// prepare gathers those who are here for the next round, or ends the job.
func (s *server) prepare(look bool) (again bool, err error) {
	if s.round >= s.config.Rounds {
		s.end(AllHeld)
		return false, nil
	}
	if s.usedUp() {
		s.end(allSubmitted)
		return false, nil
	}
	if !look || s.paused {
		return false, nil
	}
	if due := s.again(); s.now < due {
		s.later(due)
		return false, nil
	}
	x, server := s.present, s.series.Present()
	there, soon := s.there()
	if s.now < soon {
		s.later(soon)
		return false, nil
	}
	if len(there) < max(x.least, s.first()) || s.failed != nil && slices.Equal(there, s.failed) {
		return false, nil
	}
	s.tried = there
	if !s.recovers {
		if len(there) < len(server.Enrolled()) {
			return false, nil
		}
		return true, s.begin()
	}
	sampled := 0 < s.config.Sample && s.config.Sample < len(server.Enrolled())
	switch {
	case sampled:
		there = s.draw(there)
	case s.complete(there):
		return true, s.begin()
	case !s.gathers:
		// Who is asked by Pending and answers in time takes part.
		s.enter(x, Preparing)
		return true, nil
	}
	if _, err := server.Gather(there); err != nil {
		return false, err
	}
	s.failed = nil
	s.enter(x, Preparing)
	return true, nil
}

// usedUp reports whether too few parties have a submission left for one more round.
func (s *server) usedUp() bool {
	left := 0
	for i := range s.peers {
		if !s.done(i) && !s.faults.excluded(i) {
			left++
		}
	}
	return s.counts != nil && left < s.present.least
}

// draw returns which of the parties that are there the next round is held among: of parties with
// bounded submissions those that have made the fewest, so that nobody runs out before all do.
func (s *server) draw(there []int) []int {
	if s.counts == nil || len(there) <= s.config.Sample {
		return s.config.Draw(s.round+1, there, s.config.Sample)
	}
	counts := make([]uint64, len(there))
	for k, i := range there {
		counts[k] = s.counts[i]
	}
	slices.Sort(counts)
	most := counts[s.config.Sample-1]
	var drawn, last []int
	for _, i := range there {
		switch {
		case s.counts[i] < most:
			drawn = append(drawn, i)
		case s.counts[i] == most:
			last = append(last, i)
		}
	}
	drawn = append(drawn, s.config.Draw(s.round+1, last, s.config.Sample-len(drawn))...)
	slices.Sort(drawn)
	return drawn
}

// there lists the parties that a round can be held among, and the time until which one of the
// last round may come back.
func (s *server) there() (there []int, soon Time) {
	server := s.series.Present()
	excluded := wire.NewSet(len(s.peers))
	for _, i := range server.Excluded() {
		excluded.Add(i)
	}
	holders := wire.NewSet(len(s.peers))
	for _, i := range s.takers() {
		holders.Add(i)
	}
	for _, i := range server.Enrolled() {
		switch {
		case excluded.Has(i) || s.done(i):
		case s.holds(i, s.present):
			there = append(there, i)
		case !s.peers[i].here && holders.Has(i):
			soon = max(soon, s.peers[i].expected)
		}
	}
	if s.failed == nil { // without them it may fail for somebody who is silent as well
		there = s.bench(there)
	}
	return there, soon
}

// bench leaves out those that have let steps of several rounds pass, the worst first, but no more
// than a quarter of those that may be missing from a round, and nobody where StepTime is short: who
// is left would be too few as soon as one of them lets a step pass too.
func (s *server) bench(there []int) []int {
	if s.short {
		return there
	}
	var benched []int
	for _, i := range there {
		if s.faults.benched(i, s.round) {
			benched = append(benched, i)
		}
	}
	slices.SortStableFunc(benched, func(i, j int) int {
		return s.faults.of[j].Stalls - s.faults.of[i].Stalls
	})
	most := max(0, (len(there)-s.present.least+3)/4)
	benched = benched[:min(most, len(benched))]
	return slices.DeleteFunc(there, func(i int) bool { return slices.Contains(benched, i) })
}

// takers lists the parties that the next round is for.
func (s *server) takers() []int {
	if !s.recovers {
		return s.series.Present().Enrolled()
	}
	return s.series.Present().Holders()
}

// complete reports whether the material of these parties is in, and that of nobody for whom a
// round is not worth the wait: such a party would have the round wait for it, or train for nothing.
func (s *server) complete(there []int) bool {
	server := s.series.Present()
	holders := server.Holders()
	for i := range s.peers {
		_, wanted := slices.BinarySearch(there, i)
		_, holder := slices.BinarySearch(holders, i)
		in := holder && !server.Awaits(i)
		if in != wanted && (wanted || s.gathers && (s.faults.benched(i, s.round) || s.done(i))) {
			return false
		}
	}
	return true
}
