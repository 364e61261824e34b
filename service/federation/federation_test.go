package federation_test

import (
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/service/federation"
	"github.com/hushsum/hushsum/service/tensor"
)

func rosterOf(t testing.TB, n int) []byte { return listOf(t, "p", 0, n) }

// committeeOf is a list of members, of whom none is a party.
func committeeOf(t testing.TB, n int) []byte { return listOf(t, "m", 1, n) }

func listOf(t testing.TB, name string, kind byte, n int) []byte {
	t.Helper()
	var members []keyexchange.Entry
	for i := range n {
		seed := make([]byte, 32)
		seed[0], seed[1], seed[2] = byte(i), byte(i>>8), kind
		key := ed25519.NewKeyFromSeed(seed).Public().(ed25519.PublicKey)
		members = append(members, keyexchange.Entry{Name: fmt.Sprint(name, i), Key: key})
	}
	roster, err := keyexchange.NewRoster(members)
	if err != nil {
		t.Fatal(err)
	}
	text, err := roster.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

const good = `name = "study-7"
rounds = 4

[parties]
roster = "roster.txt"
colluders = 1
drop_out = 0.2

[sum]
adversary = "cheating"

[privacy]
noise = "discrete-gaussian"
epsilon = 8.0
delta = 1e-5
clip = 1.0

[model]
dtype = "float32"
personal = ["bn*"]
[[model.tensor]]
name = "layer"
shape = [3, 4]
[[model.tensor]]
name = "bn1"
shape = [4]

[server]
rule = "fedadam"
rate = 0.1

[metrics]
share = 0.2

[time]
step_time = "5s"
`

// A job's identifier is over what it declares and the roster, its digest over what it declares.
func TestGood(t *testing.T) {
	f, err := federation.New(federation.Files{Text: []byte(good), Roster: rosterOf(t, 10)})
	if err != nil {
		t.Fatal(err)
	}
	if f.Spec.Len() != 12 || strings.Join(f.Kept, " ") != "bn1" || f.Settled.Length() != 12 {
		t.Errorf("%d shared, kept %v, %d in a vector", f.Spec.Len(), f.Kept, f.Settled.Length())
	}
	words := strings.Join(f.Meaning(), "\n")
	for _, want := range []string{"at least 8 of the 10",
		"epsilon 8 at delta 1e-05 for each party, against a server that cheats with any 1 party; " +
			"assumes instant.",
		"7 honest", "bn1", "loss and accuracy", "12 shared"} {
		if !strings.Contains(words, want) {
			t.Errorf("the words lack %q:\n%s", want, words)
		}
	}
	j, err := job.Parse("study-7.toml", []byte(good))
	if err != nil {
		t.Fatal(err)
	}
	if digest := j.Digest(); f.JobDigest != hex.EncodeToString(digest[:]) || f.World {
		t.Errorf("the digest of the job is %s, want %x", f.JobDigest, digest)
	}
	// What is no declaration, or may change while it runs, changes neither.
	for _, change := range [][2]string{{"\n", "\r\n"}, {"[sum]", "[sum] # cheating, as ever"},
		{`"5s"`, `"6s"`}, {"[sum]\nadversary = \"cheating\"\n", ""}, {"[time]", "[world]\ndrop = 0.1\n[time]"},
	} {
		same, err := federation.New(federation.Files{
			Text: []byte(strings.ReplaceAll(good, change[0], change[1])), Roster: rosterOf(t, 10)})

		if err != nil || same.ID != f.ID || same.JobDigest != f.JobDigest {
			t.Errorf("%q: another federation, %v", change[1], err)
		}
	}
	ids, digests := map[string]string{f.ID: "itself"}, map[string]string{f.JobDigest: "itself"}
	for _, change := range [][2]string{{"rounds = 4", "rounds = 5"}, {"share = 0.2", "share = 0.3"},
		{"rate = 0.1", "rate = 0.2"}, {`["bn*"]`, `["nothing"]`}, {"clip = 1.0", "clip = 2.0"},
		{`"layer"`, `"other"`}} {
		other, err := federation.New(federation.Files{
			Text: []byte(strings.Replace(good, change[0], change[1], 1)), Roster: rosterOf(t, 10)})

		if err != nil {
			t.Fatal(change, err)
		}
		if a, b := ids[other.ID], digests[other.JobDigest]; a != "" || b != "" {
			t.Errorf("%v: the identifier is that of %q, and the digest that of %q", change, a, b)
		}
		ids[other.ID], digests[other.JobDigest] = change[1], change[1]
	}
	other, err := federation.New(federation.Files{Text: []byte(good), Roster: rosterOf(t, 11)})
	if err != nil || ids[other.ID] != "" || other.JobDigest != f.JobDigest {
		t.Errorf("another roster: %v", err)
	}
}

// A world is left out of what is told, and a job that was read already is the same federation.
func TestWorld(t *testing.T) {
	text := strings.Replace(good, "[time]", "[world]\ndrop = 0.1\n[time]", 1)
	f, err := federation.New(federation.Files{Text: []byte(text), Roster: rosterOf(t, 10)})
	if err != nil || !f.World || strings.Contains(string(f.Text), "world") {
		t.Fatalf("%v\n%s", err, f.Text)
	}
	told, err := federation.New(federation.Files{Text: f.Text, Roster: rosterOf(t, 10)})
	if err != nil || told.ID != f.ID || told.JobDigest != f.JobDigest || told.World {
		t.Errorf("what is told is another federation: %v", err)
	}
	j, err := job.Parse("study-7.toml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	made, err := federation.Of(j, job.Files{Roster: f.Settled.Roster()})
	if err != nil || made.ID != f.ID || string(made.Text) != string(f.Text) {
		t.Errorf("the job is another federation: %v", err)
	}
	j.World.Drop, j.Parties.DropOut = 0, 0
	_, err = federation.Of(j, job.Files{Roster: f.Settled.Roster()})
	expectMistake(t, "no drop-outs", err, 9, "sum.recovery")
}

// Every mistake is found with its line and what to do.
func TestMistakes(t *testing.T) {
	for _, c := range []struct {
		from, to string
		line     int
		want     string
	}{
		{"rounds = 4", "rounds = 0", 2, "rounds"},
		{"rounds = 4", "rouds = 4", 2, "did you mean rounds"},
		{"epsilon = 8.0", "epsilon = 1.0\nEPSILON = 100.0", 15, "privacy.EPSILON"},
		{`name = "study-7"`, `name = "a b"`, 1, "name"},
		{"drop_out = 0.2", "drop_out = 0.6", 7, "parties.drop_out"},
		{"drop_out = 0.2", "drop_out = 0.0", 9, "sum.recovery = true"},
		{"colluders = 1", "colluders = 9", 6, "parties.colluders"},
		{`adversary = "cheating"`, `protocol = "oneshot"`, 9, "sum.committee"},
		{`adversary = "cheating"`, `adversary = "evil"`, 10, "semi-malicious"},
		{"epsilon = 8.0", "epsilon = 0.0", 14, "epsilon"},
		{`personal = ["bn*"]`, `personal = ["*"]`, 20, "share at least one"},
		{`personal = ["bn*"]`, `personal = ["["]`, 20, "not a pattern"},
		{`adversary = "cheating"`, "max_weight = 5", 10, "sum.max_weight"},
		{"[metrics]\nshare = 0.2", "[training]\nmask = \"hard\"", 33, "training.mask"},
		{"[time]", "[recovery]\ndrop_out = 0.2\n[time]", 36, "write parties.drop_out"},
	} {
		text := strings.Replace(good, c.from, c.to, 1)
		_, err := federation.New(federation.Files{Text: []byte(text), Roster: rosterOf(t, 10)})
		expectMistake(t, c.to, err, c.line, c.want)
	}
}

// A federation with queries has a model that is the mean of what parties bring, and tells what it
// asks; of others there are no answers.
func TestQueries(t *testing.T) {
	const text = "name = \"a\"\nsum.recovery = true\nquery = [{ name = \"n\", kind = \"count\" }]\n" +
		"parties = { count = 10, roster = \"roster.txt\" }\n"
	f, err := federation.New(federation.Files{Text: []byte(text), Roster: rosterOf(t, 10)})
	if err != nil {
		t.Fatal(err)
	}
	if f.Spec.Len() != 1 || !f.Exact() || f.Questions() == nil || f.Settled.Trains() {
		t.Errorf("%+v", f.Spec)
	}
	for _, line := range f.Meaning() {
		if strings.Contains(line, "model") {
			t.Errorf("it asks, and says %q", line)
		}
	}
	asked, err := f.Asked([]float64{0.5}, 10)
	if err != nil || asked.Answers[0].Cells[0].Value != 5 || len(asked.Questions) != 1 ||
		asked.Spent != nil {
		t.Errorf("%+v: %v", asked, err)
	}
	if asked, err = f.Asked(nil, 0); err != nil || asked.Answers != nil {
		t.Errorf("%+v: %v", asked, err)
	}
	steps, err := federation.New(federation.Files{Text: []byte(`name = "a"
sum.recovery = true
parties = { count = 10, roster = "roster.txt" }
column = [
  { name = "age", type = "whole", range = [0, 100] },
  { name = "visits", type = "whole", range = [0, 10] },
]
query = [{ name = "rate", kind = "poisson", column = "visits", on = ["age"] }]
`), Roster: rosterOf(t, 10)})
	if err != nil {
		t.Fatal(err)
	}
	n := steps.Settled.Rounds()
	if asked, err = steps.Asked(make([]float64, steps.Spec.Len()), 10); err != nil || n < 2 ||
		asked.Answers != nil || asked.Parties != 0 {
		t.Errorf("%d rounds, and before the last %+v: %v", n, asked, err)
	}
	trains, err := federation.New(federation.Files{Text: []byte(declared), Roster: rosterOf(t, 10)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := trains.Asked(nil, 0); !errors.Is(err, federation.ErrAsks) {
		t.Errorf("it asks: %v", err)
	}
}

// expectMistake looks for the line of a mistake, 0: any, and what its text says.
func expectMistake(t *testing.T, change string, err error, line int, want string) {
	t.Helper()
	var wrong *job.ConfigError
	if !errors.As(err, &wrong) || !errors.Is(err, job.ErrConfig) {
		t.Errorf("%s: %v", change, err)
		return
	}
	if line > 0 && wrong.Line != line || !strings.Contains(err.Error(), want) {
		t.Errorf("%s: line %d, want %d: %v", change, wrong.Line, line, err)
	}
}

// A model from a file is the first one.
func TestModelFile(t *testing.T) {
	spec := tensor.Spec{DType: tensor.Float64, Tensors: []tensor.Tensor{
		{Name: "layer", Shape: []int{2}}, {Name: "bn1", Shape: []int{1}},
	}}
	file, err := spec.Append(nil, []float64{1, 2, 3}, nil)
	if err != nil {
		t.Fatal(err)
	}
	text := `name = "m"
rounds = 1
parties = { roster = "r", drop_out = 0.2 }
privacy.clip = 1.0
[model]
file = "m.safetensors"
personal = ["bn*"]
`
	f, err := federation.New(federation.Files{Text: []byte(text), Roster: rosterOf(t, 5), Model: file})
	if err != nil || fmt.Sprint(f.Initial) != "[1 2]" {
		t.Fatal(err)
	}
	file[len(file)-9] ^= 1 // of another weight
	other, err := federation.New(
		federation.Files{Text: []byte(text), Roster: rosterOf(t, 5), Model: file})
	if err != nil || other.ID == f.ID {
		t.Errorf("another first model, one identifier: %v", err)
	}
}

// A model that its type cannot hold any more is not the next one.
func TestDiverged(t *testing.T) {
	for dtype, fails := range map[tensor.DType]bool{tensor.Float32: true, tensor.Float64: false} {
		spec := tensor.Spec{DType: dtype, Tensors: []tensor.Tensor{{Name: "w", Shape: []int{1}}}}
		file, err := spec.Append(nil, []float64{3e38}, nil)
		if err != nil {
			t.Fatal(err)
		}
		f, err := federation.New(federation.Files{Text: []byte(`name = "m"
rounds = 1
parties.roster = "r"
sum = { adversary = "curious", recovery = true }
[model]
file = "m.safetensors"
dtype = "` + map[tensor.DType]string{tensor.Float32: "float32", tensor.Float64: "float64"}[dtype] + `"
[server]
rate = 3e38
[privacy]
clip = 1.0
`), Roster: rosterOf(t, 3), Model: file})

		if err != nil {
			t.Fatal(err)
		}
		one, err := f.Settled.Encode(job.BroadcastDigest(file),
			job.Update[float64]{Vector: []float64{1}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		sum := [][]uint64{{3 * one[0][0] & (1<<f.Settled.Config(1).Layout[0].Bits - 1)}}
		next, _, err := f.Next(f.Optimizer(), 1, f.Initial, file, sum, []int{0, 1, 2})
		if errors.Is(err, federation.ErrDiverged) != fails || (err == nil) == fails {
			t.Errorf("%s: %v, %v", dtype, next, err)
		}
	}
}

// A first model that its type cannot hold is refused.
func TestInitialTooLarge(t *testing.T) {
	spec := tensor.Spec{DType: tensor.Float64,
		Tensors: []tensor.Tensor{{Name: "w", Shape: []int{1}}}}
	file, err := spec.Append(nil, []float64{1e39}, nil)
	if err != nil {
		t.Fatal(err)
	}
	const text = `name = "m"
rounds = 1
parties.roster = "r"
sum = { adversary = "curious", recovery = true }
[model]
file = "m.safetensors"
dtype = "float32"
[privacy]
clip = 1.0
`
	var wrong *job.ConfigError
	_, err = federation.New(federation.Files{Text: []byte(text), Roster: rosterOf(t, 3), Model: file})
	if !errors.As(err, &wrong) || wrong.Line != 6 || !strings.Contains(wrong.Advice, "float64") {
		t.Errorf("%v", err)
	}
	larger := strings.Replace(text, "float32", "float64", 1)
	_, err = federation.New(
		federation.Files{Text: []byte(larger), Roster: rosterOf(t, 3), Model: file})
	if err != nil {
		t.Error(err)
	}
}

// FuzzFederation: whatever the text, it ends in a federation or a job.ConfigError.
func FuzzFederation(f *testing.F) {
	f.Add([]byte(good))
	f.Add([]byte(declared))
	f.Add([]byte("name = "))
	f.Add([]byte("[[model.tensor]]\nshape=[1e9]"))
	roster := rosterOf(f, 4)
	f.Fuzz(func(t *testing.T, text []byte) {
		j, err := job.Parse("federation.toml", text)
		if err == nil && (j.Rounds > 1000 || j.Model.Numbers() > 10_000 || j.Model.Init != "" ||
			len(j.Model.Name) > 8) {
			return // it would settle for long
		}
		_, err = federation.New(federation.Files{Text: text, Roster: roster})
		if err != nil && !errors.Is(err, job.ErrConfig) {
			t.Errorf("%v", err)
		}
	})
}
