package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/service/runner"
)

// TestMain lets dev start this program as its parties and as its committee, and scripts run it as a
// shell would.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && (os.Args[1] == devPartyName || os.Args[1] == devMemberName) {
		main()
	}
	testscript.Main(m, map[string]func(){"hushsumd": main})
}

// A job is trained by parties in processes of their own, and the model is the simulated one to the
// last bit; with noise what is spent is within the budget.
func TestDev(t *testing.T) {
	name := filepath.Join(t.TempDir(), "six.toml")
	for _, c := range []struct {
		from, to string
		equal    bool
	}{
		{"", "", true},
		{"[world.data]",
			"[privacy]\nnoise = \"discrete-gaussian\"\nepsilon = 8.0\nclip = 1.0\n[world.data]", false},
	} {
		text := strings.Replace(goodJob, c.from, c.to, 1)
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		checkDevRun(t, c.equal, 4, "--spec", name)
	}
	checkDevRun(t, true, 2, "--rounds", "2", "--parties", "4", "--epsilon", "0", "--data",
		"synthetic")
	checkDevRun(t, false, 2, "--rounds", "2", "--parties", "4", "--data", "synthetic")
}

// The same with sums of one message, whose committee has processes of its own.
func TestDevOneshot(t *testing.T) {
	name := filepath.Join(t.TempDir(), "six.toml")
	text := strings.Replace(goodJob, "sum.max_weight = 50",
		`sum = { protocol = "oneshot", members = 4, max_weight = 50, covered = true }`, 1)
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	checkDevRun(t, true, 4, "--spec", name)
	own := []string{"--protocol", "oneshot", "--rounds", "2", "--parties", "4", "--data", "synthetic"}
	checkDevRun(t, true, 2, append(own, "--epsilon", "0")...)
	checkDevRun(t, false, 2, own...)
}

// checkDevRun runs dev for this many rounds, without noise if the model is to be the simulated one.
func checkDevRun(t *testing.T, equal bool, rounds int, args ...string) {
	t.Helper()
	code, out := says(t, append([]string{"dev", "--json", "--exit"}, args...)...)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	var last outcome
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); code != 0 || err != nil {
		t.Fatalf("%v: %d %v\n%s", args, code, err, out)
	}
	switch {
	case last.Rounds != rounds || last.Lost != 0 || last.URL == "" || len(last.Job) != 64:
		t.Errorf("%v: %+v", args, last)
	case equal && last.Accuracy < 0.5: // with noise it has what chance leaves of it
		t.Errorf("%v: %+v", args, last)
	case equal && (last.Difference == nil || *last.Difference != 0 ||
		last.Accuracy != last.ClearAccuracy || last.Spent != nil):
		t.Errorf("%v: not the simulation's: %s", args, lines[len(lines)-1])
	case !equal && (last.Difference != nil || last.Spent == nil ||
		!last.Spent.Spends() || last.Spent.Bare().Upper > 8):
		t.Errorf("%v: with noise: %s", args, lines[len(lines)-1])
	}
}

// says runs a command and returns its code and all that it prints.
func says(t *testing.T, args ...string) (int, string) {
	t.Helper()
	b := new(printed)
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	code := dispatch(context.Background(), args, streams{in: null, out: b, err: b})
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return code, b.text.String()
}

// printed holds what a command and the processes that it starts print.
type printed struct {
	mutex sync.Mutex
	text  bytes.Buffer
}

func (p *printed) Write(b []byte) (int, error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.text.Write(b)
}

// rosterOf makes identities at their names with .pem, and returns their roster.
func rosterOf(t *testing.T, at func(name string) string, names ...string) (roster string) {
	t.Helper()
	for _, name := range names {
		if code, text := says(t, "identity", "new", at(name+".pem")); code != 0 {
			t.Fatal(text)
		}
		code, line := says(t, "roster", "line", name, at(name+".pem"))
		if code != 0 {
			t.Fatal(line)
		}
		roster += line
	}
	return roster
}

