package script

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Man returns a manual page, in the macros of man(7).
func (p *Program) Man() string {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH %s 1 \"\" \"%s\"\n.nh\n.ad l\n", strings.ToUpper(p.Name), roff(p.Version))
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", p.Name, roff(p.About))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n.I COMMAND\n[flags]\n", p.Name)
	b.WriteString(".SH COMMANDS\n")
	for _, c := range p.Commands {
		fmt.Fprintf(&b, ".SS %s %s\n%s.\n", p.Name, c.Name, roff(c.About))
		for part := range strings.SplitSeq(strings.Trim(c.Help, "\n"), "\n\n") {
			paragraph(&b, strings.Trim(part, "\n"))
		}
		for _, f := range c.Flags {
			entry(&b, "--"+f.Name, f.Arg, f.Usage)
		}
		if len(c.Examples) > 0 {
			b.WriteString(".PP\nExamples:\n")
			verbatim(&b, ".PP", c.Examples)
		}
	}
	if len(p.Settings) > 0 {
		b.WriteString(".SH FIELDS OF A JOB\nA file sets them, and\n.B \\-\\-set\n.IR PATH = VALUE\n" +
			"sets one; 0 stands for the number of a list element.\n")
	}
	for _, s := range p.Settings {
		entry(&b, s.Path, "", s.About)
	}
	if len(p.Environment) > 0 {
		b.WriteString(".SH ENVIRONMENT\n")
	}
	for _, v := range p.Environment {
		entry(&b, v.Name, "", v.About)
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

// paragraph writes a part of a help: sentences as text that is filled, and the call after "Usage:"
// and lines that begin with spaces, which are tables, as they are.
func paragraph(b *strings.Builder, text string) {
	lines, before := strings.Split(text, "\n"), ".PP"
	for len(lines) > 0 {
		asIs := func(line string) bool { return line[:1] == " " || strings.HasPrefix(text, "Usage:") }
		n := 1
		for n < len(lines) && asIs(lines[n]) == asIs(lines[0]) {
			n++
		}
		if asIs(lines[0]) {
			verbatim(b, before, lines[:n])
		} else {
			fmt.Fprintf(b, "%s\n%s\n", before, roff(strings.Join(lines[:n], "\n")))
		}
		lines, before = lines[n:], ".br"
	}
}

// indent is how many characters stand before the text of a page.
const indent = 7

// verbatim writes lines as they are, after a request that begins or goes on with a paragraph. What
// all of them begin with they lose, so that a help's lines have room next to the page's margin;
// where they do not, the margin is less.
func verbatim(b *strings.Builder, before string, lines []string) {
	margin, longest := Width, 0
	for _, l := range lines {
		margin = min(margin, len(l)-len(strings.TrimLeft(l, " ")))
		longest = max(longest, utf8.RuneCountInString(l))
	}
	cut := make([]string, len(lines))
	for i, l := range lines {
		cut[i] = l[margin:]
	}
	at := max(0, min(indent+margin, Width-longest+margin))
	fmt.Fprintf(b, "%s\n.in %dn\n.nf\n%s\n.fi\n.in\n", before, at, roff(strings.Join(cut, "\n")))
}

// roff writes text so that nothing in it is a request or an escape, in ASCII.
func roff(text string) string {
	var b strings.Builder
	for _, r := range strings.NewReplacer(`\`, `\e`, "-", `\-`, "…", "...").Replace(text) {
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
