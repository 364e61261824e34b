package simulate

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hushsum/hushsum/cmd/hushsum/internal/cli"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/clitest"
	"github.com/hushsum/hushsum/internal/realdata"
)

// simulated runs simulate with a scenario of digits and returns what it printed.
func simulated(t *testing.T, ctx context.Context, args ...string) (out, errs string, code int) {
	t.Helper()
	t.Setenv("HUSHSUM_DATA", filepath.Dir(realdata.Dir(t, "digits")))
	var stdout, stderr bytes.Buffer
	code = called(ctx, &stdout, &stderr, append([]string{"simulate", latencyFile}, args...))
	return stdout.String(), stderr.String(), code
}

// The page is one file that needs no other, escapes what scenarios say, and is shown by
// a browser, if there is one, with its figures and without a script.
func TestScenarioPage(t *testing.T) {
	dir := t.TempDir()
	out, errs, code := simulated(t, t.Context(), "--out", dir)
	if code != cli.ExitOK {
		t.Fatalf("exit %d: %s", code, errs)
	}
	if !strings.Contains(out, "5 files in") {
		t.Errorf("%s", out)
	}
	page := filepath.Join(dir, "latency.html")
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"What it costs", "What it gains", "Who gains",
		"How much privacy is spent", "What could go wrong", "<svg", "Singapore",
		"the commonest answer is right about 11."} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	for _, outside := range []string{"<script", "src=", "<link", "@import", "url("} {
		if strings.Contains(string(text), outside) {
			t.Errorf("the page has %q", outside)
		}
	}
	shown := rendered(t, page)
	if strings.Count(shown, "<svg") != 2 || !strings.Contains(shown, "What could go wrong") {
		t.Errorf("the browser does not show the page: %.200s", shown)
	}
}

// rendered returns what a headless Chromium makes of a page; without one the test ends here.
func rendered(t *testing.T, page string) string {
	t.Helper()
	browser := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "headless_shell"} {
		if path, err := exec.LookPath(name); err == nil {
			browser = path
			break
		}
	}
	if browser == "" {
		t.Skip("there is no Chromium to show the page")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	text, err := exec.CommandContext(ctx, browser, "--headless", "--no-sandbox", "--disable-gpu",
		"--user-data-dir="+t.TempDir(), "--dump-dom", "file://"+page).Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A sweep that is stopped goes on where it was, and comes to the same.
func TestSweep(t *testing.T) {
	dir := t.TempDir()
	kept := filepath.Join(dir, "kept")
	sweep := []string{"--sweep", "seed=1,2 parties=3,4", "--keep", kept, "--json"}
	whole, errs, code := simulated(t, t.Context(), sweep...)
	if code != cli.ExitOK || !strings.Contains(errs, "4 of 4 done") {
		t.Fatalf("exit %d: %s", code, errs)
	}
	lines := strings.Split(strings.TrimSpace(whole), "\n")
	if len(lines) != 4 {
		t.Fatalf("%d lines", len(lines))
	}
	for _, text := range lines {
		var l map[string]any
		if err := json.Unmarshal([]byte(text), &l); err != nil || l["accuracy"].(float64) < 0.5 {
			t.Errorf("%s: %v", text, err)
		}
	}
	stored, err := os.ReadFile(kept)
	if err != nil {
		t.Fatal(err)
	}
	// As a run that was killed while it wrote the third outcome leaves it.
	ends := bytes.Index(stored, []byte("\n"))
	ends += 1 + bytes.Index(stored[ends+1:], []byte("\n"))
	if err := os.WriteFile(kept, stored[:ends+20], 0o666); err != nil {
		t.Fatal(err)
	}
	again, errs, code := simulated(t, t.Context(), append(sweep, "--out", dir)...)
	if code != cli.ExitOK || !strings.Contains(errs, "2 of 4 are kept") ||
		!strings.Contains(errs, "2 of 2 done") {
		t.Fatalf("exit %d: %s", code, errs)
	}
	if again != whole {
		t.Errorf("gone on:\n%s\nat once:\n%s", again, whole)
	}
	for _, name := range []string{"latency-sweep-cost.svg", "latency-sweep.svg", "latency-sweep.csv",
		"latency-sweep.html"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, code := simulated(t, ended, "--sweep", "seed=3,4"); code != cli.ExitInterrupted {
		t.Errorf("an interrupted sweep: exit %d", code)
	}
	// What was done is shown and written, apart from what a whole sweep wrote.
	terminated, end := context.WithCancelCause(t.Context())
	end(&cli.Signalled{Signal: syscall.SIGTERM})
	partly, errs, code := simulated(t, terminated, "--sweep", "seed=2,3 parties=3,4", "--keep", kept,
		"--json", "--out", dir)
	if code != cli.ExitTerminated || !strings.Contains(clitest.Flat(errs),
		"interrupted after 2 of 4 combinations The same command resumes from what was done") {
		t.Errorf("a sweep that SIGTERM ends: exit %d: %s", code, errs)
	}
	if partly != lines[2]+"\n"+lines[3]+"\n" {
		t.Errorf("it shows\n%s", partly)
	}
	manifest, err := os.ReadFile(filepath.Join(dir, "incomplete", "latency-sweep.json"))
	if err != nil || !bytes.Contains(manifest, []byte(`"ended": "interrupted"`)) {
		t.Errorf("%s, %v", manifest, err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "latency-sweep.csv")); err != nil ||
		bytes.Count(text, []byte("\n")) != 5 {
		t.Errorf("the whole sweep's table is now\n%s, %v", text, err)
	}
}

// The page of a sweep has numbers as people read them, and next to the table what is wrong
// with combinations that came to nothing; if all did there is none.
func TestSweepPage(t *testing.T) {
	dir := t.TempDir()
	if out, errs, code := simulated(t, t.Context(), "--sweep", "rows=20,100000", "--out",
		dir); code != cli.ExitOK || !strings.Contains(out, "world.data.rows: all parties and rounds") {
		t.Fatalf("exit %d: %s%s", code, out, errs)
	}
	text, err := os.ReadFile(filepath.Join(dir, "latency-sweep.html"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"rows=100000 gave no result: world.data.rows", "certified epsilon",
		"<td>none</td>", " %</td>"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if long := regexp.MustCompile(`<td>[^<]{12,}`).Find(text); long != nil {
		t.Errorf("a cell says %s", long)
	}
	if _, errs, code := simulated(t, t.Context(), "--sweep", "rows=100000,200000", "--out",
		t.TempDir()); code != cli.ExitFailure || !strings.Contains(errs, "no combination gave a result") {
		t.Errorf("nothing but failures: exit %d: %s", code, errs)
	}
}

func TestBadSweeps(t *testing.T) {
	for _, sweep := range []string{"epsilon", "epsilon=", "epsilon=x", "epsilon=NaN", "parties=2.5",
		"epsilonn=1", "seed=1 seed=2", " ", "rounds=0", "parties=1",
		"seed=" + strings.Repeat("1,", 10_000) + "1"} {
		if _, errs, code := simulated(t, t.Context(), "--sweep", sweep); code != cli.ExitUsage ||
			!strings.Contains(errs, "--sweep") {
			t.Errorf("%.40q: exit %d, %s", sweep, code, errs)
		}
	}
	if _, _, code := simulated(t, t.Context(), "--keep", "x"); code != cli.ExitUsage {
		t.Errorf("--keep without --sweep: exit %d", code)
	}
}
