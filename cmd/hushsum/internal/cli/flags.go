package cli

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// ParseFlags parses a command's arguments. If the command is not to run, because it was asked for
// help or called incorrectly, ok is false and code the exit code.
func ParseFlags(flags *flag.FlagSet, help *Manual, args []string, std Streams) (code int, ok bool) {
	_, code, ok = ParseOperands(flags, help, 0, args, std)
	return code, ok
}

// ParseOperands is ParseFlags for a command that also takes arguments, at most a given number,
// before its flags, between or after them.
func ParseOperands(
	flags *flag.FlagSet, help *Manual, most int, args []string, std Streams,
) (operands []string, code int, ok bool) {
	if std.Described != nil {
		std.Described(flags, help)
		return nil, ExitOK, false
	}
	for {
		rest, err := setFlags(flags, args)
		var asked *helpAsked
		switch {
		case errors.As(err, &asked):
			if err = help.print(std.Out, flags, asked.topic); err == nil {
				return nil, ExitOK, false
			}
		case err == nil && len(rest) == 0:
			return operands, ExitOK, true
		case err == nil && len(operands) == most:
			err = Unexpected(help, rest[0])
		}
		if err != nil {
			return nil, WrongUsage(flags, err, std), false
		}
		operands, args = append(operands, rest[0]), rest[1:]
	}
}

// Given returns the flags that were given.
func Given(flags *flag.FlagSet) map[string]bool {
	set := make(map[string]bool)
	flags.Visit(func(f *flag.Flag) { set[f.Name] = true })
	return set
}

// helpAsked reports that help was requested, or one part of it.
type helpAsked struct{ topic string }

func (*helpAsked) Error() string { return "help was requested" }

// AsksHelp reports whether an argument asks for help.
func AsksHelp(arg string) bool {
	name, _, _ := strings.Cut(arg, "=")
	return name == "-h" || name == "-help" || name == "--help"
}

// setFlags sets flags as package flag does, and returns the arguments after them. Its errors use
// the words of help, where package flag has texts of its own.
func setFlags(flags *flag.FlagSet, args []string) (rest []string, err error) {
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		arg := args[0]
		args = args[1:]
		if arg == "--" {
			break
		}
		name, value, given := strings.Cut(strings.TrimPrefix(arg[1:], "-"), "=")
		if AsksHelp(arg) {
			return nil, &helpAsked{topic: value}
		}
		f := flags.Lookup(name)
		if f == nil {
			return nil, noFlag(flags, name)
		}
		boolean := IsBoolean(f)
		switch {
		case boolean && !given:
			value = "true"
		case !given && len(args) == 0:
			return nil, &Problem{Cause: fmt.Sprintf("--%s needs a value", name)}
		case !given:
			value, args = args[0], args[1:]
		}
		if err := flags.Set(name, value); err != nil {
			if boolean {
				err = errors.New("want true or false")
			}
			p := &Problem{Cause: fmt.Sprintf("--%s %q: %v", name, value, err), Err: err}
			if c, ok := f.Value.(interface{ Known() []string }); ok {
				p.Advice = DidYouMean(value, c.Known(), "%s", "")
			}
			return nil, p
		}
	}
	return args, nil
}

// IsBoolean reports whether a flag takes no value.
func IsBoolean(f *flag.Flag) bool {
	b, ok := f.Value.(interface{ IsBoolFlag() bool })
	return ok && b.IsBoolFlag()
}

// noFlag reports that a flag does not exist.
func noFlag(flags *flag.FlagSet, name string) error {
	var known []string
	flags.VisitAll(func(f *flag.Flag) { known = append(known, f.Name) })
	return &Problem{
		Cause:  "there is no flag --" + name,
		Advice: DidYouMean(name, known, "--%s", ""),
	}
}

// Unexpected reports that an argument after the flags has no meaning.
func Unexpected(help *Manual, arg string) error {
	advice := "It takes flags only."
	if help.Takes != "" {
		advice = help.Takes
	}
	if arg == "true" || arg == "false" {
		advice = fmt.Sprintf("Write %s after an equals sign, as in --recovery=%[1]s.", arg)
	}
	return &Problem{Cause: fmt.Sprintf("unexpected argument %q", arg), Advice: advice}
}

// WrongUsage reports that a command was called incorrectly.
func WrongUsage(flags *flag.FlagSet, err error, std Streams) int {
	Complain(std.Err, "hushsum "+flags.Name(), err)
	fmt.Fprintf(std.Err, "Run 'hushsum %s -h' for help.\n", flags.Name())
	return ExitUsage
}

// IntValue, FloatValue and SeedValue are flags whose errors say what is expected.
type (
	IntValue   int
	FloatValue float64
	SeedValue  uint64
)

func (v *IntValue) String() string { return strconv.Itoa(int(*v)) }

func (v *IntValue) Set(text string) error {
	x, err := strconv.ParseInt(text, 0, strconv.IntSize)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return errors.New("use fewer digits")
	case err != nil:
		return errors.New("want a whole number")
	}
	*v = IntValue(x)
	return nil
}

func (v *FloatValue) String() string { return strconv.FormatFloat(float64(*v), 'g', -1, 64) }

func (v *FloatValue) Set(text string) error {
	x, err := strconv.ParseFloat(text, 64)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return errors.New("the number is too large")
	case err != nil:
		return errors.New("want a number")
	}
	*v = FloatValue(x)
	return nil
}

func (v *SeedValue) String() string { return strconv.FormatUint(uint64(*v), 10) }

func (v *SeedValue) Set(text string) error {
	x, err := strconv.ParseUint(text, 0, 64)
	if err != nil {
		return errors.New("want a whole number from 0 to 2^64 - 1")
	}
	*v = SeedValue(x)
	return nil
}

// choice is a flag with a few values, each of which has a name.
type choice[T comparable] struct {
	value *T
	names map[T]string
	want  string // all names, for people
}

// OneOf returns a flag that sets *value.
func OneOf[T comparable](value *T, names map[T]string, want string) flag.Value {
	return choice[T]{value, names, want}
}

func (c choice[T]) String() string { return c.names[*c.value] }

// Known returns all names.
func (c choice[T]) Known() []string { return slices.Sorted(maps.Values(c.names)) }

func (c choice[T]) Set(text string) error {
	for value, name := range c.names {
		if text == name {
			*c.value = value
			return nil
		}
	}
	return errors.New("want " + c.want)
}
