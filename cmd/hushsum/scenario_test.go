package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/hushsum/hushsum/internal/realdata"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/simulation/scenario"
)

const latencyFile = "../../simulation/scenarios/latency.toml"

// Table 5.3 of "A Practical Approach to Federated Learning" (the thesis) from the command:
// place, round and seconds of all lines.
func TestScenarioJSON(t *testing.T) {
	t.Setenv("HUSHSUM_DATA", filepath.Dir(realdata.Dir(t, "digits")))
	var out, errs bytes.Buffer
	if code := run(t.Context(), []string{"simulate", latencyFile, "--json"}, &out,
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
			line("[world]") + 1, "bring more parties"},
		{"no such data", `"digits"`, `"digit"`, line(`"digits"`), "use synthetic"},
		{"no TOML", "[world]", "[world", line("[world]"), "write it as"},
		{"a rule that is not there in virtual time", "training = {", `training = { rule = "fedprox",`,
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
		if code != exitFailure || strings.Count(errs, "\n") != 2 ||
			!strings.Contains(errs, "rounds: 0 is outside") || !strings.Contains(errs, "latency: ") {
			t.Errorf("exit %d: %s", code, errs)
		}
	})
}

func expectBad(t *testing.T, path string, line int, want string) {
	t.Helper()
	var out, errs bytes.Buffer
	if code := run(t.Context(), []string{"simulate", path, "--json"}, &out,
		&errs); code != exitFailure {
		t.Errorf("exit %d", code)
	}
	said := regexp.MustCompile(`bad\.toml:(\d+): .+; `).FindStringSubmatch(errs.String())
	if said == nil || strings.Count(errs.String(), "\n") != 1 || out.Len() > 0 ||
		!strings.Contains(errs.String(), want) || said[1] != strconv.Itoa(line) {
		t.Errorf("want line %d and %q, got %q", line, want, errs.String())
	}
}

// Flags and --set take the place of what a file says, and say what is wrong in their own words.
func TestJobFlags(t *testing.T) {
	t.Setenv("HUSHSUM_DATA", filepath.Dir(realdata.Dir(t, "digits")))
	lines := func(args ...string) (int, string) {
		code, out, errs := call(t.Context(),
			append([]string{"simulate", latencyFile, "--json"}, args...)...)
		if code != exitOK && out != "" {
			t.Errorf("%q: exit %d and %q", args, code, out)
		}
		return strings.Count(out, "\n"), errs
	}
	if n, errs := lines("--rounds", "2", "--set", "world.party.1.compute=30ms,20ms"); n != 6 {
		t.Errorf("%d lines: %s", n, errs)
	}
	for want, args := range map[string][]string{
		"--set rouds=2: there is no such field": {"--set", "rouds=2"},
		"write PATH=VALUE":                      {"--set", "rounds"},
		"--rounds: 0 is outside":                {"--rounds", "0"},
		"world.party.0.joins: round 9":          {"--set", "world.party.0.joins=9"},
	} {
		if _, errs := lines(args...); !strings.Contains(strings.Join(strings.Fields(errs), " "), want) {
			t.Errorf("%q: %s", args, errs)
		}
	}
}

// What --print shows is the job that runs.
func TestPrint(t *testing.T) {
	times := regexp.MustCompile(`"[a-z_]+_ms":[\d.e-]+,?`)
	for _, args := range []string{
		"--clients 4 --rows-per-client 50 --rounds 2",
		"--clients 5 --rounds 2 --rule scaffold+fedyogi --mask soft",
		"--clients 10 --rows-per-client 20 --rounds 2 --drop 0.2",
		"--clients 4 --rounds 2 --by-rows --split dirichlet-quantity",
		"--clients 4 --rounds 2 --rule momentum --local-steps 3",
	} {
		code, text, errs := call(t.Context(), strings.Fields("simulate --print "+args)...)
		if code != exitOK {
			t.Fatalf("%s: exit %d: %s", args, code, errs)
		}
		path := filepath.Join(t.TempDir(), "printed.toml")
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		_, want, _ := call(t.Context(), strings.Fields("simulate --json "+args)...)
		code, got, errs := call(t.Context(), "simulate", path, "--json")
		if code != exitOK || times.ReplaceAllString(got, "") != times.ReplaceAllString(want, "") {
			t.Errorf("%s: exit %d, %s\n%s\n%s\nwant\n%s", args, code, errs, text, got, want)
		}
	}
}

