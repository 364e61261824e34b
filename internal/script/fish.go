package script

import (
	"fmt"
	"strings"
)

// fishHead has two conditions: that a command is the one of the line, and that the words before the
// cursor are these and no more.
const fishHead = `# Completion of NAME for fish: NAME completion fish | source
function __NAME_in
    set -l given (commandline -opc)
    set -l last (math (count $argv) + 1)
    test (count $given) -ge $last
    and test "$given[2..$last]" = "$argv"
end
function __NAME_after
    set -l given (commandline -opc)
    test (count $given) -eq (math (count $argv) + 1)
    and test "$given[2..-1]" = "$argv"
end
complete -c NAME -f
`

func fish(p *Program) string {
	var b strings.Builder
	b.WriteString(strings.ReplaceAll(fishHead, "NAME", p.Name))
	add := func(when, rest, about string) {
		fmt.Fprintf(&b, "complete -c %s -n '__%[1]s_%s' %s", p.Name, when, rest)
		if about != "" {
			fmt.Fprintf(&b, " -d %s", fishQuoted(line(about)))
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "function __%s_settings\n    printf '%%s\\n' %s\nend\n", p.Name,
		strings.Join(p.settings(), " "))
	top, abouts := p.below("")
	for i, name := range top {
		add("after", "-a "+name, abouts[i])
		add("after help", "-a "+name, abouts[i])
	}
	own, abouts := p.own()
	for i, name := range own {
		add("after", "-a "+name, abouts[i])
	}
	for _, g := range p.groups() {
		below, abouts := p.below(g)
		for i, name := range below {
			add("after "+g, "-a "+name, abouts[i])
			add("after help "+g, "-a "+name, abouts[i])
		}
	}
	for _, c := range p.Commands {
		if len(c.Parts) > 0 {
			add("after help "+c.Name, fmt.Sprintf("-a '%s'", strings.Join(c.Parts, " ")), "")
		}
		if len(c.Words) > 0 {
			add("after "+c.Name, fmt.Sprintf("-a '%s'", strings.Join(c.Words, " ")), "")
		}
		if c.Files {
			add("in "+c.Name, "-F", "")
		}
		for _, f := range c.Flags {
			rest := "-l " + f.Name
			switch {
			case f.Arg == "":
			case f.sets():
				rest += fmt.Sprintf(" -x -a '(__%s_settings)'", p.Name)
			case f.files() && len(f.Words) == 0:
				rest += " -r -F"
			default:
				rest += fmt.Sprintf(" -x -a '%s'", strings.Join(f.Words, " "))
			}
			add("in "+c.Name, rest, f.Usage)
		}
	}
	return b.String()
}

// fishQuoted writes a text as one word of fish, which has backslashes within quotes.
func fishQuoted(text string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(text) + "'"
}
