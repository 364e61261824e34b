package simulate

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/cmd/hushsum/internal/account"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/cli"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/clitest"
	"github.com/hushsum/hushsum/internal/realdata"
)

// call runs a program with these commands.
func call(ctx context.Context, args ...string) (code int, stdout, stderr string) {
	return clitest.Call(ctx, args, Command(), account.Command())
}

// quick is a run of a few milliseconds.
const quick = "simulate --clients 4 --rows-per-client 50 --rounds 3 --local-steps 5"

func TestTable(t *testing.T) {
	code, out, errs := call(t.Context(), strings.Fields(quick)...)
	if code != 0 || errs != "" {
		t.Fatalf("code %d, %q", code, errs)
	}
	clitest.Width(t, out)
	for _, want := range []string{
		"synthetic census: 200 rows; tested on 10,000 others",
		"4 with 50 rows each",
		"40 weights",
		"3 rounds of 5 local steps; rate 2, lambda 0.0001, seed 1",
		"round   parties      up    down  train ms   sum ms  server ms  accuracy     MCC",
		"over the private sum",
		"in the clear, same seeds",
		"largest difference between two weights",
		"recovery  off: every party must submit",
		"The largest part of a party's time",
		"The run took ",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("the output lacks %q:\n%s", want, out)
		}
	}
	rows := regexp.MustCompile(`(?m)^ +[123]       4/4 +\d+ +\d+ +[\d.]+ +[\d.]+ +[\d.]+    0\.\d{4} +-?[01]\.\d{4}$`)
	if n := len(rows.FindAllString(out, -1)); n != 3 {
		t.Errorf("%d rows of rounds, want 3:\n%s", n, out)
	}
	if strings.Contains(out, "\r") {
		t.Error("carriage returns without a terminal")
	}
}

// On a terminal, a line shows the progress and gives way to the round's row.
func TestLiveTable(t *testing.T) {
	var out, errs bytes.Buffer
	code := simulate(t.Context(), strings.Fields(quick)[1:],
		cli.Streams{Out: &out, Err: &errs, Live: true})
	if code != 0 || errs.Len() != 0 {
		t.Fatalf("code %d, %q", code, errs.String())
	}
	clitest.Width(t, out.String())
	for _, want := range []string{"\rsetup       0/4", "\rsetup       4/4", "\r    1       3/4",
		"\r    3       4/4\r"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the output lacks %q: %q", want, out.String())
		}
	}
	// In the end a terminal shows the same as without one.
	var shown strings.Builder
	for line := range strings.Lines(out.String()) {
		shown.WriteString(line[strings.LastIndex(line, "\r")+1:])
	}
	for line := range strings.Lines(shown.String()) {
		if strings.HasPrefix(line, "setup") {
			t.Errorf("a progress line stays: %q", line)
		}
	}
	if !strings.Contains(shown.String(), "\n    1       4/4 ") {
		t.Errorf("the first round is not shown:\n%s", shown.String())
	}
}

// decode reads JSON lines with the keys that were promised.
func decode(t *testing.T, out string) []map[string]any {
	t.Helper()
	var objects []map[string]any
	for line := range strings.Lines(out) {
		var o map[string]any
		if err := json.Unmarshal([]byte(line), &o); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		for _, key := range []string{
			"round", "clients", "accuracy", "mcc", "clear_accuracy", "clear_mcc",
			"max_abs_diff", "bytes_up", "bytes_down", "train_ms", "client_ms", "server_ms",
		} {
			if _, ok := o[key].(float64); !ok {
				t.Errorf("%q lacks %s", line, key)
			}
		}
		objects = append(objects, o)
	}
	return objects
}

func TestJSON(t *testing.T) {
	code, out, errs := call(t.Context(), append(strings.Fields(quick), "--json")...)
	if code != 0 || errs != "" {
		t.Fatalf("code %d, %q", code, errs)
	}
	objects := decode(t, out)
	if len(objects) != 4 {
		t.Fatalf("%d objects, want 4", len(objects))
	}
	up := 0.0
	for i, o := range objects[:3] {
		if _, ok := o["summary"]; ok || o["round"] != float64(i+1) || o["clients"] != 4.0 {
			t.Errorf("object %d: %v", i, o)
		}
		up += o["bytes_up"].(float64)
	}
	last := objects[3]
	for key, want := range map[string]any{
		"summary": true, "complete": true, "round": 3.0, "clients": 4.0, "rows_per_client": 50.0,
		"parameters": 40.0,
		"bytes_up":   up, "mcc": objects[2]["mcc"], "clear_mcc": objects[2]["clear_mcc"],
		"max_abs_diff": objects[2]["max_abs_diff"],
	} {
		if last[key] != want {
			t.Errorf("summary: %s is %v, want %v", key, last[key], want)
		}
	}
	for _, key := range []string{"setup_client_ms", "setup_server_ms", "client_ms", "server_ms",
		"setup_bytes_down"} {
		if x, ok := last[key].(float64); !ok || x <= 0 {
			t.Errorf("summary: %s is %v", key, last[key])
		}
	}
}

