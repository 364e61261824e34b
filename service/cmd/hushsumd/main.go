// Hushsumd runs private sums between machines: the operator's server, the parties'
// side, and all of it on one machine to try.
//
//	hushsumd dev                 a server and ten parties on this machine, and the page
//	hushsumd serve               the server
//	hushsumd join                take part
//	hushsumd member              help as a member of a committee
//	hushsumd identity, roster    keys of parties, and lists of them
//	hushsumd federation          check, create, list, show, audit, pause, resume, end
//	hushsumd query               answers of a study, and more questions
//	hushsumd backup, restore     all federations to a file, and back
//	hushsumd record              check that it is whole, heal it, choose between two histories
//	hushsumd key                 the keys that seal the record
//	hushsumd node                the nodes of a server
//	hushsumd completion, man     what completes this command in a shell; a manual page
//	hushsumd version
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/hushsum/hushsum/internal/script"
	"github.com/hushsum/hushsum/internal/suggest"
	"github.com/hushsum/hushsum/job"
)

// Exit codes.
const (
	exitOK          = 0
	exitFailure     = 1
	exitUsage       = 2
	exitInterrupted = 130
)

// streams are where a command reads and writes.
type streams struct {
	in       *os.File
	out, err io.Writer
	// described, if it is not nil, is given the description of a command that is asked for help,
	// instead of printing it: completion and the manual page are made from it.
	described func(script.Command)
}

// command is one subcommand.
type command struct {
	name, about string
	run         func(ctx context.Context, args []string, std streams) error
}

func commands() []command {
	return []command{
		{"dev", "a server and parties on this machine, training, with the page", dev},
		{"serve", "run the server: one node, three, or on your own NATS", serve},
		{"join", "take part in a federation, with your own training command", join},
		{"member", "help in one-message sums, as a member of their committee", member},
		{"identity", "make or show a party's identity", identity},
		{"roster", "write a roster's line, or show a roster and its fingerprint", rosterCommand},
		{"federation", "declare, see, steer, end or continue a federation", federationCommand},
		{"query", "print the answers of a federation, or ask its roster more", queryCommand},
		{"backup", "write all federations of a running server to one sealed file", backup},
		{"restore", "restore a backup to a server without federations", restore},
		{"record", "check that the record is whole, or mend it", recordCommand},
		{"key", "list the keys that seal the record, and reseal it under the newest", keyCommand},
		{"node", "list the nodes of a server, add one, or remove one", nodeCommand},
		{"completion", "print a completion script for bash, zsh or fish", completion},
		{"man", "print a manual page", manPage},
		{"version", "print the version", printVersion},
	}
}

// usageError reports that a command was called incorrectly.
type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }

func misuse(format string, a ...any) error { return &usageError{fmt.Sprintf(format, a...)} }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(dispatch(ctx, os.Args[1:], streams{in: os.Stdin, out: os.Stdout, err: os.Stderr}))
}

func dispatch(ctx context.Context, args []string, std streams) int {
	if len(args) == 0 {
		usage(std.err)
		return exitUsage
	}
	name, rest := args[0], args[1:]
	switch name {
	case "help", "-h", "-help", "--help":
		if len(rest) == 0 {
			usage(std.out)
			return exitOK
		}
		name, rest = rest[0], []string{"-h"}
	case "-version", "--version":
		name = "version"
	case devPartyName:
		return exit(devProcess(ctx, rest, std, runDevParty), name, std)
	case devMemberName:
		return exit(devProcess(ctx, rest, std, runDevMember), name, std)
	}
	for _, c := range commands() {
		if c.name == name {
			return exit(c.run(ctx, rest, std), name, std)
		}
	}
	fmt.Fprintf(std.err, "hushsumd: there is no command %q. Run 'hushsumd help'.\n", name)
	return exitUsage
}

