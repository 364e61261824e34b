package jobs

import (
	"path"
	"slices"
	"strings"

	"github.com/hushsum/hushsum/job"
)

// Matching returns the fields whose paths contain a pattern, or match it if it has a star or a
// question mark. All fields match an empty one.
func Matching(pattern string) []job.Field {
	out := []job.Field{}
	for f := range job.Fields() {
		matches := strings.Contains(f.Path, pattern)
		if strings.ContainsAny(pattern, "*?") {
			var err error
			matches, err = path.Match(strings.NewReplacer("[", `\[`, "]", `\]`).Replace(pattern), f.Path)
			matches = matches && err == nil
		}
		if matches {
			out = append(out, f)
		}
	}
	return out
}

// Section returns the heading below which a field stands in a file.
func Section(f job.Field) string {
	section, _, within := strings.Cut(f.Path, ".")
	if !within {
		return ""
	}
	return strings.TrimSuffix(section, "[]")
}

// Sections returns the headings of a file.
func Sections() (sections []string) {
	for f := range job.Fields() {
		if s := Section(f); s != "" && !slices.Contains(sections, s) {
			sections = append(sections, s)
		}
	}
	return sections
}

// Values says in a line which values a field takes, in which unit, and which one it has if none is
// given.
func Values(f job.Field) string {
	var parts []string
	switch {
	case f.Kind == job.Truth:
	case f.Kind == job.Word:
		parts = append(parts, strings.Join(f.Words, ", "))
	case f.Range == "":
		parts = append(parts, string(f.Kind))
	default:
		parts = append(parts, string(f.Kind)+", "+f.Range)
	}
	if f.Unit != "" {
		parts = append(parts, f.Unit)
	}
	switch {
	case f.Required:
		parts = append(parts, "required")
	case f.Default != "":
		parts = append(parts, "default "+f.Default)
	}
	if f.Flag != "" {
		parts = append(parts, "--"+f.Flag)
	}
	return strings.Join(parts, "; ")
}

// Names returns the last parts of all paths, one of which a mistyped pattern may have meant.
func Names() []string {
	var names []string
	for f := range job.Fields() {
		names = append(names, f.Path[strings.LastIndexByte(f.Path, '.')+1:])
	}
	return names
}