// What goes wrong is said with the place and the remedy.
func TestMessages(t *testing.T) {
	t.Setenv("HUSHSUM_TOKEN", "")
	dir := t.TempDir()
	t.Chdir(dir) // where serve makes a folder
	at := func(name string) string { return filepath.Join(dir, name) }
	write := func(name, text string) string {
		if err := os.WriteFile(at(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return at(name)
	}
	roster := rosterOf(t, at, "a", "b", "c", "d")
	write("roster.txt", roster)
	good := `name = "s"
rounds = 3
parties = { roster = "roster.txt", drop_out = 0.25 }
model.length = 3
[privacy]
clip = 1.0
`
	file := write("s.toml", good)
	seal := write("seal.key", strings.Repeat("ab", 32))
	exposed := write("exposed", strings.Repeat("ab", 32))
	if err := os.Chmod(exposed, 0o644); err != nil {
		t.Fatal(err)
	}
	bad := func(from, to string) string {
		return write("bad.toml", strings.Replace(good, from, to, 1))
	}
	for _, c := range []struct {
		args []string
		code int
		want []string
	}{
		{[]string{"federation", "check", bad("clip", "clp")}, 1,
			[]string{"bad.toml:6: ", "privacy.clp", "did you mean privacy.clip?"}},
		{[]string{"roster", "line", "a b", at("a.pem")}, 2, []string{"not a name for a roster"}},
		{[]string{"identity", "new", at("a.pem")}, 1, []string{"exists"}},
		{[]string{"identity", "show", file}, 1, []string{"identity new FILE"}},
		{[]string{"federation", "frob", "x"}, 2, []string{`"frob" is none of check`}},
		{[]string{"federation", "show"}, 2, []string{"takes a name or file"}},
		{[]string{"federation", "--admin", "127.0.0.1:1", "list"}, 1,
			[]string{"hushsumd serve", "--admin", "http://127.0.0.1:1"}},
		{[]string{"federation", "list", "--admin", "127.0.0.1:1"}, 1, []string{"hushsumd serve"}},
		{[]string{"federation", "pause", "s", "--admin", "127.0.0.1:1", "more"}, 2, []string{"too many"}},
		{[]string{"serve", "--nats", "nats://127.0.0.1:1", "--key", at("none")}, 1,
			[]string{"openssl rand"}},
		{[]string{"serve", "--nats", "nats://ann:secret@127.0.0.1:1", "--key", seal}, 2,
			[]string{"arguments", "--nats @FILE"}},
		{[]string{"serve", "--nats", "a:1,token@b:1", "--key", seal}, 2, []string{"--nats @FILE"}},
		{[]string{"serve", "--nats", "@" + exposed, "--key", seal}, 1, []string{"chmod 600 " + exposed}},
		{[]string{"serve", "--nats", "b:1", "--nats-nkey", seal, "--key", seal}, 1,
			[]string{"no seed of an nkey"}},
		{[]string{"serve", "--nats-creds", seal}, 2, []string{"go with --nats"}},
		{[]string{"serve", "--nats", "b:1", "--nats-cert", "x"}, 2, []string{"--nats-key go together"}},
		{[]string{"serve", "--nats", "b:1", "--nats-creds", "x", "--nats-nkey", "y"}, 2,
			[]string{"exclude each other"}},
		{[]string{"serve", "--folder", at("node"), "--key", exposed}, 1, []string{"chmod 600 " + exposed}},
		{[]string{"serve", "--cert", file, "--cert-key", exposed}, 1, []string{"chmod 600 " + exposed}},
		{[]string{"serve", "--cluster", "127.0.0.1:1", "--peers", "a:1,b:1,c:1", "--key", seal,
			"--cluster-key", exposed}, 1, []string{"chmod 600 " + exposed}},
		{[]string{"serve", "--folder", at("node"), "--operators", file}, 1, []string{"line 1",
			"operate NAME KEY"}},
		{[]string{"join"}, 2, []string{"--train, --gradients and --rows"}},
		{[]string{"join", "--server", "http://10.0.0.1", "--identity", at("a.pem"), "--train", "x",
			"--roster", at("roster.txt"), "--folder", at("p")}, 1, []string{"https://"}},
		{[]string{"join", "--server", "https://127.0.0.1:1", "--identity", at("a.pem"), "--train", "x",
			"--roster", at("roster.txt"), "--folder", at("p")}, 1,
			[]string{"refused", "is the server running"}},
		{[]string{"join", "--server", "https://127.0.0.1:1", "--identity", at("a.pem"), "--train", "x",
			"--roster", at("roster.txt"), "--train-time", "-1s"}, 2, []string{"--train-time"}},
		{[]string{"join", "--server", "https://127.0.0.1:1", "--identity", at("a.pem"), "--train", "x",
			"--roster-fingerprint", "31c8"}, 2,
			[]string{`--roster-fingerprint: "31c8" is not a fingerprint, which has 64 hexadecimal digits`}},
		{[]string{"join", "--server", "https://127.0.0.1:1", "--identity", at("a.pem"), "--train", "x",
			"--roster", at("roster.txt"), "--committee-fingerprint", "31c8"}, 2,
			[]string{`--committee-fingerprint: "31c8" is not`}},
		{[]string{"member", "--server", "https://127.0.0.1:1", "--identity", at("a.pem"),
			"--roster-fingerprint", "31c8", "--committee-fingerprint", "x"}, 2,
			[]string{`--roster-fingerprint: "31c8" is not`}},
		{[]string{"member", "--server", "https://127.0.0.1:1", "--identity", at("a.pem"), "--roster",
			at("roster.txt"), "--folder", at("p"), "--follow"}, 2, []string{"operators in follow"}},
		{[]string{"serve", "--rate", "-1"}, 2, []string{"--rate must be a number above 0"}},
		{[]string{"serve", "--silence", "1s"}, 2, []string{"--silence must be 3s or more"}},
		{[]string{"serve", "--cluster", "127.0.0.1:1", "--peers", "127.0.0.1:1,127.0.0.1:2", "--key", "x"},
			2, []string{"three or more"}},
		{[]string{"federation", "check",
			write("many.toml", strings.Replace(good, "rounds = 3", "rounds = 2000000", 1))}, 1,
			[]string{"many.toml:2: ", "1 to 1,000,000"}},
		{[]string{"federation", "create", bad("clip", "clp")}, 1, []string{"bad.toml:6: ", "privacy.clp"}},
		{[]string{"federation", "check", write("bad2.toml", strings.Replace(
			strings.Replace(good, "clip", "clp", 1), "rounds", "rouds", 1))}, 1,
			[]string{"bad2.toml:2: ", "bad2.toml:6: "}},
		{[]string{"dev", "--spec", file}, 1, []string{"s.toml", "model.name", "trains no model"}},
		{[]string{"dev", "--spec", file, "--rounds", "3"}, 2, []string{"--rounds is for dev without"}},
		{[]string{"dev", "--parties", "3"}, 2, []string{"4 to 100"}},
		{[]string{"frob"}, 2, []string{"hushsumd help"}},
	} {
		code, text := says(t, c.args...)
		if code != c.code {
			t.Errorf("%v: code %d, want %d: %s", c.args, code, c.code, text)
		}
		for _, want := range c.want {
			if !strings.Contains(text, want) {
				t.Errorf("%v: it lacks %q: %s", c.args, want, text)
			}
		}
	}
	write("broken.txt", "a b\n")
	code, text := says(t, "federation", "check", bad("roster.txt", "broken.txt"))
	if code != 1 || !strings.Contains(text, "bad.toml:3: ") || !strings.Contains(text, "roster line") {
		t.Errorf("%d %s", code, text)
	}
}

// A federation that no node leads is not told as one at its beginning.
func TestShowWithoutLeader(t *testing.T) {
	var b bytes.Buffer
	s := &runner.Status{Name: "study", State: "without a leader", Rounds: 20}
	err := show(s, false, streams{out: &b})
	if text := b.String(); err != nil || strings.Contains(text, "round 0") ||
		!strings.Contains(text, "no node answers for it") {
		t.Errorf("%v %s", err, text)
	}
}

// A federation of which nothing is known is listed without figures.
func TestListWithoutFigures(t *testing.T) {
	budget, err := accounting.NewBudget(accounting.Statement{}, 2, 1e-5)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = json.NewEncoder(w).Encode([]runner.Status{{Name: "study", State: runner.Leaderless,
			Rounds: 60, Budget: &budget, ID: "0a"}})
	}))
	defer server.Close()
	code, text := says(t, "federation", "list", "--admin", server.URL)
	const want = "study without a leader -/60 - - of 2 - 0a at delta 1e-05 for each party, "
	if code != 0 ||
		!strings.Contains(strings.Join(strings.Fields(text), " "), want) {
		t.Errorf("%d %s", code, text)
	}
}

