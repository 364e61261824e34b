package simulate

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/hushsum/hushsum/cmd/hushsum/internal/cli"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/clitest"
	"github.com/hushsum/hushsum/internal/realdata"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/simulation"
)

// called runs a program with simulate.
func called(ctx context.Context, stdout, stderr io.Writer, args []string) (code int) {
	return clitest.Run(ctx, stdout, stderr, args, Command())
}

const latencyFile = "../../../../simulation/scenarios/latency.toml"

// Table 5.3 of "A Practical Approach to Federated Learning" (the thesis) from the command:
// place, round and seconds of all lines.
func TestScenarioJSON(t *testing.T) {
	t.Setenv("HUSHSUM_DATA", filepath.Dir(realdata.Dir(t, "digits")))
	var out, errs bytes.Buffer
	args := []string{"simulate", latencyFile, "--json"}
	if code := called(t.Context(), &out, &errs, args); code != cli.ExitOK {
		t.Fatalf("exit %d: %s", code, &errs)
	}
	want := []struct {
		round   int
		place   string
		seconds float64
	}{
		{1, "Boston", 4.310}, {1, "Singapore", 6.010}, {1, "New York", 4.110},
		{2, "Boston", 4.306}, {2, "Singapore", 6.006}, {2, "New York", 4.106},
		{3, "Boston", 0.909}, {3, "New York", 0.709},
	}
	var lines, rounds []string
	for text := range strings.Lines(out.String()) {
		if strings.Contains(text, `"party":`) {
			lines = append(lines, text)
		} else {
			rounds = append(rounds, text)
		}
	}
	if len(lines) != len(want) || len(rounds) != 4 {
		t.Fatalf("%d lines of parties, %d others", len(lines), len(rounds))
	}
	last := regexp.MustCompile(`^{"summary":true,"round":3,"clients":2,"accuracy":0\.[0-9]+,` +
		`"mcc":0\.[0-9]+,"lost":false,"seconds":12\.[0-9]+,.*"complete":true,"data":"digits",`)
	if !last.MatchString(rounds[3]) || !strings.Contains(rounds[3], `"epsilon":null,"delta":null`) {
		t.Errorf("the last object is %s", rounds[3])
	}
	// With noise its epsilon is that of the largest claim.
	out.Reset()
	noisy := append(args, "--rounds", "1", "--set", "privacy.noise=discrete-gaussian", "--set",
		"privacy.epsilon=8", "--set", "privacy.clip=1.0", "--set", "world.tolerance=0")
	if code := called(t.Context(), &out, &errs, noisy); code != cli.ExitOK {
		t.Fatalf("exit %d: %s", code, &errs)
	}
	var spent struct {
		Epsilon, Delta float64
		Certified      struct{ Epsilon, Delta float64 }
	}
	for text := range strings.Lines(out.String()) {
		if strings.Contains(text, `"summary":true`) {
			if err := json.Unmarshal([]byte(text), &spent); err != nil {
				t.Fatal(err)
			}
		}
	}
	if !(spent.Epsilon > 0 && spent.Epsilon <= 8) || spent.Delta != 1e-5 ||
		spent.Certified.Epsilon != spent.Epsilon {
		t.Errorf("%+v", spent)
	}
	for k, text := range lines {
		var l struct {
			Round   int
			Place   string
			Seconds *float64
		}
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			t.Fatal(err)
		}
		if l.Round != want[k].round || l.Place != want[k].place || l.Seconds == nil ||
			*l.Seconds != want[k].seconds {
			t.Errorf("line %d: %s", k+1, text)
		}
	}
}

// What is wrong with a job is said on one line, with file, line and remedy.
func TestBadJobs(t *testing.T) {
	text, err := os.ReadFile(latencyFile)
	if err != nil {
		t.Fatal(err)
	}
	good := string(text)
	line := func(s string) int { return strings.Count(good[:strings.Index(good, s)], "\n") + 1 }
	for _, test := range []struct {
		name, from, to string
		line           int
		want           string
	}{
		{"unknown key", "rounds = 3", "rouds = 3", line("rounds = 3"), "did you mean rounds?"},
		{"a region without latency", `["Boston", "server"]`, `["Bosten", "server"]`,
			line("compute") - 2, "add a [[world.link]]"},
		{"too few parties", "[world]\n", "[parties]\ndrop_out = 0.4\ncolluders = 1\n\n[world]\n",
			line("[world]") + 1, "or have 7 parties"},
		{"no such data", `"digits"`, `"digit"`, line(`"digits"`), "use synthetic"},
		{"no TOML", "[world]", "[world", line("[world]"), "write it as"},
		{"a rule that is not there in virtual time", "training = {", `training = { rule = "fedga",`,
			line("training = {"), "leave it out"},
		{"too many rows", "rows = 30", "rows = 3000", line("rows = 30"), "fewer parties"},
		{"one row of all", "rows = 30", "rows = 1\nmost = 1", line("rows = 30") + 1,
			"use a larger world.data.most"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if strings.Contains(test.name, "rows") || strings.Contains(test.name, "one row") {
				t.Setenv("HUSHSUM_DATA", filepath.Dir(realdata.Dir(t, "digits")))
			}
			path := filepath.Join(t.TempDir(), "bad.toml")
			if err := os.WriteFile(path, []byte(strings.Replace(good, test.from, test.to, 1)),
				0o666); err != nil {
				t.Fatal(err)
			}
			expectBad(t, path, test.line, test.want)
		})
	}
	t.Run("missing data", func(t *testing.T) {
		t.Setenv("HUSHSUM_DATA", t.TempDir())
		path := filepath.Join(t.TempDir(), "bad.toml")
		if err := os.WriteFile(path, text, 0o666); err != nil {
			t.Fatal(err)
		}
		expectBad(t, path, line(`set = "digits"`), "HUSHSUM_DATA")
	})
	t.Run("several", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "bad.toml")
		bad := strings.NewReplacer("rounds = 3", "rounds = 0", `"2s"`, `"soon"`).Replace(good)
		if err := os.WriteFile(path, []byte(bad), 0o666); err != nil {
			t.Fatal(err)
		}
		code, _, errs := call(t.Context(), "simulate", path)
		if code != cli.ExitFailure || strings.Count(errs, "\n") != 2 ||
			!strings.Contains(errs, "rounds: 0 is outside") || !strings.Contains(errs, "latency: ") {
			t.Errorf("exit %d: %s", code, errs)
		}
	})
}

