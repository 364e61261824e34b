// Package completion has the commands completion and man, which describe all commands by their own
// flags and help.
package completion

import (
	"context"
	"flag"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/hushsum/hushsum/cmd/hushsum/internal/cli"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/jobs"
	"github.com/hushsum/hushsum/internal/script"
	"github.com/hushsum/hushsum/job"
)

const completionAbout = `Usage: hushsum completion bash|zsh|fish

Prints a script that makes a shell complete this command: the names of commands
and flags, the words that flags take, the fields of a job after --set, and after
a field and an equals sign the words that it can take.
`

func completionManual() *cli.Manual {
	return &cli.Manual{
		Takes: "It takes the name of one shell.",
		About: completionAbout,
		Examples: []string{
			"source <(hushsum completion bash)                  # in ~/.bashrc",
			"source <(hushsum completion zsh)                   # in ~/.zshrc",
			"hushsum completion fish > ~/.config/fish/completions/hushsum.fish",
		},
	}
}

// Command returns the command completion, for all commands.
func Command(all func() []cli.Command) cli.Command {
	return cli.Command{Name: "completion",
		About: "print a completion script for bash, zsh or fish",
		Run: func(ctx context.Context, args []string, std cli.Streams) int {
			return completion(ctx, all(), args, std)
		},
		Words: func() []string { return script.Shells },
	}
}

func completion(ctx context.Context, all []cli.Command, args []string, std cli.Streams) int {
	flags := flag.NewFlagSet("completion", flag.ContinueOnError)
	operands, code, ok := cli.ParseOperands(flags, completionManual(), 1, args, std)
	if !ok {
		return code
	}
	shell := strings.Join(operands, "")
	if !slices.Contains(script.Shells, shell) {
		p := &cli.Problem{
			Cause:  "for which shell?",
			Advice: "Use one of " + strings.Join(script.Shells, ", ") + ".",
		}
		if shell != "" {
			p.Cause = fmt.Sprintf("completion for %q is not supported", shell)
			p.Advice = cli.DidYouMean(shell, script.Shells, "%s", p.Advice)
		}
		return cli.WrongUsage(flags, p, std)
	}
	fmt.Fprint(std.Out, description(ctx, all).Completion(shell))
	return cli.ExitOK
}

const manAbout = `Usage: hushsum man

Prints a manual page of all commands, their flags and the fields of a job.
`

// ManCommand returns the command man, for all commands.
func ManCommand(all func() []cli.Command) cli.Command {
	return cli.Command{Name: "man", About: "print a manual page",
		Run: func(ctx context.Context, args []string, std cli.Streams) int {
			return manPage(ctx, all(), args, std)
		},
	}
}

func manPage(ctx context.Context, all []cli.Command, args []string, std cli.Streams) int {
	help := &cli.Manual{
		Takes:    "It takes no arguments.",
		About:    manAbout,
		Examples: []string{"hushsum man | man -l -", "hushsum man > hushsum.1"},
	}
	flags := flag.NewFlagSet("man", flag.ContinueOnError)
	if code, ok := cli.ParseFlags(flags, help, args, std); !ok {
		return code
	}
	fmt.Fprint(std.Out, description(ctx, all).Man())
	return cli.ExitOK
}

// description returns a description of the command, from its commands' own flags and helps and from
// the table of fields.
func description(ctx context.Context, all []cli.Command) *script.Program {
	version, _, _ := strings.Cut(cli.Version(), ",")
	p := &script.Program{
		Name:    "hushsum",
		About:   "private sums: parties learn the sum of their vectors and nothing else",
		Version: version,
		Groups:  map[string]string{},
		Codes:   cli.ExitCodes,

		Environment: cli.Environment,
	}
	for _, c := range all {
		if c.Below == nil {
			p.Commands = append(p.Commands, subcommand(ctx, c))
			continue
		}
		p.Groups[c.Name] = c.About
		for _, below := range c.Below {
			below.Name = c.Name + " " + below.Name
			p.Commands = append(p.Commands, subcommand(ctx, below))
		}
	}
	for f := range job.Fields() {
		p.Settings = append(p.Settings, script.Setting{
			Path:  strings.ReplaceAll(f.Path, "[]", ".0"),
			About: f.Sentence + " Values: " + jobs.Values(f) + ".",
			Words: f.Words,
		})
	}
	return p
}

// subcommand asks a command for its flags and help.
func subcommand(ctx context.Context, c cli.Command) script.Command {
	out := script.Command{Name: c.Name, About: c.About}
	if c.Words != nil {
		out.Words = c.Words()
	}
	described := func(f *flag.FlagSet, m *cli.Manual) { add(&out, f, m) }
	std := cli.Streams{Out: io.Discard, Err: io.Discard, Described: described}
	c.Run(ctx, []string{"-h"}, std)
	return out
}

// add adds flags and help to the description of a command.
func add(out *script.Command, flags *flag.FlagSet, help *cli.Manual) {
	if out.Help != "" {
		out.Help += "\n"
	}
	out.Help += help.About
	out.Files = out.Files || takesFile.MatchString(help.About)
	out.Examples = append(out.Examples, help.Examples...)
	for _, t := range help.Topics {
		out.Help += "\n" + t.Text
		out.Parts = append(out.Parts, t.Name)
	}
	if help.Codes != "" {
		out.Help += "\n" + help.Codes
	}
	flags.VisitAll(func(f *flag.Flag) {
		known := slices.ContainsFunc(out.Flags, func(g script.Flag) bool { return g.Name == f.Name })
		value, text := cli.FlagText(f)
		if cli.IsBoolean(f) {
			value = ""
		}
		if !known {
			out.Flags = append(out.Flags, script.Flag{
				Name: f.Name, Arg: value, Usage: text, Words: flagWords(f, value),
			})
		}
	})
}

// takesFile matches the help of a command that takes a file.
var takesFile = regexp.MustCompile(`^Usage: [a-z ]+ \[?FILE\b`)

// lowerWord matches a value that help shows literally, rather than by its kind, such as PATH.
var lowerWord = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)

// flagWords returns the words that a flag's value can be: from the flag itself, from the name that
// help gives the value, or from the field of a job that it sets.
func flagWords(f *flag.Flag, value string) (words []string) {
	if c, ok := f.Value.(interface{ Known() []string }); ok {
		return c.Known()
	}
	for _, w := range strings.Split(value, "|") {
		if lowerWord.MatchString(w) && w != "value" && w != "string" {
			words = append(words, w)
		}
	}
	for field := range job.Fields() {
		if field.Flag == f.Name && len(words) == 0 {
			words = field.Words
		}
	}
	return words
}
