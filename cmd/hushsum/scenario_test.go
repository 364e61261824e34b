package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/hushsum/hushsum/internal/realdata"
	"github.com/hushsum/hushsum/simulation/scenario"
)

const latencyFile = "../../simulation/scenarios/latency.toml"

// Table 5.3 of "A Practical Approach to Federated Learning" (the thesis) from the command:
// place, round and seconds of all lines.
func TestScenarioJSON(t *testing.T) {
	t.Setenv("HUSHSUM_DATA", filepath.Dir(realdata.Dir(t, "digits")))
	var out, errs bytes.Buffer
	if code := run(t.Context(), []string{"simulate", "--scenario", latencyFile, "--json"}, &out,
		&errs); code != exitOK {
		t.Fatalf("exit %d: %s", code, &errs)
	}
	want := []struct {
		round   int
		place   string
		seconds float64
	}{
		{1, "Boston", 4.310}, {1, "Singapore", 6.010}, {1, "New York", 4.110},
		{2, "Boston", 4.306}, {2, "Singapore", 6.006}, {2, "New York", 4.106},
		{3, "Boston", .909}, {3, "New York", .709},
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != len(want) {
		t.Fatalf("%d lines", len(lines))
	}
	for k, text := range lines {
		var l partyLine
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			t.Fatal(err)
		}
		if l.Round != want[k].round || l.Place != want[k].place || l.Seconds == nil ||
			*l.Seconds != want[k].seconds {
			t.Errorf("line %d: %s", k+1, text)
		}
	}
}

// What is wrong with a scenario is said on one line, with file, line and remedy.
func TestBadScenarios(t *testing.T) {
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
		{"unknown key of a party", "rows = 60", "rowz = 60", line("rows = 60"), "did you mean rows?"},
		{"a key in another case", "rounds = 3", "rounds = 3\nROUNDS = 30", line("rounds = 3") + 1,
			"did you mean rounds?"},
		{"a party's key in another case", "rows = 60", "rows = 60\nRows = 6", line("rows = 60") + 1,
			"did you mean rows?"},
		{"negative latency", `"2s"`, `"-2s"`, line(`"2s"`), "use 0s or more"},
		{"latency without a unit", `"2s"`, `2`, line(`"2s"`), "write it as in"},
		{"no time", `"2s"`, `"soon"`, line(`"2s"`), "write it as in"},
		{"a region without latency", `["Boston", "server"]`, `["Bosten", "server"]`,
			line(`name = "Boston"`) - 1, "add a [[link]]"},
		{"too few parties", "[leaving]\n", "[recovery]\ndrop_out = 0.5\n\n[privacy]\n" +
			"noise = \"skellam\"\nepsilon = 1.0\ncolluders = 1\n\n[leaving]\n", line("[leaving]"),
			"bring more parties"},
		{"leaves before it joins", "rows = 60", "joins = 3\nleaves = 2", line("rows = 60") + 1,
			"use 3 or later"},
		{"no such data", `"digits"`, `"digit"`, line(`"digits"`), "use synthetic"},
		{"two of one name", `name = "New York"`, `name = "Boston"`, line(`name = "New York"`),
			"use another"},
		{"no TOML", "[training]", "[training", line("[training]"), "write it as"},
		{"text for a number", "rounds = 3", `rounds = "three"`, line("rounds = 3"),
			"write a whole number"},
		{"a number for a place", `["Boston", "server"]`, "[1, 2]", line(`["Boston", "server"]`),
			"write text between quotes"},
		{"parties below zero", "rows = 60", "rows = 60\ncount = -3", line("rows = 60") + 1,
			"use 1 to"},
		{"twice", "seed = 1", "seed = 1\nseed = 2", line("seed = 1") + 1, "write it as"},
		{"budget without noise", "[leaving]\n", "[privacy]\nepsilon = 1.0\n\n[leaving]\n",
			line("[leaving]") + 1, "name the noise"},
		{"too many rows", "rows = 30", "rows = 3000", line("rows = 30"), "fewer parties"},
		{"one row of all", "rows = 30", "rows = 1\nmost = 1", line("rows = 30") + 1,
			"use a larger data.most"},
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
}

func expectBad(t *testing.T, path string, line int, want string) {
	t.Helper()
	var out, errs bytes.Buffer
	if code := run(t.Context(), []string{"simulate", "--json", "--scenario", path}, &out,
		&errs); code != exitFailure {
		t.Errorf("exit %d", code)
	}
	said := regexp.MustCompile(`bad\.toml:(\d+): .+; `).FindStringSubmatch(errs.String())
	if said == nil || strings.Count(errs.String(), "\n") != 1 || out.Len() > 0 ||
		!strings.Contains(errs.String(), want) || said[1] != strconv.Itoa(line) {
		t.Errorf("want line %d and %q, got %q", line, want, errs.String())
	}
}

