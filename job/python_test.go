package job

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// moduleHead begins the Python module.
const moduleHead = `"""Jobs: one declaration that is simulated, deployed and read alike from Go and Python.

go generate ./job makes this module of the table of fields.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Sequence

from ._declared import Declared
`

// withClasses makes the Python classes of a job.
func withClasses([]byte) ([]byte, error) {
	root := &class{name: "Job", about: "A declared job.", bases: "(Declared)"}
	root.add(&theJob)
	for _, c := range root.inner {
		for _, s := range sections {
			if s.name == strings.ToLower(c.name) {
				c.about = s.about
			}
		}
	}
	var b strings.Builder
	b.WriteString(moduleHead)
	root.write(&b, "")
	return []byte(b.String()), nil
}

// class is a table as a dataclass: those within it are classes within the class.
type class struct {
	name, about, bases string
	fields             []attribute
	inner              []*class
}

// attribute is a field of a dataclass.
type attribute struct{ name, hint, value, about string }

func (c *class) add(t *table) {
	for _, e := range t.entries {
		names := strings.Split(e.path(), ".")
		in := c
		for _, name := range names[:len(names)-1] {
			in = in.within(name)
		}
		name := names[len(names)-1]
		if e.list != nil {
			inner := &class{name: className(name), about: "An element of ``" + e.list.path + "``."}
			inner.add(&e.list.rows)
			in.inner = append(in.inner, inner)
			in.fields = append(in.fields, attribute{name, "Sequence[" + inner.name + "]", "()", ""})
			continue
		}
		if name == "lambda" { // which no attribute can be called
			name += "_"
		}
		in.fields = append(in.fields, attributeOf(name, e.row))
	}
}

// within returns the class of a table within another, which is made if there is none.
func (c *class) within(name string) *class {
	for _, inner := range c.inner {
		if inner.name == className(name) {
			return inner
		}
	}
	inner := &class{name: className(name), about: "The table ``" + name + "``."}
	c.inner = append(c.inner, inner)
	c.fields = append(c.fields, attribute{name, inner.name, inner.name + "()", ""})
	return inner
}

func className(name string) string { return strings.ToUpper(name[:1]) + name[1:] }

func attributeOf(name string, r *row) attribute {
	a := attribute{name: name, about: strings.TrimSpace(r.Sentence + " " + domain(r.Field))}
	switch r.Kind {
	case Text, Span, Instant:
		a.hint, a.value = "str", `""`
	case Word:
		a.hint, a.value = `Literal["`+strings.Join(r.Words, `", "`)+`"]`, `""`
		if r.preset == nil {
			a.hint = `Literal["", "` + strings.Join(r.Words, `", "`) + `"]`
		}
	case Whole:
		a.hint, a.value = "int", "0"
	case Number:
		a.hint, a.value = "float", "0.0"
	case Truth:
		a.hint, a.value = "bool", "False"
	case Texts, Spans:
		a.hint, a.value = "Sequence[str]", "()"
	case Wholes:
		a.hint, a.value = "Sequence[int]", "()"
	case Numbers:
		a.hint, a.value = "Sequence[float]", "()"
	}
	switch p := r.preset.(type) {
	case string:
		a.value = strconv.Quote(p)
	case time.Duration:
		a.value = strconv.Quote(p.String())
	case int, uint64, float64:
		a.value = format(p)
	}
	if r.Required {
		a.value = ""
	}
	return a
}

// write writes a class, indented as far as those around it are.
func (c *class) write(b *strings.Builder, indent string) {
	line := func(format string, a ...any) {
		if text := fmt.Sprintf(format, a...); text == "" {
			b.WriteString("\n")
		} else {
			b.WriteString(indent + text + "\n")
		}
	}
	line("")
	if indent == "" {
		line("")
	}
	line("@dataclass(frozen=True, kw_only=True)")
	line("class %s%s:", c.name, c.bases)
	for _, part := range fold(`"""`+c.about, 88-len(indent)) {
		line("    %s", part)
	}
	line("")
	line("    Attributes:")
	for _, a := range c.fields {
		about := a.about
		if about == "" {
			about = "See :class:`" + strings.TrimSuffix(strings.TrimPrefix(a.hint, "Sequence["), "]") + "`."
		}
		for i, part := range fold(a.name+": "+about, 82-len(indent)) {
			if i > 0 {
				part = "    " + part
			}
			line("        %s", part)
		}
	}
	line(`    """`)
	for _, inner := range c.inner {
		inner.write(b, indent+"    ")
	}
	line("")
	for _, a := range c.fields {
		text := "    " + a.name + ": " + a.hint
		if a.value != "" {
			text += " = " + a.value
		}
		if len(indent+text) <= 100 {
			line("%s", text)
			continue
		}
		words, end, _ := strings.Cut(strings.TrimPrefix(a.hint, "Literal["), "]")
		line("    %s: Literal[", a.name)
		for _, part := range fold(words+",", 90-len(indent)) {
			line("        %s", part)
		}
		if a.value != "" {
			end += " = " + a.value
		}
		line("    ]%s", end)
	}
}
