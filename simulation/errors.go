package simulation

import (
	"cmp"
	"errors"
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
	Round int    // from 1; 0 for set-up
	Party int    // roster index, −1 for the server or no party in particular
	Name  string // the party's; empty: it has none of its own
	Err   error
}

func (e *RoundError) Error() string {
	where := fmt.Sprintf("round %d", e.Round)
	if e.Round == 0 {
		where = "set-up"
	}
	if e.Party >= 0 {
		where += ", " + cmp.Or(e.Name, partyName(e.Party))
	}
	return fmt.Sprintf("simulation: %s: %v", where, e.Err)
}

// Unwrap returns the reason.
func (e *RoundError) Unwrap() error { return e.Err }

// failure names the party, or −1, with which a round failed, unless the error says that.
func failure(round, party int, err error) error {
	var named *RoundError
	var wrong *job.ConfigError
	if errors.As(err, &named) || errors.As(err, &wrong) {
		return err
	}
	return &RoundError{Round: round, Party: party, Err: err}
}