// Whatever the text, it is a scenario that can be simulated or one error on one line.
func FuzzScenario(f *testing.F) {
	paths, err := filepath.Glob("../../simulation/scenarios/*.toml")
	if err != nil || len(paths) == 0 {
		f.Fatal(err, "no scenarios")
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		file, err := parseScenario("fuzz.toml", text)
		if err == nil {
			if file.Size() < 2 || file.Rounds < 1 {
				t.Fatalf("%d parties, %d rounds", file.Size(), file.Rounds)
			}
			return
		}
		if said := err.Error(); !regexp.MustCompile(`^fuzz\.toml:\d+: `).MatchString(said) {
			t.Fatalf("%q", said)
		}
	})
}

// A number of parties is spread as those that are declared are.
func TestSetParties(t *testing.T) {
	for _, test := range []struct{ counts, n, want []int }{
		{[]int{24, 20, 14, 1, 1}, []int{60}, []int{24, 20, 14, 1, 1}},
		{[]int{24, 20, 14, 1, 1}, []int{120}, []int{48, 40, 28, 2, 2}},
		{[]int{24, 20, 14, 1, 1}, []int{6}, []int{3, 2, 1}}, // 2.4, 2, 1.4, .1 and .1
		{[]int{0, 0, 0}, []int{4}, []int{2, 1, 1}},
		{[]int{0, 0, 0}, []int{2}, []int{1, 1}},
		{[]int{5}, []int{50}, []int{50}},
	} {
		s := scenario.Scenario{}
		for _, c := range test.counts {
			s.Parties = append(s.Parties, scenario.Party{Count: c})
		}
		setParties(&s, test.n[0])
		var got []int
		for _, p := range s.Parties {
			got = append(got, p.Count)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%d over %v: %v, want %v", test.n[0], test.counts, got, test.want)
		}
	}
}

// The scenario of the documentation is one.
func TestDocumentedScenario(t *testing.T) {
	page, err := os.ReadFile("../../docs/scenarios.md")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile("(?s)```toml\n(.*?)```").FindAllSubmatch(page, -1)
	if len(found) == 0 {
		t.Fatal("the page has no scenario")
	}
	for _, block := range found {
		if _, err := parseScenario("documented.toml", block[1]); err != nil {
			t.Error(err)
		}
	}
}

// A mark of UTF-8 at the beginning, and the ends of lines of other systems, change nothing.
func TestScenarioFromElsewhere(t *testing.T) {
	text, err := os.ReadFile(latencyFile)
	if err != nil {
		t.Fatal(err)
	}
	want, err := parseScenario("x.toml", text)
	if err != nil {
		t.Fatal(err)
	}
	windows := append([]byte("\ufeff"), bytes.ReplaceAll(text, []byte("\n"), []byte("\r\n"))...)
	if got, err := parseScenario("x.toml", windows); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
}

// However many parties, rounds that are lost and names that are long, the tables fit a
// terminal.
func TestScenarioWidth(t *testing.T) {
	t.Setenv("HUSHSUM_DATA", filepath.Dir(realdata.Dir(t, "digits")))
	text := `name = "wide"
rounds = 3
step_time = "10s"
[data]
set = "synthetic"
rows = 20
[recovery]
[privacy]
noise = "skellam"
epsilon = 1000.0
bits = 20
[leaving]
tolerance = 1e-9
[[party]]
name = "The municipal hospital of a town whose name takes more than one line, it is long"
count = 4
[[party]]
name = "another hospital"
place = "a place whose name takes a line of its own, too"
count = 4
[[party.crash]]
round = 2
`
	for name, change := range map[string][2]string{
		"private": {"[recovery]", "[recovery]"},
		"crowd":   {"[[party.crash]]\nround = 2\n", ""},
	} {
		text := strings.Replace(text, change[0], change[1], 1)
		if name == "crowd" {
			text = strings.NewReplacer("[privacy]", "[sum]\nkind = \"crowd\"\n[privacy]",
				"tolerance = 1e-9", "").Replace(text)
		}
		path := filepath.Join(t.TempDir(), "wide.toml")
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		var out, errs bytes.Buffer
		if code := run(t.Context(), []string{"simulate", "--scenario", path}, &out,
			&errs); code != exitOK {
			t.Fatalf("%s: exit %d: %s", name, code, &errs)
		}
		for _, line := range strings.Split(out.String(), "\n") {
			if utf8.RuneCountInString(line) > width {
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
