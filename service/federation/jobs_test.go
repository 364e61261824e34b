package federation_test

import (
	"cmp"
	"os"
	"path/filepath"
	"testing"

	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/job/old"
	"github.com/hushsum/hushsum/learning"
	"github.com/hushsum/hushsum/service/federation"
	"github.com/hushsum/hushsum/service/tensor"
	"github.com/hushsum/hushsum/training"
)

// The job that a federation's file becomes declares what the service makes of the file.
func TestJobs(t *testing.T) {
	const parties = 10
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
			var model []byte
			if j.Model.File != "" { // any will do
				spec := tensor.Spec{DType: tensor.Float64,
					Tensors: []tensor.Tensor{{Name: "w", Shape: []int{2}}}}
				if model, err = spec.AppendNPZ(nil, []float64{1, 2}); err != nil {
					t.Fatal(err)
				}
			}
			f, err := federation.New(text, rosterOf(t, parties), model)
			if err != nil {
				t.Fatal(err)
			}
			d := j.WithDefaults()
			same(t, "rounds", d.Rounds*f.Exchanges(), f.File.Rounds)
			same(t, "parties.per_round", d.Parties.PerRound, f.Sample())
			same(t, "model.dtype", d.Model.DType == "float64", f.Exact())
			same(t, "time.step_time", int64(d.Time.StepTime), int64(f.File.StepTime))
			same(t, "time.start", d.Time.Start, f.Start)
			sameRule(t, d.Server, *f.Optimizer())
			p := f.Plan()
			same(t, "privacy.epsilon", d.Privacy.Epsilon, p.Epsilon)
			if d.Noisy() {
				same(t, "privacy.delta", d.Privacy.Delta, p.Delta)
				same(t, "privacy.bits", d.Privacy.Bits, p.Bits)
				same(t, "privacy.noise", d.Privacy.Noise, p.Noise.String())
			}
			if f.File.Training != nil {
				sameTraining(t, d, f, parties)
			}
		})
	}
}

func same[V comparable](t *testing.T, field string, got, want V) {
	t.Helper()
	if got != want {
		t.Errorf("%s is %v, and was %v", field, got, want)
	}
}

// sameRule compares the server's rule. Numbers that a rule does not use do not count.
func sameRule(t *testing.T, s job.Server, o aggregation.Optimizer) {
	t.Helper()
	rule := map[string]aggregation.Rule{"fedavg": aggregation.RuleFedAvg,
		"fedavgm": aggregation.RuleMomentum, "fedadagrad": aggregation.RuleFedAdagrad,
		"fedadam": aggregation.RuleFedAdam, "fedyogi": aggregation.RuleFedYogi}[s.Rule]
	same(t, "server.rule", rule, o.Rule)
	same(t, "server.rate", s.Rate, cmp.Or(o.Rate, aggregation.DefaultOptimizerRate))
	if rule == aggregation.RuleFedAvg {
		return
	}
	same(t, "server.beta1", s.Beta1, o.Beta1)
	same(t, "server.beta2", s.Beta2, cmp.Or(o.Beta2, aggregation.DefaultBeta2))
	same(t, "server.tau", s.Tau, cmp.Or(o.Tau, aggregation.DefaultTau))
	same(t, "server.tau_inside", s.TauInside, o.TauInside)
}

// sameTraining compares a training that is declared.
func sameTraining(t *testing.T, d *job.Job, f *federation.Federation, parties int) {
	t.Helper()
	trained, err := f.Trained(&learning.Dataset{Features: d.Model.Features, Labels: []int{0},
		X: make([]float64, d.Model.Features)})
	if err != nil {
		t.Fatal(err)
	}
	o := trained.Options()
	same(t, "model.length", d.Model.Numbers(), o.Model.NumParams())
	same(t, "seed", d.Seed, o.Seed)
	r := d.Training
	was := o.Local
	if was.Epochs == 0 && was.Steps == 0 {
		was.Epochs = 1
	}
	same(t, "training.rate", r.Rate, was.Rate)
	same(t, "training.momentum", r.Momentum, was.Momentum)
	same(t, "training.weight_decay", r.WeightDecay, was.WeightDecay)
	same(t, "training.batch", r.Batch, was.Batch)
	same(t, "training.epochs", r.Epochs, was.Epochs)
	same(t, "training.steps", r.Steps, was.Steps)
	if kind := o.Client.Kind; kind == training.FedProx && o.Client.Mu == 0 {
		same(t, "training.rule", r.Rule, "fedavg")
	} else {
		same(t, "training.rule", training.ClientRules[r.Rule], kind)
	}
	if o.Client.Mu > 0 {
		same(t, "training.mu", r.Mu, o.Client.Mu)
	}
	if o.Client.Beta > 0 {
		same(t, "training.beta", r.Beta, o.Client.Beta)
	}
	same(t, "training.variates", r.Variates == "fresh", o.Client.Fresh)
	same(t, "training.variates", r.Variates == "gradient", o.Client.OptionI)
	same(t, "training.mask", training.Masks[r.Mask], o.Mask.Kind)
	if o.Mask.Kind != aggregation.NoMask {
		same(t, "training.mask_threshold", r.MaskThreshold, o.Mask.Threshold)
	}
	same(t, "training.submit", r.Submit == "weights", o.Models)
	same(t, "sum.max_weight", d.Sum.MaxWeight, o.MaxSamples)
	switch {
	case o.NoiseClip > 0:
		same(t, "privacy.clip", d.Privacy.Clip, o.NoiseClip)
	default:
		same(t, "privacy.clip", d.Privacy.Clip, o.Clip.Norm)
		limit, bits := f.FixedPoint()
		same(t, "sum.range", d.Sum.Range, cmp.Or(limit, 64))
		same(t, "sum.fraction_bits", d.Sum.FractionBits, cmp.Or(bits, 20))
	}
}