// exit prints what went wrong, and returns the exit code.
func exit(err error, name string, std streams) int {
	var wrong *usageError
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return exitOK
	case errors.As(err, &wrong):
		fmt.Fprintf(std.err, "hushsumd %s: %v\nRun 'hushsumd help %s'.\n", name, err, name)
		return exitUsage
	case errors.Is(err, context.Canceled):
		if name == "join" || name == "member" {
			fmt.Fprintf(std.err, "hushsumd %s: interrupted; the same command continues where it stopped\n",
				name)
		}
		return exitInterrupted
	}
	for line := range strings.Lines(err.Error()) { // a line for each of several mistakes
		fmt.Fprintf(std.err, "hushsumd %s: %s\n", name, strings.TrimSuffix(line, "\n"))
	}
	return exitFailure
}

func usage(w io.Writer) {
	fmt.Fprint(w, "hushsumd runs private sums between machines.\n\n"+
		"Usage: hushsumd COMMAND [flags]\n\nCommands:\n")
	for _, c := range commands() {
		fmt.Fprintf(w, "  %-11s %s\n", c.name, c.about)
	}
	fmt.Fprint(w, "\nRun 'hushsumd help COMMAND' for details of a command.\n"+
		"Start with 'hushsumd dev'.\n\n"+exitCodes+"\n")
	script.WriteVariables(w, environment)
}

// flags makes a command's flag set, whose help begins with the synopsis and what the command does.
func flags(name, synopsis, about string, std streams) *flag.FlagSet {
	f := flag.NewFlagSet(name, flag.ContinueOnError)
	f.SetOutput(std.err)
	f.Usage = func() {
		c := describe(f, synopsis, about)
		if std.described != nil {
			std.described(c)
			return
		}
		fmt.Fprint(std.out, c.Help)
		script.WriteFlags(std.out, c.Flags)
	}
	return f
}

// parse parses flags, followed by at most a given number of other arguments.
func parse(f *flag.FlagSet, args []string, most int) error {
	usage := f.Usage
	f.SetOutput(io.Discard)
	f.Usage = func() {} // package flag prints it for every mistake
	err := f.Parse(args)
	f.Usage = usage
	if errors.Is(err, flag.ErrHelp) {
		usage()
		return err
	}
	if err != nil {
		return misuse("%s", flagMistake(f, err))
	}
	if f.NArg() > most {
		return misuse("%q is one argument too many", f.Arg(most))
	}
	return nil
}

// flagMistake says what is wrong with a flag, and which one may be meant.
func flagMistake(f *flag.FlagSet, err error) string {
	name, unknown := strings.CutPrefix(err.Error(), "flag provided but not defined: -")
	if !unknown {
		return err.Error()
	}
	var known []string
	f.VisitAll(func(f *flag.Flag) { known = append(known, f.Name) })
	text := "there is no flag --" + name
	if near := suggest.Nearest(name, known); near != "" {
		text += "; did you mean --" + near + "?"
	}
	return text
}

// parseAmong parses flags that may stand before, between and after other words, at most a given
// number, and returns these words.
func parseAmong(f *flag.FlagSet, args []string, most int) (words []string, err error) {
	for {
		if err := parse(f, args, len(args)); err != nil {
			return nil, err
		}
		if f.NArg() == 0 {
			return words, nil
		}
		if words = append(words, f.Arg(0)); len(words) > most {
			return nil, misuse("%q is one argument too many", f.Arg(0))
		}
		args = f.Args()[1:]
	}
}

// inFile adds the name of a file to those mistakes of an error that name none themselves.
func inFile(file string, err error) error {
	for _, wrong := range job.Errors(err) {
		if wrong.File == "" {
			wrong.File = file
		}
	}
	return err
}

// logger returns a logger that writes JSON.
func logger(w io.Writer, level string) (*slog.Logger, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, misuse("--log %s: use debug, info, warn or error", level)
	}
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: l})), nil
}

func printVersion(_ context.Context, args []string, std streams) error {
	if err := parse(flags("version", "version", "It prints the version.", std), args, 0); err != nil {
		return err
	}
	fmt.Fprintln(std.out, version())
	return nil
}

// version returns what was built, as the toolchain recorded it.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "hushsumd (unknown version)"
	}
	text := "hushsumd " + info.Main.Version + " " + info.GoVersion
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			text += " " + s.Value
		}
	}
	return text
}
