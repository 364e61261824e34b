// Package script writes what is made of a program's own description of itself: completion for
// three shells, a manual page, and parts of its help.
package script

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Program is a command, with all that it takes.
type Program struct {
	Name, About string
	Version     string // name and number of what was built
	Commands    []Command
	Groups      map[string]string // what commands do that have others below them
	Settings    []Setting         // the fields that flags with PATH=VALUE set
	Codes       string            // exit codes
	Environment []Variable        // that it reads, in the order of the manual page
}

// Variable is an environment variable.
type Variable struct {
	Name, About string
}

// WriteVariables writes what help prints about the environment.
func WriteVariables(w io.Writer, list []Variable) {
	fmt.Fprintln(w, "Environment:")
	for _, v := range list {
		name := v.Name
		if len(name) > 15 {
			fmt.Fprintf(w, "  %s\n", name)
			name = ""
		}
		for _, part := range Wrap(v.About, Width-18) {
			fmt.Fprintf(w, "  %-15s %s\n", name, part)
			name = ""
		}
	}
}

// Command is a subcommand.
type Command struct {
	Name     string   // with that of the command above it, as in "job check"
	About    string   // a line
	Help     string   // what help prints of it, without flags
	Parts    []string // of its help
	Words    []string // that its first argument can be
	Files    bool     // it takes files as arguments
	Flags    []Flag
	Examples []string
}

// Flag is a flag of a command.
type Flag struct {
	Name  string
	Arg   string   // what help calls its value; empty: it is true or false
	Usage string   // with its default
	Words []string // that its value can be
}

// Setting is a field that PATH=VALUE sets.
type Setting struct {
	Path  string // with 0 for the number of an element of a list
	About string
	Words []string
}

// files reports whether a flag's value names a file or a folder.
func (f *Flag) files() bool {
	return regexp.MustCompile(`^(.*\|)?(PATH|FILE|DIR|FOLDER)$`).MatchString(f.Arg)
}

// sets reports whether a flag's value is a path of a setting and what to set it to.
func (f *Flag) sets() bool { return f.Arg == "PATH=VALUE" }

// group returns what comes before the last word of a command's name, empty if there is one.
func (c *Command) group() string {
	i := strings.LastIndexByte(c.Name, ' ')
	return c.Name[:max(i, 0)]
}

// flags returns the names of a command's flags, with dashes.
func (c *Command) flags() (names []string) {
	for _, f := range c.Flags {
		names = append(names, "--"+f.Name)
	}
	return names
}

// usages returns what the flags do, in the same order.
func (c *Command) usages() (texts []string) {
	for _, f := range c.Flags {
		texts = append(texts, f.Usage)
	}
	return texts
}

// below returns the commands of a group, or all those that are in none: last words of names, and
// what they do.
func (p *Program) below(group string) (names, abouts []string) {
	for _, c := range p.Commands {
		if c.group() == group {
			names = append(names, strings.TrimPrefix(c.Name, group+" "))
			abouts = append(abouts, c.About)
		}
	}
	if group == "" {
		for _, g := range p.groups() {
			names, abouts = append(names, g), append(abouts, p.Groups[g])
		}
	}
	return names, abouts
}

// groups returns the commands that have others below them.
func (p *Program) groups() []string { return slices.Sorted(maps.Keys(p.Groups)) }

// groupPattern returns the pattern of groups for a case of a shell, with bars between them; one
// that matches no command if there are no groups.
func (p *Program) groupPattern(bar string) string {
	return cmp.Or(strings.Join(p.groups(), bar), "''")
}

// own returns what completion has besides commands, and what each does.
func (p *Program) own() (names, abouts []string) {
	names, abouts = []string{"help"}, []string{"describe a command"}
	if !slices.ContainsFunc(p.Commands, func(c Command) bool { return c.Name == "version" }) {
		names, abouts = append(names, "version"), append(abouts, "print the version")
	}
	return names, abouts
}

// settings returns what may stand after a flag that sets fields: each path with an equals sign, and
// with each of its words.
func (p *Program) settings() (texts []string) {
	for _, s := range p.Settings {
		texts = append(texts, s.Path+"=")
		for _, w := range s.Words {
			texts = append(texts, s.Path+"="+w)
		}
	}
	return texts
}

// Completion returns the script that completes the command in one of [Shells].
func (p *Program) Completion(shell string) string {
	return map[string]func(*Program) string{"bash": bash, "zsh": zsh, "fish": fish}[shell](p)
}

// Shells lists the shells that have completion.
var Shells = []string{"bash", "zsh", "fish"}

// quoted writes a text as one word of bash or zsh.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// line cuts a text to what a list of completions has room for.
func line(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > 70 {
		text = strings.TrimSpace(string(runes[:69])) + "…"
	}
	return text
}
