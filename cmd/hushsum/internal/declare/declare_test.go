package declare

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/cmd/hushsum/internal/clitest"
	"github.com/hushsum/hushsum/job"
)

// call runs a program with these commands.
func call(ctx context.Context, args ...string) (code int, stdout, stderr string) {
	return clitest.Call(ctx, args, Command())
}

const firstJob = `name = "first"
about = "What would it give?"
rounds = 20
parties.count = 10
model.name = "logistic"
privacy = { noise = "discrete-gaussian", epsilon = 8.0, clip = 1.0 }
`

func TestJobCheck(t *testing.T) {
	file := clitest.Written(t, firstJob)
	code, out, errs := call(t.Context(), "job", "check", file)
	if code != 0 || errs != "" {
		t.Fatalf("code %d, %q", code, errs)
	}
	clitest.Width(t, out)
	for _, want := range []string{"job first, valid", "about What would it give?",
		"10 parties train a model (logistic), in 20 rounds.", "a server that cheats",
		"at most epsilon 8 at delta 1e-05 for each party, against a server that cheats; " +
			"assumes instant.",
		"filled in privacy.bits = 32"} {
		if !strings.Contains(clitest.Flat(out), want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	read := func(args ...string) (object map[string]any) {
		t.Helper()
		_, out, errs := call(t.Context(), append([]string{"job", "check", "--json"}, args...)...)
		if err := json.Unmarshal([]byte(out), &object); err != nil || errs != "" {
			t.Fatalf("%v: %v, %q, %q", args, err, out, errs)
		}
		return object
	}
	_, large, _ := call(t.Context(), "job", "check", file, "--set", "privacy.delta=0.2")
	if !strings.Contains(clitest.Flat(large), "Caution: delta = 0.2 is above 1 / 10 units") ||
		strings.Contains(out, "Caution") {
		t.Errorf("of a large delta it says %s, of another %s", large, out)
	}
	one, other := read(file), read(file, "--set", "privacy.epsilon=4", "--set", "world.drop=0.0")
	digest, _ := one["digest"].(string)
	if len(digest) != 64 || !strings.Contains(out, digest) || other["digest"] == digest {
		t.Errorf("digests %v, %v", digest, other["digest"])
	}
	if e := other["job"].(map[string]any)["privacy"].(map[string]any)["epsilon"]; e != 4.0 {
		t.Errorf("epsilon %v", e)
	}
	// From standard input, in JSON, it is the same job.
	text, err := json.Marshal(one["job"])
	if err != nil {
		t.Fatal(err)
	}
	in, err := os.Open(clitest.Written(t, string(text)))
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	before := os.Stdin
	os.Stdin = in
	defer func() { os.Stdin = before }()
	if got := read("-"); got["digest"] != digest || got["file"] != "standard input" {
		t.Errorf("%v, want digest %s", got, digest)
	}
}

func TestJobCheckMistakes(t *testing.T) {
	file := clitest.Written(t,
		"name = \"x\"\nrounds = 0\nepsilom = 2\n[privacy]\nepsilon = \"much\"\n")
	code, out, errs := call(t.Context(), "job", "check", file)
	want := file + `:2: rounds: 0 is outside its range
    Write a whole number: 1 to 1,000,000.
` + file + `:3: epsilom: there is no such field
    Did you mean privacy.epsilon?
` + file + `:5: privacy.epsilon: "much" is not a number
    Write a number: above 0.
3 mistakes
`
	if code != 1 || errs != "" || clitest.Flat(out) != clitest.Flat(want) {
		t.Errorf("code %d, %q, %q, want %q", code, errs, out, want)
	}
	code, out, errs = call(t.Context(), "job", "check", clitest.Written(t, firstJob), "--json",
		"--set", "parties.count=1", "--set", "rounds=many")
	var object struct {
		Valid    bool
		Mistakes []struct{ Path, Reason, Advice string }
	}
	if err := json.Unmarshal([]byte(out), &object); err != nil || code != 1 || errs != "" ||
		object.Valid || len(object.Mistakes) != 2 || object.Mistakes[1].Path != "rounds" {
		t.Errorf("code %d, %v, %q, %q", code, err, out, errs)
	}
	code, out, _ = call(t.Context(), "job", "check", clitest.Written(t, firstJob), "--set",
		"privacy.noise=none")
	if code != 1 || !strings.Contains(clitest.Flat(out), ":6: privacy.epsilon: it has no effect") {
		t.Errorf("rules across fields: code %d, %q", code, out)
	}
}

func TestJobFields(t *testing.T) {
	code, out, errs := call(t.Context(), "job", "fields")
	if code != 0 || errs != "" {
		t.Fatalf("code %d, %q", code, errs)
	}
	clitest.Width(t, out)
	all := slices.Collect(job.Fields())
	for _, f := range all {
		if !strings.Contains(out, "\n"+f.Path+" ") && !strings.HasPrefix(out, f.Path+" ") ||
			!strings.Contains(clitest.Flat(out), f.Sentence) {
			t.Errorf("%s is not listed", f.Path)
		}
	}
	for _, c := range []struct {
		pattern string
		want    []string
	}{
		{"clip", []string{"privacy.clip", "privacy.clip_quantile", "privacy.clip_rate"}},
		{"party[].crash[].b", []string{"world.party[].crash[].back"}},
		{"world.*rows", []string{"world.data.rows", "world.party[].rows"}},
		{"rounds", []string{"rounds", "world.lost_rounds"}},
	} {
		code, out, errs := call(t.Context(), "job", "fields", c.pattern, "--json")
		var got []job.Field
		if err := json.Unmarshal([]byte(out), &got); err != nil || code != 0 || errs != "" {
			t.Fatalf("code %d, %v, %q", code, err, errs)
		}
		var paths []string
		for _, f := range got {
			paths = append(paths, f.Path)
			if f.Sentence == "" || f.Kind == "" || f.Part == "" {
				t.Errorf("%+v", f)
			}
		}
		if !slices.Equal(paths, c.want) {
			t.Errorf("%s: %q, want %q", c.pattern, paths, c.want)
		}
	}
	_, out, _ = call(t.Context(), "job", "fields", "--schema")
	if out != string(job.Schema()) {
		t.Error("the schema is another")
	}
}

// All theorems are listed, and all fields with their marks.
func TestTheorems(t *testing.T) {
	_, out, _ := call(t.Context(), "job", "fields", "--theorems")
	clitest.Width(t, out)
	for f := range job.Fields() {
		if f.Part != job.Simulated && !strings.Contains(out, f.Path) {
			t.Errorf("%s is left out", f.Path)
		}
	}
	_, text, _ := call(t.Context(), "job", "fields", "--theorems", "--json")
	var got job.TheoremTable
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatal(err)
	}
	want := job.Theorems()
	if len(got.Theorems) != len(want.Theorems) || len(got.Groups) != len(want.Groups) {
		t.Errorf("%d theorems, want %d", len(got.Theorems), len(want.Theorems))
	}
	for _, x := range want.Theorems {
		if !strings.Contains(out, "\n"+x.ID+" ") {
			t.Errorf("%s is left out", x.ID)
		}
	}
}

func TestJobHelp(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"help job", "check "}, {"job -h", "Usage: hushsum job COMMAND"},
		{"help job check", "--set PATH=VALUE"}, {"job check -h", "Exit codes: 0 it is valid"},
		{"help job check json", "worked_out"}, {"job fields --help=all", "a command's flag that sets it"},
		{"help job fields", "--schema"}, {"help", "job "},
	} {
		code, out, errs := call(t.Context(), strings.Fields(c.args)...)
		if code != 0 || errs != "" || !strings.Contains(out, c.want) {
			t.Errorf("%s: code %d, %q, no %q in\n%s", c.args, code, errs, c.want, out)
		}
		clitest.Width(t, out)
	}
}
