package simulation

import (
	"testing"
	"time"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/training"
)

// A simulation of a job has the noise, the encoding and the price of a round that its parties would
// have: as the job is settled for a roster.
func TestDeclaredAsSettled(t *testing.T) {
	parties, test := declaredRows(t)
	noise := job.Privacy{Noise: "skellam", Epsilon: 20, Clip: 1, Bits: 24}
	for name, change := range map[string]func(j *job.Job){
		"plain":      func(j *job.Job) {},
		"weights":    func(j *job.Job) { j.Sum.MaxWeight = 40 },
		"a mask":     func(j *job.Job) { j.Training.Mask, j.Privacy.SignShare = "soft", 0.3 },
		"a quantile": func(j *job.Job) { j.Privacy.ClipQuantile = 0.5 },
		"drop-outs":  func(j *job.Job) { j.Parties.DropOut, j.Sum.Adversary = 0.25, "curious" },
		"a threshold": func(j *job.Job) {
			j.Parties.DropOut, j.Parties.Colluders = 0.25, 1
			j.Sum.Adversary = "curious"
		},
		"without messages": func(j *job.Job) { j.World.Fidelity, j.Parties.DropOut = "ring", 0.25 },
		"bands":            func(j *job.Job) { j.Rounds, j.Privacy.Factorise = 4, 2 },
		"no epsilon":       func(j *job.Job) { j.Privacy.Epsilon, j.Privacy.Multiplier = 0, 2 },
		"coins": func(j *job.Job) {
			j.Parties.Hidden, j.Privacy.SubmitAfter = 0.5, time.Second
		},
		"records": func(j *job.Job) {
			j.Privacy.Unit, j.Training.Batch, j.Privacy.SubmitAfter = "record", 16, time.Second
		},
		"a committee": func(j *job.Job) {
			j.Sum.Protocol, j.Privacy.Noise = "oneshot", "discrete-gaussian"
		},
		"a committee that adds noise": func(j *job.Job) {
			j.Sum.Protocol, j.Privacy.Noise, j.Privacy.NoiseBy = "oneshot", "discrete-gaussian", "committee"
		},
	} {
		j := declaredJob()
		j.World.Fidelity, j.Privacy = "messages", noise
		change(j)
		o, err := Declared(j, parties, test)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		release, err := o.Release()
		if err != nil {
			t.Fatal(err)
		}
		own, err := release.Mechanism()
		if err != nil {
			t.Fatal(err)
		}
		if j, err = training.WithRows(j, test, parties[0]); err != nil {
			t.Fatal(err)
		}
		training.CountRecords(j, parties)
		files := job.Files{MadeUp: true}
		if files.Roster, _, err = newRoster(len(parties), partyName); err != nil {
			t.Fatal(err)
		}
		if files.Committee, _, err = newRoster(j.WithDefaults().Sum.Members, partyName); err != nil {
			t.Fatal(err)
		}
		settled, err := j.Settle(files)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		m := settled.Mechanism()
		if a, b := own.StdDev(own.Promise().Honest()), m.StdDev(m.Promise().Honest()); a != b {
			t.Errorf("%s: noise of %v, and settled %v", name, a, b)
		}
		if own.Encoder.Scale != m.Encoder.Scale || own.MaxNorm() != m.MaxNorm() {
			t.Errorf("%s: scale %v and norm %v, settled %v and %v", name, own.Encoder.Scale, own.MaxNorm(),
				m.Encoder.Scale, m.MaxNorm())
		}
		price := func(r accounting.Round) float64 {
			c, err := r.Spent(accounting.ServerView, 2, 1e-5)
			if err != nil {
				t.Fatal(err)
			}
			return c.Bare().Upper
		}
		if a, b := price(own.Round()), price(settled.Round()); a != b {
			t.Errorf("%s: two rounds spend %v, and settled %v", name, a, b)
		}
	}
}
