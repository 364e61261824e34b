package attack

import (
	"bytes"
	"context"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/attacks"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/cli"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/clitest"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/show"
)

// call runs a program with these commands.
func call(ctx context.Context, args ...string) (code int, stdout, stderr string) {
	return clitest.Call(ctx, args, Command())
}

// Two attacks that take milliseconds, one of them without complete defence.
const quickAttack = "attack --run ^(differencing|WrapAround|FloatSupport)$"

func TestAttackTable(t *testing.T) {
	for args, want := range map[string][]string{
		quickAttack: {
			"attack metric undefended defended bound verdict",
			"Differencing squared error",
			"by: curious server",
			"by: client; 1 more",
			"documented",
			"3 of 3 attacks, 5 measurements: 1 shown, 3 held, 1 documented",
		},
		quickAttack + " --all": {
			"WrapAround: x + shifts that go",
			"WrapAround: largest unnoticed",
			"5 measurements",
		},
	} {
		code, out, errs := call(t.Context(), strings.Fields(args)...)
		if code != 0 || errs != "" {
			t.Fatalf("%s: code %d, %q\n%s", args, code, errs, out)
		}
		words := strings.Join(strings.Fields(out), " ")
		for _, text := range want {
			if strings.Contains(words, text) {
				continue
			}
			t.Errorf("%s: no %q in\n%s", args, text, out)
		}
		clitest.Width(t, out)
	}
}

func TestAttackJSONAndReport(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "report")
	const run = "^(Differencing|AuditPower|WrapAround)$"
	code, out, errs := call(t.Context(), "attack", "--run", run, "--json", "--out", dir)
	if code != 0 || errs != "" {
		t.Fatalf("code %d, %q", code, errs)
	}
	names := map[any]bool{}
	for line := range strings.Lines(out) {
		var o map[string]any
		if err := json.Unmarshal([]byte(line), &o); err != nil {
			t.Fatal(err)
		}
		names[o["attack"]] = true
		for _, key := range []string{
			"adversary", "defence", "case", "metric", "undefended", "defended", "verdict", "note",
		} {
			if _, ok := o[key]; !ok {
				t.Errorf("%q lacks %s", line, key)
			}
		}
		if v := o["verdict"]; v != "held" && v != "documented" && v != "shown" {
			t.Errorf("%q", line)
		}
	}
	if len(names) != 3 {
		t.Errorf("attacks %v", names)
	}
	report, err := os.ReadFile(filepath.Join(dir, "report.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"# Attacks", "## Differencing", "- Adversary: curious server", "| case | metric |",
	} {
		if !bytes.Contains(report, []byte(want)) {
			t.Errorf("the report lacks %q", want)
		}
	}
}

// attackFinding is an attack that finds the same whatever it is told.
func attackFinding(name string, report *attacks.Report) attacks.Attack {
	return attacks.Attack{
		Name:      name,
		Adversary: "tester",
		Run: func(context.Context, attacks.Options) (*attacks.Report, error) {
			return report, nil
		},
	}
}

// A broken defence fails the command, whatever else holds.
func TestAttackVerdict(t *testing.T) {
	row := func(undefended, defended float64) attacks.Row {
		return attacks.Row{
			Metric:     "inputs",
			Undefended: attacks.Exactly(undefended, 1, 1),
			Defended:   attacks.Exactly(defended, 1, 0),
		}
	}
	for name, c := range map[string]struct {
		rows []attacks.Row
		code int
	}{
		"held":      {[]attacks.Row{row(1, 0)}, 0},
		"broken":    {[]attacks.Row{row(1, 0), row(1, 1)}, 1},
		"toothless": {[]attacks.Row{row(0, 0), row(1, 0)}, 1},
	} {
		var out bytes.Buffer
		b := &battery{Screen: show.Screen{Std: cli.Streams{Out: &out, Err: &out}}}
		found := &attacks.Report{Rows: c.rows}
		code := b.run(t.Context(), []attacks.Attack{attackFinding("X", found)}, attacks.Options{})
		if code != c.code || !strings.Contains(out.String(), name) {
			t.Errorf("%s: code %d\n%s", name, code, out.String())
		}
	}
}

