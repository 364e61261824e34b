package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/attacks"
	"github.com/hushsum/hushsum/attacks/catalogue"
)

// Two attacks that take milliseconds, one of them without complete defence.
const quickAttack = "attack --run ^(differencing|WrapAround|FloatSupport)$"

func TestAttackTable(t *testing.T) {
	for args, want := range map[string][]string{
		quickAttack:            {"attack metric undefended defended bound verdict", "Differencing squared error", "by: curious server", "by: client; 1 more", "documented", "3 of 3 attacks, 5 measurements: 1 shown, 3 held, 1 documented"},
		quickAttack + " --all": {"WrapAround: x + shifts that go", "WrapAround: largest unnoticed", "5 measurements"},
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
		checkWidth(t, out)
	}
}

func TestAttackJSONAndReport(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "report")
	code, out, errs := call(t.Context(), "attack", "--run", "Differencing|AuditPower|CollusionLaw", "--json", "--out", dir)
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
		for _, key := range []string{"adversary", "defence", "case", "metric", "undefended", "defended", "verdict", "note"} {
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
	for _, want := range []string{"# Attacks", "## Differencing", "- Adversary: curious server", "| case | metric |"} {
		if !bytes.Contains(report, []byte(want)) {
			t.Errorf("the report lacks %q", want)
		}
	}
}

// A broken defence fails the command, whatever else holds.
func TestAttackVerdict(t *testing.T) {
	row := func(undefended, defended float64) attacks.Row {
		one := func(v, want float64) attacks.Measure {
			return attacks.Measure{Value: v, Lower: v, Upper: v, Confidence: 1, Samples: 1, Min: want, Max: want}
		}
		return attacks.Row{Metric: "inputs", Undefended: one(undefended, 1), Defended: one(defended, 0)}
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
		b := &battery{screen: screen{std: streams{out: &out, err: &out}}}
		code := b.run(t.Context(), []attacks.Attack{{Name: "X", Adversary: "tester", Run: func(context.Context, attacks.Options) (*attacks.Report, error) {
			return &attacks.Report{Rows: c.rows}, nil
		}}}, attacks.Options{})
		if code != c.code || !strings.Contains(out.String(), name) {
			t.Errorf("%s: code %d\n%s", name, code, out.String())
		}
	}
}

// An interrupted run leaves a complete report as it was, and marks its own.
func TestAttackInterrupted(t *testing.T) {
	dir := t.TempDir()
	if code, _, errs := call(t.Context(), "attack", "--run", "Differencing", "--out", dir); code != 0 {
		t.Fatalf("code %d, %q", code, errs)
	}
	before, err := os.ReadFile(filepath.Join(dir, "report.md"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var out bytes.Buffer
	b := &battery{screen: screen{std: streams{out: &out, err: &out}}, out: dir}
	code := b.run(ctx, []attacks.Attack{{Name: "X", Run: func(context.Context, attacks.Options) (*attacks.Report, error) {
		return &attacks.Report{}, nil
	}}, {Name: "Y", Run: func(ctx context.Context, _ attacks.Options) (*attacks.Report, error) {
		stop()
		return nil, ctx.Err()
	}}}, attacks.Options{})
	after, err := os.ReadFile(filepath.Join(dir, "report.md"))
	if code != 130 || err != nil || !bytes.Equal(before, after) {
		t.Errorf("code %d, %v, the report is now\n%s", code, err, after)
	}
	part, err := os.ReadFile(filepath.Join(dir, "incomplete", "report.md"))
	if err != nil || !strings.Contains(string(part), "**Not complete:** interrupted in Y, after 1 of 2 attacks.") {
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
	for name, series := range map[string][]attacks.Series{
		"lines":     {{Label: "a", Kind: attacks.Line, X: x, Y: sample}, {Label: "b", Kind: attacks.Points, X: x, Y: sample}},
		"densities": {{Label: "a", Kind: attacks.Density, Y: sample}, {Label: "b", Kind: attacks.Density, Y: constant}},
		"violins":   {{Label: "a", Kind: attacks.Violin, Y: sample}, {Label: "b", Kind: attacks.Violin, Y: constant}},
	} {
		path := filepath.Join(t.TempDir(), name+".svg")
		if err := drawAttack(attacks.Figure{Name: name, Title: "T", X: "x", Y: "y", Series: series}, path); err != nil {
			t.Fatal(err)
		}
		if b, err := os.ReadFile(path); err != nil || !bytes.Contains(b, []byte("<svg")) || bytes.Contains(b, []byte("NaN")) {
			t.Errorf("%s: %v, %d bytes", name, err, len(b))
		}
	}
}

// Attacks that read data are those in the list, and a run says where they had none.
func TestAttackData(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // the others end at once
	var fails []string
	for _, a := range catalogue.All() {
		if a.Name == "CollusionLaw" {
			continue // seconds of arithmetic, without data, that nothing ends
		}
		_, err := a.Run(ctx, attacks.Options{Data: t.TempDir()})
		if errors.Is(err, fs.ErrNotExist) {
			fails = append(fails, a.Name)
		}
	}
	if !slices.Equal(fails, dataAttacks) {
		t.Errorf("without files %v fail, want %v", fails, dataAttacks)
	}
	t.Setenv("HUSHSUM_DATA", filepath.Join(t.TempDir(), "none"))
	dir := t.TempDir()
	code, out, errs := call(t.Context(), "attack", "--run", "GradientInversion|Differencing", "--out", dir)
	report, err := os.ReadFile(filepath.Join(dir, "report.md"))
	const want = "\nGradientInversion used made-up rows, since there is no folder"
	if code != 0 || errs != "" || !strings.Contains(out, want) || err != nil || !strings.Contains(string(report), want) {
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
		{"--run (", 2, `--run: "(" is no regular expression`},
		{"--run nothing", 2, `no attack matches "nothing"`},
		{"--seed x", 2, "want a whole number"},
		{"--run Differencing --out " + file, 1, "Give a folder that can be written to."},
		{"Sybil", 2, "Choose attacks with --run."},
	} {
		code, out, errs := call(t.Context(), append([]string{"attack"}, strings.Fields(c.args)...)...)
		if code != c.code || out != "" || !strings.Contains(errs, c.says) {
			t.Errorf("%s: code %d, %q, %q; want %d and %q", c.args, code, out, errs, c.code, c.says)
		}
		checkMessage(t, errs)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if code, _, errs := call(ctx, "attack", "--run", "Collusion$"); code != 130 || !strings.Contains(errs, "interrupted in Collusion") {
		t.Errorf("interrupted: code %d, %q", code, errs)
	}
	code, out, _ := call(t.Context(), "help", "attack")
	if code != 0 || !strings.Contains(out, "--out DIR") {
		t.Errorf("help: code %d", code)
	}
	checkWidth(t, out)
}