func expectBad(t *testing.T, path string, line int, want string) {
	t.Helper()
	var out, errs bytes.Buffer
	args := []string{"simulate", path, "--json"}
	if code := called(t.Context(), &out, &errs, args); code != cli.ExitFailure {
		t.Errorf("exit %d", code)
	}
	said := regexp.MustCompile(`bad\.toml:(\d+): .+; `).FindStringSubmatch(errs.String())
	if said == nil || strings.Count(errs.String(), "\n") != 1 || out.Len() > 0 ||
		!strings.Contains(errs.String(), want) || said[1] != strconv.Itoa(line) {
		t.Errorf("want line %d and %q, got %q", line, want, errs.String())
	}
}

// The files of the documentation and of simulation/scenarios are jobs that can be simulated.
func TestDocumentedJobs(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/scenarios.md")
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string][]byte{}
	for _, block := range regexp.MustCompile("(?s)```toml\n(.*?)```").FindAllSubmatch(page, -1) {
		texts[fmt.Sprint("docs/scenarios.md ", len(texts))] = block[1]
	}
	paths, err := filepath.Glob("../../../../simulation/scenarios/*.toml")
	if err != nil || len(texts) == 0 || len(paths) < 15 {
		t.Fatal(len(texts), len(paths), err)
	}
	for _, path := range paths {
		if texts[path], err = os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range texts {
		j, err := job.Parse(name, text)
		if err == nil {
			err = simulation.Validate(j)
		}
		if err != nil {
			t.Error(err)
		}
	}
}

// However many parties, rounds that are lost and names that are long, the tables fit a
// terminal.
func TestScenarioWidth(t *testing.T) {
	t.Setenv("HUSHSUM_DATA", filepath.Dir(realdata.Dir(t, "digits")))
	text := `name = "wide"
rounds = 3
model.name = "logistic"
training = { steps = 50, rate = 1.0 }
privacy = { noise = "skellam", epsilon = 1000.0, bits = 20, clip = 1.0 }
time.step_time = "10s"
[parties]
drop_out = 0.2
[[parties.group]]
name = "The-municipal-hospital-of-a-town-with-a-name-of-sixty-letter"
count = 4
[[parties.group]]
name = "another"
count = 4
[world]
fidelity = "messages"
data = { rows = 20 }
[[world.party]]
name = "another"
place = "a place whose name takes a line of its own, too"
[[world.party.crash]]
round = 2
`
	for name, crowd := range map[string]bool{"private": false, "crowd": true} {
		text := text
		if crowd {
			text = strings.NewReplacer("[[world.party.crash]]\nround = 2\n", "", `"messages"`,
				`"crowd"`).Replace(text)
		}
		path := filepath.Join(t.TempDir(), "wide.toml")
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		var out, errs bytes.Buffer
		if code := called(t.Context(), &out, &errs, []string{"simulate", path}); code != cli.ExitOK {
			t.Fatalf("%s: exit %d: %s", name, code, &errs)
		}
		for _, line := range strings.Split(out.String(), "\n") {
			if utf8.RuneCountInString(line) > cli.Width {
				t.Errorf("%s: %q", name, line)
			}
		}
		if strings.Contains(out.String(), "lost: ") != (name == "private") {
			t.Errorf("%s:\n%s", name, &out)
		}
		if strings.Contains(out.String(), "   0.0000   0.0000") {
			t.Errorf("%s: a party holds no model:\n%s", name, &out)
		}
	}
}

// An epsilon of parties that submit in some of the rounds says of how many it is.
func TestParticipationsTable(t *testing.T) {
	file := filepath.Join(t.TempDir(), "turns.toml")
	if err := os.WriteFile(file, []byte(`name = "turns"
rounds = 4
seed = 3
model.name = "logistic"
training.steps = 5
privacy = { noise = "discrete-gaussian", epsilon = 8.0, clip = 1.0 }
[parties]
per_round = 5
participations = 2
drop_out = 0.2
group = [{ name = "clinic", count = 10 }]
[world]
data.rows = 50
link = [{ between = ["here", "server"], latency = "50ms" }]
party = [{ name = "clinic", place = "here" }]
`), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	code := called(t.Context(), &out, &errs, []string{"simulate", file})
	if want := "over 2 of 4 rounds"; code != cli.ExitOK || !strings.Contains(out.String(), want) {
		t.Errorf("exit %d, no %q: %s%s", code, want, &errs, &out)
	}
}