// The same seed gives the same models, another seed others.
func TestSeed(t *testing.T) {
	outcome := func(seed string) [2]any {
		_, out, _ := call(t.Context(), append(strings.Fields(quick), "--json", "--seed", seed)...)
		objects := decode(t, out)
		last := objects[len(objects)-1]
		return [2]any{last["mcc"], last["max_abs_diff"]}
	}
	if outcome("7") != outcome("7") {
		t.Error("one seed, two outcomes")
	}
	if outcome("7") == outcome("8") {
		t.Error("two seeds, one outcome")
	}
}

// interrupter cancels after some lines have been written.
type interrupter struct {
	bytes.Buffer
	lines  int
	cancel context.CancelFunc
}

func (w *interrupter) Write(b []byte) (int, error) {
	n, err := w.Buffer.Write(b)
	if bytes.Count(w.Bytes(), []byte("\n")) >= w.lines {
		w.cancel()
	}
	return n, err
}

func TestInterrupt(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out := &interrupter{lines: 2, cancel: cancel}
	var errs bytes.Buffer
	args := append(strings.Fields(quick), "--rounds", "1000", "--json")
	code := clitest.Run(ctx, out, &errs, args, Command())
	if code != 130 || !strings.Contains(errs.String(), "interrupted after 2 of 1,000 rounds") {
		t.Errorf("code %d, %q", code, errs.String())
	}
	objects := decode(t, out.String())
	if len(objects) != 3 || objects[2]["summary"] != true || objects[2]["complete"] != false ||
		objects[2]["round"] != 2.0 {
		t.Errorf("output:\n%s", out)
	}

	// As a table, and before the first round.
	ctx, cancel = context.WithCancel(t.Context())
	cancel()
	code, table, stderr := call(ctx, strings.Fields(quick)...)
	if code != 130 || !strings.Contains(stderr, "interrupted after 0 of 3 rounds") ||
		!strings.Contains(table, "No round was completed") {
		t.Errorf("code %d, %q, %q", code, table, stderr)
	}
}

func TestFailures(t *testing.T) {
	empty := t.TempDir()
	half := t.TempDir()
	if err := os.WriteFile(filepath.Join(half, "adult.data"), []byte("39, State-gov, 77516, Bach"),
		0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(half, "adult.test"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		args []string
		says []string
	}{
		{"absent folder", []string{"--data", filepath.Join(empty, "nowhere")},
			[]string{"nowhere", "no such file", "the folder with"}},
		{"empty folder", []string{"--data", empty}, []string{"adult.data", "synthetic makes"}},
		{"a file for a folder", []string{"--data", filepath.Join(half, "adult.data")},
			[]string{"adult.data is a file", "Give the folder that"}},
		{"half a file", []string{"--data", half}, []string{"incomplete data file", "adult.data", "Fetch adult.data"}},
		{"too many made-up rows", []string{"--rows-per-client", "5000000"},
			[]string{"Lower --clients or --rows-per-client"}},
		{"regularisation", []string{"--lambda", "1e10", "--local-steps", "100"},
			[]string{"diverged", "Lower --rate or --lambda"}},
		{"saturation", []string{"--range", "0.01"}, []string{"round 1", "party-1", "Raise --range"}},
		{"divergence", []string{"--rate", "1e300", "--lambda", "1e300"},
			[]string{"round 1, party-1: training diverged", "Lower --rate or --lambda"}},
	} {
		code, out, errs := call(t.Context(), append(strings.Fields(quick), c.args...)...)
		if code != 1 {
			t.Errorf("%s: code %d, want 1: %q %q", c.name, code, out, errs)
		}
		for _, want := range append(c.says, "hushsum simulate: ") {
			if !strings.Contains(errs, want) {
				t.Errorf("%s: the message lacks %q: %q", c.name, want, errs)
			}
		}
		clitest.Message(t, errs)
	}
}

func TestAdult(t *testing.T) {
	dir := realdata.Dir(t, "adult")
	args := append(strings.Fields(quick), "--data", dir, "--local-steps", "40", "--json")
	code, out, errs := call(t.Context(), args...)
	if code != 0 || errs != "" {
		t.Fatalf("code %d, %q", code, errs)
	}
	last := decode(t, out)[3]
	if last["parameters"] != 105.0 || last["mcc"].(float64) < 0.3 {
		t.Errorf("summary %v", last)
	}
	code, out, errs = call(t.Context(), append(strings.Fields(quick), "--data", dir)...)
	if code != 0 || errs != "" ||
		!strings.Contains(out, "both files merged and split again 75/25: 33,916") {
		t.Errorf("code %d, %q, %q", code, out, errs)
	}
	clitest.Width(t, out)
	if diff := math.Abs(last["mcc"].(float64) - last["clear_mcc"].(float64)); diff > 0.002 {
		t.Errorf("the private model's MCC is %v away", diff)
	}
	for _, c := range [][3]string{
		{"100", "400", "33916\ntraining rows\nUse --clients up to 84 or --rows-per-client up to 339.\n"},
		{"5", "40000", "Use --rows-per-client up to 6783."},
	} {
		code, out, errs := call(t.Context(), "simulate", "--data", dir, "--clients", c[0],
			"--rows-per-client", c[1])
		if code != 1 || out != "" || !strings.Contains(errs, c[2]) {
			t.Errorf("%s parties of %s rows: code %d, %q, %q", c[0], c[1], code, out, errs)
		}
		clitest.Message(t, errs)
	}
}
