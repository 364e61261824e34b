package main

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
	"github.com/hushsum/hushsum/internal/experiments"
	"github.com/hushsum/hushsum/job"
)

const completionAbout = `Usage: hushsum completion bash|zsh|fish

Prints what has a shell complete this command: the names of commands and flags,
words that flags take, the fields of a job after --set, and after a field and an
equals sign the words that it can be.
`

func completionManual() *manual {
	return &manual{
		about: completionAbout,
		examples: []string{
			"source <(hushsum completion bash)                  # in ~/.bashrc",
			"source <(hushsum completion zsh)                   # in ~/.zshrc",
			"hushsum completion fish > ~/.config/fish/completions/hushsum.fish",
		},
	}
}

func completion(ctx context.Context, args []string, std streams) int {
	flags := flag.NewFlagSet("completion", flag.ContinueOnError)
	operands, code, ok := parseOperands(flags, completionManual(), 1, args, std)
	if !ok {
		return code
	}
	shell := strings.Join(operands, "")
	if !slices.Contains(cli.Shells, shell) {
		p := &problem{
			cause:  "for which shell?",
			advice: "Use one of " + strings.Join(cli.Shells, ", ") + ".",
		}
		if shell != "" {
			p.cause = fmt.Sprintf("there is no completion for %q", shell)
			p.advice = didYouMean(shell, cli.Shells, "%s", p.advice)
		}
		return wrongUsage(flags, p, std)
	}
	fmt.Fprint(std.out, description(ctx).Completion(shell))
	return exitOK
}

const manAbout = `Usage: hushsum man

Prints a manual page of all commands, their flags and the fields of a job.
`

func manPage(ctx context.Context, args []string, std streams) int {
	help := &manual{
		about:    manAbout,
		examples: []string{"hushsum man | man -l -", "hushsum man > hushsum.1"},
	}
	flags := flag.NewFlagSet("man", flag.ContinueOnError)
	if code, ok := parseFlags(flags, help, args, std); !ok {
		return code
	}
	fmt.Fprint(std.out, description(ctx).Man())
	return exitOK
}

// description returns what the command is, by its commands' own flags and helps and by the table of
// fields.
func description(ctx context.Context) *cli.Program {
	p := &cli.Program{
		Name:  "hushsum",
		About: "private sums: parties learn the sum of their vectors and nothing else",
		Codes: exitCodes,
	}
	for _, c := range commands() {
		if c.name == "job" {
			p.Groups = map[string]string{c.name: c.about}
			for _, below := range jobCommands() {
				below.name = c.name + " " + below.name
				p.Commands = append(p.Commands, subcommand(ctx, below))
			}
			continue
		}
		p.Commands = append(p.Commands, subcommand(ctx, c))
	}
	for f := range job.Fields() {
		p.Settings = append(p.Settings, cli.Setting{
			Path:  strings.ReplaceAll(f.Path, "[]", ".0"),
			About: f.Sentence + " Values: " + jobs.Values(f) + ".",
			Words: f.Words,
		})
	}
	return p
}

// subcommand asks a command for its flags and help.
func subcommand(ctx context.Context, c command) cli.Command {
	out := cli.Command{Name: c.name, About: c.about, Words: firstWords(c.name)}
	std := streams{out: io.Discard, err: io.Discard, described: func(f *flag.FlagSet, m *manual) {
		add(&out, f, m)
	}}
	c.run(ctx, []string{"-h"}, std)
	return out
}

// add adds flags and help to what is known of a command.
func add(out *cli.Command, flags *flag.FlagSet, help *manual) {
	if out.Help != "" {
		out.Help += "\n"
	}
	out.Help += help.about
	out.Files = out.Files || takesFile.MatchString(help.about)
	out.Examples = append(out.Examples, help.examples...)
	for _, t := range help.topics {
		out.Help += "\n" + t.text
		out.Parts = append(out.Parts, t.name)
	}
	if help.codes != "" {
		out.Help += "\n" + help.codes
	}
	flags.VisitAll(func(f *flag.Flag) {
		known := slices.ContainsFunc(out.Flags, func(g cli.Flag) bool { return g.Name == f.Name })
		value, text := flagText(f)
		if isBoolean(f) {
			value = ""
		}
		if !known {
			out.Flags = append(out.Flags, cli.Flag{
				Name: f.Name, Arg: value, Usage: text, Words: flagWords(f, value),
			})
		}
	})
}

// takesFile matches the help of a command that takes a file.
var takesFile = regexp.MustCompile(`^Usage: [a-z ]+ \[?FILE\b`)

// firstWords are those that a command's first argument can be.
func firstWords(name string) (words []string) {
	switch name {
	case "account", "calibrate":
		for _, l := range releaseLaws {
			words = append(words, l.name)
		}
	case "experiment":
		words = []string{"list"}
		for _, e := range experiments.All() {
			words = append(words, e.Name)
		}
	case "job fields":
		for f := range job.Fields() {
			if section := jobs.Section(f); section != "" && !slices.Contains(words, section) {
				words = append(words, section)
			}
		}
	case "completion":
		words = cli.Shells
	}
	return words
}

// lowerWord is a value that help names as it is written, and not by what it is, such as PATH.
var lowerWord = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)

// flagWords are those that a flag's value can be: by its own account, by what help calls it, or
// by the field of a job that it sets.
func flagWords(f *flag.Flag, value string) (words []string) {
	if c, ok := f.Value.(interface{ known() []string }); ok {
		return c.known()
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
