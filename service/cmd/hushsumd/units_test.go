package main

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// unit is a file of deploy.
func unit(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile("../../../deploy/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

var execStart = regexp.MustCompile(`(?m)^ExecStart=/usr/local/bin/hushsumd ((?:.*\\\n)*.*)$`)

// commandOf returns the command of a unit, with values for its variables.
func commandOf(t *testing.T, text string, values map[string]string) (args []string) {
	t.Helper()
	m := execStart.FindStringSubmatch(text)
	if m == nil {
		t.Fatalf("no ExecStart in %s", text)
	}
	for _, word := range strings.Fields(strings.ReplaceAll(m[1], "\\\n", " ")) {
		word = os.Expand(word, func(name string) string {
			value, found := values[name]
			if !found {
				t.Errorf("nobody sets %s", name)
			}
			return value
		})
		args = append(args, strings.Fields(word)...)
	}
	return args
}

// Systemd takes the units, and rates what they expose as low: below 3 of 10.
func TestUnits(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("there is no systemd-analyze")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"hushsum-party.service", "hushsumd.service"} {
		file := filepath.Join(t.TempDir(), name)
		text := strings.Replace(unit(t, name), "/usr/local/bin/hushsumd", self, 1)
		text = regexp.MustCompile(`(?m)^User=.*$`).ReplaceAllString(text, "User=daemon")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{
			{"verify", "--man=no", file},
			{"security", "--offline=true", "--threshold=30", file},
		} {
			out, err := exec.Command(analyze, args...).CombinedOutput()
			if err != nil || args[0] == "verify" && len(out) > 0 {
				t.Errorf("%s: systemd-analyze %s: %v\n%s", name, args[0], err, out)
			}
		}
	}
}

// notified listens as systemd does, and returns a function that reports whether it was told of the
// start.
func notified(t *testing.T) func() bool {
	t.Helper()
	folder, err := os.MkdirTemp("", "notify") // the address of a socket may have 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	socket := filepath.Join(folder, "s")
	listener, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Skipf("no sockets of datagrams: %v", err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	t.Setenv("NOTIFY_SOCKET", socket)
	return func() bool {
		b := make([]byte, 100)
		_ = listener.SetReadDeadline(time.Now().Add(time.Minute))
		n, err := listener.Read(b)
		return err == nil && string(b[:n]) == "READY=1"
	}
}

// Server and party run by what their units say, and tell systemd when they have started; a party
// that has not accepted the federation, and cannot ask, does not.
func TestUnitsStart(t *testing.T) {
	folder := t.TempDir()
	at := func(name string) string { return filepath.Join(folder, name) }
	roster := rosterOf(t, at, "identity", "b", "c", "d")
	for name, text := range map[string]string{"roster.txt": roster, "s.toml": created,
		"policy.toml": "colluders = 0\n"} {
		if err := os.WriteFile(at(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// start runs a command until it has told that it has started, or has ended.
	start := func(args []string) (out *printed, told bool, stop func()) {
		was := notified(t)
		ctx, cancel := context.WithCancel(context.Background())
		null, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		out = new(printed)
		ended, ready := make(chan int, 1), make(chan bool, 1)
		go func() { ended <- dispatch(ctx, args, streams{in: null, out: out, err: out}) }()
		go func() { ready <- was() }()
		stop = func() {
			cancel()
			if code, open := <-ended; open && code != exitOK && code != exitInterrupted && told {
				t.Errorf("%v ends with %d", args, code)
			}
			_ = null.Close()
		}
		select {
		case told = <-ready:
		case code := <-ended:
			ended <- code
		}
		return out, told, stop
	}
	args := commandOf(t, unit(t, "hushsumd.service"), map[string]string{"STATE_DIRECTORY": at("node"),
		"SERVE": "--listen 127.0.0.1:0 --admin 127.0.0.1:0 --federation " + at("s.toml")})
	out, told, stop := start(args)
	defer stop()
	if !told {
		t.Fatalf("the server does not start: %s", out.said())
	}
	value := func(key string) string {
		m := regexp.MustCompile(`(?m)^` + key + ` +(\S+)`).FindStringSubmatch(out.said())
		if m == nil {
			t.Fatalf("no %s: %s", key, out.said())
		}
		return m[1]
	}
	_, text := says(t, "roster", "show", at("roster.txt"))
	fingerprint := regexp.MustCompile(`[0-9a-f]{64}\s*$`).FindString(text)
	state := at("party")
	if err := os.Mkdir(state, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(at("identity.pem"), filepath.Join(state, "identity.pem")); err != nil {
		t.Fatal(err)
	}
	for _, more := range []string{"", "--accept", ""} {
		accepted := more != "" || hasFile(filepath.Join(state, "accepted.json"))
		line := strings.ReplaceAll(unit(t, "hushsum-party.service"), "/etc/hushsum/policy.toml",
			at("policy.toml"))
		args = commandOf(t, line, map[string]string{"STATE_DIRECTORY": state, "SERVER": value("door"),
			"FINGERPRINT": value("fingerprint"), "ROSTER_FINGERPRINT": strings.TrimSpace(fingerprint),
			"TRAIN": "true", "MORE": more})
		out, told, stop := start(args)
		stop()
		if told != accepted {
			t.Errorf("%q: told %v: %s", more, told, out.said())
		}
	}
}

func hasFile(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

func (p *printed) said() string {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.text.String()
}
