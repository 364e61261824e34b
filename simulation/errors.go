package simulation

import (
	"errors"
	"fmt"
)

// ErrOptions: an option is outside its range. See [OptionError].
var ErrOptions = errors.New("simulation: unusable options")

// OptionError names the option that is unusable. It is [ErrOptions], and unwraps
// to the reason if another package found it.
type OptionError struct {
	Option string // the field of Options or Training, as in "Recovery.MinSurvivors"
	Reason string // what is wrong with it
	Advice string // what to do, or empty
	Err    error  // nil, or the error behind it
}

func (e *OptionError) Error() string {
	text := fmt.Sprintf("%v: %s: %s", ErrOptions, e.Option, e.Reason)
	if e.Advice != "" {
		text += "; " + e.Advice
	}
	return text
}

// bad makes an OptionError without an error behind it.
func bad(option, advice, reason string, a ...any) error {
	return &OptionError{Option: option, Reason: fmt.Sprintf(reason, a...), Advice: advice}
}

// Is makes errors.Is(err, ErrOptions) true.
func (e *OptionError) Is(target error) bool { return target == ErrOptions }

// Unwrap returns Err.
func (e *OptionError) Unwrap() error { return e.Err }

// RoundError says in which round, and with which party, a run failed. It unwraps
// to the reason.
type RoundError struct {
	Round int // from 1; 0 for set-up
	Party int // roster index, −1 for the server or no party in particular
	Err   error
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
