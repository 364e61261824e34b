package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// number writes the release's number into the files of the clone that state one.
func (r *release) number() error {
	plain := strings.TrimPrefix(r.version, "v")
	for _, f := range []struct {
		name string
		with func(text string) (string, error)
	}{
		{"CHANGELOG.md", func(text string) (string, error) {
			return dated(text, r.version, r.time)
		}},
		{"deploy/chart/Chart.yaml", func(text string) (string, error) {
			return charted(text, plain), nil
		}},
		{"python/pyproject.toml", func(text string) (string, error) {
			return quotedVersion(text, "version", plain)
		}},
		{"python/hushsum/__init__.py", func(text string) (string, error) {
			return quotedVersion(text, "__version__", plain)
		}},
	} {
		name := filepath.Join(r.source, filepath.FromSlash(f.name))
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		after, err := f.with(string(text))
		if err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
		if err := os.WriteFile(name, []byte(after), 0o644); err != nil {
			return err
		}
	}
	return nil
}

const unreleasedHeading = "\n## Unreleased\n"

// dated moves the changelog's text under Unreleased to the version and its day.
func dated(changelog, version string, at time.Time) (string, error) {
	if _, err := unreleased(changelog); err != nil {
		return "", err
	}
	return strings.Replace(changelog, unreleasedHeading, unreleasedHeading+"\n## "+version+", "+
		at.Format(time.DateOnly)+"\n", 1), nil
}

// unreleased returns the part of the changelog under the heading Unreleased.
func unreleased(changelog string) (string, error) {
	_, after, ok := strings.Cut(changelog, unreleasedHeading)
	notes, _, _ := strings.Cut("\n"+after, "\n## ")
	if notes = strings.TrimSpace(notes); !ok || notes == "" {
		return "", errors.New("there is nothing under Unreleased")
	}
	return notes + "\n", nil
}

// charted sets the chart's version, and that of the program that it runs.
func charted(chart, version string) string {
	var b strings.Builder
	for line := range strings.Lines(strings.TrimRight(chart, "\n") + "\n") {
		if !strings.HasPrefix(line, "version:") && !strings.HasPrefix(line, "appVersion:") {
			b.WriteString(line)
		}
	}
	return b.String() + "version: " + version + "\nappVersion: " + version + "\n"
}

// quotedVersion sets a name at the beginning of a line, such as version, to a quoted version.
func quotedVersion(text, name, version string) (string, error) {
	begin := "\n" + name + " = \""
	before, after, ok := strings.Cut(text, begin)
	_, after, ended := strings.Cut(after, "\"\n")
	if !ok || !ended {
		return "", fmt.Errorf("it has no %s", name)
	}
	return before + begin + version + "\"\n" + after, nil
}
