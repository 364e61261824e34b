package hushsum

import (
	"fmt"

	"github.com/hushsum/hushsum/drive"
)

// Lost declares that the state of a participant, or of a member of the committee, is lost for
// good. It then starts without a state if the Counter knows of a state that Store lacks or has only
// an older version of; without the declaration, Run fails with [ErrOldState] there. Where the
// newest state is stored, the greater of its count and Rounds counts. What is declared is saved
// before anything else happens: leave Lost out again once Run has run.
type Lost struct {
	// Rounds, from 1 to the job's Rounds, is the last round in which the party may have submitted, or
	// the member may have helped, or 1 if there is none. All rounds up to it count as spent, and none
	// of them is answered again.
	Rounds int
	// Number is, for pairwise sums, the least number of a session that the party may take part in: ask
	// the coordinator for a number that it has not used with this party. Elsewhere it is 0.
	Number uint64
}

// check returns an error for what no part of a job can have lost.
func (l *Lost) check(s *Settled) error {
	rounds := s.Rounds()
	switch {
	case l == nil:
		return nil
	case l.Rounds < 1 || l.Rounds > rounds:
		return &ConfigError{
			Path:   "Lost.Rounds",
			Reason: fmt.Sprintf("%d is outside 1 to the job's %d rounds", l.Rounds, rounds),
			Advice: "name the last round that may have been answered; 1 if there is none",
		}
	case s.Oneshot() != nil && l.Number > 0:
		return &ConfigError{
			Path:   "Lost.Number",
			Reason: "one-message sums have no sessions",
			Advice: "set only Rounds",
		}
	case s.Oneshot() == nil && l.Number == 0:
		return &ConfigError{
			Path:   "Lost.Number",
			Reason: "a party that lost its state does not know which numbers it has used",
			Advice: "ask the coordinator for one that it has not used with this party",
		}
	}
	return nil
}

// count adds what is declared to what a part knows.
func (l *Lost) count(settings *drive.PartSettings) {
	if l != nil {
		settings.Spent, settings.Least = uint64(l.Rounds), l.Number
	}
}
