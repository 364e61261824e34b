package simulation

import (
	"errors"
	"fmt"
	"strings"

	"github.com/hushsum/hushsum/internal/fault"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/privacy"
)

// bad names the option that is unusable, as in "Recovery.MinSurvivors", by its Path.
func bad(option, advice, reason string, a ...any) error {
	return &job.ConfigError{Path: option, Reason: fmt.Sprintf(reason, a...), Advice: advice}
}

// because makes one of another package's error.
func because(option string, err error) error {
	return &job.ConfigError{Path: option, Reason: fault.Reason(err), Err: err}
}

// ofPrivacy says what package privacy found in the words of Options.
func ofPrivacy(err error) error {
	var found *privacy.ConfigError
	if !errors.As(err, &found) {
		return err
	}
	field := found.Field
	switch {
	case field == "Contributors.Parties":
		field = "Parties"
	case field == "Contributors.Colluders":
		field = "Colluders"
	case field == "Contributors.MinSurvivors":
		field = "Recovery.MinSurvivors"
	case field == "Dimension":
		field = "Model"
	case field == "Rate":
		field = "PerRound"
	case strings.HasPrefix(field, "Signs"):
		field = "SignShare"
	}
	return &job.ConfigError{Path: field, Reason: found.Reason, Advice: found.Advice, Err: found}
}

// RoundError says in which round, and with which party, a run failed. It unwraps
// to the reason.
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
