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

// pronouns are words that send a reader back for their noun. They are for comments and texts of
// code, tests apart.
var pronouns = []word{
	{regexp.MustCompile(`\bof which (the|each|all|none|nobody|one|some)\b`),
		`"whose", or a sentence of its own`},
	{regexp.MustCompile(`\bthe other way\b`), "the other case in words"},
	{regexp.MustCompile(`\b(with|without|no) luck\b`), "what the coin decides"},
	{regexp.MustCompile(`\bOptions makes? (a|the)\b`), `"configure"`},
	{regexp.MustCompile(`^(It|They|That|Those|What) `), "the noun, at the beginning of a doc comment"},
}

// meant are texts of which a pronoun is a part all the same.
var meant = regexp.MustCompile(`, of which the last bytes have come\.|open with it, of which the ` +
	`parties|of which the oldest that is idle|coin has no luck|^Those that follow are|^What a job is|` +
	`(away without|those without|late with|rounds with) luck`)

// sent returns what is wrong with a text for [pronouns], "" if nothing is.
func sent(text string) string {
	text = meant.ReplaceAllString(text, "…")
	for _, w := range pronouns {
		if at := w.pattern.FindString(text); at != "" {
			return strconv.Quote(at) + " should be " + w.advice
		}
	}
	return ""
}

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

// Comments name what they are about, and doc comments begin with it.
func TestPronouns(t *testing.T) {
	for _, s := range sources(t) {
		if s.test() {
			continue
		}
		docs := make(map[*ast.CommentGroup]bool)
		ast.Inspect(s.syntax, func(n ast.Node) bool {
			switch x := n.(type) {
			case *ast.FuncDecl:
				docs[x.Doc] = true
			case *ast.GenDecl:
				docs[x.Doc] = true
			case *ast.TypeSpec:
				docs[x.Doc] = true
			case *ast.ValueSpec:
				docs[x.Doc] = true
			case *ast.Field:
				docs[x.Doc] = true
			case *ast.BasicLit:
				if text, err := strconv.Unquote(x.Value); err == nil && x.Kind == token.STRING {
					if wrong := sent("…" + flat(text)); wrong != "" {
						t.Errorf("%s: %s", s.at(x), wrong)
					}
				}
			}
			return true
		})
		for _, group := range s.syntax.Comments {
			text := flat(group.Text())
			if !docs[group] {
				text = "…" + text // only the beginning of a doc comment is quoted alone
			}
			if wrong := sent(text); wrong != "" {
				t.Errorf("%s: %s", s.at(group), wrong)
			}
		}
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
	for _, text := range []string{"sets of which all rows are dealt", "as with one, and the other way",
		"with hidden parties it is called with luck only", "Options make a door.", "It has a key."} {
		if sent(text) == "" {
			t.Errorf("%q passes", text)
		}
	}
	for _, text := range []string{"the set of which it is a part", "Options configure a Door.",
		"another way", "Items of a list"} {
		if wrong := sent(text); wrong != "" {
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