// The four presets are jobs.
func TestPresets(t *testing.T) {
	for args, want := range map[string]string{"": "census", "--epsilon 4": "census-noise",
		"--noise none": "census", "--mask soft --noise skellam": "census-rules",
		"--data digits --epsilon 4": "images"} {
		t.Setenv("HUSHSUM_DATA", filepath.Dir(realdata.Dir(t, "digits")))
		code, text, errs := call(t.Context(), strings.Fields("simulate --print "+args)...)
		j, err := job.Parse("printed", []byte(text))
		if code != exitOK || err != nil || j.Name != want {
			t.Errorf("%s: exit %d, %s, %v\n%s", args, code, errs, err, text)
		}
	}
}

// A file of the form before jobs comes to the same by --scenario.
func TestOldScenario(t *testing.T) {
	const before = `name = "one"
rounds = 2
[data]
set = "synthetic"
rows = 20
[[party]]
name = "p"
count = 3
`
	const job = `name = "one"
rounds = 2
model.name = "logistic"
training = { steps = 50, rate = 1.0 }
parties.group = [{ name = "p", count = 3 }]
world.data.rows = 20
`
	var out [2]string
	for k, text := range []string{before, job} {
		path := filepath.Join(t.TempDir(), "one.toml")
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		code, stdout, errs := call(t.Context(), "simulate", "--scenario", path, "--json")
		if code != exitOK {
			t.Fatalf("exit %d: %s", code, errs)
		}
		out[k] = stdout
	}
	if out[0] != out[1] || strings.Count(out[0], "\n") != 6 {
		t.Errorf("before:\n%safter:\n%s", out[0], out[1])
	}
}

// A job without places and mishaps is run by messages, as flags that say the same have it.
func TestJobWithoutTime(t *testing.T) {
	t.Setenv("HUSHSUM_DATA", filepath.Dir(realdata.Dir(t, "digits")))
	times := regexp.MustCompile(`"[a-z_]+_ms":[\d.e-]+,?`)
	for flags, text := range map[string]string{
		"--clients 4 --rows-per-client 50 --rounds 3 --local-steps 5": `
rounds = 3
model.name = "logistic"
parties.count = 4
training = { steps = 5, rate = 2.0, lambda = 1e-4, submit = "weights" }
sum = { fraction_bits = 10, max_weight = 50 }
world.data = { rows = 50, split = "shuffled" }
`,
		"--data digits --clients 8 --rounds 2 --model mlp:10 --rule fedprox+fedadam --mask soft " +
			"--clip 2 --drop 0.1 --split label-skew": `
rounds = 2
model.name = "mlp:10"
parties = { count = 8, drop_out = 0.25 }
training = { batch = 32, rule = "fedprox", mask = "soft" }
server = { rule = "fedadam", beta1 = 0.9 }
privacy.clip = 2.0
world = { drop = 0.1, data = { set = "digits", split = "label-skew" } }
`,
	} {
		path := filepath.Join(t.TempDir(), "job.toml")
		if err := os.WriteFile(path, []byte("name = \"x\"\nseed = 1\n"+text), 0o666); err != nil {
			t.Fatal(err)
		}
		_, want, errs := call(t.Context(), strings.Fields("simulate --json "+flags)...)
		code, got, more := call(t.Context(), "simulate", path, "--json")
		if code != exitOK || times.ReplaceAllString(got, "") != times.ReplaceAllString(want, "") {
			t.Errorf("%s: exit %d, %s%s\n%s\nwant\n%s", flags, code, errs, more, got, want)
		}
	}
}

