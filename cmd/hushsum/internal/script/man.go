package script

import (
	"fmt"
	"strings"
)

// Man returns a manual page, in the macros of man(7).
func (p *Program) Man() string {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH %s 1\n.SH NAME\n%s \\- %s\n", strings.ToUpper(p.Name), p.Name, roff(p.About))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n.I COMMAND\n[flags]\n", p.Name)
	b.WriteString(".SH COMMANDS\n")
	for _, c := range p.Commands {
		fmt.Fprintf(&b, ".SS %s %s\n%s.\n", p.Name, c.Name, roff(c.About))
		verbatim(&b, c.Help)
		for _, f := range c.Flags {
			entry(&b, "--"+f.Name, f.Arg, f.Usage)
		}
		if len(c.Examples) > 0 {
			b.WriteString(".PP\nExamples:\n")
			verbatim(&b, strings.Join(c.Examples, "\n"))
		}
	}
	b.WriteString(".SH FIELDS OF A JOB\nA file has them, and\n.B \\-\\-set\n.IR PATH = VALUE\n" +
		"sets one; 0 is the number of an element of a list.\n")
	for _, s := range p.Settings {
		entry(&b, s.Path, "", s.About)
	}
	b.WriteString(".SH EXIT STATUS\n" + roff(strings.TrimSpace(p.Codes)) + "\n")
	return b.String()
}

// entry writes a paragraph with its name before it.
func entry(b *strings.Builder, name, value, text string) {
	fmt.Fprintf(b, ".TP\n\\fB%s\\fR", roff(name))
	if value != "" {
		fmt.Fprintf(b, " \\fI%s\\fR", roff(value))
	}
	fmt.Fprintf(b, "\n%s\n", roff(text))
}

// verbatim writes lines as they are.
func verbatim(b *strings.Builder, text string) {
	fmt.Fprintf(b, ".PP\n.nf\n%s\n.fi\n", roff(strings.Trim(text, "\n")))
}

// roff writes text so that nothing in it is a request or an escape, in ASCII.
func roff(text string) string {
	var b strings.Builder
	for _, r := range strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text) {
		if r < 0x80 {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, `\[u%04X]`, r)
		}
	}
	lines := strings.Split(b.String(), "\n")
	for i, l := range lines {
		if strings.HasPrefix(l, ".") || strings.HasPrefix(l, "'") {
			lines[i] = `\&` + l
		}
	}
	return strings.Join(lines, "\n")
}
