package main

import (
	"bufio"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/hushsum/hushsum/cmd/hushsum/internal/cli"
)

// asProgram has this binary be the program that it tests, for tests that need a process.
const asProgram = "HUSHSUM_TEST_PROGRAM"

// Ctrl-C and SIGTERM end a simulation with what it has done, and the exit code says which.
func TestSignals(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a process cannot be sent a signal there")
	}
	for signal, want := range map[syscall.Signal]int{
		syscall.SIGINT: cli.ExitInterrupted, syscall.SIGTERM: cli.ExitTerminated,
	} {
		var errs strings.Builder
		c := exec.CommandContext(t.Context(), os.Args[0], "simulate", "--data", "synthetic",
			"--clients", "3", "--rounds", "100000", "--json")
		c.Env, c.Stderr = append(os.Environ(), asProgram+"=1"), &errs
		out, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		last, lines := "", bufio.NewScanner(out)
		for n := 0; lines.Scan(); n++ {
			if last = lines.Text(); n == 1 { // two rounds are done
				if err := c.Process.Signal(signal); err != nil {
					t.Fatal(err)
				}
			}
		}
		_ = c.Wait()
		if code := c.ProcessState.ExitCode(); code != want ||
			!strings.Contains(errs.String(), "interrupted after ") ||
			!strings.HasPrefix(last, `{"summary":true`) || !strings.Contains(last, `"complete":false`) {
			t.Errorf("%v: code %d, want %d, %q, last line %.80s", signal, code, want, errs.String(), last)
		}
	}
}
