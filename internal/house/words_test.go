package house

import (
	"go/ast"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// A word is a pattern that plain English has no use for, and what stands in its place.
type word struct {
	pattern *regexp.Regexp
	advice  string
}

// words are for comments, texts in code, and Markdown outside of code. Names of Go fields are
// not meant: "Beside" at the start of a field's comment is its name.
var words = []word{
	{regexp.MustCompile(`\bbeside\b|\bBeside (it|its|them|these|this|the|a)\b`),
		`"with" or "next to"`},
	{regexp.MustCompile(`\b(is|are|was|were) what\b`), `a verb: "Status reports", "Seed holds"`},
}

// short is a number that begins with its point.
var short = regexp.MustCompile(`(^|[\s(\[+−|-])\.[0-9]`)

// found returns what is wrong with a text, "" if nothing is.
func found(text string) string {
	for _, w := range words {
		if at := w.pattern.FindString(text); at != "" {
			return strconv.Quote(at) + " should be " + w.advice
		}
	}
	return ""
}

// Comments and texts in code keep to the words of CONTRIBUTING.md.
func TestWordsInCode(t *testing.T) {
	seen := 0
	for _, s := range sources(t) {
		if s.path == "internal/house/words_test.go" {
			continue
		}
		for _, group := range s.syntax.Comments {
			seen++
			if wrong := found(flat(group.Text())); wrong != "" {
				t.Errorf("%s: %s", s.at(group), wrong)
			}
		}
		ast.Inspect(s.syntax, func(n ast.Node) bool {
			x, ok := n.(*ast.BasicLit)
			if !ok || x.Kind != token.STRING {
				return true
			}
			text, err := strconv.Unquote(x.Value)
			if err != nil {
				t.Fatal(err)
			}
			if wrong := found(flat(text)); wrong != "" {
				t.Errorf("%s: %s", s.at(x), wrong)
			}
			return true
		})
	}
	if seen < 5000 {
		t.Errorf("%d comments: the test does not see them", seen)
	}
}

// Documents keep to the same words, and their numbers have a digit before the point. The table of
// conventions names in its column "not" what others must not say.
func TestWordsInDocuments(t *testing.T) {
	span := regexp.MustCompile("`[^`]*`")
	for path, text := range documents(t) {
		path, err := filepath.Rel(root, path)
		if err != nil {
			t.Fatal(err)
		}
		path = filepath.ToSlash(path)
		if path == "CONTRIBUTING.md" {
			text = firstCells(text)
		}
		text = span.ReplaceAllString(prose(text), "`…`")
		for _, part := range strings.Split(text, "\n\n") {
			if wrong := found(flat(part)); wrong != "" {
				t.Errorf("%s: %s in %q", path, wrong, opening(part))
			}
		}
		for i, line := range strings.Split(text, "\n") {
			if at := short.FindString(line); at != "" && !strings.HasPrefix(line, "    ") {
				t.Errorf("%s, line %d of its prose: a number without 0 before its point: %q", path,
					i+1, line)
			}
		}
	}
}

// firstCells leaves out the last cell of every row of a table.
func firstCells(text string) string {
	return regexp.MustCompile(`(?m)^(\|.*\|)[^|\n]*\|$`).ReplaceAllString(text, "$1")
}

// opening is the beginning of a text, to find it by.
func opening(text string) string {
	r := []rune(flat(text))
	return string(r[:min(len(r), 60)])
}

// What these tests look for is found, and what is like it is not.
func TestWordsAreFound(t *testing.T) {
	for _, text := range []string{"kept beside the state", "Beside it runs", "Status is what people see",
		"these are what a party sends"} {
		if found(text) == "" {
			t.Errorf("%q passes", text)
		}
	}
	for _, text := range []string{"besides its own", "Beside has the training", "it says what it is",
		"this whatever"} {
		if wrong := found(text); wrong != "" {
			t.Errorf("%q: %s", text, wrong)
		}
	}
	for text, want := range map[string]bool{".05 and 1": true, "[.1, .2]": true, "| −.87 |": true,
		"0.05": false, "v1.2": false, "…/file.5": false, "(see .github)": false} {
		if short.MatchString(text) != want {
			t.Errorf("%q: not %v", text, want)
		}
	}
	if got := firstCells("| a | b | c |\nx"); got != "| a | b |\nx" {
		t.Errorf("the first cells are %q", got)
	}
}
