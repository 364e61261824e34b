package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func write(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// A package over its budget, one without a budget, and on a quiet machine one that waits are named;
// the others are not.
func TestCheck(t *testing.T) {
	notes := write(t, "busy 90 20 60\nbusy 1 0 1\nfine 5 0 6\nnew 1 0 1\nwaits 1 0.1 30\n")
	budgets := write(t, "# a comment\nspeed 1000000\nbusy 70\nfine 4\nwaits 1\n")
	for quiet, want := range map[bool][]string{
		false: {"busy  over its budget", "new  has no budget"},
		true:  {"busy  over its budget", "new  has no budget", "waits  waits"},
	} {
		var out bytes.Buffer
		err := check(&out, notes, budgets, quiet)
		if err == nil {
			t.Fatalf("quiet %v: nothing is over", quiet)
		}
		_, told, _ := strings.Cut(err.Error(), "budgets")
		if _, list, _ := strings.Cut(err.Error(), ": "); strings.Count(list, ";") != len(want)-1 {
			t.Errorf("quiet %v: %s", quiet, list)
		}
		for _, w := range want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("quiet %v: %q lacks %q (%s)", quiet, err, w, told)
			}
		}
		if !strings.Contains(out.String(), "all                                   118.1 s") {
			t.Errorf("quiet %v:\n%s", quiet, &out)
		}
	}
	if err := check(&bytes.Buffer{}, write(t, "fine 5 0 6\n"), budgets, true); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{"fine 4\n", "speed 0\n", "speed 1 2\n", "speed x\n"} {
		if err := check(&bytes.Buffer{}, notes, write(t, bad), false); err == nil {
			t.Errorf("budgets %q are accepted", bad)
		}
	}
}

// A file of budgets is made from notes, and what was noted fits it.
func TestBudget(t *testing.T) {
	notes := write(t, "a/b 1.25 0.5 2\nc 40 2 50\n")
	var out bytes.Buffer
	if err := budget(&out, notes); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "\na/b 1.8\nc 42.0\n") {
		t.Errorf("%s", &out)
	}
	if err := check(&bytes.Buffer{}, notes, write(t, out.String()), true); err != nil {
		t.Error(err)
	}
}

// What a command took is noted with the package in whose folder it ran, and its exit code stays.
func TestNote(t *testing.T) {
	file := filepath.Join(t.TempDir(), "notes")
	if err := note(file, "true", nil); err != nil {
		t.Fatal(err)
	}
	var ended *exec.ExitError
	if err := note(file, "sh", []string{"-c", "exit 3"}); !errors.As(err, &ended) ||
		ended.ExitCode() != 3 {
		t.Errorf("%v", err)
	}
	if err := note(file, filepath.Join(t.TempDir(), "nothing"), nil); err == nil {
		t.Error("a command that does not exist has run")
	}
	costs, err := readNotes(file)
	if err != nil || len(costs) != 1 {
		t.Errorf("%v, %v", costs, err)
	}
	name, err := packageName()
	if _, ok := costs[name]; !ok || err != nil || !strings.HasSuffix(name, "suite") {
		t.Errorf("%v, %q, %v", costs, name, err)
	}
	if err := run([]string{"note"}); err == nil || !strings.Contains(fmt.Sprint(err), "budget NOTES") {
		t.Errorf("%v", err)
	}
}
