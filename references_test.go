package hushsum

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

var (
	// A citation is a name and a year, as in "Bonawitz 2017 §4", "Canonne, Kamath,
	// Steinke 2020" (whose last name is taken), "Bell et al. 2020" or "Balle (2018".
	citation = regexp.MustCompile(`(\p{Lu}[\p{L}'’-]*\p{Ll})(?:'s)?(?: et al\.)?,? \(?((?:18|19|20)\d\d)\b`)
	standard = regexp.MustCompile(`\b(RFC \d+|SP 800-\w+|FIPS \d+|draft-[a-z]+-[\w-]+)`)
	// What stands before a year and is not a name.
	noName = regexp.MustCompile(`^(January|February|March|April|May|June|July|August|September|October|` +
		`November|December|Reader)$`)
	// The ends of lines within comments.
	breaks = regexp.MustCompile(`\s*\n\s*(//)?\s*`)
)

// What comments and documents cite can be looked up in REFERENCES.md.
func TestReferences(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("REFERENCES.md")
	if err != nil {
		t.Fatal(err)
	}
	var entries []string
	for _, entry := range strings.Split(string(text), "\n- ") {
		entries = append(entries, breaks.ReplaceAllString(entry, " "))
	}
	known := make(map[string]bool)
	listed := func(name, year string) bool {
		key := name + " " + year
		if _, ok := known[key]; !ok {
			word := regexp.MustCompile(regexp.QuoteMeta(name) + `\b.*\b` + year + `\b`)
			known[key] = slices.ContainsFunc(entries, word.MatchString)
		}
		return known[key]
	}
	found := 0
	for path, source := range sources(t, ".go", ".md") {
		if path == "REFERENCES.md" {
			continue
		}
		for _, m := range citation.FindAllStringSubmatch(source, -1) {
			if noName.MatchString(m[1]) {
				continue
			}
			found++
			if !listed(m[1], m[2]) {
				t.Errorf("%s: %s %s is not in REFERENCES.md", path, m[1], m[2])
			}
		}
		for _, name := range standard.FindAllString(source, -1) {
			found++
			if !strings.Contains(string(text), name) {
				t.Errorf("%s: %s is not in REFERENCES.md", path, name)
			}
		}
	}
	if found < 100 {
		t.Errorf("only %d citations were found: is the pattern right?", found)
	}
}

// A package that cites the thesis says which that is.
func TestThesis(t *testing.T) {
	t.Parallel()
	const title = `"A Practical Approach to Federated Learning"`
	packages := make(map[string]string)
	for path, source := range sources(t, ".go") {
		packages[filepath.Dir(path)] += source
	}
	cites := regexp.MustCompile(`\b[Tt]he thesis\b`)
	for dir, source := range packages {
		if dir != "." && cites.MatchString(source) && !strings.Contains(source, title) {
			t.Errorf("%s: no file says that the thesis is %s", dir, title)
		}
	}
}

// A document that is named is in the repository, but for the report that a command
// writes.
func TestDocuments(t *testing.T) {
	t.Parallel()
	named := regexp.MustCompile(`[\w./-]*\w\.md\b`)
	for path, source := range sources(t, ".go", ".md") {
		if !strings.Contains(source, ".md") {
			continue // the pattern takes long
		}
		for _, name := range named.FindAllString(source, -1) {
			near, fromRoot := filepath.Join(filepath.Dir(path), name), filepath.FromSlash(name)
			if exists(near) || exists(fromRoot) || filepath.Base(name) == "report.md" {
				continue
			}
			t.Errorf("%s names %s, which is not found", path, name)
		}
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// sources returns the files with the given extensions by their paths, with the lines of
// comments joined. Folders that begin with a dot, and test data, are left out.
func sources(t *testing.T, extensions ...string) map[string]string {
	t.Helper()
	files, err := readSources()
	if err != nil {
		t.Fatal(err)
	}
	files = maps.Clone(files)
	maps.DeleteFunc(files, func(path, _ string) bool {
		return !slices.Contains(extensions, filepath.Ext(path))
	})
	return files
}

// readSources reads all code and documents, once.
var readSources = sync.OnceValues(func() (map[string]string, error) {
	files := make(map[string]string)
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			name := entry.Name()
			if path != "." && (strings.HasPrefix(name, ".") || name == "testdata" ||
				name == "node_modules") {
				return fs.SkipDir
			}
			return nil
		case filepath.Ext(path) != ".go" && filepath.Ext(path) != ".md" ||
			path == "references_test.go":
			return nil
		}
		source, err := os.ReadFile(path)
		files[filepath.ToSlash(path)] = breaks.ReplaceAllString(string(source), " ")
		return err
	})
	return files, err
})
