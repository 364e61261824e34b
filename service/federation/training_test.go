package federation_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/service/federation"
	"github.com/hushsum/hushsum/service/tensor"
)

const declared = `name = "trained"
rounds = 6
seed = 3
[training]
model = "mlp:4"
rule = "fedga"
beta = 0.1
mask = "soft"
by_rows = true
steps = 3
rate = 0.1
[training.rows]
features = 5
classes = 3
most = 40
[recovery]
drop_out = 0.2
[privacy]
noise = "none"
`

// What a training sums is in the words, and in the layout.
func TestTraining(t *testing.T) {
	f, err := federation.New([]byte(declared), rosterOf(t, 10), nil)
	if err != nil {
		t.Fatal(err)
	}
	words := strings.Join(f.Meaning(), "\n")
	for _, want := range []string{"mlp:4 by 3 steps", "fedga", "above and below zero",
		"mean of the parties' gradients", "how many rows", "more than 40"} {
		if !strings.Contains(words, want) {
			t.Errorf("the words lack %q:\n%s", want, words)
		}
	}
	// Weights, gradient, and what is next; updates, rows and signs.
	const d = 5*4 + 4 + 4*3 + 3
	if f.Spec.Len() != 2*d+2 || len(f.Config(1).Layout) != 3 || f.Spec.DType != tensor.Float64 {
		t.Errorf("%d numbers, layout %v, %s", f.Spec.Len(), f.Config(1).Layout, f.Spec.DType)
	}
	if s, err := f.Standing(f.Initial, nil); err != nil || s.Round != 1 || s.Exchange != 1 {
		t.Errorf("%+v: %v", s, err)
	}
	if _, err := f.Standing(make([]float64, f.Spec.Len()), nil); !errors.Is(err, tensor.ErrFormat) {
		t.Errorf("a model of zeros stands nowhere: %v", err)
	}
}

// What a model says of the training must be numbers that the training can have.
func TestStandingRefused(t *testing.T) {
	scaffold := strings.Replace(declared, "\"fedga\"\nbeta = 0.1", `"scaffold"`, 1)
	f, err := federation.New([]byte(scaffold), rosterOf(t, 10), nil)
	if err != nil {
		t.Fatal(err)
	}
	at := make(map[string]int)
	n := 0
	for _, one := range f.Spec.Tensors {
		at[one.Name] = n
		n += one.Len()
	}
	for _, c := range []struct {
		tensor string
		offset int
		value  float64
		good   bool
	}{
		{"rule.next", 0, 7, true}, // after the last round
		{"rule.next", 0, 8, false},
		{"rule.next", 0, 0, false},
		{"rule.next", 0, 1.5, false},
		{"rule.next", 0, 1e300, false},
		{"rule.next", 1, 2, false},
		{"rule.counted", 9, 6, true},
		{"rule.counted", 9, 7, false},
		{"rule.counted", 9, -1, false},
		{"rule.counted", 9, 0.5, false},
	} {
		model := slices.Clone(f.Initial)
		model[at[c.tensor]+c.offset] = c.value
		if _, err := f.Standing(model, nil); (err == nil) != c.good ||
			err != nil && !errors.Is(err, tensor.ErrFormat) {
			t.Errorf("%s %d is %g: %v", c.tensor, c.offset, c.value, err)
		}
	}
}

