package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/hushsum/hushsum/lab/experiments"
)

// call runs the command.
func call(ctx context.Context, args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = run(ctx, experiments.All(), args, &out, &errs)
	return code, out.String(), errs.String()
}

// fits checks that a text fits a terminal.
func fits(t *testing.T, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		if utf8.RuneCountInString(strings.TrimSuffix(line, "\n")) > width {
			t.Errorf("a line is wider than a terminal: %q", line)
		}
	}
}

// filesIn returns the paths of all files below a folder.
func filesIn(t *testing.T, dir string) (paths []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			path, err = filepath.Rel(dir, path)
			paths = append(paths, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

// mock is an experiment that takes no time: two arms with a figure.
func mock() *experiments.Table {
	published := -0.01
	return &experiments.Table{
		Name:     "mock",
		Title:    strings.Repeat("A title that needs two lines. ", 4),
		Settings: []string{strings.Repeat("setting ", 15)},
		Labels:   []string{"split", "average"},
		Measures: []experiments.Measure{{Name: "accuracy", Percent: true, Digits: 2}, {
			Name:   "off by",
			Digits: 4,
		}},
		Rows: []experiments.Row{
			{
				Labels:    []string{"label-skew", "plain"},
				Values:    [][]float64{{0.5, 1e-9}, {0.6, math.NaN()}},
				Published: map[string]float64{"accuracy": 0.924},
			},
			{Labels: []string{"iid", "masked"}, Values: [][]float64{{0.25, 0}, nil}},
		},
		Seeds: 2, Complete: true,
		Findings: []experiments.Finding{
			{
				Claim:     "masked less plain",
				Percent:   true,
				Measured:  experiments.Interval{Mean: -0.02, Low: -0.03, High: -0.01, N: 2},
				Expected:  -1,
				Published: &published,
			},
			{
				Claim:    "not run",
				Measured: experiments.Interval{Mean: math.NaN(), Low: math.NaN(), High: math.NaN()},
				Expected: 1,
			},
		},
		Notes: []string{"A note."},
		Figures: []experiments.Figure{
			{
				Name:    "accuracy",
				Title:   "t",
				X:       "round",
				Y:       "accuracy, %",
				Percent: true,
				Series: []experiments.Series{
					{
						Name: "plain",
						X:    []float64{1, 2, 4},
						Runs: [][]float64{{0.1, 0.2, 0.3}, {0.2, 0.3, 0.4}},
					},
					{Name: "masked", X: []float64{1, 2, 4}, Runs: [][]float64{{0.1, 0.2, 0.25}}},
				},
			},
			{
				Name:  "log",
				Title: "t",
				X:     "rounds",
				Y:     "z",
				LogX:  true,
				Series: []experiments.Series{{
					Name: "a",
					X:    []float64{1, 10},
					Runs: [][]float64{{1, 2}},
				}},
			},
			{Name: "empty"},
		},
	}
}

// callMock runs the command with one experiment.
func callMock(
	ctx context.Context,
	made func(context.Context, experiments.Options) (*experiments.Table, error), args ...string,
) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	all := []experiments.Experiment{{
		Name:  "mock",
		About: "what it shows, in as many words as it takes to need two lines",
		Seeds: 2,
		Quick: 30 * time.Second,
		Long:  90 * time.Minute,
		Run:   made,
	}}
	code = run(ctx, all, args, &out, &errs)
	return code, out.String(), errs.String()
}

func mocked(context.Context, experiments.Options) (*experiments.Table, error) { return mock(), nil }

func TestExperimentList(t *testing.T) {
	for _, args := range [][]string{nil, {"list"}} {
		code, out, errs := call(t.Context(), args...)
		if code != 0 || errs != "" {
			t.Errorf("%v: code %d, %q", args, code, errs)
		}
		fits(t, out)
		for _, name := range []string{"convex", "fashion", "writers", "clipping", "privacy",
			"noise", "alignment", "min"} {
			if !strings.Contains(out, name) {
				t.Errorf("%v lacks %s:\n%s", args, name, out)
			}
		}
	}
	code, _, help := call(t.Context(), "-h")
	if code != 0 || !strings.Contains(help, "-long") || !strings.Contains(help, "-seeds N") ||
		!strings.Contains(help, "-out DIR") {
		t.Errorf("help: code %d:\n%s", code, help)
	}
}

func TestExperimentTable(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "folder")
	code, out, errs := callMock(t.Context(), mocked, "mock", "-out", dir)
	if code != 0 || errs != "" {
		t.Fatalf("code %d, %q", code, errs)
	}
	for line := range strings.Lines(out) {
		if !strings.Contains(line, dir) {
			fits(t, line)
		}
	}
	for _, want := range []string{
		"split       average    accuracy %  published   off by\n",
		"label-skew  plain    55.00 ± 7.07       92.4  1.0e-09\n",
		"iid         masked          25.00          -   0.0000\n",
		"- seeds: 2; mean and standard deviation\n", "A note.\n",
		"- masked less plain: -2.00 points, 95 % interval -3.00 to -1.00 over 2 seeds;",
		"- not run: not run.\n", "Written: ",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("the output lacks %q:\n%s", want, out)
		}
	}
	if strings.Contains(out, "\r") || strings.Contains(out, "INCOMPLETE") ||
		strings.Contains(out, "NaN") {
		t.Error(out)
	}
}

