package jobs

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/hushsum/hushsum/cmd/hushsum/internal/cli"
	"github.com/hushsum/hushsum/job"
)

// Read reads a file, or standard input, up to one byte more than a job may have, so that its parser
// refuses a longer one.
func Read(name string) (shown string, text []byte, err error) {
	in := os.Stdin
	if name == "-" {
		name = "standard input"
	} else {
		if in, err = os.Open(name); err != nil {
			return "", nil, &cli.Problem{Cause: err.Error(), Err: err}
		}
		defer in.Close()
	}
	text, err = io.ReadAll(io.LimitReader(in, job.MaxFile+1))
	return name, text, err
}

// Failed prints what is wrong with a job, a line for each mistake.
func Failed(command string, err error, std cli.Streams) int {
	all := job.Errors(err)
	if len(all) == 0 {
		return cli.Failed(command, err, std)
	}
	for _, e := range all {
		fmt.Fprintln(std.Err, "hushsum "+command+": "+e.Error())
	}
	return cli.ExitFailure
}

// Setting is a field of a job with a value, as given by a flag or --set.
type Setting struct{ Flag, Path, Text string }

// Settings holds settings in the order in which they were given.
type Settings []Setting

// Of returns the last value given for a path.
func (s Settings) Of(path string) (text string, given bool) {
	for _, one := range s {
		if one.Path == path {
			text, given = one.Text, true
		}
	}
	return text, given
}

// Texts returns the settings in the form of --set.
func (s Settings) Texts() (all []string) {
	for _, one := range s {
		all = append(all, one.Path+"="+one.Text)
	}
	return all
}

// SetFlag is the flag --set.
type SetFlag struct{ *Settings }

func (s SetFlag) String() string { return "" }

func (s SetFlag) Set(text string) error {
	path, value, ok := strings.Cut(text, "=")
	if !ok {
		return errors.New("write PATH=VALUE, as in privacy.epsilon=4")
	}
	*s.Settings = append(*s.Settings, Setting{"set " + text, path, value})
	return nil
}
