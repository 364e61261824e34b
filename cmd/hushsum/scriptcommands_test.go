package main

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// code runs a program that has to end with a given exit code: code 2 hushsum frobnicate.
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

// until waits for a file that a program in the background makes: until means/round-1.json.
func until(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: until file")
	}
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(ts.MkAbs(args[0])); err == nil {
			return
		}
	}
	ts.Fatalf("there is no %s after a minute", args[0])
}

// terminate sends SIGTERM to a command that runs in the background: terminate coordinate.
func terminate(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: terminate command")
	}
	for _, c := range ts.BackgroundCmds() {
		if len(c.Args) > 1 && c.Args[1] == args[0] {
			ts.Check(c.Process.Signal(syscall.SIGTERM))
			return
		}
	}
	ts.Fatalf("no %s runs in the background", args[0])
}

// mode checks a file's permissions, where there are such: mode 600 north.pem.
func mode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: mode OCTAL file")
	}
	want, err := strconv.ParseUint(args[0], 8, 32)
	ts.Check(err)
	info, err := os.Stat(ts.MkAbs(args[1]))
	ts.Check(err)
	if got := info.Mode().Perm(); runtime.GOOS != "windows" && got != os.FileMode(want) {
		ts.Fatalf("%s has mode %o, want %o", args[1], got, want)
	}
}
