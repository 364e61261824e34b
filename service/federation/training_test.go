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
rounds = 3
seed = 3
parties = { roster = "roster.txt", drop_out = 0.2 }
sum.max_weight = 40
model = { name = "mlp:4", features = 5, classes = 3 }
privacy.noise = "none"
[training]
rule = "fedga"
mask = "soft"
steps = 3
`

// What a training sums is in the words, and in the layout.
func TestTraining(t *testing.T) {
	f, err := federation.New(federation.Files{Text: []byte(declared), Roster: rosterOf(t, 10)})
	if err != nil {
		t.Fatal(err)
	}
	words := strings.Join(f.Meaning(), "\n")
	for _, want := range []string{"(mlp:4)", "3 steps", "fedga", "above and below zero",
		"mean of the parties' gradients", "how many rows", "more than 40"} {
		if !strings.Contains(words, want) {
			t.Errorf("the words lack %q:\n%s", want, words)
		}
	}
	// Weights, gradient, and what is next; updates, rows and signs.
	const d = 5*4 + 4 + 4*3 + 3
	layout := f.Settled.Layout()
	if f.Spec.Len() != 2*d+2 || len(layout) != 3 || f.Spec.DType != tensor.Float64 {
		t.Errorf("%d numbers, layout %v, %s", f.Spec.Len(), layout, f.Spec.DType)
	}
	if s, err := f.Standing(1, f.Initial, nil); err != nil || s.Round != 1 || s.Exchange != 1 {
		t.Errorf("%+v: %v", s, err)
	}
	if _, err := f.Standing(1, make([]float64, f.Spec.Len()), nil); !errors.Is(err, tensor.ErrFormat) {
		t.Errorf("a model of zeros stands nowhere: %v", err)
	}
}

// What a model says of the training must be numbers that the training can have.
func TestStandingRefused(t *testing.T) {
	scaffold := strings.Replace(declared, `"fedga"`, `"scaffold"`, 1)
	f, err := federation.New(federation.Files{Text: []byte(scaffold), Roster: rosterOf(t, 10)})
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
		{"rule.next", 0, 4, true}, // after the last round
		{"rule.next", 0, 5, false},
		{"rule.next", 0, 0, false},
		{"rule.next", 0, 1.5, false},
		{"rule.next", 0, 1e300, false},
		{"rule.next", 1, 2, false},
		{"rule.counted", 9, 3, true},
		{"rule.counted", 9, 4, false},
		{"rule.counted", 9, -1, false},
		{"rule.counted", 9, 0.5, false},
	} {
		model := slices.Clone(f.Initial)
		model[at[c.tensor]+c.offset] = c.value
		if _, err := f.Standing(1, model, nil); (err == nil) != c.good ||
			err != nil && !errors.Is(err, tensor.ErrFormat) {
			t.Errorf("%s %d is %g: %v", c.tensor, c.offset, c.value, err)
		}
	}
}

// A training with noise is accounted for, its mask's signs too.
func TestTrainingWithNoise(t *testing.T) {
	text := strings.Replace(declared, "rule = \"fedga\"\n", "", 1)
	text = strings.Replace(text, `privacy.noise = "none"`,
		"privacy = { noise = \"discrete-gaussian\", epsilon = 8.0, clip = 1.0 }", 1)
	f, err := federation.New(federation.Files{Text: []byte(text), Roster: rosterOf(t, 10)})
	if err != nil {
		t.Fatal(err)
	}
	if p := f.Job.Privacy; p.Epsilon != 8 || p.Delta != 1e-5 || !f.Job.Noisy() {
		t.Errorf("%+v", p)
	}
	ledger, err := f.Settled.Ledger()
	if err != nil || ledger == nil {
		t.Fatal(err)
	}
	for round := range 4 {
		err = ledger.SpendRound(f.Settled.Round(), "p")
		if (err == nil) != (round < 3) {
			t.Fatalf("round %d: %v", round+1, err)
		}
	}
	spent, err := ledger.Spent("p")
	if err != nil || !(spent.Bare().Upper > 7.5 && spent.Bare().Upper <= 8) {
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
	if most > 0.25 || most < 0.24 || math.Abs(sum/800) > 6*0.25/math.Sqrt(3*800) {
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
	if got[0] != 0.04626188812181037 || got[1] != 0.09754339981438837 {
		t.Errorf("it begins with %v", got[:2])
	}
}
