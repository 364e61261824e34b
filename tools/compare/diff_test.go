package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
)

// What is left out does not count, and whatever else differs does.
func TestDifference(t *testing.T) {
	const before = `{"a": 1.50, "x_ms": 3, "drawn": 1, "rows": [{"labels": ["clear"], "v": 2}]}`
	c := testCase{omit: []string{"drawn"}}
	for after, want := range map[string][]string{
		before: nil,
		`{"a": 1.50, "x_ms": 4, "drawn": 2, "rows": [{"labels": ["clear"], "v": 2}], "b": 1}`: nil,
		`{"a": 1.5, "rows": [{"labels": ["clear"], "v": 2}]}`: {
			"[0].a: 1.5, was 1.50"},
		`{"a": 1.50, "rows": [{"labels": ["clear"], "v": 3}]}`: {
			"[0].rows[0].v: 3, was 2"},
		`{"a": 1.50, "rows": []}`: {
			"[0].rows: 0 entries, were 1"},
		`{"a": 1.50}`: {
			"[0].rows: is gone, was [map[labels:[clear] v:2]]"},
		`{"a": 1.50} {"a": 1}`: {
			": 2 entries, were 1", "[0].rows: is gone, was [map[labels:[clear] v:2]]"},
		`{"a": [], "rows": 2}`: {
			"[0].a: [], was 1.50", "[0].rows: 2 was a list"},
	} {
		var sides [2][]any
		for i, text := range []string{before, after} {
			values, err := objects([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			for k := range values {
				values[k] = c.reduce(values[k])
			}
			sides[i] = values
		}
		d := &difference{}
		d.walk("", sides[0], sides[1])
		if !slices.Equal(d.differences, want) {
			t.Errorf("%s: %q, want %q", after, d.differences, want)
		}
	}
	only := testCase{only: []string{"a"}}
	if object, _ := only.reduce(map[string]any{"a": 1, "b": 2}).(map[string]any); len(object) != 1 ||
		object["a"] != 1 {
		t.Errorf("%v", object)
	}
}

// Each case has a name of its own, and a version without jobs is given no job.
func TestCases(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range cases() {
		if seen[c.args] {
			t.Errorf("%s is there twice", c.args)
		}
		seen[c.args] = true
	}
	files, err := filepath.Glob("../../simulation/scenarios/*.toml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		line := "simulate ROOT/simulation/scenarios/" + filepath.Base(file) + " --json"
		if !seen[line] {
			t.Errorf("no case is %s", line)
		}
	}
}

// A line's commands read what the one before prints, and the first that fails ends it; how far a
// run is does not count.
func TestLine(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("it has no /bin/sh")
	}
	script := filepath.Join(t.TempDir(), "command")
	if err := os.WriteFile(script, []byte(`#!/bin/sh
echo "hushsum simulate: round 3 of 9, 7 of 9 parties" >&2
echo "hushsum simulate: 1 of 2 done, some 3s left" >&2
case $1 in
fail) echo no >&2; exit 3 ;;
first) echo one $2 ;;
*) cat; echo two ;;
esac
`), 0o777); err != nil {
		t.Fatal(err)
	}
	r := &runner{binaries: [2]string{script, script}, root: "/top", dir: t.TempDir()}
	for line, want := range map[string]string{
		"first ROOT/x":               "one /top/x\n map[exit code:0 stderr:]",
		"first ROOT/x | second":      "one /top/x\ntwo\n map[exit code:0 stderr:]",
		"first a | fail it | second": " map[exit code:3 stderr:no\n]",
	} {
		out, end, err := r.line(0, line)
		if got := fmt.Sprintf("%s %v", out, end); err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", line, got, err, want)
		}
	}
}
