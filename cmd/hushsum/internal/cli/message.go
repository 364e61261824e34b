package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/hushsum/hushsum/internal/fault"
	"github.com/hushsum/hushsum/internal/script"
	"github.com/hushsum/hushsum/learning"
	"github.com/hushsum/hushsum/privacy"
)

// Width is the maximum number of characters in a line.
const Width = script.Width

// Problem is an error in the form that a user reads: what is wrong, and on a line of its own what
// to do.
type Problem struct {
	Cause  string
	Advice string // a sentence or more, or empty
	Err    error  // the cause, or nil
}

func (p *Problem) Error() string { return p.Cause }

func (p *Problem) Unwrap() error { return p.Err }

// Complain prints an error of a command.
func Complain(w io.Writer, who string, err error) {
	cause, advice := Plain(err), ""
	var p *Problem
	if errors.As(err, &p) {
		cause, advice = p.Cause, p.Advice
	}
	for _, text := range []string{who + ": " + cause, advice} {
		if text != "" {
			fmt.Fprintln(w, strings.Join(Wrap(text, Width), "\n"))
		}
	}
}

// Plain states what is wrong in the words of a user: the reason of an error that has one apart from
// its kind, which callers name themselves, or its text.
func Plain(err error) string {
	var config *privacy.ConfigError
	if errors.As(err, &config) {
		return config.Reason
	}
	return fault.Reason(err)
}

// FileFault states what is wrong with a data file.
func FileFault(err error) string {
	if errors.Is(err, learning.ErrIncomplete) {
		return "incomplete data file: " + Plain(err)
	}
	return "malformed data file: " + Plain(err)
}

// Sentence makes a sentence of a clause.
func Sentence(clause string) string {
	if clause == "" {
		return ""
	}
	first, size := utf8.DecodeRuneInString(clause)
	end := "."
	if strings.HasSuffix(clause, "?") {
		end = ""
	}
	return string(unicode.ToUpper(first)) + clause[size:] + end
}

// Wrap breaks text between words into lines of at most the given number of characters; a longer
// word gets a line of its own.
func Wrap(text string, width int) []string { return script.Wrap(text, width) }
