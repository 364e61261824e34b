package simulation

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/learning"
	"github.com/hushsum/hushsum/privacy"
	"github.com/hushsum/hushsum/training"
)

// What a party has alone follows from its own rows: it is as good as a sum of twice the same rows
// in the clear, whatever noise, clips or masks the sum has.
func TestAlone(t *testing.T) {
	plain := brief()
	plain.Parties = plain.Parties[:2]
	want, err := Alone(t.Context(), plain)
	if err != nil {
		t.Fatal(err)
	}
	noise := privacy.Noise{Family: accounting.FamilySkellam, Multiplier: 5, Clip: 0.01, Bits: 24}
	for name, change := range map[string]func(o *Options){
		"noise":   func(o *Options) { o.Noise, o.Sum = &noise, Ring },
		"a clip":  func(o *Options) { o.Clip.Kind, o.Clip.Norm = training.DifferenceClip, 0.01 },
		"a mask":  func(o *Options) { o.Mask = masks["soft"] },
		"another": func(o *Options) { o.Parties = append(o.Parties, brief().Parties[5]) },
	} {
		o := plain
		change(&o)
		got, err := Alone(t.Context(), o)
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
	both.Local = learning.SGD{Rate: 0.3, Epochs: 1}
	got, err := Alone(t.Context(), both)
	if err != nil {
		t.Fatal(err)
	}
	both.Parties = []*learning.Dataset{plain.Parties[0], plain.Parties[0]}
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
		o, err := Declared(j, parties, test)
		if err != nil {
			t.Fatal(err)
		}
		all, err := Alone(t.Context(), o)
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
	o.Local.Rate = 1e200
	all, err := Alone(t.Context(), o)
	if err != nil || len(all) != 6 || math.IsNaN(all[0].Accuracy()) {
		t.Errorf("%v, %v", all, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Alone(ctx, brief()); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if _, err := Alone(t.Context(), Options{}); !errors.Is(err, job.ErrConfig) {
		t.Errorf("%v", err)
	}
}
