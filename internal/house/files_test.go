package house

import (
	"go/ast"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// columns is the most characters of a line; a tab is one of them.
const columns = 100

// Lines are short, but for rows of tables in tests, what examples print, and raw strings.
func TestColumns(t *testing.T) {
	row := regexp.MustCompile(`^\s*("[^"]*":\s*)?(\{.*\}|"[^"]*"),?$`)
	for _, s := range sources(t) {
		raw := false
		for i, line := range strings.Split(s.text, "\n") {
			inside := raw || strings.Contains(line, "`")
			raw = raw != (strings.Count(line, "`")%2 == 1)
			n := utf8.RuneCountInString(line)
			table := s.test() && row.MatchString(line)
			printed := s.example() && strings.HasPrefix(strings.TrimSpace(line), "// ")
			if n <= columns || inside || table || printed || strings.HasPrefix(line, "//go:") {
				continue
			}
			t.Errorf("%s:%d: %d columns", s.path, i+1, n)
		}
	}
}

// A package that speaks of the thesis says in its package comment which one.
func TestThesis(t *testing.T) {
	title := `"A Practical Approach to Federated Learning"`
	speaks, introduced := map[string]string{}, map[string]bool{}
	for _, s := range sources(t) {
		if s.test() {
			continue
		}
		for _, group := range s.syntax.Comments {
			if text := flat(group.Text()); strings.Contains(text, "the thesis") ||
				strings.Contains(text, "The thesis") {
				speaks[s.dir()] = s.path
			}
		}
		if s.syntax.Doc != nil && strings.Contains(flat(s.syntax.Doc.Text()), title) {
			introduced[s.dir()] = true
		}
	}
	for dir, path := range speaks {
		if !introduced[dir] {
			t.Errorf("%s speaks of the thesis, and its package comment does not say that it is %s", path,
				title)
		}
	}
}

// flat joins the lines of a comment.
func flat(text string) string { return strings.Join(strings.Fields(text), " ") }

// Package drive decides, and does nothing else: no clock, file, socket, process, nor chance of its
// own, and no goroutine.
func TestDriveIsPure(t *testing.T) {
	not := []string{"context", "crypto/rand", "io/fs", "log", "math/rand", "net", "os", "sync", "time"}
	seen := 0
	for _, s := range sources(t) {
		if s.dir() != "drive" || s.test() {
			continue
		}
		seen++
		for _, spec := range s.syntax.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			for _, base := range not {
				if imported == base || strings.HasPrefix(imported, base+"/") {
					t.Errorf("%s imports %s", s.path, imported)
				}
			}
		}
		ast.Inspect(s.syntax, func(n ast.Node) bool {
			if g, ok := n.(*ast.GoStmt); ok {
				t.Errorf("%s: a goroutine", s.at(g))
			}
			return true
		})
	}
	if seen == 0 {
		t.Error("the test does not see package drive")
	}
}

// Nothing is left to be done, and nothing speaks of a machine.
func TestLeftovers(t *testing.T) {
	leftover := regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|X` + `XX)\b|"?/(ro` + `ot|wo` + `rk|ho` +
		`me)/`)
	for _, s := range sources(t) {
		for i, line := range strings.Split(s.text, "\n") {
			if found := leftover.FindString(line); found != "" {
				t.Errorf("%s:%d: %s", s.path, i+1, found)
			}
		}
	}
}
