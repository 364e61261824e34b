package simulate

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/cmd/hushsum/internal/cli"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/clitest"
	"github.com/hushsum/hushsum/internal/realdata"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/keyexchange"
)

// Flags and --set take the place of what a file says, and say what is wrong in their own words.
func TestJobFlags(t *testing.T) {
	t.Setenv("HUSHSUM_DATA", filepath.Dir(realdata.Dir(t, "digits")))
	lines := func(args ...string) (int, string) {
		const file = "../../../../simulation/scenarios/latency.toml"
		code, out, errs := call(t.Context(),
			append([]string{"simulate", file, "--json"}, args...)...)
		if code != cli.ExitOK && out != "" {
			t.Errorf("%q: exit %d and %q", args, code, out)
		}
		return strings.Count(out, "\n"), errs
	}
	if n, errs := lines("--rounds", "2", "--set", "world.party.1.compute=30ms,20ms"); n != 9 {
		t.Errorf("%d lines: %s", n, errs)
	}
	for want, args := range map[string][]string{
		"--set rouds=2: there is no such field": {"--set", "rouds=2"},
		"write PATH=VALUE":                      {"--set", "rounds"},
		"--rounds: 0 is outside":                {"--rounds", "0"},
		"world.party.Boston.joins: round 9":     {"--set", "world.party.0.joins=9"},
	} {
		if _, errs := lines(args...); !strings.Contains(strings.Join(strings.Fields(errs), " "), want) {
			t.Errorf("%q: %s", args, errs)
		}
	}
}

// A roster next to the file says how many parties there are, and what is missing is said.
func TestJobOfRoster(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "study.toml")
	declare := func(roster string) {
		text := "name = \"study\"\nrounds = 1\nworld.data.rows = 20\n" + roster +
			"model = { name = \"logistic\", features = 40, classes = 2 }\n"
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	refuses := func(wants ...string) {
		t.Helper()
		code, out, errs := call(t.Context(), "simulate", file)
		said := strings.Join(strings.Fields(errs), " ")
		for _, want := range wants {
			if code != cli.ExitFailure || out != "" || !strings.Contains(said, want) {
				t.Errorf("exit %d, %q; want %q in %s", code, out, want, errs)
			}
		}
	}
	declare("")
	refuses("parties.count: nothing says how many parties there are")
	declare("parties.roster = \"roster.txt\"\n")
	refuses("study.toml:4: parties.count: only the roster says how many parties there are",
		"roster.txt: no such file", "--set parties.count=3")
	text := ""
	for _, name := range []string{"north", "south", "east"} {
		key, err := keyexchange.GenerateIdentity(nil)
		if err != nil {
			t.Fatal(err)
		}
		text += fmt.Sprintf("%s %x\n", name, key.Public())
	}
	if err := os.WriteFile(filepath.Join(dir, "roster.txt"), []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	code, out, errs := call(t.Context(), "simulate", file)
	if code != cli.ExitOK || !strings.Contains(out, "parties   3 with 20 rows each") {
		t.Errorf("exit %d: %s\n%s", code, errs, out)
	}
	code, _, errs = call(t.Context(), "simulate", file, "--set", "model.features=2")
	if code != cli.ExitFailure || !strings.Contains(strings.Join(strings.Fields(errs), " "),
		"it says 2, and the data has 40; leave it out in a simulation, or give the value of "+
			"world.data, as with --set model.features=40") {
		t.Errorf("exit %d: %s", code, errs)
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
		if code != cli.ExitOK {
			t.Fatalf("%s: exit %d: %s", args, code, errs)
		}
		path := filepath.Join(t.TempDir(), "printed.toml")
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		_, want, _ := call(t.Context(), strings.Fields("simulate --json "+args)...)
		code, got, errs := call(t.Context(), "simulate", path, "--json")
		if code != cli.ExitOK || times.ReplaceAllString(got, "") != times.ReplaceAllString(want, "") {
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
		if code != cli.ExitOK || err != nil || j.Name != want {
			t.Errorf("%s: exit %d, %s, %v\n%s", args, code, errs, err, text)
		}
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
		if code != cli.ExitOK || times.ReplaceAllString(got, "") != times.ReplaceAllString(want, "") {
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
		{`time.pace = "1h"`, "time.pace is for deployments, and ignored here"},
		{"time = { start = 2030-01-01T00:00:00Z, step_time = \"9s\" }",
			"time.start, time.step_time are for deployments, and ignored here"},
		{"time.begin_with = 2", "time.begin_with is for deployments, and ignored here"},
		{"world.data.draw = \"fixed\"\ntime = { pace = \"1h\", step_time = \"9s\" }",
			"time.pace is for deployments, and ignored here"},
	} {
		code, _, errs := call(t.Context(), "simulate", "--json", clitest.Written(t, start+c.text))
		if want := c.says != ""; code != cli.ExitOK || (errs != "") != want ||
			!strings.Contains(clitest.Flat(errs), c.says) {
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
		code, out, errs := call(t.Context(), "simulate", clitest.Written(t, start+data))
		if code != cli.ExitOK || errs != "" || !strings.Contains(clitest.Flat(out), want) {
			t.Errorf("%s: exit %d, %s%s\nwant %s", data, code, errs, out, want)
		}
	}
	// Averages weigh each party by its rows, and say how many those are.
	code, out, errs := call(t.Context(), "simulate", "--clients", "10", "--rounds", "1", "--print",
		"--set", "world.data.all=true")
	if code != cli.ExitOK || !strings.Contains(out, "all = true") || strings.Contains(out, "rows =") ||
		!strings.Contains(out, "max_weight = 2000\n") {
		t.Errorf("exit %d, %s%s", code, errs, out)
	}
}
