package main

import (
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// The shell's commands of docs/library.md, with a free port in place of the default, end with what
// the page shows.
func TestOperatePage(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash")
	}
	page, err := os.ReadFile("../../docs/library.md")
	if err != nil {
		t.Fatal(err)
	}
	_, script, found := strings.Cut(string(page), "\n```sh\n")
	script, rest, ends := strings.Cut(script, "\n```\n")
	_, want, shown := strings.Cut(rest, "\n```\n")
	want, _, _ = strings.Cut(want, "```")
	if !found || !ends || !shown {
		t.Fatal("the page has no such commands")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	_ = l.Close()
	script = strings.ReplaceAll(script, "127.0.0.1:7433", address)
	script = strings.ReplaceAll(script, "--out mean.csv", "--out mean.csv --listen "+address)
	command := exec.CommandContext(t.Context(), bash, "-euo", "pipefail", "-c", script)
	command.Env = append(os.Environ(), "TMPDIR="+t.TempDir())
	var errs strings.Builder
	command.Stderr = &errs
	out, err := command.Output()
	if err != nil || !strings.HasSuffix(string(out), "\n"+want) {
		t.Errorf("%v\n%s\n%s", err, out, errs.String())
	}
}
