package simulation

import (
	"errors"
	"reflect"
	"slices"
	"testing"

	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/learning"
)

// Virtual time trains by the rules of a simulation without time: by all of them both come to the
// same model, to the bit.
func TestRulesAgree(t *testing.T) {
	rows := dataRows(t)
	for name, change := range map[string]func(j *job.Job){
		"plain":    func(*job.Job) {},
		"batches":  func(j *job.Job) { j.Training.Batch = 16 },
		"weights":  func(j *job.Job) { j.Training.Submit = "weights" },
		"fedprox":  func(j *job.Job) { j.Training.Rule = "fedprox" },
		"scaffold": func(j *job.Job) { j.Training.Rule = "scaffold" },
		"mask":     func(j *job.Job) { j.Training.Mask = "soft" },
		"rows":     func(j *job.Job) { j.Sum.MaxWeight = 1000 },
		"momentum": func(j *job.Job) {
			j.Server = job.Server{Rule: "fedavgm", Beta1: 0.9, Rate: 0.1}
		},
		"adaptive":       func(j *job.Job) { j.Server.Rule = "fedyogi" },
		"mean of models": func(j *job.Job) { j.Server.Average = 0.5 },
		"clip":           func(j *job.Job) { j.Privacy.Clip = 0.5 },
		"quantile":       func(j *job.Job) { j.Privacy = job.Privacy{Clip: 0.5, ClipQuantile: 0.5} },
	} {
		for _, fidelity := range []string{Messages, "ring"} {
			j := smallJob()
			set(j, who{Name: "p", Place: "here", Count: 4}, who{Name: "q", Place: "here", Rows: 40})
			j.World.Fidelity = fidelity
			change(j)
			r, err := newRounds(t.Context(), j, rows)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			var own []*learning.Dataset
			for _, p := range r.parties {
				d, err := rows.Train.Subset(p.rows)
				if err != nil {
					t.Fatal(err)
				}
				own = append(own, d)
			}
			for round := 1; round <= j.Rounds; round++ {
				if err := r.play(t.Context(), &RoundResult{Round: round}); err != nil || r.lost != nil {
					t.Fatalf("%s: %v, %v", name, err, r.lost)
				}
			}
			j.Parties, j.World = job.Parties{Count: 5}, job.World{Fidelity: "ring", SkipClear: true}
			s, w, err := Settle(j, Rows{Parties: own, Test: rows.Test})
			if err != nil {
				t.Fatal(err)
			}
			want, err := Run(t.Context(), s, w, nil)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(r.weights(), want.Model) {
				t.Errorf("%s, %s: another model", name, fidelity)
			}
		}
	}
}

// What is for worlds without time is refused in others.
func TestNotTimed(t *testing.T) {
	s, w, err := Settle(smallJob(), dataRows(t))
	if err != nil {
		t.Fatal(err)
	}
	var e *job.ConfigError
	if _, err := Alone(t.Context(), s, w); !errors.As(err, &e) || e.Path != "Parties" {
		t.Errorf("Alone: %v", err)
	}
	if _, err := SignalOf(t.Context(), s, w); !errors.As(err, &e) || e.Path != "Parties" {
		t.Errorf("SignalOf: %v", err)
	}
	w.Replay = make([][]int, s.Rounds())
	if _, err := Run(t.Context(), s, w, nil); !errors.As(err, &e) || e.Path != "Replay" {
		t.Errorf("Replay: %v", err)
	}
}

