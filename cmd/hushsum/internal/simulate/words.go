package simulate

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/hushsum/hushsum/cmd/hushsum/internal/cli"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/jobs"
	"github.com/hushsum/hushsum/job"
)

// refused prints what is wrong, in the words in which the user declared the job: with the lines and
// fields of a file, or with flags.
func (v *jobFlags) refused(flags *flag.FlagSet, err error, std cli.Streams) int {
	all := job.Errors(err)
	var file *unread
	var said *cli.Problem
	switch {
	case errors.As(err, &file):
		return cli.Failed("simulate", err, std)
	case errors.As(err, &said):
		return cli.WrongUsage(flags, err, std)
	case len(all) == 0:
		return jobs.Failed("simulate", err, std)
	case v.file == "":
		e := all[0]
		p := &cli.Problem{Cause: v.place(e) + ": " + v.inFlags(e.Reason),
			Advice: cli.Sentence(quoted.ReplaceAllString(v.inFlags(e.Advice), "$1")), Err: err}
		return cli.WrongUsage(flags, p, std)
	}
	for _, e := range all {
		if name := v.byFlag(e.Path); name != "" {
			p := &cli.Problem{Cause: "--" + name + ": " + e.Reason, Advice: cli.Sentence(e.Advice), Err: e}
			cli.Complain(std.Err, "hushsum simulate", p)
			continue
		}
		fmt.Fprintln(std.Err, "hushsum simulate: "+e.Error())
	}
	return cli.ExitFailure
}

// place names the field of a mistake.
func (v *jobFlags) place(e *job.ConfigError) string {
	if name := flagOf(e.Path); name != "" {
		return "--" + cmp.Or(v.byFlag(e.Path), name)
	}
	return e.Place()
}

// byFlag returns the flag with which the user set a field, empty if it was not set by one.
func (v *jobFlags) byFlag(path string) string {
	if path == "sum.max_weight" && v.byRows && !v.given["max-weight"] {
		return "by-rows"
	}
	if v.rule != "" && flagOf(path) == "rule" {
		return "rule"
	}
	for f := range job.Fields() {
		for _, name := range []string{flagNames[f.Flag], f.Flag} {
			if f.Path == path && name != "" && v.given[name] {
				return name
			}
		}
	}
	return ""
}

// named finds fields of a job in a sentence, and the values that they should have.
var named = func() *regexp.Regexp {
	var paths []string
	for f := range job.Fields() {
		if !strings.Contains(f.Path, "[]") && strings.Contains(f.Path, ".") {
			paths = append(paths, regexp.QuoteMeta(f.Path))
		}
	}
	slices.SortFunc(paths, func(a, b string) int { return len(b) - len(a) }) // the longest wins
	return regexp.MustCompile(`\b(` + strings.Join(paths, "|") + `)\b(?: = ("[^"]*"|[\w.+-]*\w))?`)
}()

// quoted finds the words that a file has in quotes, and a flag has not.
var quoted = regexp.MustCompile(`"([\w-]+)"`)

// why states what is wrong with a combination, and what to do.
func (v *jobFlags) why(err error) string {
	var e *job.ConfigError
	if !errors.As(err, &e) {
		return cli.Plain(err)
	}
	text := e.Reason
	if e.Advice != "" {
		text += "; " + e.Advice
	}
	if v.file != "" {
		return e.Place() + ": " + text
	}
	return v.place(e) + ": " + v.inFlags(text)
}

// inFlags puts flags in place of the fields that a sentence names.
func (v *jobFlags) inFlags(text string) string {
	return named.ReplaceAllStringFunc(text, func(found string) string {
		m := named.FindStringSubmatch(found)
		path, value := m[1], strings.Trim(m[2], `"`)
		name := cmp.Or(v.byFlag(path), flagOf(path))
		switch {
		case name == "" && value == "":
			return path
		case name == "":
			return "--set " + path + "=" + value
		case value == "" || value == "true":
			return "--" + name
		}
		return "--" + name + " " + value
	})
}
