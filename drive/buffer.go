package drive

import (
	"fmt"
	"math"
	"slices"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/oneshot"
)

// This file holds the rounds that take a given number of submissions, while parties go on with
// what they make of earlier broadcasts (Nguyen et al. 2022).

// bound lets no party submit more often than its budget allows, or than there are rounds. It
// returns how many fewer times each may submit than others, where parties have spent before.
func (c *Settings) bound() (less []uint64, err error) {
	least, most := c.Sums.Least(), c.Sums.Roster.Len()
	switch {
	case c.Buffer == 0 && c.Sums.Stale == 0:
		return nil, nil
	case c.Sums.Stale == 0 || c.Buffer < least || c.Buffer > most:
		return nil, fmt.Errorf("%w: a buffer of %d parties with inputs of up to %d rounds before, "+
			"want %d to %d with 1 or more, or neither",
			oneshot.ErrConfig, c.Buffer, c.Sums.Stale, least, most)
	}
	if c.Submissions == 0 || c.Submissions > c.Rounds {
		c.Submissions = c.Rounds
	}
	names := make([]string, c.Sums.Roster.Len())
	less = make([]uint64, len(names))
	if c.Ledger == nil {
		return less, nil
	}
	for i := range names {
		names[i] = c.Sums.Roster.Name(i)
	}
	allowed, err := c.Ledger.Left(c.Cost, int(c.Submissions), names...)
	if err != nil {
		return nil, err
	}
	c.Submissions = uint64(max(slices.Max(allowed), 1))
	for i, n := range allowed {
		less[i] = c.Submissions - uint64(n)
	}
	return less, nil
}

// left reports whether at least the given number of parties may submit in a further round.
func (s *committee) left(least int) bool {
	for i := range s.parties.peers {
		if !s.done(i) && !s.spoilers.excluded(i) {
			least--
		}
	}
	return least <= 0
}

// full reports whether the open round takes no more: as many are in as it takes, or nobody else can
// be. Where nobody has come for StepTime, it goes on with those that it has, if they are enough, or
// has no sum, if others will not come either.
func (s *committee) full() bool {
	if s.step.blocking > 0 && s.now >= s.step.recheck {
		s.mark()
	}
	return s.now >= s.fullAt()
}

// fullAt returns when that will be, and when somebody is waited for no longer.
func (s *committee) fullAt() Time {
	switch {
	case s.server.Taken() >= s.config.Buffer || s.step.awaited == 0:
		return s.now
	case slices.ContainsFunc(s.uploads, func(i int) bool { return !s.roomless(i) }):
		return s.step.recheck
	case s.server.Taken() < s.sums.Least() && s.still(s.sums.Least()):
		return Never
	}
	return max(s.step.since, s.step.heard).after(s.config.StepTime)
}

// chargeReceived charges those that have submitted in a round with a buffer, which is over now. It
// asks for no budget: they have spent what they have sent, and each holds itself to its own.
func (s *committee) chargeReceived() error {
	if s.config.Buffer == 0 || s.stage != Submitting {
		return nil
	}
	received := s.server.Received()
	for _, i := range received {
		s.counts[i]++
	}
	if s.ledger == nil || len(received) == 0 {
		return nil
	}
	names := make([]string, len(received))
	for k, i := range received {
		names[k] = s.names[i]
	}
	after := s.ledger.Clone()
	if err := spendAnyway(after, s.config.Cost, 1, names...); err != nil {
		return err
	}
	s.ledger = after
	return nil
}

// spendAnyway records rounds without asking whether there is a budget for them: they are over.
func spendAnyway(l *accounting.Ledger, cost accounting.Round, count int, names ...string) error {
	budgets := make([]accounting.Target, len(names))
	for k, name := range names {
		budgets[k] = l.Budget(name).Target()
		boundless := accounting.Target{Epsilon: math.MaxFloat64, Delta: budgets[k].Delta}
		if err := l.SetBudget(name, boundless); err != nil {
			return err
		}
	}
	if err := l.SpendRounds(cost, count, names...); err != nil {
		return err
	}
	for k, name := range names {
		if err := l.SetBudget(name, budgets[k]); err != nil {
			return err
		}
	}
	return nil
}

// stale reports whether a party may submit what it made of an earlier broadcast. It is asked to
// make a vector, says that it has by [Part.Finished], and offers it in the round that is open
// then, or in the next. The vector is counted, and its message made, once there is room for it.
func (s *sender) stale() bool { return s.config.Sums.Stale > 0 }

// goOn has a party for which something changed offer the vector that the program has, or begin one,
// unless it makes one that will not be too old.
func (s *sender) goOn() {
	made := s.made
	if s.asked != nil && s.asked.ID.Made == 0 {
		made = s.asked.Round
	}
	switch {
	case made > s.round, made > 0 && s.round-made > uint64(s.config.Sums.Stale):
		if s.made > 0 { // else the program is told to end
			s.report(Late, 0, made, nil)
		}
		s.made = 0
		s.ask(0)
	case s.made > 0:
		s.asked = nil
		s.out.Offer = s.round
	case made == 0:
		s.ask(0)
	}
}

// Finished is described with [Part].
func (s *sender) Finished(id AskID) {
	s.answered(id)
	if !s.waiting(id) || id.Made > 0 {
		s.report(Late, 0, id.Round, nil)
		return
	}
	s.asked, s.made = nil, id.Round
	if s.opening != nil {
		s.out.Offer = s.round
	}
}
