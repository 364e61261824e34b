// Package cli holds what all commands have in common: flags, help, and messages about mistakes.
package cli

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/hushsum/hushsum/internal/script"
	"golang.org/x/term"
)

// Exit codes.
const (
	ExitOK          = 0
	ExitFailure     = 1
	ExitUsage       = 2
	ExitInterrupted = 130 // 128 + SIGINT, as shells have it
	ExitTerminated  = 143 // 128 + SIGTERM
)

// ExitCodes is the part of every help that lists the exit codes.
const ExitCodes = `Exit codes: 0 success, 1 failure, 2 incorrect usage, 130 interrupted,
143 ended by SIGTERM.
`

// Environment lists the variables that commands read.
var Environment = []script.Variable{
	{
		Name: "NO_COLOR",
		About: "If it is not empty, or if TERM is dumb, a terminal gets the same output as a file: no " +
			"progress line is overwritten. There are no colours in either case.",
	},
	{Name: "HUSHSUM_DATA", About: "Folder of the data sets, instead of ../shared/data."},
	{
		Name:  "HUSHSUM_CPU",
		About: "avx2, aesni or portable: use fewer of the processor's instructions, for the same result.",
	},
}

// Command is one subcommand. Each has a package of its own that makes it, and main lists it.
type Command struct {
	Name  string
	About string // one line for the list of commands
	Run   func(ctx context.Context, args []string, std Streams) int
	Below []Command       // commands that it calls by its first argument
	Words func() []string // that its first argument can be; nil: any
}

// Program is the command hushsum.
type Program struct {
	Commands []Command        // in the order of help
	Now      func() time.Time // clock by which long runs report that they go on; nil: the system's
}

// Streams are the streams that a command writes to. Live reports whether Out is a terminal on which
// a line may be overwritten.
type Streams struct {
	Out, Err io.Writer
	Live     bool
	Now      func() time.Time // clock by which long runs report that they go on; nil: the system's
	// Described, if it is not nil, is given the flags and the help of a command that is asked for
	// help, which then prints nothing: completion and the manual page are made from them.
	Described func(*flag.FlagSet, *Manual)
}

// Run runs the command that args name, and returns the exit code.
func (p *Program) Run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	out := &StickyWriter{W: stdout}
	std := Streams{Out: out, Err: stderr, Live: live(stdout), Now: p.Now}
	code := p.dispatch(ctx, args, std)
	if code == ExitInterrupted {
		code = InterruptedBy(ctx)
	}
	if out.Err != nil {
		fmt.Fprintf(stderr, "hushsum: cannot write the output: %v\n", out.Err)
		if code == ExitOK {
			code = ExitFailure
		}
	}
	return code
}

func (p *Program) dispatch(ctx context.Context, args []string, std Streams) int {
	if len(args) == 0 {
		p.usage(std.Err)
		return ExitUsage
	}
	name, args := args[0], args[1:]
	switch name {
	case "version", "-version", "--version":
		fmt.Fprintln(std.Out, Version())
		return ExitOK
	case "help", "-h", "-help", "--help":
		if len(args) == 0 || args[0] == "help" {
			p.usage(std.Out)
			return ExitOK
		}
		// The help of a command prints the same as its -h.
		name, args = args[0], []string{strings.Join(append([]string{"-h"}, args[1:]...), "=")}
	}
	var names []string
	for _, c := range p.Commands {
		if c.Name == name {
			return c.Run(ctx, args, std)
		}
		names = append(names, c.Name)
	}
	Complain(std.Err, "hushsum", &Problem{
		Cause:  fmt.Sprintf("there is no command %q", name),
		Advice: DidYouMean(name, names, "hushsum %s", ""),
	})
	fmt.Fprintln(std.Err, "Run 'hushsum help' for a list of commands.")
	return ExitUsage
}

func (p *Program) usage(w io.Writer) {
	fmt.Fprint(w, "hushsum lets parties learn the sum of their vectors and nothing else.\n\n"+
		"Usage: hushsum COMMAND [flags]\n\nCommands:\n")
	for _, c := range p.Commands {
		fmt.Fprintf(w, "  %-10s %s\n", c.Name, c.About)
	}
	fmt.Fprint(w, "\nRun 'hushsum help COMMAND' for details of a command, and\n"+
		"'hushsum --version' for the version.\n\n"+ExitCodes+"\n")
	script.WriteVariables(w, Environment)
}

// Interruptible works until it is done or ctx ends, whichever comes first; work that ignores ctx
// goes on until the program ends.
func Interruptible(ctx context.Context, work func() error) error {
	done := make(chan error, 1)
	go func() { done <- work() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Interrupted reports that a command was interrupted before it had anything to show.
func Interrupted(command string, std Streams) int {
	Complain(std.Err, "hushsum "+command, &Problem{Cause: "interrupted"})
	return ExitInterrupted
}

// StickyWriter remembers its first error and writes nothing after it.
type StickyWriter struct {
	W   io.Writer
	Err error
}

func (s *StickyWriter) Write(b []byte) (int, error) {
	if s.Err != nil {
		return 0, s.Err
	}
	n, err := s.W.Write(b)
	s.Err = err
	return n, err
}

// live reports whether lines may be overwritten: on a terminal that can do more than print, unless
// its user wants plain text (no-color.org).
func live(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" &&
		term.IsTerminal(int(f.Fd()))
}
