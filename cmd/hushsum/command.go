package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// Exit codes.
const (
	exitOK          = 0
	exitFailure     = 1
	exitUsage       = 2
	exitInterrupted = 130 // 128 + SIGINT, as shells have it
)

// exitCodes is the part of every help about them.
const exitCodes = `Exit codes: 0 success, 1 failure, 2 called wrongly, 130 interrupted.
`

// command is one subcommand. Each has a file of its own and a line in commands.
type command struct {
	name  string
	about string // one line for the list of commands
	run   func(ctx context.Context, args []string, std streams) int
}

// commands returns all subcommands in the order of help.
func commands() []command {
	return []command{
		{"simulate", "train a model over a private sum, beside training in the clear", simulate},
		{"account", "say what rounds of noisy sums spend of privacy", account},
		{"calibrate", "find the noise, rounds or sampling for a privacy budget", calibrate},
		{"experiment", "rerun a table of the papers, with seeds, as text, CSV and figures",
			experiment},
		{"attack", "attack private sums, with and without each defence", attack},
		{"job", "check a declared job, and list what there is to declare", declaration},
		{"completion", "print what completes this command in bash, zsh or fish", completion},
		{"man", "print a manual page", manPage},
		{"sidecar", "serve a program in another language, such as Python", runSidecar},
	}
}

// streams are where a command writes. live is whether out is a terminal, on
// which a line can be written over.
type streams struct {
	out, err io.Writer
	live     bool
	// described, if it is not nil, is told the flags and the help of a command that is asked for
	// help, which then prints nothing: completion and the manual page are made of them.
	described func(*flag.FlagSet, *manual)
}

// run is the whole program: it returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	out := &stickyWriter{w: stdout}
	code := dispatch(ctx, args, streams{out: out, err: stderr, live: isTerminal(stdout)})
	if out.err != nil {
		fmt.Fprintf(stderr, "hushsum: cannot write the output: %v\n", out.err)
		if code == exitOK {
			code = exitFailure
		}
	}
	return code
}

func dispatch(ctx context.Context, args []string, std streams) int {
	if len(args) == 0 {
		usage(std.err)
		return exitUsage
	}
	name, args := args[0], args[1:]
	switch name {
	case "version", "-version", "--version":
		fmt.Fprintln(std.out, version())
		return exitOK
	case "help", "-h", "-help", "--help":
		if len(args) == 0 || args[0] == "help" {
			usage(std.out)
			return exitOK
		}
		// The help of a command is what its -h prints.
		name, args = args[0], []string{strings.Join(append([]string{"-h"}, args[1:]...), "=")}
	}
	var names []string
	for _, c := range commands() {
		if c.name == name {
			return c.run(ctx, args, std)
		}
		names = append(names, c.name)
	}
	complain(std.err, "hushsum", &problem{
		cause:  fmt.Sprintf("there is no command %q", name),
		advice: didYouMean(name, names, "hushsum %s", ""),
	})
	fmt.Fprintln(std.err, "Run 'hushsum help' for the commands that there are.")
	return exitUsage
}

func usage(w io.Writer) {
	fmt.Fprint(w, "hushsum lets parties learn the sum of their vectors and nothing else.\n\n"+
		"Usage: hushsum COMMAND [flags]\n\nCommands:\n")
	for _, c := range commands() {
		fmt.Fprintf(w, "  %-10s %s\n", c.name, c.about)
	}
	fmt.Fprint(w, "\nRun 'hushsum help COMMAND' for what a command does and takes, and\n"+
		"'hushsum --version' for the version.\n\n"+exitCodes)
}

// interruptible works until it is done or ctx ends, whichever comes first; work that
// does not look at ctx goes on until the program ends.
func interruptible(ctx context.Context, work func() error) error {
	done := make(chan error, 1)
	go func() { done <- work() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// interrupted says that a command was, before it had anything to show.
func interrupted(command string, std streams) int {
	complain(std.err, "hushsum "+command, &problem{cause: "interrupted"})
	return exitInterrupted
}

// stickyWriter remembers the first error and writes no more after it.
type stickyWriter struct {
	w   io.Writer
	err error
}

func (s *stickyWriter) Write(b []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	n, err := s.w.Write(b)
	s.err = err
	return n, err
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
