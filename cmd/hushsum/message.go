package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/hushsum/hushsum/internal/fault"
	"github.com/hushsum/hushsum/learning"
	"github.com/hushsum/hushsum/privacy"
	"github.com/hushsum/hushsum/simulation"
)

// width is how many characters a line may have.
const width = 80

// problem is an error as a user reads it: what is wrong, and on a line of its own
// what to do.
type problem struct {
	cause  string
	advice string // a sentence or more, or empty
	err    error  // what is behind it, or nil
}

func (p *problem) Error() string { return p.cause }

func (p *problem) Unwrap() error { return p.err }

// complain prints an error of a command.
func complain(w io.Writer, who string, err error) {
	cause, advice := plain(err), ""
	var p *problem
	if errors.As(err, &p) {
		cause, advice = p.cause, p.advice
	}
	for _, text := range []string{who + ": " + cause, advice} {
		if text != "" {
			fmt.Fprintln(w, strings.Join(wrap(text, width), "\n"))
		}
	}
}

// plain says what is wrong in the words of a user: the reason of an error that has one
// apart from its kind, which callers say themselves, or its text.
func plain(err error) string {
	var option *simulation.ConfigError
	var config *privacy.ConfigError
	switch {
	case errors.As(err, &option):
		return option.Reason
	case errors.As(err, &config):
		return config.Reason
	}
	return fault.Reason(err)
}

// fileFault says what is wrong with a data file.
func fileFault(err error) string {
	if errors.Is(err, learning.ErrIncomplete) {
		return "incomplete data file: " + plain(err)
	}
	return "malformed data file: " + plain(err)
}

// sentence makes a sentence of a clause.
func sentence(clause string) string {
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

// wrap breaks text between words into lines of at most the given number of
// characters; a longer word has a line of its own.
func wrap(text string, width int) []string {
	var lines []string
	line, length := "", 0
	for i, word := range strings.Split(text, " ") {
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
			line, length = word, n
		case length+1+n <= width:
			line, length = line+" "+word, length+1+n
		default:
			lines = append(lines, line)
			line, length = word, n
		}
	}
	return append(lines, line)
}
