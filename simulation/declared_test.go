package simulation

import (
	"errors"
	"slices"
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

// A job with every rule comes to options that can be run.
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
		o, err := Declared(j, parties, test)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		result, err := Run(t.Context(), o, nil)
		if err != nil || len(result.Rounds) != 2 || result.Rounds[1].Test == nil {
			t.Errorf("%s: %+v, %v", name, result, err)
		}
		if e := j.Privacy.Epsilon; e > 0 && (result.Server.Bare().Upper > e ||
			result.Server.Bare().Upper < 0.9*e) {
			t.Errorf("%s: %v spent of %v", name, result.Server.Bare().Upper, e)
		}
	}
}

// drop_out says how many must be in a sum.
func TestDeclaredRecovery(t *testing.T) {
	parties, test := declaredRows(t)
	for _, c := range []struct {
		dropOut  float64
		recovery bool
		want     int // 0: no recovery
	}{{0, false, 0}, {0, true, 4}, {0.25, false, 3}, {0.3, true, 3}} {
		j := declaredJob()
		j.World.Fidelity, j.Sum.Adversary = "messages", "curious"
		j.Parties.DropOut, j.Sum.Recovery = c.dropOut, c.recovery
		o, err := Declared(j, parties, test)
		if err != nil {
			t.Fatal(err)
		}
		if got := o.Recovery; (got == nil) != (c.want == 0) || got != nil && got.MinSurvivors != c.want {
			t.Errorf("%+v: %+v", c, got)
		}
	}
}

// drop_out is a part of those of a round, as it is when the job is settled.
func TestDeclaredPerRound(t *testing.T) {
	parties, test := declaredRows(t)
	j := declaredJob()
	j.World.Fidelity, j.Sum.Adversary, j.Parties.DropOut = "messages", "curious", 0.25
	j.Parties.PerRound = 3
	o, err := Declared(j, parties, test)
	if err != nil || o.PerRound != 3 || o.Recovery.MinSurvivors != 3 {
		t.Errorf("%+v, %v", o.Recovery, err)
	}
	j.Parties.PerRound, j.Parties.DropOut = 2, 0.1
	if o, err = Declared(j, parties, test); err != nil || o.Recovery.MinSurvivors != 2 {
		t.Errorf("%+v, %v", o.Recovery, err)
	}
	// Against a server that cheats the fewest follow from those of a round.
	j.Sum.Adversary = "cheating"
	if o, err = Declared(j, parties, test); err != nil || o.Recovery.MinSurvivors != 0 {
		t.Errorf("%+v, %v", o.Recovery, err)
	}
}

// A sparse graph, too, is as it is when the job is settled, and noise counts on what it promises.
func TestDeclaredSparse(t *testing.T) {
	four, test := declaredRows(t)
	parties := slices.Repeat(four, 5)
	j := declaredJob()
	j.Parties = job.Parties{Count: len(parties), DropOut: 0.1, Colluders: 1}
	j.World.Fidelity = "messages"
	j.Sum = job.Sum{Adversary: "curious", Sparse: true}
	j.Privacy = job.Privacy{Noise: "discrete-gaussian", Clip: 1, Multiplier: 2}
	o, err := Declared(j, parties, test)
	if err != nil || o.Recovery.Degree != 4 || o.Recovery.Threshold != 2 ||
		o.Recovery.CorruptNeighbours != 1 {
		t.Fatalf("%+v, %v", o.Recovery, err)
	}
	release, err := o.Release()
	if err != nil || release.Promise.Honest() != 17 {
		t.Errorf("%+v, %v", release, err)
	}
	j.Sum.Degree = 2
	var wrong *job.ConfigError
	if _, err := Declared(j, parties, test); !errors.As(err, &wrong) || wrong.Path != "sum.degree" {
		t.Errorf("2 neighbours: %v", err)
	}
	j.Sum = job.Sum{Adversary: "semi-malicious", Sparse: true}
	if _, err := Declared(j, parties, test); !errors.As(err, &wrong) || wrong.Path != "sum.sparse" {
		t.Errorf("a semi-malicious server: %v", err)
	}
}

// What this simulation does not have is refused at the job's field.
func TestDeclaredRefused(t *testing.T) {
	parties, test := declaredRows(t)
	for path, change := range map[string]func(j *job.Job){
		"model":            func(j *job.Job) { j.Model = job.Model{Length: 3} },
		"model.features":   func(j *job.Job) { j.Model.Features = 3 },
		"parties.count":    func(j *job.Job) { j.Parties.Count = 5 },
		"training.restart": func(j *job.Job) { j.Training.Restart = true },
		"model.file":       func(j *job.Job) { j.Model.File = "model.npz" },
		"privacy.before": func(j *job.Job) {
			p := &j.Privacy
			p.Noise, p.Clip, p.Epsilon, p.Before = "skellam", 1, 4, "before.json"
		},
		"sum.classical":   func(j *job.Job) { j.Sum.Classical = true },
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
		_, err := Declared(j, parties, test)
		var e *job.ConfigError
		if !errors.As(err, &e) || e.Path != path {
			t.Errorf("%s: %v", path, err)
		}
	}
}
