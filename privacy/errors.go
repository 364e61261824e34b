package privacy

import (
	"errors"
	"fmt"

	"github.com/hushsum/hushsum/internal/fault"
)

// ErrConfig: a field is outside its range, or does not fit the others. See [ConfigError].
var ErrConfig = errors.New("privacy: unusable configuration")

// ConfigError names the unusable field. It is [ErrConfig], and unwraps to the error of another
// package if that package found the mistake.
type ConfigError struct {
	Field  string // of Release or Budget, as in "Noise.Bits"
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

// errTooLittle marks noise that is too little to be divided into whole numbers.
var errTooLittle = errors.New("privacy: next to no noise")
