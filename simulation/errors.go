package simulation

import (
	"errors"
	"fmt"
	"strings"

	"github.com/hushsum/hushsum/internal/fault"
	"github.com/hushsum/hushsum/privacy"
)

// ErrConfig: an option is outside its range, or does not go with the others. See
// [ConfigError].
var ErrConfig = errors.New("simulation: unusable configuration")

// ConfigError names the option that is unusable. It is [ErrConfig], and unwraps
// to the reason if another package found it.
type ConfigError struct {
	Field  string // of Options or Personal, as in "Recovery.MinSurvivors"
	Reason string // what is wrong with it
	Advice string // what to do, or empty
	Err    error  // nil, or the error behind it
}

func (e *ConfigError) Error() string {
	text := fmt.Sprintf("%v: %s: %s", ErrConfig, e.Field, e.Reason)
	if e.Advice != "" {
		text += "; " + e.Advice
	}
	return text
}

// Is makes errors.Is(err, ErrConfig) true.
func (e *ConfigError) Is(target error) bool { return target == ErrConfig }

// Unwrap returns Err.
func (e *ConfigError) Unwrap() error { return e.Err }

// bad makes a ConfigError without an error behind it.
func bad(field, advice, reason string, a ...any) error {
	return &ConfigError{Field: field, Reason: fmt.Sprintf(reason, a...), Advice: advice}
}

// because makes a ConfigError of another package's error.
func because(field string, err error) error {
	return &ConfigError{Field: field, Reason: fault.Reason(err), Err: err}
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
	return &ConfigError{Field: field, Reason: found.Reason, Advice: found.Advice, Err: found}
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
