package federation_test

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/service/federation"
	"github.com/hushsum/hushsum/service/tensor"
)

func rosterOf(t testing.TB, n int) []byte {
	t.Helper()
	var members []keyexchange.Member
	for i := range n {
		seed := make([]byte, 32)
		seed[0], seed[1] = byte(i), byte(i>>8)
		key := ed25519.NewKeyFromSeed(seed).Public().(ed25519.PublicKey)
		members = append(members, keyexchange.Member{Name: fmt.Sprint("p", i), Key: key})
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
roster = "roster.txt"
rounds = 4
step_time = "5s"

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

[recovery]
adversary = "cheating"
colluders = 1
drop_out = 0.2

[privacy]
noise = "discrete-gaussian"
epsilon = 8.0
delta = 1e-5
clip = 1.0

[metrics]
share = 0.2
`

func TestGood(t *testing.T) {
	f, err := federation.New([]byte(good), rosterOf(t, 10), nil)
	if err != nil {
		t.Fatal(err)
	}
	if f.Spec.Len() != 12 || strings.Join(f.Kept, " ") != "bn1" || f.Settled.Plan().Length != 14 {
		t.Errorf("%d shared, kept %v, %d in all", f.Spec.Len(), f.Kept, f.Settled.Plan().Length)
	}
	words := strings.Join(f.Meaning(), "\n")
	for _, want := range []string{"at least 8 of the 10", "even one that sends anything", "1 party",
		"epsilon 8 at delta 1e-05", "7 honest", "bn1", "Loss and accuracy", "12 shared"} {
		if !strings.Contains(words, want) {
			t.Errorf("the words lack %q:\n%s", want, words)
		}
	}
	// Whatever is changed, the identifier is another; line ends of editors are not.
	same, err := federation.New([]byte(strings.ReplaceAll(good, "\n", "\r\n")), rosterOf(t, 10), nil)
	if err != nil || same.ID != f.ID {
		t.Errorf("line ends changed the identifier: %v", err)
	}
	seen := map[string]string{f.ID: "itself"}
	for _, change := range [][2]string{{"rounds = 4", "rounds = 5"}, {"share = 0.2", "share = 0.3"},
		{"rate = 0.1", "rate = 0.2"}, {`["bn*"]`, `["nothing"]`}, {"clip = 1.0", "clip = 2.0"},
		{`"5s"`, `"6s"`}, {`"layer"`, `"other"`}} {
		other, err := federation.New([]byte(strings.Replace(good, change[0], change[1], 1)),
			rosterOf(t, 10), nil)
		if err != nil {
			t.Fatal(change, err)
		}
		if had := seen[other.ID]; had != "" {
			t.Errorf("%v: the identifier is that of %s", change, had)
		}
		seen[other.ID] = change[1]
	}
	other, err := federation.New([]byte(good), rosterOf(t, 11), nil)
	if err != nil || seen[other.ID] != "" {
		t.Errorf("another roster, one identifier: %v", err)
	}
}

// Every mistake is found with its line and what to do.
func TestMistakes(t *testing.T) {
	for _, c := range []struct {
		from, to string
		line     int
		want     string
	}{
		{"rounds = 4", "rounds = 0", 3, "rounds"},
		{"rounds = 4", "rouds = 4", 3, "no such field"},
		{"epsilon = 8.0", "epsilon = 1.0\nEPSILON = 100.0", 28, "privacy.EPSILON: there is no such field"},
		{"epsilon = 8.0", "Epsilon = 8.0", 27, "write epsilon"},
		{"shape = [3, 4]", "SHAPE = [3, 4]", 0, "write shape"},
		{"[privacy]", "[Privacy]", 25, "write privacy"},
		{"rounds = 4", "rounds = \"4\"", 3, ""},
		{"rounds = 4", "rounds = ", 3, ""},
		{`name = "study-7"`, `name = "a b"`, 1, "name"},
		{`step_time = "5s"`, `step_time = "5"`, 4, "span of time"},
		{`dtype = "float32"`, `dtype = "int8"`, 7, "float32 or float64"},
		{"shape = [3, 4]", "shape = [3, 0]", 0, "shape"},
		{`name = "bn1"`, `name = "layer"`, 0, "two tensors"},
		{`personal = ["bn*"]`, `personal = ["*"]`, 8, "share at least one"},
		{`personal = ["bn*"]`, `personal = ["["]`, 8, "no pattern"},
		{`rule = "fedadam"`, `rule = "adam"`, 17, "fedavg"},
		{"rate = 0.1", "rate = -1.0", 17, "Rate"},
		{`adversary = "cheating"`, `adversary = "evil"`, 21, "semi-malicious"},
		{"drop_out = 0.2", "drop_out = 0.6", 23, "drop_out"},
		{"colluders = 1", "colluders = 9", 22, "olluders"},
		{`noise = "discrete-gaussian"`, `noise = "gauss"`, 26, "use none, discrete"},
		{"epsilon = 8.0", "epsilon = 0.0", 27, "epsilon"},
		{"delta = 1e-5", "delta = 2.0", 28, "delta"},
		{"clip = 1.0", "clip = 0.0", 29, "clip"},
		{"share = 0.2", "share = 1.0", 32, "share"},
		{"rounds = 4", "rounds = 4\nstart = \"tomorrow\"", 4, "2026-11-30"},
		{"rounds = 4", "rounds = 4\nseed = 1", 4, "uniform"},
		{"rounds = 4", "rounds = 4\nsampling = 1.5", 4, "no part"},
		{"rounds = 4", "rounds = 4\nsampling = 0.5", 4, "use at least 0.8 here"},
		{`dtype = "float32"`, `init = "normal"`, 7, "zeros or uniform"},
	} {
		text := strings.Replace(good, c.from, c.to, 1)
		_, err := federation.New([]byte(text), rosterOf(t, 10), nil)
		expectMistake(t, c.to, err, c.line, c.want)
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
roster = "r"
rounds = 1
[model]
file = "m.safetensors"
personal = ["bn*"]
[recovery]
drop_out = 0.2
[privacy]
clip = 1.0
`
	f, err := federation.New([]byte(text), rosterOf(t, 5), file)
	if err != nil || fmt.Sprint(f.Initial) != "[1 2]" {
		t.Fatal(err)
	}
	file[len(file)-9] ^= 1 // of another weight
	other, err := federation.New([]byte(text), rosterOf(t, 5), file)
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
		f, err := federation.New([]byte(`name = "m"
roster = "r"
rounds = 1
[model]
file = "m.safetensors"
dtype = "`+map[tensor.DType]string{tensor.Float32: "float32", tensor.Float64: "float64"}[dtype]+`"
[server]
rate = 3e38
[recovery]
adversary = "curious"
[privacy]
clip = 1.0
`), rosterOf(t, 3), file)
		if err != nil {
			t.Fatal(err)
		}
		one, err := f.Settled.Encode(file, []float64{1}, nil)
		if err != nil {
			t.Fatal(err)
		}
		sum := [][]uint64{{3 * one[0][0] & (1<<f.Config(1).Layout[0].Bits - 1)}}
		next, _, err := f.Next(f.Optimizer(), f.Initial, file, sum, []int{0, 1, 2})
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
roster = "r"
rounds = 1
[model]
file = "m.safetensors"
dtype = "float32"
[recovery]
adversary = "curious"
[privacy]
clip = 1.0
`
	var wrong *job.ConfigError
	_, err = federation.New([]byte(text), rosterOf(t, 3), file)
	if !errors.As(err, &wrong) || wrong.Line != 5 || !strings.Contains(wrong.Advice, "float64") {
		t.Errorf("%v", err)
	}
	larger := strings.Replace(text, "float32", "float64", 1)
	if _, err := federation.New([]byte(larger), rosterOf(t, 3), file); err != nil {
		t.Error(err)
	}
}

// Update and metrics together have at most the clip's norm, and come apart again.
func TestMetricsWithinClip(t *testing.T) {
	f, err := federation.New([]byte(good), rosterOf(t, 10), nil)
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.Float64Range(-100, 100)
		update := rapid.SliceOfN(number, 12, 12).Draw(t, "update")
		loss := rapid.Float64().Draw(t, "loss")
		accuracy := rapid.Float64Range(0, 1).Draw(t, "accuracy")
		joined, err := f.Join(update, loss, accuracy)
		if err != nil {
			t.Fatal(err)
		}
		norm := 0.
		for _, x := range joined {
			norm += x * x
		}
		if norm = math.Sqrt(norm); !(norm <= 1+1e-12) {
			t.Fatalf("norm %v", norm)
		}
		_, m := f.Part(joined, 10)
		if math.Abs(m.Accuracy-accuracy) > 1e-9 || !(m.Loss >= 0 && m.Loss <= 10+1e-9) {
			t.Fatalf("accuracy %v became %v, loss %v became %v", accuracy, m.Accuracy, loss, m.Loss)
		}
	})
}

// FuzzFederation: whatever the text, parsing ends in a file or a job.ConfigError.
func FuzzFederation(f *testing.F) {
	f.Add([]byte(good))
	f.Add([]byte(declared))
	f.Add([]byte("name = "))
	f.Add([]byte("[[model.tensor]]\nshape=[1e9]"))
	roster := rosterOf(f, 4)
	f.Fuzz(func(t *testing.T, text []byte) {
		parsed, err := federation.Parse(text)
		if err != nil {
			if !errors.Is(err, job.ErrConfig) {
				t.Errorf("%v", err)
			}
			return
		}
		if parsed.Rounds > 1000 || len(parsed.Model.Tensors) > 3 || parsed.Model.Init != "" ||
			parsed.Training != nil && (parsed.Training.Rows.Features > 99 ||
				len(parsed.Training.Model) > 8) {
			return // it would settle for long
		}
		_, err = federation.New(text, roster, nil)
		if err != nil && !errors.Is(err, job.ErrConfig) {
			t.Errorf("%v", err)
		}
	})
}