// When rounds begin is for deployments, which is said once, also where JSON is printed; how long a
// step waits is so but for virtual time.
func TestTimeOfDeployments(t *testing.T) {
	const start = "name = \"x\"\nrounds = 1\nparties.count = 2\nmodel.name = \"logistic\"\n" +
		"training.steps = 1\nworld.fidelity = \"ring\"\nworld.data.rows = 9\n"
	for _, c := range []struct{ text, says string }{
		{"", ""},
		{`time.pace = "1h"`, "time.pace is for deployments, and left out here"},
		{"time = { start = 2030-01-01T00:00:00Z, step_time = \"9s\" }",
			"time.start, time.step_time are for deployments, and left out here"},
		{"world.data.draw = \"fixed\"\ntime = { pace = \"1h\", step_time = \"9s\" }",
			"time.pace is for deployments, and left out here"},
	} {
		code, _, errs := call(t.Context(), "simulate", "--json", written(t, start+c.text))
		if want := c.says != ""; code != exitOK || (errs != "") != want ||
			!strings.Contains(flat(errs), c.says) {
			t.Errorf("%s: exit %d, %q", c.text, code, errs)
		}
	}
}

// Rows to judge on may be a share of one's own, of a job that is not simulated in virtual time, and
// parties may have all rows that there are.
func TestShareOfRows(t *testing.T) {
	t.Setenv("HUSHSUM_DATA", filepath.Dir(realdata.Dir(t, "digits")))
	const start = "name = \"x\"\nrounds = 1\nparties.count = 4\nmodel.name = \"softmax\"\n" +
		"world.fidelity = \"ring\"\nworld.data = "
	for data, want := range map[string]string{
		`{ rows = 50, test = 0.5 }`: "15,000 rows; tested on 15,000 others parties 4 with 50 rows each",
		`{ all = true }`:            "20,000 rows; tested on 10,000 others parties 4 with 5,000 rows each",
		`{ all = true, split = "shuffled", test = 0.25 }`: "22,500 rows; tested on 7,500 others parties " +
			"4 with 5,625 rows each",
		`{ set = "digits", test = 0.1 }`: "1,617 rows; tested on 180 others",
	} {
		code, out, errs := call(t.Context(), "simulate", written(t, start+data))
		if code != exitOK || errs != "" || !strings.Contains(flat(out), want) {
			t.Errorf("%s: exit %d, %s%s\nwant %s", data, code, errs, out, want)
		}
	}
	// Averages weigh each party by its rows, and say how many those are.
	code, out, errs := call(t.Context(), "simulate", "--clients", "10", "--rounds", "1", "--print",
		"--set", "world.data.all=true")
	if code != exitOK || !strings.Contains(out, "all = true") || strings.Contains(out, "rows =") ||
		!strings.Contains(out, "max_weight = 2000\n") {
		t.Errorf("exit %d, %s%s", code, errs, out)
	}
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
		j := &job.Job{}
		for _, c := range test.counts {
			j.Parties.Group = append(j.Parties.Group, job.Group{Count: c})
		}
		if err := setParties(j, strconv.Itoa(test.n[0])); err != nil {
			t.Fatal(err)
		}
		var got []int
		for _, g := range j.Parties.Group {
			got = append(got, g.Count)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%d over %v: %v, want %v", test.n[0], test.counts, got, test.want)
		}
	}
}

// The files of the documentation and of simulation/scenarios are jobs that can be simulated.
func TestDocumentedJobs(t *testing.T) {
	page, err := os.ReadFile("../../docs/scenarios.md")
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string][]byte{}
	for _, block := range regexp.MustCompile("(?s)```toml\n(.*?)```").FindAllSubmatch(page, -1) {
		texts[fmt.Sprint("docs/scenarios.md ", len(texts))] = block[1]
	}
	paths, err := filepath.Glob("../../simulation/scenarios/*.toml")
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
			err = scenario.Validate(j)
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
		if code := run(t.Context(), []string{"simulate", path}, &out,
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
