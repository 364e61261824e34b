package drive

import (
	"fmt"
	"slices"

	"github.com/hushsum/hushsum/protocol"
)

// faults lists what the parties of a job have done wrong, by roster index. It belongs to
// identities and lives as long as the job: a party that comes with new keys is the same party.
type faults struct {
	of     []fault
	doubts [][2]int // of protocol.Server.Doubts, over all sessions
}

// fault holds what one party has done wrong.
type fault struct {
	Excluded bool // it has spoilt a round, or is left out by an operator
	// Stalls counts the rounds in which it let a step pass, and Lapse is the round from which it takes
	// part again.
	Stalls int
	Lapse  uint64
	// Used is how long steps have waited for it since then, beyond what anybody may take.
	Used Time
	// Caused counts the sessions that formed for it, and Until is the round from which another may.
	Caused int
	Until  uint64
}

// mostDoubling bounds for how many rounds something is held against a party: 2^10.
const mostDoubling = 10

func newFaults(n int) faults { return faults{of: make([]fault, n)} }

func (f *faults) excluded(party int) bool { return f.of[party].Excluded }

// stalling reports whether steps wait less long for a party: it has let one pass not long ago.
// Who was left out of rounds has as many again to show that it is better.
func (f *faults) stalling(party int, round uint64) bool {
	p := &f.of[party]
	lapse := p.Lapse
	if p.Stalls > 1 {
		lapse += 1 << min(p.Stalls, mostDoubling)
	}
	return round < lapse
}

// benched reports whether a round is better held without a party: it has let steps of several
// rounds pass.
func (f *faults) benched(party int, round uint64) bool {
	return f.of[party].Stalls > 1 && round < f.of[party].Lapse
}

// stall notes that a party let a step pass. It is forgotten after twice as many rounds as the
// time before.
func (f *faults) stall(party int, round uint64) {
	p := &f.of[party]
	p.Stalls++
	p.Used = 0
	p.Lapse = round + 1<<min(p.Stalls, mostDoubling)
}

// cause notes that a session forms for a party. One that behaves for long starts anew.
func (f *faults) cause(party int, round uint64) {
	p := &f.of[party]
	if round > p.Until+1<<min(p.Caused, mostDoubling) {
		p.Caused = 0
	}
	p.Caused++
	p.Until = round + 1<<min(p.Caused-1, mostDoubling) - 1
}

// shun notes that a session which formed for a party has not got it.
func (f *faults) shun(party int, round uint64) {
	p := &f.of[party]
	p.Until = round + 1<<min(max(p.Caused, 1), mostDoubling)
}

// carry gives a session that takes over what is known from those before: also from rounds that
// went on after it had formed.
func (s *server) carry() error {
	server := s.series.Successor()
	for i := range s.peers {
		if s.faults.excluded(i) {
			server.Exclude(i)
		}
	}
	return server.Doubt(s.faults.doubts)
}

// admit leaves a party out, or ends that.
func (s *server) admit(o Order) {
	party, out, order := o.Party, o.Do == Exclude, (*protocol.Server).Readmit
	if s.faults.excluded(party) == out {
		return
	}
	s.faults.of[party] = fault{Excluded: out}
	if out {
		order = (*protocol.Server).Exclude
	} else {
		s.faults.doubts = slices.DeleteFunc(s.faults.doubts, func(pair [2]int) bool {
			return pair[0] == party || pair[1] == party
		})
	}
	for _, x := range s.sessions() {
		if x != nil {
			order(s.machine(x), party)
		}
	}
	s.failed = nil
	s.decided(o.notice(s.round))
	s.touch(party)
}

// learnFaults takes over what a round has shown.
func (s *server) learnFaults(x *session) {
	server := s.series.Present()
	for _, i := range server.Excluded() {
		if !s.faults.of[i].Excluded {
			s.faults.of[i].Excluded = true
			s.notices = append(s.notices,
				Notice{Kind: Spoiler, Session: x.number, Round: s.round, Party: i})
		}
	}
	s.faults.doubts = server.Doubts()
}

// check returns an error unless the saved faults are those of n parties.
func (f *faults) check(n int) error {
	if len(f.of) != n {
		return fmt.Errorf("%w: faults of %d parties", ErrState, len(f.of))
	}
	outside := func(i int) bool { return i < 0 || i >= n }
	if slices.ContainsFunc(f.doubts, func(d [2]int) bool { return outside(d[0]) || outside(d[1]) }) {
		return fmt.Errorf("%w: a doubt of nobody", ErrState)
	}
	return nil
}
