package results

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/cmd/hushsum/internal/clitest"
)

// publishText is publish of files with a text.
func publishText(dir, text string, complete bool, files ...string) error {
	m := Manifest{Command: "test", Complete: complete}
	_, err := Publish(dir, "report", m, func(stage string) error {
		for _, file := range files {
			if err := os.WriteFile(filepath.Join(stage, file), []byte(text), 0o666); err != nil {
				return err
			}
		}
		return nil
	})
	return err
}

// A run replaces the files of the last one and no others; what is not complete stands
// next to what is, and goes when a run has been completed.
func TestPublish(t *testing.T) {
	dir := t.TempDir()
	mine := filepath.Join(dir, "mine.svg")
	if err := os.WriteFile(mine, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name     string
		complete bool
		files    []string
		want     []string
	}{
		{"first", true, []string{"a.svg", "b.svg", "report.md"},
			[]string{"a.svg", "b.svg", "mine.svg", "report.json", "report.md"}},
		{"part", false, []string{"a.svg", "report.md"},
			[]string{"a.svg", "b.svg", "incomplete/a.svg", "incomplete/report.json",
				"incomplete/report.md", "mine.svg", "report.json", "report.md"}},
		{"other part", false, []string{"b.svg", "report.md"},
			[]string{"a.svg", "b.svg", "incomplete/b.svg", "incomplete/report.json",
				"incomplete/report.md", "mine.svg", "report.json", "report.md"}},
		{"second", true, []string{"b.svg", "c.svg", "report.md"},
			[]string{"b.svg", "c.svg", "mine.svg", "report.json", "report.md"}},
	} {
		if err := publishText(dir, c.name, c.complete, c.files...); err != nil {
			t.Fatal(err)
		}
		if got := clitest.List(t, dir); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		report, err := os.ReadFile(filepath.Join(dir, "report.md"))
		if want := map[bool]string{true: c.name, false: "first"}[c.complete]; err != nil ||
			string(report) != want {
			t.Errorf("%s: the report is %q, %v, want %q", c.name, report, err, want)
		}
	}
}

// A run that fails while it writes changes nothing.
func TestPublishFails(t *testing.T) {
	dir := t.TempDir()
	if err := publishText(dir, "first", true, "a.svg"); err != nil {
		t.Fatal(err)
	}
	full := errors.New("disk full")
	_, err := Publish(dir, "report", Manifest{Complete: true}, func(stage string) error {
		return errors.Join(full, os.WriteFile(filepath.Join(stage, "a.svg"), []byte("half"), 0o666))
	})
	text, readErr := os.ReadFile(filepath.Join(dir, "a.svg"))
	if got := clitest.List(t, dir); !errors.Is(err, full) || readErr != nil ||
		string(text) != "first" || !slices.Equal(got, []string{"a.svg", "report.json"}) {
		t.Errorf("%v, %v, %q, %q", err, readErr, text, got)
	}
}

// A manifest that somebody changed removes nothing that a run would not have written.
func TestPublishForeignManifest(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "out")
	if err := os.Mkdir(out, 0o777); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{filepath.Join(dir, "above.svg"), filepath.Join(out, "thesis.tex"),
		filepath.Join(out, "old.svg")} {
		if err := os.WriteFile(path, nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	text := `{"complete": true, "files": ["../above.svg", "thesis.tex", "old.svg", "", ".", ".."]}`
	if err := os.WriteFile(filepath.Join(out, "report.json"), []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := publishText(out, "new", true, "a.svg"); err != nil {
		t.Fatal(err)
	}
	want := []string{"above.svg", "out/a.svg", "out/report.json", "out/thesis.tex"}
	if got := clitest.List(t, dir); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if err := publishText(filepath.Join(out, "a.svg"), "new", true, "b.svg"); err == nil ||
		!strings.Contains(err.Error(), "a.svg") {
		t.Errorf("a file for a folder: %v", err)
	}
}
