package house

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

// Links of the documents to files and headings of the tree lead somewhere.
func TestLinks(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	documents := documents(t)
	for path, text := range documents {
		for _, m := range link.FindAllStringSubmatch(prose(text), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			file, heading, _ := strings.Cut(m[1], "#")
			target := path
			if file != "" {
				target = filepath.Join(filepath.Dir(path), filepath.FromSlash(file))
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: %s leads nowhere", path, m[1])
			} else if heading != "" && !anchors(documents[target])[heading] {
				t.Errorf("%s: %s has no such heading", path, m[1])
			}
		}
	}
}

// documents are the Markdown files of the tree by path.
func documents(t *testing.T) map[string]string {
	t.Helper()
	found := make(map[string]string)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || d.Name() == "node_modules" || d.Name() == ".git"):
			return filepath.SkipDir
		case filepath.Ext(path) == ".md":
			b, err := os.ReadFile(path)
			found[path] = string(b)
			return err
		}
		return nil
	})
	if err != nil || len(found) < 10 {
		t.Fatalf("%d documents found: %v", len(found), err)
	}
	return found
}

// prose leaves out blocks of code.
func prose(text string) string {
	return regexp.MustCompile("(?ms)^```.*?^```").ReplaceAllString(text, "")
}

// anchors are the names by which links find a document's headings.
func anchors(text string) map[string]bool {
	found := make(map[string]bool)
	for line := range strings.Lines(prose(text)) {
		title := strings.TrimSpace(strings.TrimLeft(line, "#"))
		if !strings.HasPrefix(line, "#") {
			continue
		}
		found[strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
				return unicode.ToLower(r)
			}
			return -1
		}, title)] = true
	}
	return found
}
