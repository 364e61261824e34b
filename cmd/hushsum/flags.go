package main

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/protocol"
)

// parseFlags parses a command's arguments. If the command is not to run, because
// it was asked for help or called wrongly, ok is false and code the exit code.
func parseFlags(flags *flag.FlagSet, help *manual, args []string, std streams) (code int, ok bool) {
	_, code, ok = parseOperands(flags, help, 0, args, std)
	return code, ok
}

// parseOperands is parseFlags for a command that takes arguments too, up to so many, before
// its flags, between or after them.
func parseOperands(
	flags *flag.FlagSet, help *manual, most int, args []string, std streams,
) (operands []string, code int, ok bool) {
	if std.described != nil {
		std.described(flags, help)
		return nil, exitOK, false
	}
	for {
		rest, err := setFlags(flags, args)
		var asked *helpAsked
		switch {
		case errors.As(err, &asked):
			if err = help.print(std.out, flags, asked.topic); err == nil {
				return nil, exitOK, false
			}
		case err == nil && len(rest) == 0:
			return operands, exitOK, true
		case err == nil && len(operands) == most:
			err = unexpected(flags.Name(), rest[0])
		}
		if err != nil {
			return nil, wrongUsage(flags, err, std), false
		}
		operands, args = append(operands, rest[0]), rest[1:]
	}
}

// given returns the flags that were given.
func given(flags *flag.FlagSet) map[string]bool {
	set := make(map[string]bool)
	flags.Visit(func(f *flag.Flag) { set[f.Name] = true })
	return set
}

// helpAsked says that help was asked for, or one part of it.
type helpAsked struct{ topic string }

func (*helpAsked) Error() string { return "help was asked for" }

// asksHelp reports whether an argument asks for help.
func asksHelp(arg string) bool {
	name, _, _ := strings.Cut(arg, "=")
	return name == "-h" || name == "-help" || name == "--help"
}

// setFlags sets flags as package flag does, and returns the arguments after them. It
// says what is wrong in the words of help, where package flag has texts of its own.
func setFlags(flags *flag.FlagSet, args []string) (rest []string, err error) {
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		arg := args[0]
		args = args[1:]
		if arg == "--" {
			break
		}
		name, value, given := strings.Cut(strings.TrimPrefix(arg[1:], "-"), "=")
		if asksHelp(arg) {
			return nil, &helpAsked{topic: value}
		}
		f := flags.Lookup(name)
		if f == nil {
			return nil, noFlag(flags, name)
		}
		boolean := isBoolean(f)
		switch {
		case boolean && !given:
			value = "true"
		case !given && len(args) == 0:
			return nil, &problem{cause: fmt.Sprintf("--%s needs a value", name)}
		case !given:
			value, args = args[0], args[1:]
		}
		if err := flags.Set(name, value); err != nil {
			if boolean {
				err = errors.New("want true or false")
			}
			p := &problem{cause: fmt.Sprintf("--%s %q: %v", name, value, err), err: err}
			if c, ok := f.Value.(interface{ known() []string }); ok {
				p.advice = didYouMean(value, c.known(), "%s", "")
			}
			return nil, p
		}
	}
	return args, nil
}

func isBoolean(f *flag.Flag) bool {
	b, ok := f.Value.(interface{ IsBoolFlag() bool })
	return ok && b.IsBoolFlag()
}

// noFlag says that there is no such flag.
func noFlag(flags *flag.FlagSet, name string) error {
	var known []string
	flags.VisitAll(func(f *flag.Flag) { known = append(known, f.Name) })
	return &problem{
		cause:  "there is no flag --" + name,
		advice: didYouMean(name, known, "--%s", ""),
	}
}

// unexpected says that an argument after the flags has no meaning.
func unexpected(command, arg string) error {
	advice := "It takes flags only."
	if text, ok := leading[command]; ok {
		advice = text
	}
	if arg == "true" || arg == "false" {
		advice = fmt.Sprintf("Write %s after an equals sign, as in --recovery=%[1]s.", arg)
	}
	return &problem{cause: fmt.Sprintf("unexpected argument %q", arg), advice: advice}
}

// leading says of a command that takes more than flags what comes before them, or
// which flag to use.
var leading = map[string]string{
	"account":     "The mechanism comes first, then flags, and nothing else.",
	"calibrate":   "The mechanism comes first, then flags, and nothing else.",
	"experiment":  "The name of one experiment comes first, then flags, and nothing else.",
	"simulate":    "It takes one FILE, and flags.",
	"attack":      "It takes flags only. Choose attacks with --run.",
	"completion":  "It takes the name of one shell.",
	"man":         "It takes nothing.",
	"job check":   "It takes one FILE, and flags.",
	"job fields":  "It takes one PATTERN, and flags.",
	"job convert": "It takes one FILE, and flags.",
}

// wrongUsage reports that a command was called wrongly.
func wrongUsage(flags *flag.FlagSet, err error, std streams) int {
	complain(std.err, "hushsum "+flags.Name(), err)
	fmt.Fprintf(std.err, "Run 'hushsum %s -h' for help.\n", flags.Name())
	return exitUsage
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

// known returns all names.
func (c choice[T]) known() []string { return slices.Sorted(maps.Values(c.names)) }

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

// views are the values of --adversary of account and calibrate.
var views = map[accounting.View]string{
	accounting.PublicView: accounting.PublicView.String(),
	accounting.ServerView: accounting.ServerView.String(),
}
