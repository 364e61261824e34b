package main

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// The files of testdata/scripts call each command: its help, a good use, and mistakes with the exit
// code and the text on standard error.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/scripts",
		Setup: func(env *testscript.Env) error {
			env.Setenv("HOME", env.WorkDir)
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"listens":   listens,
			"code":      code,
			"free":      free,
			"operators": operators,
		},
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
	})
}

// code runs a program that has to end with a given exit code: code 2 hushsumd frobnicate.
func code(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N program [args]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	var ended *exec.ExitError
	switch {
	case errors.As(err, &ended):
		got = ended.ExitCode()
	case err != nil:
		ts.Fatalf("%v", err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// free sets variables to addresses of loopback on which nobody listens: free A B.
func free(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: free NAME...")
	}
	for _, name := range args {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		ts.Check(err)
		defer l.Close()
		ts.Setenv(name, l.Addr().String())
	}
}

// listens waits for a server that starts in the background: listens 127.0.0.1:1.
func listens(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: listens ADDRESS")
	}
	var err error
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		var c net.Conn
		if c, err = net.Dial("tcp", args[0]); err == nil {
			_ = c.Close()
			return
		}
	}
	ts.Fatalf("after a minute: %v", err)
}

// operators writes the file of one operator, whose key another file has: operators FILE KEY.
func operators(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: operators FILE KEY")
	}
	line := "operate ada " + ts.ReadFile(args[1])
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(line), 0o600))
}

// Every command has a script that asks for its help, uses it, and has it refuse a mistake.
func TestScriptsAreWhole(t *testing.T) {
	files, err := filepath.Glob("testdata/scripts/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	var lines strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		script, _, _ := strings.Cut(string(text), "\n-- ")
		lines.WriteString(script + "\n")
	}
	for _, c := range commands() {
		for what, pattern := range map[string]string{
			"the help":  "exec hushsumd help NAME",
			"a use":     "!? ?exec hushsumd NAME( .*)?",
			"a mistake": "code [12] hushsumd NAME( .*)?",
		} {
			pattern = "(?m)^" + strings.ReplaceAll(pattern, "NAME", c.name) + "$"
			runs := regexp.MustCompile(pattern).FindAllString(lines.String(), -1)
			runs = slices.DeleteFunc(runs, func(line string) bool {
				return what == "a use" && strings.HasSuffix(line, " -h")
			})
			if len(runs) == 0 {
				t.Errorf("no script has %s of %s", what, c.name)
			}
		}
	}
}
