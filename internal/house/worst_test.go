package house

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Each parser in SECURITY.md's table is fed its worst files by a test, which compares the length in
// its row; each that is fed has a row.
func TestWorstFilesListed(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "SECURITY.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(text), "| parser | largest |")
	if !found {
		t.Fatal("SECURITY.md has no table of parsers")
	}
	table, _, _ = strings.Cut(table, "\n\n")
	listed := map[string]bool{}
	for _, line := range strings.Split(table, "\n")[2:] {
		name, _, _ := strings.Cut(strings.TrimPrefix(line, "| "), " | ")
		listed[name] = true
	}
	fed, tests := map[string]bool{}, regexp.MustCompile(`suite\.Worst\{Name: "([^"]+)"`)
	for _, s := range sources(t) {
		for _, found := range tests.FindAllStringSubmatch(s.text, -1) {
			fed[found[1]] = true
			if !listed[found[1]] {
				t.Errorf("%s: SECURITY.md's table has no %q", s.path, found[1])
			}
		}
	}
	for name := range listed {
		if !fed[name] {
			t.Errorf("SECURITY.md lists %q, to which no test feeds its worst files", name)
		}
	}
	if len(fed) == 0 {
		t.Error("no parser is fed")
	}
}
