package simulation

import (
	"errors"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/job"
)

// What virtual time does not have, and what cannot be simulated, is refused by name.
func TestRefused(t *testing.T) {
	party := func(change func(p *job.WorldParty)) func(s *job.Job) {
		return func(s *job.Job) { change(&s.World.Party[0]) }
	}
	for name, test := range map[string]struct {
		change func(s *job.Job)
		path   string
	}{
		"secret coins":     {func(s *job.Job) { s.Parties.Hidden = 0.5 }, "parties.hidden"},
		"two sums a round": {func(s *job.Job) { s.Training.Rule = "fedga" }, "training.rule"},
		"floating point":   {func(s *job.Job) { s.World.Fidelity = "clear" }, "world.fidelity"},
		"a first model":    {func(s *job.Job) { s.Model.File = "model.npz" }, "model.file"},
		"rows of one, and a split": {func(s *job.Job) {
			s.World.Data, s.World.Party[0].Rows = job.Data{Split: "label-skew"}, 5
		}, "world.party.0.rows"},
		"signs in a crowd": {func(s *job.Job) {
			s.World.Fidelity, s.Training.Mask = Crowd, "soft"
		}, "training.mask"},
		"no model": {func(s *job.Job) {
			s.Model, s.Training = job.Model{Length: 3}, job.Training{}
		}, "model"},
		"slowed down beyond what a clock has": {party(func(p *job.WorldParty) {
			p.Compute, p.Slow = ms(1e6), 1e6
		}), "world.party.0.slow"},
		"a place without a link": {party(func(p *job.WorldParty) { p.Place = "there" }),
			"world.party.0.place"},
		"a server that is none, without links": {func(s *job.Job) {
			s.World.Link, s.World.Servers = nil, []string{"a", "b"}
			s.World.Party[0].Server = "c"
		}, "world.party.0.server"},
		"a server where there are none": {func(s *job.Job) {
			s.World.Topology, s.World.Party[0].Server = serverless, "server"
		}, "world.party.0.server"},
		"more machines than there are": {func(s *job.Job) {
			s.Parties.Group[0].Count = maxMachines + 1
		}, "parties.count"},
		"most join later, and the server may cheat": {func(s *job.Job) {
			recovers(s, 0.2, "cheating")
			add(s, who{Name: "q", Place: "here", Count: 5, Joins: 2})
		}, "parties.drop_out"},
		"one alone in the first round": {func(s *job.Job) {
			s.World.Party[0].Joins = 2
			add(s, who{Name: "q", Place: "here"})
		}, "world.party"},
		"a crowd that crashes in part": {func(s *job.Job) {
			s.World.Fidelity = "ring"
			recovers(s, 0.2, "curious")
			s.World.Party[0].Crash = []job.Crash{{Round: 1}}
		}, "world.party.0.crash"},
		"no regularisation of reference laws": {func(s *job.Job) {
			s.Training.Lambda = 0
			s.World.Reference = job.Reference{Law: "staircase", Epsilon: 1}
		}, "world.reference.alpha"},
		"no budget of some": {func(s *job.Job) {
			s.World.Reference.Law = "staircase"
			s.World.Party[0].ReferenceEpsilon = 1
			add(s, who{Name: "q", Place: "here"})
		}, "world.reference.epsilon"},
	} {
		s := smallJob()
		test.change(s)
		var e *job.ConfigError
		if err := Validate(s); !errors.As(err, &e) || e.Path != test.path || e.Advice == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, change := range map[string]func(s *job.Job){
		"most join later, and the server is curious": func(s *job.Job) {
			recovers(s, 0.2, "curious")
			add(s, who{Name: "q", Place: "here", Count: 5, Joins: 2})
		},
		"a crash in the last round before it leaves": func(s *job.Job) {
			recovers(s, 0.2, "curious")
			s.World.Party[0].Leaves, s.World.Party[0].Crash = 2, []job.Crash{{Round: 2}}
		},
	} {
		s := smallJob()
		change(s)
		if err := Validate(s); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A party of a group for which the world has an entry of its own is of a kind of its own, and a
// job without groups has party-1 and so on.
func TestKinds(t *testing.T) {
	s := smallJob()
	s.World.Party = append(s.World.Party, job.WorldParty{Name: "p-3", Place: "there", Rows: 7})
	w := federationOf(s)
	if len(w.kinds) != 2 || w.kinds[0].count != 4 || w.of[2].Place != "there" || w.of[2].Rows != 7 ||
		w.of[3] != w.kinds[0] || w.names[2] != "p-3" || w.of[2].path("rows") != "world.party.1.rows" {
		t.Errorf("%+v", w)
	}
	s.Parties, s.World.Party = job.Parties{Count: 3}, []job.WorldParty{{Name: "party-2", Slow: 3}}
	if w = federationOf(s); len(w.kinds) != 2 || w.of[1].Slow != 3 || w.of[2].Slow != 1 ||
		w.names[2] != "party-3" || w.of[0].Place != "party" {
		t.Errorf("%+v", w)
	}
}

// Virtual time ends before it overflows, and links that nobody uses are told.
func TestTimeEnds(t *testing.T) {
	s := smallJob()
	s.Rounds, s.World.Data.Draw, s.World.Data.Rows = job.MaxRounds, drawAnew, 1
	s.Training.Steps = 1
	s.World.Link[0] = job.Link{Between: []string{"here", "server"}, Latency: maxTime, Jitter: maxTime,
		Loss: 0.99}
	s.World.Link = append(s.World.Link, job.Link{Between: []string{"there", "server"}})
	s.Time.StepTime = maxTime
	var e *job.ConfigError
	result, err := runJob(t.Context(), s, dataRows(t), nil)
	if !errors.As(err, &e) || e.Path != "rounds" {
		t.Fatal(err)
	}
	if n := result.Notes; len(n) != 2 || !strings.Contains(n[0], `nobody is in "there"`) ||
		!strings.Contains(n[1], "is short") {
		t.Errorf("notes %q", result.Notes)
	}
	for _, r := range result.Rounds {
		if r.Took < 0 || r.Began < 0 {
			t.Errorf("round %d began at %v and took %v", r.Round, r.Began, r.Took)
		}
	}
}

// What fails on the way names the field that helps, however sums are taken.
func TestFailuresNameFields(t *testing.T) {
	rows := dataRows(t)
	for _, kind := range []string{Messages, Crowd, "ring"} {
		for path, change := range map[string]func(s *job.Job){
			"training.rate": func(s *job.Job) { s.Training.Rate, s.Training.Lambda = 1e200, 1 },
			"sum.range":     func(s *job.Job) { s.Sum.Range = 1e-3 },
		} {
			s := smallJob()
			s.World.Fidelity = kind
			change(s)
			var e *job.ConfigError
			if _, err := runJob(t.Context(), s, rows, nil); !errors.As(err, &e) || e.Path != path ||
				e.Err == nil || e.Advice == "" {
				t.Errorf("%s, %s: %v", kind, path, err)
			}
		}
	}
}

// Thresholds are the least with which holders who collude with the server rebuild nothing
// alone (curious), or nothing of a party twice (cheating: 2t > h + c).
func TestThresholds(t *testing.T) {
	for _, c := range []struct {
		adversary    string
		n, colluders int
		sparse       bool
		want         int
	}{
		{"curious", 9, 0, false, 1}, {"curious", 9, 3, false, 4},
		{"cheating", 9, 0, false, 5}, {"cheating", 9, 2, false, 6}, {"cheating", 10, 2, false, 6},
		{"semi-malicious", 9, 2, false, 6}, {"curious", 9, 0, true, 2}, {"curious", 40, 3, true, 4},
	} {
		s := smallJob()
		recovers(s, 0.2, c.adversary)
		s.Parties.Colluders, s.Sum.Sparse = c.colluders, c.sparse
		recovery, err := s.WithDefaults().Recovery(s.Parties.Fewest(c.n), c.n)
		if err != nil || recovery.Threshold != c.want {
			t.Errorf("%+v: %+v, %v", c, recovery, err)
		}
	}
}
