package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/hushsum/hushsum/internal/script"
)

// exitCodes is the part of help about them.
const exitCodes = "Exit codes: 0 success, 1 failure, 2 incorrect usage, 130 interrupted.\n"

// environment lists the variables that commands read.
var environment = []script.Variable{
	{Name: "HUSHSUM_TOKEN", About: "An operator's token, for commands that ask a server."},
	{Name: "HUSHSUM_ADMIN", About: "The address of the server's page, where --admin is left out."},
	{Name: "HTTPS_PROXY", About: "The proxy through which join and member reach the server."},
	{
		Name:  "OTEL_EXPORTER_OTLP_ENDPOINT",
		About: "The OpenTelemetry collector that serve sends spans to, over HTTP.",
	},
	{
		Name: "NO_COLOR",
		About: "Changes nothing: a terminal gets the same output as a file, without colours and " +
			"without overwritten lines.",
	},
}

func completion(ctx context.Context, args []string, std streams) error {
	f := flags("completion", "completion bash|zsh|fish", `
It prints a script that makes a shell complete this command: the names of commands and flags. In
~/.bashrc and ~/.zshrc: source <(hushsumd completion bash), and zsh.`, std)
	if err := parse(f, args, 1); err != nil {
		return err
	}
	if !slices.Contains(script.Shells, f.Arg(0)) {
		return misuse("name one of %s", strings.Join(script.Shells, ", "))
	}
	fmt.Fprint(std.out, described(ctx).Completion(f.Arg(0)))
	return nil
}

func manPage(ctx context.Context, args []string, std streams) error {
	f := flags("man", "man", `
It prints a manual page of all commands and their flags, to read by: hushsumd man | man -l -`, std)
	if err := parse(f, args, 0); err != nil {
		return err
	}
	fmt.Fprint(std.out, described(ctx).Man())
	return nil
}

// described returns a description of the program, from the flags and help of its commands.
func described(ctx context.Context) *script.Program {
	p := &script.Program{
		Name:        "hushsumd",
		About:       "private sums between machines: the server, and the side of its parties",
		Version:     strings.Join(strings.Fields(version())[:2], " "),
		Codes:       exitCodes,
		Environment: environment,
	}
	for _, c := range commands() {
		std := streams{out: io.Discard, err: io.Discard, described: func(d script.Command) {
			d.Name, d.About = c.name, c.about
			p.Commands = append(p.Commands, d)
		}}
		_ = c.run(ctx, []string{"-h"}, std) // flag.ErrHelp
	}
	return p
}

// describe returns the help of a command: how it is called, what it does in lines that fit a
// terminal, and its flags.
func describe(f *flag.FlagSet, synopsis, about string) script.Command {
	call := script.Wrap("Usage: hushsumd "+synopsis, script.Width-4)
	c := script.Command{Help: strings.Join(call, "\n    ") + "\n"}
	for part := range strings.SplitSeq(strings.TrimSpace(about), "\n\n") {
		words := strings.Join(strings.Fields(part), " ")
		c.Help += "\n" + strings.Join(script.Wrap(words, script.Width), "\n") + "\n"
	}
	if m := firstWords.FindStringSubmatch(synopsis); m != nil {
		c.Words = strings.Split(m[1], "|")
	}
	c.Files = takesFile.MatchString(synopsis)
	f.VisitAll(func(one *flag.Flag) { c.Flags = append(c.Flags, describeFlag(one)) })
	return c
}

// firstWords matches a synopsis whose first argument is one of some words, takesFile one with an
// argument that is a file.
var (
	firstWords = regexp.MustCompile(`^[a-z]+ ([a-z]+(?:\|[a-z]+)+)( |$)`)
	takesFile  = regexp.MustCompile(`^[a-z |]+ \[?(FILE|NAME \[FILE|IDENTITY)`)
)

// describeFlag returns a flag as help shows it, its value in capitals.
func describeFlag(f *flag.Flag) script.Flag {
	value, text := flag.UnquoteUsage(f)
	switch value {
	case "int", "uint":
		value = "N"
	case "float":
		value = "X"
	case "string":
		value = "TEXT"
	case "duration":
		value = "TIME"
	}
	if f.DefValue != "" && f.DefValue != "false" && !strings.Contains(text, "default") {
		text += " (default " + f.DefValue + ")"
	}
	if !strings.Contains(value, "://") {
		value = strings.ToUpper(value)
	}
	return script.Flag{Name: f.Name, Arg: value, Usage: text}
}

// wrap prints text on lines that fit a terminal.
func wrap(w io.Writer, format string, a ...any) error {
	_, err := fmt.Fprintln(w, strings.Join(script.Wrap(fmt.Sprintf(format, a...), script.Width), "\n"))
	return err
}
