package simulation

import (
	"math"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/job"
)

// turns is ten parties, of which five are in each of eight rounds, and each in four at most.
func turns() *job.Job {
	s := smallJob()
	s.Rounds = 8
	s.Parties.Group[0].Count = 10
	s.Parties.PerRound, s.Parties.Participations = 5, 4
	recovers(s, 0.2, "cheating")
	s.Privacy = job.Privacy{Noise: "discrete-gaussian", Epsilon: 8, Clip: 1}
	return s
}

// submitted counts the rounds that each party worked in, by its name, and those that it was in the
// sum of.
func submitted(r *Result) (worked, included map[string]int) {
	worked, included = map[string]int{}, map[string]int{}
	for _, round := range r.Rounds {
		for _, p := range round.Each {
			if p.Local > 0 {
				worked[p.Party]++
			}
			if p.Included {
				included[p.Party]++
			}
		}
	}
	return worked, included
}

// A server draws those who have submitted least often, nobody is in more rounds than was agreed,
// and each is charged for as many: so noise is smaller than where all rounds are charged.
func TestParticipations(t *testing.T) {
	rows := dataRows(t)
	result := simulate(t, turns(), rows)
	for _, round := range result.Rounds {
		if round.Parties != 5 || round.Lost != nil {
			t.Errorf("round %d has %d parties: %s", round.Round, round.Parties, round.Lost)
		}
	}
	worked, included := submitted(result)
	for name, k := range included {
		if k != 4 || worked[name] != 4 {
			t.Errorf("%s trained in %d rounds and was in %d sums", name, worked[name], k)
		}
	}
	if len(result.Rounds) != 8 || len(included) != 10 {
		t.Errorf("%d rounds of %d parties", len(result.Rounds), len(included))
	}
	four := result.Privacy[0].Certified.Bare().Upper
	if !(four > 7.9 && four <= 8) || result.Privacy[0].Honest != 4 {
		t.Errorf("%+v", result.Privacy)
	}
	all := turns()
	all.Parties.Participations = 0
	if z, whole := multiplier(t, turns()), multiplier(t, all); !(z < 0.75*whole) {
		t.Errorf("multiplier %v for 4 of 8 rounds, %v for all", z, whole)
	}
}

// multiplier is of the noise that a job settles on.
func multiplier(t *testing.T, s *job.Job) float64 {
	t.Helper()
	settled, _, err := Settle(s, dataRows(t))
	if err != nil {
		t.Fatal(err)
	}
	return settled.Multiplier()
}

// Parties that crash and come back have not submitted more often for it, a submission that was lost
// counts, and where parties leave for good the others end when they have none left.
func TestParticipationsCrash(t *testing.T) {
	rows := dataRows(t)
	for at, crash := range map[string]job.Crash{
		"begin": {Round: 3, At: atBegin, Back: 5}, "submit": {Round: 2, At: atSubmit},
		"sign": {Round: 4, At: atSign}, "reveal": {Round: 5, At: atReveal, Back: 8},
	} {
		s := turns()
		s.Parties.Group[0].Count = 8
		add(s, who{Name: "q", Place: "here", Crash: []job.Crash{crash}},
			who{Name: "r", Place: "here", Leaves: 2})
		result := simulate(t, s, rows)
		worked, included := submitted(result)
		for name, k := range worked {
			if k > 4 || included[name] > k {
				t.Errorf("%s: %s trained in %d rounds and was in %d sums", at, name, k, included[name])
			}
		}
		said := strings.Join(result.Notes, "; ")
		if len(result.Rounds) < 8 && !strings.Contains(said, "as often as they agreed to") {
			t.Errorf("%s: %d rounds: %s", at, len(result.Rounds), said)
		}
		for _, p := range result.Privacy {
			if !(p.Certified.Bare().Upper <= 8) || math.IsNaN(p.Certified.Bare().Upper) {
				t.Errorf("%s: %+v", at, p)
			}
		}
	}
	s := turns()
	s.Parties.Group[0].Count, s.World.Party[0].Leaves = 5, 6
	add(s, who{Name: "q", Place: "here", Count: 5})
	result := simulate(t, s, rows)
	if worked, _ := submitted(result); worked["q-1"] != 4 || result.Lost() != 1 ||
		result.Final().Lost == nil {
		t.Errorf("%v, %d rounds lost: %s", worked, result.Lost(), result.Final().Lost)
	}
}

// What draws nobody refuses to.
func TestDrawnRefused(t *testing.T) {
	for name, test := range map[string]struct {
		change func(s *job.Job)
		path   string
	}{
		"a crowd":     {func(s *job.Job) { s.World.Fidelity = Crowd }, "parties.per_round"},
		"no server":   {func(s *job.Job) { s.World.Topology = serverless }, "parties.per_round"},
		"no recovery": {func(s *job.Job) { s.Parties.DropOut = 0 }, "parties.per_round"},
		"two servers": {func(s *job.Job) {
			s.World.Link, s.World.Servers = nil, []string{"a", "b"}
		}, "parties.per_round"},
		"too few survive": {func(s *job.Job) { s.Sum.Adversary, s.Parties.DropOut = "curious", 0.9 },
			"parties.drop_out"},
		"reference laws": {func(s *job.Job) {
			s.Privacy = job.Privacy{}
			s.World.Reference = job.Reference{Law: "staircase", Epsilon: 1}
		}, "world.reference.law"},
	} {
		s := turns()
		test.change(s)
		found := false
		err := Validate(s)
		for _, e := range job.Errors(err) {
			found = found || e.Path == test.path && e.Advice != ""
		}
		if !found {
			t.Errorf("%s: %v", name, err)
		}
	}
}
