// Package fault holds errors whose kind, reason and advice are fields of their own, so
// that a command says them in its own words and order.
package fault

import (
	"errors"
	"fmt"
)

// Error is an error of a kind that callers know by errors.Is.
type Error struct {
	Kind   error  // the package's error
	Reason string // what is wrong, without the kind
	Advice string // what to do, or empty
	Err    error  // what is behind it, or nil; it is not part of the text
}

// New makes an Error of a reason.
func New(kind error, advice, reason string, a ...any) error {
	return &Error{Kind: kind, Reason: fmt.Sprintf(reason, a...), Advice: advice}
}

// At puts the place where an error came up before its reason, or before its text if it
// is no Error. Advice, unless empty, takes the place of its own.
func At(where string, err error, advice string) error {
	return reword(err, where+": ", "", advice)
}

// Note puts a note after the reason of an error, or after its text if it is no Error.
func Note(err error, note string) error { return reword(err, "", " ("+note+")", "") }

func reword(err error, before, after, advice string) error {
	var e *Error
	if !errors.As(err, &e) {
		return fmt.Errorf("%s%w%s", before, err, after)
	}
	moved := *e
	moved.Reason = before + e.Reason + after
	if advice != "" {
		moved.Advice = advice
	}
	return &moved
}

func (e *Error) Error() string {
	text := fmt.Sprintf("%v: %s", e.Kind, e.Reason)
	if e.Advice != "" {
		text += "; " + e.Advice
	}
	return text
}

// Unwrap returns the kind, and what is behind the error.
func (e *Error) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Err}
}

// Reason returns what is wrong, without kind and advice if the error has them apart.
func Reason(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.Reason
	}
	return err.Error()
}