// What cannot be run is refused with its line and what to do.
func TestTrainingMistakes(t *testing.T) {
	for _, c := range []struct {
		from, to string
		line     int
		want     string
	}{
		{`model = "mlp:4"`, `model = "mlp:x"`, 5, "mlp:N"},
		{`model = "mlp:4"`, `model = "tree"`, 5, "softmax"},
		{`model = "mlp:4"`, `model = "logistic"`, 5, "use softmax"},
		{`rule = "fedga"`, `rule = "fedadam"`, 6, "fedavg, fedprox"},
		{"beta = 0.1", "beta = -1.0", 7, "above 0"},
		{"beta = 0.1", "mu = 0.1", 7, "fedprox"},
		{`mask = "soft"`, `mask = "sotf"`, 8, "did you mean soft"},
		{`mask = "soft"`, "mask_threshold = 0.4", 8, "no mask"},
		{`mask = "soft"`, `variates = "fresh"`, 8, "scaffold"},
		{`mask = "soft"`, `variates = "old"`, 8, "gradient, fresh"},
		{"steps = 3", "steps = -3", 10, "1 to 1,000,000"},
		{"rate = 0.1", "rate = 0.0", 11, "a learning rate"},
		{"most = 40", "", 9, "at most"},
		{"by_rows = true", "", 15, "by_rows"},
		{"features = 5", "", 12, "features"},
		{"features = 5", "features = 9223372036854775807", 13, "1 to 4,194,304"},
		{`model = "mlp:4"`, `model = "mlp:16384,16384"`, 5, "smaller"},
		{"rounds = 6", "rounds = 5", 2, "twice the number"},
		{"[training]", "[model]\nfile = \"m\"\n[training]", 4, "leave out"},
		{"[training]", "[metrics]\nshare = 0.1\n[training]", 5, "no metrics"},
		{`noise = "none"`, "noise = \"discrete-gaussian\"\nepsilon = 8.0\nclip = 1.0", 6, "use fedavg"},
		{`noise = "none"`, "epsilon = 8.0", 0, "there is no noise"},
		{"rate = 0.1", "rate = 0.1\nrange = -1.0", 12, "above 0"},
	} {
		text := strings.Replace(declared, c.from, c.to, 1)
		_, err := federation.New([]byte(text), rosterOf(t, 10), nil)
		expectMistake(t, c.to, err, c.line, c.want)
	}
}

// A training with noise is accounted for, its mask's signs too.
func TestTrainingWithNoise(t *testing.T) {
	text := strings.Replace(declared, "rule = \"fedga\"\nbeta = 0.1\n", "", 1)
	text = strings.Replace(text, `noise = "none"`,
		"noise = \"discrete-gaussian\"\nepsilon = 8.0\nclip = 1.0", 1)
	f, err := federation.New([]byte(text), rosterOf(t, 10), nil)
	if err != nil {
		t.Fatal(err)
	}
	if p := f.Plan(); p.Epsilon != 8 || p.Delta != 1e-5 || p.Noise == 0 {
		t.Errorf("%+v", p)
	}
	ledger, err := f.Ledger()
	if err != nil || ledger == nil {
		t.Fatal(err)
	}
	for round := range 7 {
		err = ledger.SpendRound(f.Round(), "p")
		if (err == nil) != (round < 6) {
			t.Fatalf("round %d: %v", round+1, err)
		}
	}
	spent, err := ledger.Spent("p")
	if err != nil || !(spent.Upper > 7.5 && spent.Upper <= 8) {
		t.Errorf("%v: %v", spent, err)
	}
}

// The first model by shapes and a seed: matrices within their bound, vectors zero, and the
// first numbers as the description gives them.
func TestUniform(t *testing.T) {
	spec := tensor.Spec{DType: tensor.Float64, Tensors: []tensor.Tensor{
		{Name: "w", Shape: []int{50, 4, 4}}, {Name: "b", Shape: []int{50}}, {Name: "v", Shape: []int{2, 1}},
	}}
	got := federation.Uniform(&spec, 7)
	sum, most := 0., 0.
	for _, x := range got[:800] {
		sum, most = sum+x, max(most, math.Abs(x))
	}
	// Of 800 uniform numbers the mean is within 6 deviations but for 2e-9.
	if most > .25 || most < .24 || math.Abs(sum/800) > 6*.25/math.Sqrt(3*800) {
		t.Errorf("mean %v, largest %v", sum/800, most)
	}
	for _, x := range got[800:850] {
		if x != 0 {
			t.Fatal("a vector is not zero")
		}
	}
	if other := federation.Uniform(&spec, 8); other[0] == got[0] {
		t.Error("another seed, one model")
	}
	if got[0] != 0.14379461667162013 || got[1] != -0.1754323651373677 {
		t.Errorf("it begins with %v", got[:2])
	}
}