// A ring in virtual time draws parties, drop-outs and lost rounds as one without: from the same
// rows both have the same parties in each sum, judge the same rounds and come to the same model.
func TestRingsAgree(t *testing.T) {
	rows := dataRows(t)
	for name, change := range map[string]func(j *job.Job){
		"drop":           func(j *job.Job) { j.World.Drop = 0.2 },
		"per round":      func(j *job.Job) { j.Parties.PerRound = 6 },
		"participations": func(j *job.Job) { j.Parties.PerRound, j.Parties.Participations = 5, 4 },
		"lost":           func(j *job.Job) { j.World.LostRounds = 3 },
	} {
		j := smallJob()
		set(j, who{Name: "p", Count: 10})
		j.Rounds, j.World.Fidelity, j.World.Link = 8, Ring, nil
		j.World.EvaluateEvery, j.World.SkipClear = 3, true
		recovers(j, 0.4, "curious")
		change(j)
		timed := simulate(t, j, rows)
		r, err := newRounds(t.Context(), j, rows)
		if err != nil {
			t.Fatal(err)
		}
		own := Rows{Test: rows.Test}
		for _, p := range r.parties {
			d, err := rows.Train.Subset(p.rows)
			if err != nil {
				t.Fatal(err)
			}
			own.Parties = append(own.Parties, d)
		}
		j.Parties.Group, j.Parties.Count, j.World.Party = nil, 10, nil
		if Needs(j) {
			t.Fatalf("%s: the job needs time", name)
		}
		plain := simulate(t, j, own)
		if !slices.Equal(timed.Model, plain.Model) {
			t.Errorf("%s: another model", name)
		}
		lost := 0
		for k := range plain.Rounds {
			a, b := &timed.Rounds[k], &plain.Rounds[k]
			if !slices.Equal(a.Included, b.Included) || (a.Lost == nil) != (b.Lost == nil) ||
				!reflect.DeepEqual(a.Test, b.Test) || (a.Test != nil) != (k%3 == 2 || k == 7) {
				t.Errorf("%s, round %d: %v and %v, %v and %v", name, k+1, a.Included, b.Included, a.Lost,
					b.Lost)
			}
			if a.Lost != nil {
				lost++
			}
			if a.Each[0].Alone != 0 {
				t.Errorf("%s: a party trained alone, despite world.skip_clear", name)
			}
		}
		if lost != j.World.LostRounds {
			t.Errorf("%s: %d rounds are lost", name, lost)
		}
	}
}

// Parties train on the rows that a split has dealt to them.
func TestDealtRows(t *testing.T) {
	rows, j := dataRows(t), smallJob()
	want, err := newRounds(t.Context(), j, rows)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range want.parties {
		d, err := rows.Train.Subset(p.rows)
		if err != nil {
			t.Fatal(err)
		}
		rows.Parties = append(rows.Parties, d)
	}
	first := simulate(t, j, rows)
	j.World.Data = job.Data{Split: "iid"}
	if dealt := simulate(t, j, rows); !reflect.DeepEqual(dealt.Rounds, first.Rounds) {
		t.Error("the split's rows lead to another model")
	}
	slices.Reverse(rows.Parties)
	rows.Parties[0] = rows.Parties[1]
	if dealt := simulate(t, j, rows); reflect.DeepEqual(dealt.Rounds, first.Rounds) {
		t.Error("other rows lead to the same model")
	}
	rows.Parties = rows.Parties[1:]
	if _, err := runJob(t.Context(), j, rows, nil); !errors.Is(err, job.ErrConfig) {
		t.Errorf("rows of 4 of 5 parties: %v", err)
	}
}

// However sums are taken, world.drop leaves as many out of each, and parties.per_round has as many
// in each, of which none submits more often than it agreed to.
func TestDropsAndDraws(t *testing.T) {
	rows := dataRows(t)
	for _, fidelity := range []string{Messages, "ring", Crowd} {
		for _, draws := range []bool{false, true} {
			j := smallJob()
			j.World.Fidelity = fidelity
			set(j, who{Name: "p", Place: "here", Count: 10})
			recovers(j, 0.3, "curious")
			want, times := 8, j.Rounds
			if draws {
				j.Parties.PerRound, j.Parties.Participations, want, times = 5, 2, 5, 2
			} else {
				j.World.Drop = 0.2
			}
			if draws && fidelity == Crowd {
				continue // all of them are in each round
			}
			included := map[string]int{}
			for _, r := range simulate(t, j, rows).Rounds {
				if r.Lost != nil || r.Parties != want {
					t.Errorf("%s: round %d has %d: %v", fidelity, r.Round, r.Parties, r.Lost)
				}
				for _, p := range r.Each {
					if p.Included {
						included[p.Party]++
					}
				}
			}
			for name, k := range included {
				if k > times {
					t.Errorf("%s: %s is in %d sums", fidelity, name, k)
				}
			}
			if len(included) != 10 {
				t.Errorf("%s: %d parties are in a sum", fidelity, len(included))
			}
		}
	}
}
