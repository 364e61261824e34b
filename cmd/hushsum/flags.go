package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/noise"
	"github.com/hushsum/hushsum/protocol"
)

// parseFlags parses a command's arguments. If the command is not to run, because
// it was asked for help or called wrongly, ok is false and code the exit code.
func parseFlags(flags *flag.FlagSet, about string, args []string, std streams) (code int, ok bool) {
	flags.SetOutput(io.Discard) // errors are printed here, once
	flags.Usage = func() {}
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(std.out, about)
		printFlags(std.out, flags)
		return exitOK, false
	case err != nil:
		err = flagError(err)
	case flags.NArg() > 0:
		advice := "It takes flags only."
		if text, ok := leading[flags.Name()]; ok {
			advice = text
		}
		if arg := flags.Arg(0); arg == "true" || arg == "false" {
			advice = fmt.Sprintf("Write %s after an equals sign, as in --recovery=%[1]s.", arg)
		}
		err = &problem{cause: fmt.Sprintf("unexpected argument %q", flags.Arg(0)), advice: advice}
	}
	if err != nil {
		return wrongUsage(flags, err, std), false
	}
	return exitOK, true
}

// leading says of a command that takes more than flags what comes before them, or
// which flag to use.
var leading = map[string]string{
	"account":    "The mechanism comes first, then flags, and nothing else.",
	"calibrate":  "The mechanism comes first, then flags, and nothing else.",
	"experiment": "The name of one experiment comes first, then flags, and nothing else.",
	"attack":     "It takes flags only. Choose attacks with --run.",
}

// printFlags prints the flags. A usage may end with a tab and what the default is in
// other cases.
func printFlags(w io.Writer, flags *flag.FlagSet) {
	fmt.Fprint(w, "\nFlags:\n")
	flags.VisitAll(func(f *flag.Flag) {
		value, text := flag.UnquoteUsage(f)
		line := "  --" + f.Name
		if value != "" {
			line += " " + value
			text = strings.TrimPrefix(text, value+" ")
		}
		text, other, _ := strings.Cut(text, "\t")
		if f.DefValue != "false" && f.DefValue != "" && !strings.Contains(text, "required") {
			text += fmt.Sprintf(" (default %s%s)", f.DefValue, other)
		}
		fmt.Fprintln(w, line)
		for _, part := range wrap(text, width-8) {
			fmt.Fprintf(w, "        %s\n", part)
		}
	})
}

// wrongUsage reports that a command was called wrongly.
func wrongUsage(flags *flag.FlagSet, err error, std streams) int {
	complain(std.err, "hushsum "+flags.Name(), err)
	fmt.Fprintf(std.err, "Run 'hushsum %s -h' for help.\n", flags.Name())
	return exitUsage
}

// The errors of package flag write flags with one dash, and say "parse error".
var (
	invalidValue   = regexp.MustCompile(`(?s)^invalid value (".*") for flag -(\S+): (.*)$`)
	invalidBoolean = regexp.MustCompile(`(?s)^invalid boolean value (".*") for -(\S+): .*$`)
	needsArgument  = regexp.MustCompile(`^flag needs an argument: -(.*)$`)
	notDefined     = regexp.MustCompile(`^flag provided but not defined: -(.*)$`)
)

// flagError says what package flag found in the words of help.
func flagError(err error) error {
	text := err.Error()
	if m := invalidValue.FindStringSubmatch(text); m != nil {
		text = fmt.Sprintf("--%s %s: %s", m[2], m[1], m[3])
	} else if m := invalidBoolean.FindStringSubmatch(text); m != nil {
		text = fmt.Sprintf("--%s %s: want true or false", m[2], m[1])
	} else if m := needsArgument.FindStringSubmatch(text); m != nil {
		text = fmt.Sprintf("--%s needs a value", m[1])
	} else if m := notDefined.FindStringSubmatch(text); m != nil {
		text = fmt.Sprintf("there is no flag --%s", m[1])
	}
	return &problem{cause: text, err: err}
}

// intValue, floatValue and seedValue are flags whose errors say what is wanted.
type (
	intValue   int
	floatValue float64
	seedValue  uint64
)

func (v *intValue) String() string { return strconv.Itoa(int(*v)) }

func (v *intValue) Set(text string) error {
	x, err := strconv.ParseInt(text, 0, strconv.IntSize)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return errors.New("want fewer digits")
	case err != nil:
		return errors.New("want a whole number")
	}
	*v = intValue(x)
	return nil
}

func (v *floatValue) String() string { return strconv.FormatFloat(float64(*v), 'g', -1, 64) }

func (v *floatValue) Set(text string) error {
	x, err := strconv.ParseFloat(text, 64)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return errors.New("the number is too large")
	case err != nil:
		return errors.New("want a number")
	}
	*v = floatValue(x)
	return nil
}

func (v *seedValue) String() string { return strconv.FormatUint(uint64(*v), 10) }

func (v *seedValue) Set(text string) error {
	x, err := strconv.ParseUint(text, 0, 64)
	if err != nil {
		return errors.New("want a whole number from 0 to 2^64 - 1")
	}
	*v = seedValue(x)
	return nil
}

// choice is a flag with a few values, each of which goes by a name.
type choice[T comparable] struct {
	value *T
	names map[T]string
	want  string // all names, for people
}

// oneOf is the flag that sets *value.
func oneOf[T comparable](value *T, names map[T]string, want string) flag.Value {
	return choice[T]{value, names, want}
}

func (c choice[T]) String() string { return c.names[*c.value] }

func (c choice[T]) Set(text string) error {
	for value, name := range c.names {
		if text == name {
			*c.value = value
			return nil
		}
	}
	return errors.New("want " + c.want)
}

// adversaries are the values of simulate's --adversary.
var adversaries = map[protocol.Adversary]string{
	protocol.CheatingServer: "cheating",
	protocol.CuriousServer:  "curious",
}

// noNoise is the value of --noise without noise.
const noNoise noise.Family = 0

// laws are the values of --noise.
var laws = map[noise.Family]string{
	noNoise:                      "none",
	noise.FamilyDiscreteLaplace:  "discrete-laplace",
	noise.FamilyDiscreteGaussian: "discrete-gaussian",
	noise.FamilySkellam:          "skellam",
}

// views are the values of --adversary of account and calibrate.
var views = map[accounting.View]string{
	accounting.PublicView: accounting.PublicView.String(),
	accounting.ServerView: accounting.ServerView.String(),
}