// After the end it is not said which parties are there.
func TestShowEnded(t *testing.T) {
	var b bytes.Buffer
	s := &runner.Status{Name: "study", State: "ended", Leader: "node-1", Parties: []runner.PartyStatus{
		{Name: "north", State: "gone"}, {Name: "south", State: "never"}}}
	err := show(s, false, streams{out: &b})
	if text := strings.Join(strings.Fields(b.String()), " "); err != nil ||
		!strings.Contains(text, "north - south never") {
		t.Errorf("%v %s", err, text)
	}
}

// For whom a step waits is told, with since when and until when.
func TestShowWaiting(t *testing.T) {
	var b bytes.Buffer
	since := time.Date(2026, 12, 1, 20, 0, 0, 0, time.UTC)
	until := since.Add(time.Minute)
	s := &runner.Status{Name: "study", State: "running", Leader: "node-1",
		Since: &since, Until: &until,
		Parties: []runner.PartyStatus{{Name: "north", State: "here"},
			{Name: "south", State: "late", Awaited: true}}}
	err := show(s, false, streams{out: &b})
	for _, want := range []string{
		"began at 2026-12-01T20:00:00Z, and waits until 2026-12-01T20:01:00Z",
		" here\n", " late, waited for\n",
	} {
		if err != nil || !strings.Contains(b.String(), want) {
			t.Errorf("%v, it lacks %q: %s", err, want, b.String())
		}
	}
}
