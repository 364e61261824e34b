package simulation

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/hushsum/hushsum/internal/suite"
	"github.com/hushsum/hushsum/job"
)

// uneven is a job of eighteen parties, of which six take seven times as long as the others.
func uneven(rounds int) *job.Job {
	s := council(smallJob(), 0.7)
	s.Rounds = rounds
	s.Parties.Group, s.World.Party = nil, nil
	compute := []time.Duration{time.Second}
	set(s, who{Name: "fast", Place: "here", Count: 12, Compute: compute},
		who{Name: "slow", Place: "here", Count: 6, Compute: compute, Slow: 7})
	return s
}

// Rounds that take the first six do not wait for who is slow, lose nothing, and take from the slow
// what they made of earlier models: they come to the accuracy of rounds that wait in a fraction of
// time. Two runs are the same.
func TestBuffered(t *testing.T) {
	rows := dataRows(t)
	waits := simulate(t, uneven(8), rows)
	s := uneven(24)
	s.Sum.Buffer = 6
	got := simulate(t, s, rows)
	old, slow := 0, 0
	for _, r := range got.Rounds {
		if r.Lost != nil || r.Parties < 6 || r.Parties > 18 {
			t.Errorf("round %d is of %d: %s", r.Round, r.Parties, r.Lost)
		}
		for i, p := range r.Each {
			if p.Stale > 10 || p.Stale < 0 {
				t.Errorf("round %d has what was begun %d before", r.Round, p.Stale)
			}
			if p.Included {
				old = max(old, p.Stale)
				if i >= 12 {
					slow++
				}
			}
		}
	}
	if old == 0 || slow == 0 {
		t.Errorf("at most %d rounds old, %d submissions of slow parties", old, slow)
	}
	if a, b := got.Final().Accuracy(), waits.Final().Accuracy(); a < b-0.02 {
		t.Errorf("accuracy %v, of rounds that wait %v", a, b)
	}
	if a, b := got.Elapsed(), waits.Elapsed(); a > b {
		t.Errorf("24 rounds took %v, and 8 that wait %v", a, b)
	}
	if again := simulate(t, s, rows); !reflect.DeepEqual(again.Rounds, got.Rounds) {
		t.Error("two runs differ")
	}
}

// Parties die with what they made, come back, and leave, with noise that keeps epsilon to the one
// asked for: no round is lost while enough have submissions left, and nobody submits more often
// than is charged.
func TestBufferedChanges(t *testing.T) {
	s := uneven(16)
	s.Sum.Buffer = 8
	s.Parties.Participations = 6
	s.Privacy = job.Privacy{Noise: "discrete-gaussian", Epsilon: 40, Clip: 1}
	add(s, who{Name: "brief", Place: "here", Count: 6, Leaves: 2,
		Compute: []time.Duration{time.Second}})
	add(s, who{Name: "ill", Place: "here", Count: 2, Compute: []time.Duration{time.Second},
		Crash: []job.Crash{{Round: 3, At: atBegin, Back: 6}, {Round: 9, At: atBegin, Back: 10}}})
	got := simulate(t, s, dataRows(t))
	times := make(map[string]int)
	for _, r := range got.Rounds {
		if (r.Lost != nil) != (r.Round > 14) { // of who is left nobody may submit once more
			t.Errorf("round %d: %s", r.Round, r.Lost)
		}
		for _, p := range r.Each {
			if p.Included {
				times[p.Party]++
			}
		}
	}
	for name, n := range times {
		if n > 6 {
			t.Errorf("%s is in %d sums", name, n)
		}
	}
	if times["ill-1"] == 0 || times["brief-1"] == 0 {
		t.Errorf("sums of each: %v", times)
	}
	if p := got.Privacy[0]; p.Certified.Bare().Upper > 40 || p.Certified.Bare().Upper < 36 {
		t.Errorf("%+v", p)
	}
}

// Of many phones of three speeds a fifth are in each round: none is lost or has more, the slow are
// in some, and nobody waits for them.
func TestBufferedThousands(t *testing.T) {
	n := suite.Size(50, 50, 10_000, 10_000)
	s := council(smallJob(), 0.9)
	const rounds, stale, slowest = 12, 10, 20 * time.Second
	s.Rounds, s.Sum.Buffer, s.Sum.Stale = rounds, n/5, stale
	s.Sum.Range, s.Sum.FractionBits, s.Training.Rate = 4, 16, 0.5
	s.World.Data.Rows, s.World.Data.Draw = 20, "anew"
	s.Time.StepTime = time.Minute
	compute := []time.Duration{5 * time.Second}
	young := n * 7 / 10
	set(s, who{Name: "phone", Place: "here", Count: young, Compute: compute, Slow: 3, Straggle: 0.5},
		who{Name: "old", Place: "here", Count: n - young, Compute: compute, Slow: 4})
	got := simulate(t, s, dataRows(t))
	slow, old := 0, 0
	for _, r := range got.Rounds {
		if r.Lost != nil || r.Parties != n/5 {
			t.Errorf("round %d is of %d: %s", r.Round, r.Parties, r.Lost)
		}
		for i, p := range r.Each {
			if !p.Included {
				continue
			}
			if old = max(old, p.Stale); i >= young {
				slow++
			}
		}
	}
	if slow == 0 || old == 0 || old > stale || got.Elapsed() > rounds*slowest/2 {
		t.Errorf("%v, %d submissions of slow phones, at most %d rounds old", got.Elapsed(), slow, old)
	}
	t.Logf("%d phones: %v of virtual time, accuracy %.4f, %d submissions of slow ones", n,
		got.Elapsed(), got.Final().Accuracy(), slow)
}

func TestBufferedRefused(t *testing.T) {
	for path, change := range map[string]func(s *job.Job){
		"world.drop":      func(s *job.Job) { s.World.Drop = 0.1 },
		"training.submit": func(s *job.Job) { s.Training.Submit = "weights" },
		"world.tolerance": func(s *job.Job) { s.World.Tolerance = 0.1 },
	} {
		s := uneven(3)
		s.Sum.Buffer = 6
		change(s)
		var wrong *job.ConfigError
		if err := Validate(s); !errors.As(err, &wrong) || wrong.Path != path {
			t.Errorf("%s: %v", path, err)
		}
	}
}
