package main

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
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

// packagePrefix is how errors of the library begin, at any depth.
var packagePrefix = regexp.MustCompile(`(^|: )(?:(?:simulation|learning|aggregation|protocol|keyexchange|masking|shamir|noise|accounting|attacks|oblivious|experiments): )+`)

// kinds are the texts of errors that only say that something is wrong, before what it
// is.
var kinds = regexp.MustCompile(`(?:value|parameter) out of range: |unusable (?:options|configuration): `)

// plain returns an error's text without the names of packages and kinds of errors,
// which say nothing to a user of the command.
func plain(err error) string { return plainText(err.Error()) }

func plainText(text string) string {
	return kinds.ReplaceAllString(packagePrefix.ReplaceAllString(text, "$1"), "")
}

// sentence makes a sentence of a clause.
func sentence(clause string) string {
	if clause == "" {
		return ""
	}
	first, size := utf8.DecodeRuneInString(clause)
	return string(unicode.ToUpper(first)) + clause[size:] + "."
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
