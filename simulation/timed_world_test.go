package simulation

import (
	"time"

	"github.com/hushsum/hushsum/job"
)

// smallJob is five parties near a server.
func smallJob() *job.Job {
	s := &job.Job{
		Name:     "small",
		Rounds:   4,
		Seed:     3,
		Model:    job.Model{Name: "logistic"},
		Training: job.Training{Steps: 20, Rate: 2, Lambda: 1e-4},
		Time:     job.Time{StepTime: 20 * time.Second},
		World: job.World{
			Data: job.Data{Rows: 100},
			Link: []job.Link{{Between: []string{"here", "server"}, Latency: ms(50)[0], Jitter: ms(10)[0]}},
		},
	}
	set(s, who{Name: "p", Place: "here", Count: 5})
	return s
}

// who is a group, and what the world says of it.
type who struct {
	Name, Place    string
	Count, Rows    int
	Epsilon        float64 // of a reference law
	Compute        []time.Duration
	Slow, Straggle float64
	Joins, Leaves  int
	Crash          []job.Crash
}

// set replaces the parties.
func set(s *job.Job, all ...who) {
	s.Parties.Group, s.World.Party = nil, nil
	add(s, all...)
}

// add adds parties: of each kind one of both lists.
func add(s *job.Job, all ...who) {
	for _, p := range all {
		g := job.Group{Name: p.Name, Count: p.Count}
		w := job.WorldParty{Name: p.Name, Place: p.Place, Rows: p.Rows, Compute: p.Compute, Slow: p.Slow,
			Straggle: p.Straggle, Joins: p.Joins, Leaves: p.Leaves, Crash: p.Crash}
		if s.World.Reference.Law != "" {
			w.ReferenceEpsilon = p.Epsilon
		}
		s.Parties.Group, s.World.Party = append(s.Parties.Group, g), append(s.World.Party, w)
	}
}

// recovers has sums miss a part of the parties.
func recovers(s *job.Job, dropOut float64, adversary string) {
	s.Parties.DropOut, s.Sum.Adversary = dropOut, adversary
}

func ms(times ...int) (list []time.Duration) {
	for _, m := range times {
		list = append(list, time.Duration(m)*time.Millisecond)
	}
	return list
}
