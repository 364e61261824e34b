package simulation

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/learning"
)

func alone(ctx context.Context, x trial) ([]learning.Matrix, error) {
	s, w, err := x.settle()
	if err != nil {
		return nil, err
	}
	return Alone(ctx, s, w)
}

// What a party has alone follows from its own rows: it is as good as a sum of twice the same rows
// in the clear, whatever noise, clips or masks the sum has.
func TestAlone(t *testing.T) {
	plain := brief()
	plain.rows = plain.rows[:2]
	want, err := alone(t.Context(), plain)
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(o *trial){
		"noise": func(o *trial) {
			o.noise(5)
			o.Privacy.Noise, o.Privacy.Clip, o.Privacy.Bits = "skellam", 0.01, 24
		},
		"a clip":  func(o *trial) { o.Privacy.Clip = 0.01 },
		"a mask":  func(o *trial) { o.mask("soft", 0.6) },
		"another": func(o *trial) { o.rows = append(o.rows, brief().rows[5]) },
	} {
		o := plain
		change(&o)
		got, err := alone(t.Context(), o)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for i := range want {
			if got[i].Accuracy() != want[i].Accuracy() {
				t.Errorf("%s: party %d has %v, want %v", name, i, got[i].Accuracy(), want[i].Accuracy())
			}
		}
	}
	both := plain
	both.Training = job.Training{Rate: 0.3, Epochs: 1}
	got, err := alone(t.Context(), both)
	if err != nil {
		t.Fatal(err)
	}
	both.rows = []*learning.Dataset{plain.rows[0], plain.rows[0]}
	if one := train(t, both).Final().Test; got[0].Accuracy() != one.Accuracy() {
		t.Errorf("alone %v, twice the same rows %v", got[0].Accuracy(), one.Accuracy())
	}
}

// Records are drawn alone as often as in the sum, however many the job says that all have.
func TestAloneByRecords(t *testing.T) {
	parties, test := declaredRows(t)
	j := declaredJob()
	j.Rounds, j.Server.Rate = 20, 4
	j.Privacy = job.Privacy{Unit: "record", Records: 160, Noise: "discrete-gaussian", Epsilon: 2,
		Clip: 1, SubmitAfter: 1e9}
	accuracy := func() (mean float64) {
		all, err := alone(t.Context(), trial{Job: *j, rows: parties, test: test})
		if err != nil {
			t.Fatal(err)
		}
		for i := range all {
			mean += all[i].Accuracy() / float64(len(all))
		}
		return mean
	}
	if a := accuracy(); a < 0.6 {
		t.Errorf("alone a party has %v", a)
	}
	j.Privacy.Records, j.Training.Batch = 1600, 800
	if a := accuracy(); a < 0.6 {
		t.Errorf("of ten times as many records a party has %v", a)
	}
}

// A training that diverges is judged by its last model; a cancelled one fails.
func TestAloneEnds(t *testing.T) {
	o := brief()
	o.Training.Rate = 1e200
	all, err := alone(t.Context(), o)
	if err != nil || len(all) != 6 || math.IsNaN(all[0].Accuracy()) {
		t.Errorf("%v, %v", all, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := alone(ctx, brief()); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if _, err := alone(t.Context(), trial{}); !errors.Is(err, job.ErrConfig) {
		t.Errorf("%v", err)
	}
}