// CSV files have a header and a line for each row and seed; figures are SVG with
// something in them.
func TestExperimentFiles(t *testing.T) {
	dir := t.TempDir()
	if code, _, errs := callMock(t.Context(), mocked, "mock", "-out", dir); code != 0 {
		t.Fatalf("code %d, %q", code, errs)
	}
	var names []string
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if want := []string{"mock-accuracy.csv", "mock-accuracy.svg", "mock-log.csv", "mock-log.svg",
		"mock.csv", "mock.json"}; !slices.Equal(names, want) {
		t.Errorf("files %v, want %v", names, want)
	}
	for name, want := range map[string][]string{
		"mock.csv": {
			"split,average,seed,accuracy,accuracy published,off by,off by published",
			"label-skew,plain,1,0.5,0.924,1e-09,", "label-skew,plain,2,0.6,0.924,,",
			"iid,masked,1,0.25,,0,",
		},
		"mock-accuracy.csv": {"series,run,round,\"accuracy, %\"", "plain,1,1,10", "plain,1,2,20"},
	} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(string(text), strings.Join(want, "\n")+"\n") {
			t.Errorf("%s:\n%s", name, text)
		}
		if _, err := csv.NewReader(bytes.NewReader(text)).ReadAll(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for format, begins := range map[string]string{"svg": "<?xml", "png": "\x89PNG", "pdf": "%PDF"} {
		code, _, errs := callMock(t.Context(), mocked, "mock", "-out", dir, "-figures", format)
		if code != 0 {
			t.Fatalf("code %d, %q", code, errs)
		}
		for _, name := range []string{"mock-accuracy.", "mock-log."} {
			text, err := os.ReadFile(filepath.Join(dir, name+format))
			if err != nil || !strings.HasPrefix(string(text), begins) || len(text) < 2000 {
				t.Errorf("%s: %d bytes, %v", name+format, len(text), err)
			}
		}
	}
}

func TestExperimentJSON(t *testing.T) {
	code, out, errs := callMock(t.Context(), mocked, "mock", "-json", "-out", t.TempDir())
	if code != 0 || errs != "" || strings.Count(out, "\n") != 1 {
		t.Fatalf("code %d, %q, %q", code, errs, out)
	}
	var o struct {
		Name     string
		Seeds    int
		Complete bool
		Files    []string
		Rows     []struct {
			Labels   []string
			Accuracy struct {
				Values              []*float64
				Mean, SD, Published *float64
			}
		}
		Findings []struct {
			Verdict string
			Low     *float64
		}
	}
	if err := json.Unmarshal([]byte(out), &o); err != nil {
		t.Fatal(err)
	}
	first := o.Rows[0].Accuracy
	if o.Name != "mock" || o.Seeds != 2 || !o.Complete || len(o.Files) != 6 || len(o.Rows) != 2 ||
		math.Abs(*first.Mean-0.55) > 1e-12 || *first.Published != 0.924 ||
		o.Rows[1].Accuracy.Published != nil || o.Rows[1].Accuracy.Values[1] != nil ||
		o.Findings[0].Verdict != "seen" || o.Findings[1].Low != nil {
		t.Errorf("%s", out)
	}
}

// Whatever ends a run, what was done is printed; the exit code says how it ended.
func TestExperimentEnds(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	partly := func(ctx context.Context, _ experiments.Options) (*experiments.Table, error) {
		stop()
		x := mock()
		x.Complete = false
		return x, fmt.Errorf("round 3: %w", ctx.Err())
	}
	dir := t.TempDir()
	if code, _, errs := callMock(t.Context(), mocked, "mock", "-out", dir); code != 0 {
		t.Fatalf("code %d, %q", code, errs)
	}
	before := filesIn(t, dir)
	code, out, errs := callMock(ctx, partly, "mock", "-out", dir)
	after := filesIn(t, dir)
	whole := slices.DeleteFunc(slices.Clone(after), func(path string) bool {
		return strings.HasPrefix(path, "incomplete/")
	})
	if len(after) != 2*len(before) || !slices.Equal(whole, before) {
		t.Errorf("files %v after an interrupted run, %v before", after, before)
	}
	if code != 130 || !strings.Contains(out, "INCOMPLETE") || !strings.Contains(errs,
		"interrupted: the table holds what was done") {
		t.Errorf("code %d, %q, %q", code, errs, out)
	}
	nothing := func(ctx context.Context, _ experiments.Options) (*experiments.Table, error) {
		return nil, ctx.Err()
	}
	code, out, errs = callMock(ctx, nothing, "mock", "-out", t.TempDir())
	if code != 130 || out != "" || !strings.Contains(errs, "before anything was done") {
		t.Errorf("code %d, %q, %q", code, errs, out)
	}
	broken := func(context.Context, experiments.Options) (*experiments.Table, error) {
		return mock(), errors.New("it broke")
	}
	code, out, errs = callMock(t.Context(), broken, "mock", "-out", t.TempDir())
	if code != 1 || !strings.Contains(out, "label-skew") || !strings.Contains(errs, "it broke") {
		t.Errorf("code %d, %q, %q", code, errs, out)
	}
}

// Flags come through.
func TestExperimentFlags(t *testing.T) {
	var got experiments.Options
	made := func(_ context.Context, o experiments.Options) (*experiments.Table, error) {
		got = o
		o.Progress(0, 10)
		o.Progress(5, 10)
		return mock(), nil
	}
	code, _, errs := callMock(t.Context(), made, "mock", "-long", "-seeds", "7", "-data", "here",
		"-out", t.TempDir())
	if code != 0 || errs != "" || !got.Long || got.Seeds != 7 || got.Data != "here" {
		t.Errorf("code %d, %q, %+v", code, errs, got)
	}
}

func TestExperimentErrors(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"convexx"}, 2, `there is no experiment "convexx"`},
		{[]string{"noise", "more"}, 2, `unexpected argument "more"`},
		{[]string{"noise", "-seeds", "-1"}, 2, "outside 1 to 100"},
		{[]string{"noise", "-seeds", "x"}, 2, "invalid value"},
		{[]string{"noise", "-figures", "gif"}, 2, "is not svg, png or pdf"},
		{[]string{"noise", "-out", file}, 1, "-out: "},
		{[]string{"noise", "-keep", t.TempDir()}, 1, "-keep: "},
		{[]string{"convex", "-data", t.TempDir(), "-out", t.TempDir()}, 1, "no such file"},
	} {
		code, out, errs := call(t.Context(), c.args...)
		if code != c.code || out != "" || !strings.Contains(errs, c.says) {
			t.Errorf("%v: code %d, %q, %q", c.args, code, out, errs)
		}
	}
	// The variable names the folder where no flag does.
	t.Setenv("HUSHSUM_DATA", filepath.Join(t.TempDir(), "elsewhere"))
	_, _, errs := call(t.Context(), "writers", "-out", t.TempDir())
	if !strings.Contains(errs, "elsewhere") {
		t.Errorf("%q", errs)
	}
}

// Without -out an experiment writes nothing.
func TestExperimentWritesNothing(t *testing.T) {
	t.Chdir(t.TempDir())
	code, out, errs := callMock(t.Context(), mocked, "mock", "-json")
	if code != 0 || errs != "" || !strings.Contains(out, `"files":[]`) {
		t.Errorf("code %d, %q\n%s", code, errs, out)
	}
	if files := filesIn(t, "."); files != nil {
		t.Errorf("files %v", files)
	}
}

// An experiment that needs no data runs from end to end.
func TestExperimentNoise(t *testing.T) {
	dir := t.TempDir()
	code, out, errs := call(t.Context(), "noise", "-out", dir)
	// On a busy machine it takes long enough to say how far it is.
	far := regexp.MustCompile(`(?m)^lab: noise \d+ % \(\d of 8\)\n`)
	errs = far.ReplaceAllString(errs, "")
	if code != 0 || errs != "" || !strings.Contains(out, "theorem") {
		t.Fatalf("code %d, %q, %q", code, errs, out)
	}
	if info, err := os.Stat(filepath.Join(dir, "noise-noise.svg")); err != nil ||
		info.Size() < 2000 {
		t.Errorf("%v, %v", info, err)
	}
}
