package federation_test

import (
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/job/old"
	"github.com/hushsum/hushsum/service/federation"
	"github.com/hushsum/hushsum/service/tensor"
)

// A federation's file and the job that it becomes are the same federation: first model, sessions,
// sums, noise and rules. But for sums without noise of a model that the service does not train,
// which had an encoding of their own.
func TestConverted(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", "job", "old", "testdata", "federations",
		"*.toml"))
	if err != nil || len(files) < 15 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			j, _, _, err := old.Read(file, text)
			if err != nil {
				t.Fatal(err)
			}
			converted, err := j.MarshalText()
			if err != nil {
				t.Fatal(err)
			}
			var model []byte
			if j.Model.File != "" { // any will do
				spec := tensor.Spec{DType: tensor.Float64,
					Tensors: []tensor.Tensor{{Name: "w", Shape: []int{2}}}}
				if model, err = spec.AppendNPZ(nil, []float64{1, 2}); err != nil {
					t.Fatal(err)
				}
			}
			was, err := federation.New(federation.Files{Text: text, Roster: rosterOf(t, 10), Model: model})
			if err != nil {
				t.Fatal(err)
			}
			is, err := federation.New(
				federation.Files{Text: converted, Roster: rosterOf(t, 10), Model: model})
			if err != nil {
				t.Fatalf("%v\n%s", err, converted)
			}
			compareFederations(t, is, was)
			if own := was.Settled.Trains() || j.Noisy(); own {
				same(t, "layout", is.Settled.Config(1).Layout, was.Settled.Config(1).Layout)
			}
		})
	}
}

// The example on the page of the service equals what its earlier form becomes, whose drop_out was
// of all parties: none of the eight of a round could be missing.
func TestDocumented(t *testing.T) {
	page, err := os.ReadFile(filepath.FromSlash("../../docs/service.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, example, _ := strings.Cut(string(page), "```toml\n")
	example, _, _ = strings.Cut(example, "```")
	example = strings.NewReplacer("drop_out = 0.2 ", "#", "[sum]", "[sum]\nrecovery = true").
		Replace(example)
	is, err := federation.New(federation.Files{Text: []byte(example), Roster: rosterOf(t, 10)})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join("..", "..", "job", "old", "testdata", "jobs", "federation-study.toml")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	was, err := federation.New(federation.Files{Text: text, Roster: rosterOf(t, 10)})
	if err != nil || is.ID != was.ID {
		t.Errorf("another federation: %v", err)
	}
	compareFederations(t, is, was)
}

func compareFederations(t *testing.T, is, was *federation.Federation) {
	t.Helper()
	same(t, "rounds", is.Settled.Rounds(), was.Settled.Rounds())
	same(t, "start", is.Job.Time.Start, was.Job.Time.Start)
	same(t, "step_time", is.Job.Time.StepTime, was.Job.Time.StepTime)
	same(t, "pace", is.Job.Time.Pace, was.Job.Time.Pace)
	same(t, "sample", is.Settled.PerRound(), was.Settled.PerRound())
	same(t, "tensors", is.Spec, was.Spec)
	same(t, "kept tensors", is.Kept, was.Kept)
	same(t, "first model", is.Initial, was.Initial)
	same(t, "sums of a step", is.Exchanges(), was.Exchanges())
	round, before := is.Settled.Round(), was.Settled.Round()
	if is.Job.Noisy() { // which begins now, with no more noise than it needs
		if a, b := noise(round), noise(before); a > b*1.0001 {
			t.Errorf("noise is %v times the sensitivity, and was %v", a, b)
		}
		for _, r := range []*accounting.Round{&round, &before} {
			r.Update, r.Signs = accounting.Lane{}, nil
		}
	}
	same(t, "what a round spends", round, before)
	same(t, "rule of the server", is.Optimizer(), was.Optimizer())
	same(t, "metrics", is.Job.Metrics, was.Job.Metrics)
	a, b := is.Settled.Config(1), was.Settled.Config(1)
	same(t, "recovery", a.Recovery, b.Recovery)
	same(t, "colluders", a.Colluders, b.Colluders)
	same(t, "fewest members", a.MinMembers, b.MinMembers)
	same(t, "classical keys", a.Classical, b.Classical)
	same(t, "what is declared", is.Job.Lines(), was.Job.Lines())
}

// noise is how far that of a share deviates, over the sensitivity.
func noise(r accounting.Round) float64 {
	return max(r.Update.ShareSigma, math.Sqrt(r.Update.ShareVariance)) / r.Update.Sensitivity.L2
}

func same(t *testing.T, what string, is, was any) {
	t.Helper()
	if !reflect.DeepEqual(is, was) {
		t.Errorf("%s: %+v, and was %+v", what, is, was)
	}
}
