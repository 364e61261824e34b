// Package clitest calls commands as a shell would, for tests of the commands' packages.
package clitest

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hushsum/hushsum/cmd/hushsum/internal/cli"
)

// Run runs a program with the given commands as a shell would, without a terminal. Its clock stands
// still: on a busy machine any run may take so long that it reports that it goes on.
func Run(
	ctx context.Context, stdout, stderr io.Writer, args []string, commands ...cli.Command,
) (code int) {
	start := time.Now()
	p := &cli.Program{Commands: commands, Now: func() time.Time { return start }}
	return p.Run(ctx, args, stdout, stderr)
}

// Call runs a program as Run does, and returns the output.
func Call(
	ctx context.Context, args []string, commands ...cli.Command,
) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = Run(ctx, &out, &errs, args, commands...)
	return code, out.String(), errs.String()
}

// Width checks that all lines fit a terminal.
func Width(t *testing.T, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		for _, part := range strings.Split(strings.TrimRight(line, "\n"), "\r") {
			if n := len([]rune(part)); n > 80 {
				t.Errorf("a line of %d characters: %q", n, part)
			}
		}
	}
}

// Message checks a message on stderr: no long lines, no names of packages, no repeated sentence.
func Message(t *testing.T, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		// A path cannot be broken.
		if len([]rune(line)) > 81 && !strings.Contains(line, "/") {
			t.Errorf("a line of %d characters: %q", len(line)-1, line)
		}
		if strings.Count(text, line) > 1 {
			t.Errorf("said twice: %q", line)
		}
	}
	for _, name := range []string{"simulation:", "learning:", "aggregation:", "protocol:",
		"parse error"} {
		if strings.Contains(text, name) {
			t.Errorf("%q says %q", text, name)
		}
	}
}

// Written writes a text to a file and returns the file's name.
func Written(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "job.toml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// Flat joins lines.
func Flat(text string) string { return strings.Join(strings.Fields(text), " ") }

// List returns the paths of all files below a folder.
func List(t *testing.T, dir string) []string {
	t.Helper()
	var paths []string
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			relative, _ := filepath.Rel(dir, path)
			paths = append(paths, filepath.ToSlash(relative))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}
