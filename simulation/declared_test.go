package simulation

import (
	"errors"
	"testing"
	"time"

	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/learning"
)

// declaredRows are made-up rows of four parties, and of nobody.
func declaredRows(t *testing.T) ([]*learning.Dataset, *learning.Dataset) {
	t.Helper()
	all, _, err := learning.Census(600, 1)
	if err != nil {
		t.Fatal(err)
	}
	train, test, err := all.Split(0.25, 1)
	if err != nil {
		t.Fatal(err)
	}
	parties, err := train.PartitionIID(4, 40, 1)
	if err != nil {
		t.Fatal(err)
	}
	return parties, test
}

func declaredJob() *job.Job {
	return &job.Job{Name: "x", Rounds: 2, Parties: job.Parties{Count: 4},
		Model: job.Model{Name: "logistic"}, World: job.World{Fidelity: "ring"}}
}

// A job with every rule can be run.
func TestDeclared(t *testing.T) {
	parties, test := declaredRows(t)
	for name, change := range map[string]func(j *job.Job){
		"averaging": func(j *job.Job) {},
		"weights":   func(j *job.Job) { j.Training.Submit, j.Sum.MaxWeight = "weights", 40 },
		"fedprox":   func(j *job.Job) { j.Training.Rule, j.Server.Rule = "fedprox", "fedadam" },
		"scaffold":  func(j *job.Job) { j.Training.Rule, j.Training.Variates = "scaffold", "gradient" },
		"fedga":     func(j *job.Job) { j.Training.Rule = "fedga" },
		"a mask":    func(j *job.Job) { j.Training.Mask, j.Privacy.Clip = "soft", 1 },
		"messages": func(j *job.Job) {
			j.World.Fidelity, j.Parties.DropOut, j.Sum.Adversary = "messages", 0.25, "curious"
		},
		"in the clear": func(j *job.Job) {
			j.World.Fidelity, j.Parties.PerRound = "clear", 2
		},
		"secret coins": func(j *job.Job) {
			j.Parties.Hidden = 0.5
			j.Privacy = job.Privacy{Noise: "skellam", Epsilon: 50, Clip: 1, SubmitAfter: time.Second}
		},
		"a committee": func(j *job.Job) {
			j.World.Fidelity, j.Sum.Protocol = "messages", "oneshot"
			j.Privacy = job.Privacy{Noise: "discrete-gaussian", Multiplier: 1, Clip: 1}
		},
		"a quantile": func(j *job.Job) {
			j.Privacy = job.Privacy{Noise: "skellam", Epsilon: 50, Clip: 1, ClipQuantile: 0.5}
		},
	} {
		j := declaredJob()
		change(j)
		s, w, err := Settle(j, Rows{Parties: parties, Test: test})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		result, err := Run(t.Context(), s, w, nil)
		if err != nil || len(result.Rounds) != 2 || result.Rounds[1].Test == nil {
			t.Errorf("%s: %+v, %v", name, result, err)
		}
		if e := j.Privacy.Epsilon; e > 0 && (result.Server.Bare().Upper > e ||
			result.Server.Bare().Upper < 0.9*e) {
			t.Errorf("%s: %v spent of %v", name, result.Server.Bare().Upper, e)
		}
	}
}

// What this simulation does not have is refused at the job's field.
func TestDeclaredRefused(t *testing.T) {
	parties, test := declaredRows(t)
	for path, change := range map[string]func(j *job.Job){
		"model":          func(j *job.Job) { j.Model = job.Model{Length: 3} },
		"model.features": func(j *job.Job) { j.Model.Features = 3 },
		"parties.count":  func(j *job.Job) { j.Parties.Count = 5 },
		"model.file":     func(j *job.Job) { j.Model.File = "model.npz" },
		"privacy.before": func(j *job.Job) {
			p := &j.Privacy
			p.Noise, p.Clip, p.Epsilon, p.Before = "skellam", 1, 4, "before.json"
		},
		"parties.hidden":  func(j *job.Job) { j.Parties.Hidden = 0.3 },
		"privacy.epsilon": func(j *job.Job) { j.Privacy.Noise, j.Privacy.Clip = "skellam", 1 },
		"sum.fraction_bits": func(j *job.Job) {
			j.Sum.FractionBits, j.Sum.Range, j.Sum.MaxWeight = 40, 1e9, 1000
		},
		"parties.drop_out": func(j *job.Job) {
			j.World.Fidelity, j.Parties.DropOut, j.Parties.Colluders = "messages", 0.4, 2
		},
	} {
		j := declaredJob()
		change(j)
		_, _, err := Settle(j, Rows{Parties: parties, Test: test})
		var e *job.ConfigError
		if !errors.As(err, &e) || e.Path != path {
			t.Errorf("%s: %v", path, err)
		}
	}
}
