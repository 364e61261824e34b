package simulation

import (
	"strings"
	"testing"
	"time"

	"github.com/hushsum/hushsum/internal/realdata"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/learning"
)

// digits are the rows of the thesis's simulator, three quarters of them to train on.
func digits(t testing.TB) Rows {
	t.Helper()
	all, err := learning.ReadDigits(realdata.Dir(t, "digits"))
	if err != nil {
		t.Fatal(err)
	}
	train, test, err := all.Split(0.25, 1)
	if err != nil {
		t.Fatal(err)
	}
	return Rows{Train: train, Test: test}
}

// latencies is the thesis's experiment with latencies (§5.3.4).
func latencies() *job.Job {
	s := &job.Job{
		Name:     "latency",
		Rounds:   3,
		Seed:     1,
		Model:    job.Model{Name: "softmax"},
		Training: job.Training{Steps: 50, Rate: 1, Lambda: 1e-3},
		World: job.World{
			Data:      job.Data{Set: "digits", Rows: 30, Draw: drawGrowing},
			Tolerance: 0.4,
		},
	}
	for _, p := range []struct {
		place         string
		latency, rows int
	}{{"Boston", 300, 30}, {"Singapore", 2000, 60}, {"New York", 100, 30}} {
		s.World.Link = append(s.World.Link, job.Link{
			Between: []string{p.place, "server"},
			Latency: ms(p.latency)[0],
		})
		add(s, who{Name: strings.ReplaceAll(p.place, " ", "-"), Place: p.place, Rows: p.rows,
			Compute: ms(10, 6, 9)})
	}
	return s
}

// Table 5.3 of the thesis to the millisecond: messages of real sessions of package
// protocol, and Singapore leaves because its model has converged.
func TestTable53(t *testing.T) {
	result, err := runJob(t.Context(), latencies(), digits(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []map[string]int{
		{"Boston": 4310, "Singapore": 6010, "New York": 4110},
		{"Boston": 4306, "Singapore": 6006, "New York": 4106},
		{"Boston": 909, "New York": 709},
	}
	if len(result.Rounds) != len(want) {
		t.Fatalf("%d rounds", len(result.Rounds))
	}
	for k, r := range result.Rounds {
		if len(r.Each) != len(want[k]) || r.Parties != len(want[k]) || r.Lost != nil {
			t.Errorf("round %d: %d parties, %d in the sum, %v", k+1, len(r.Each), r.Parties, r.Lost)
		}
		for _, p := range r.Each {
			if got := p.Took; got != time.Duration(want[k][p.Place])*time.Millisecond {
				t.Errorf("round %d, %s: %v, want %d ms", k+1, p.Place, got, want[k][p.Place])
			}
			if left := k == 1 && p.Place == "Singapore"; k < 2 && p.Left != left {
				t.Errorf("round %d, %s left: %v", k+1, p.Place, p.Left)
			}
		}
	}
	// The others exchange keys anew, without Singapore and so in a fraction of the time.
	if s := result.SetUps; len(s) != 2 || s[1].Parties != 2 || s[1].Took >= s[0].Took {
		t.Errorf("set-ups %+v", s)
	}
}