// An interrupted run leaves a complete report as it was, and marks its own.
func TestAttackInterrupted(t *testing.T) {
	dir := t.TempDir()
	code, _, errs := call(t.Context(), "attack", "--run", "Differencing", "--out", dir)
	if code != 0 {
		t.Fatalf("code %d, %q", code, errs)
	}
	before, err := os.ReadFile(filepath.Join(dir, "report.md"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var out bytes.Buffer
	b := &battery{Screen: show.Screen{Std: cli.Streams{Out: &out, Err: &out}}, out: dir}
	interrupted := attacks.Attack{
		Name: "Y",
		Run: func(ctx context.Context, _ attacks.Options) (*attacks.Report, error) {
			stop()
			return nil, ctx.Err()
		},
	}
	chosen := []attacks.Attack{attackFinding("X", &attacks.Report{}), interrupted}
	code = b.run(ctx, chosen, attacks.Options{})
	after, err := os.ReadFile(filepath.Join(dir, "report.md"))
	if code != 130 || err != nil || !bytes.Equal(before, after) {
		t.Errorf("code %d, %v, the report is now\n%s", code, err, after)
	}
	part, err := os.ReadFile(filepath.Join(dir, "incomplete", "report.md"))
	const notice = "**Not complete:** interrupted in Y, after 1 of 2 attacks."
	if err != nil || !strings.Contains(string(part), notice) {
		t.Errorf("%v\n%s", err, part)
	}
}

func TestAttackFigures(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	sample := make([]float64, 500)
	x := make([]float64, len(sample))
	for i := range sample {
		sample[i], x[i] = rng.NormFloat64(), float64(i)
	}
	constant := []float64{3, 3, 3}
	rates := []float64{1e-3, 1e-2, 1}
	for name, f := range map[string]attacks.Figure{
		"lines": {Series: []attacks.Series{
			{Label: "a", Kind: attacks.Line, X: x, Y: sample},
			{Label: "b", Kind: attacks.Points, X: x, Y: sample},
		}},
		"densities": {Series: []attacks.Series{
			{Label: "a", Kind: attacks.Density, Y: sample},
			{Label: "b", Kind: attacks.Density, Y: constant},
		}},
		"violins": {Series: []attacks.Series{
			{Label: "a", Kind: attacks.Violin, Y: sample},
			{Label: "b", Kind: attacks.Violin, Y: constant},
		}},
		"powers": {LogX: true, LogY: true, Series: []attacks.Series{
			{Label: "a", Kind: attacks.Line, X: rates, Y: rates},
		}},
	} {
		path := filepath.Join(t.TempDir(), name+".svg")
		f.Name, f.Title, f.X, f.Y = name, "T", "x", "y"
		if err := figureOf(f).Save(path); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(text, []byte("<svg")) ||
			bytes.Contains(text, []byte("NaN")) {
			t.Errorf("%s: %v, %d bytes", name, err, len(text))
		}
		if !bytes.Contains(text, []byte("font-family:'Liberation Sans',Arial,Helvetica,sans-serif")) {
			t.Errorf("%s: its fonts have no fallback", name)
		}
	}
}

// A sample in one place is no violin, and its density no peak next to which others
// vanish.
func TestPointMass(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	wide, mass := make([]float64, 1000), make([]float64, 1000)
	for i := range wide {
		wide[i], mass[i] = rng.NormFloat64(), 1e-12*rng.NormFloat64()
	}
	series := []attacks.Series{{Kind: attacks.Density, Y: wide}, {Kind: attacks.Density, Y: mass}}
	spread := extent(series)
	if isMass(wide, spread) || !isMass(mass, spread) || !isMass(nil, spread) {
		t.Errorf("point masses: %v, %v, %v",
			isMass(wide, spread), isMass(mass, spread), isMass(nil, spread))
	}
	height := highestDensity(series, spread)
	line := densityOrMass(mass, spread, height)
	if len(line) != 2 || line[1].Y != height || height > 1 {
		t.Errorf("%v, height %v", line, height)
	}
}

// A run says which attacks had no data.
func TestAttackData(t *testing.T) {
	t.Setenv("HUSHSUM_DATA", filepath.Join(t.TempDir(), "none"))
	dir := t.TempDir()
	const run = "GradientInversion|Differencing"
	code, out, errs := call(t.Context(), "attack", "--run", run, "--out", dir)
	report, err := os.ReadFile(filepath.Join(dir, "report.md"))
	const want = "\nGradientInversion used made-up rows, because there is no folder"
	if code != 0 || errs != "" || err != nil ||
		!strings.Contains(out, want) || !strings.Contains(string(report), want) {
		t.Errorf("code %d, %q, %v\n%s\n%s", code, errs, err, out, report)
	}
}

func TestAttackUsage(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args string
		code int
		says string
	}{
		{"--run (", 2, `--run: "(" is not a regular expression`},
		{"--run nothing", 2, `no attack matches "nothing"`},
		{"--seed x", 2, "want a whole number"},
		{"--run Differencing --out " + file, 1, "Give a folder that can be written to."},
		{"Sybil", 2, "Choose attacks with --run."},
	} {
		code, out, errs := call(t.Context(),
			append([]string{"attack"}, strings.Fields(c.args)...)...)
		if code != c.code || out != "" || !strings.Contains(errs, c.says) {
			t.Errorf("%s: code %d, %q, %q; want %d and %q", c.args, code, out, errs, c.code, c.says)
		}
		clitest.Message(t, errs)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	code, _, errs := call(ctx, "attack", "--run", "Collusion$")
	if code != 130 || !strings.Contains(errs, "interrupted in Collusion") {
		t.Errorf("interrupted: code %d, %q", code, errs)
	}
	code, out, _ := call(t.Context(), "help", "attack")
	if code != 0 || !strings.Contains(out, "--out DIR") {
		t.Errorf("help: code %d", code)
	}
	clitest.Width(t, out)
}
