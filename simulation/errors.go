package simulation

import (
	"fmt"

	"github.com/hushsum/hushsum/internal/fault"
	"github.com/hushsum/hushsum/job"
)

// bad names what is unusable, by the field of a job that sets it or by the field of a World.
func bad(path, advice, reason string, a ...any) error {
	return &job.ConfigError{Path: path, Reason: fmt.Sprintf(reason, a...), Advice: advice}
}

// because makes one of another package's error.
func because(path string, err error) error {
	return &job.ConfigError{Path: path, Reason: fault.Reason(err), Err: err}
}

// RoundError says in which round, and with which party, a run failed. It unwraps to the reason.
type RoundError struct {
	Round int // from 1; 0 for set-up
	Party int // roster index, −1 for the server or no party in particular
	Err   error
	Done  *Result // by a Run until then, also what it has spent; nil for other trainings
}

func (e *RoundError) Error() string {
	where := fmt.Sprintf("round %d", e.Round)
	if e.Round == 0 {
		where = "set-up"
	}
	if e.Party >= 0 {
		where += fmt.Sprintf(", %s", partyName(e.Party))
	}
	return fmt.Sprintf("simulation: %s: %v", where, e.Err)
}

// Unwrap returns the reason.
func (e *RoundError) Unwrap() error { return e.Err }

// failure names the party, or −1, with which a round failed.
func failure(round, party int, err error) error {
	if named, ok := err.(*RoundError); ok {
		return named
	}
	return &RoundError{Round: round, Party: party, Err: err}
}
