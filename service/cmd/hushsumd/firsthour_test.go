package main

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/internal/suite"
)

// The shell's commands of docs/first-hour.md, one after the other, with free ports in place of 8443
// and 8080.
func TestFirstHour(t *testing.T) {
	suite.OnlyLong(t) // rounds of a second each
	page := pageOf(t, "docs/first-hour.md")
	// The server is started again with the same commands, as the page says that it may be.
	_, again, found := strings.Cut(page, "\n## The server\n\n```sh\n")
	again, _, end := strings.Cut(again, "export HUSHSUM_TOKEN")
	if !found || !end {
		t.Fatal("there is no such block")
	}
	runPage(t, page+"\n```sh\nwait $server || true\n"+again+"kill $server\n```\n")
}

// The commands of docs/analytics.md between machines, in the same way.
func TestBetweenMachines(t *testing.T) {
	suite.OnlyLong(t) // programs are built, and parties wait for what goes on
	_, section, found := strings.Cut(pageOf(t, "docs/analytics.md"), "\n## Between machines\n")
	section, _, end := strings.Cut(section, "\n## ")
	if !found || !end {
		t.Fatal("there is no such section")
	}
	runPage(t, section)
}

// pageOf reads a page of the documentation.
func pageOf(t *testing.T, name string) string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(filepath.FromSlash("../../.."), name))
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}

// runPage runs the commands of a page, and looks in what they print for what it shows.
func runPage(t *testing.T, page string) {
	t.Helper()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash")
	}
	script := "set -euo pipefail\ntrap 'kill $(jobs -p) 2> /dev/null || true' EXIT\n"
	shown := ""
	for i, block := range strings.Split("\n"+page, "\n```") {
		if i%2 == 0 {
			continue
		}
		if commands, is := strings.CutPrefix(block, "sh\n"); is {
			script += commands + "\n"
		} else {
			shown += block
		}
	}
	door, admin := freeAddress(t), freeAddress(t)
	script = strings.NewReplacer("127.0.0.1:8443", door, "hushsumd serve",
		"hushsumd serve --listen "+door+" --admin "+admin, "federation show",
		"federation show --admin http://"+admin, "federation create",
		"federation create --admin http://"+admin, "hushsumd query",
		"hushsumd query --admin http://"+admin,
	).Replace(script)
	folder := t.TempDir()
	command := exec.CommandContext(t.Context(), bash, "-c", script)
	command.Dir = filepath.FromSlash("../../..")
	command.Env = append(os.Environ(), "GOBIN="+folder, "TMPDIR="+folder,
		"PATH="+folder+string(os.PathListSeparator)+os.Getenv("PATH"))
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for line := range strings.Lines(strings.TrimSpace(shown)) {
		if !strings.Contains(string(out), strings.TrimSpace(line)) {
			t.Errorf("%q was not printed, but\n%s", line, out)
		}
	}
	if shown == "" {
		t.Error("the page shows nothing of what is printed")
	}
}

// freeAddress is one of loopback on which nobody listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
