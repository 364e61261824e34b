package scenario

import (
	"errors"
	"math"
	"strings"
	"testing"
)

// What would do nothing, or something else than it says, is refused by name.
func TestRefused(t *testing.T) {
	party := func(change func(p *Party)) func(s *Scenario) {
		return func(s *Scenario) { change(&s.Parties[0]) }
	}
	for name, test := range map[string]struct {
		change func(s *Scenario)
		path   string
	}{
		"rows that overflow when they are added up": {func(s *Scenario) {
			s.Data.Draw, s.Data.Rows = DrawNew, math.MaxInt
		}, "data.rows"},
		"a party's rows that do": {party(func(p *Party) { p.Rows = math.MaxInt }), "party.0.rows"},
		"a time that no clock has": {party(func(p *Party) {
			p.Compute = []Duration{{Duration: math.MaxInt64}}
		}), "party.0.compute.0"},
		"slowed down beyond it": {party(func(p *Party) { p.Compute, p.Slow = ms(1e6), 1e6 }), "party.0.slow"},
		"slowed down for ever":  {party(func(p *Party) { p.Slow = math.Inf(1) }), "party.0.slow"},
		"two links between two places": {func(s *Scenario) {
			s.Links = append(s.Links, Link{Between: []string{"server", "here"}})
		}, "link.1.between"},
		"joins before the first":    {party(func(p *Party) { p.Joins = -1 }), "party.0.joins"},
		"straggles at its own pace": {party(func(p *Party) { p.Straggle = .5 }), "party.0.straggle"},
		"crashes when it has left": {func(s *Scenario) {
			s.Recovery = &Recovery{Adversary: "curious"}
			s.Parties[0].Leaves, s.Parties[0].Crashes = 2, []Crash{{Round: 3}}
		}, "party.0.crash.0.round"},
		"a server that is none, without links": {func(s *Scenario) {
			s.Links, s.Sum.Servers = nil, []string{"a", "b"}
			s.Parties[0].Server = "c"
		}, "party.0.server"},
		"a server where there are none": {func(s *Scenario) {
			s.Sum.Topology, s.Parties[0].Server = Serverless, "server"
		}, "party.0.server"},
		"a name that another's parties have": {func(s *Scenario) {
			s.Parties = append(s.Parties, Party{Name: "p-5", Place: "here"})
		}, "party.1.name"},
		"a million and one in the clear": {func(s *Scenario) {
			s.Sum.Kind, s.Parties[0].Count = Clear, MaxParties
			s.Parties = append(s.Parties, Party{Name: "q", Place: "here"})
		}, "party"},
		"most join later, and the server may cheat": {func(s *Scenario) {
			s.Recovery = &Recovery{}
			s.Parties = append(s.Parties, Party{Name: "q", Place: "here", Count: 5, Joins: 2})
		}, "recovery"},
		"one alone in the first round": {func(s *Scenario) {
			s.Parties[0].Joins = 2
			s.Parties = append(s.Parties, Party{Name: "q", Place: "here"})
		}, "party"},
		"all but one collude": {func(s *Scenario) {
			s.Privacy.Noise, s.Privacy.Epsilon, s.Privacy.Colluders = "skellam", 1, s.Size()-1
		}, "privacy.colluders"},
		"no budget for one of two": {func(s *Scenario) {
			s.Privacy.Noise, s.Parties[0].Epsilon = "skellam", 1
			s.Parties = append(s.Parties, Party{Name: "q", Place: "here"})
		}, "privacy.epsilon"},
	} {
		s := small()
		test.change(&s)
		var e *FieldError
		if err := s.Validate(); !errors.As(err, &e) || e.Path != test.path {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, change := range map[string]func(s *Scenario){
		"a name one beyond the count": func(s *Scenario) {
			s.Parties = append(s.Parties, Party{Name: "p-6", Place: "here"})
		},
		"budgets of all their own": func(s *Scenario) {
			s.Privacy.Noise, s.Parties[0].Epsilon = "skellam", 1
		},
		"most join later, and the server is curious": func(s *Scenario) {
			s.Recovery = &Recovery{Adversary: "curious"}
			s.Parties = append(s.Parties, Party{Name: "q", Place: "here", Count: 5, Joins: 2})
		},
		"a crash in the last round before it leaves": func(s *Scenario) {
			s.Recovery = &Recovery{Adversary: "curious"}
			s.Parties[0].Leaves, s.Parties[0].Crashes = 2, []Crash{{Round: 2}}
		},
	} {
		s := small()
		change(&s)
		if err := s.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Virtual time ends before it overflows, and links that nobody uses are told.
func TestTimeEnds(t *testing.T) {
	s := small()
	s.Rounds, s.Data.Draw, s.Data.Rows = MaxRounds, DrawAnew, 1
	s.Training.Steps = 1
	s.Links[0] = Link{Between: []string{"here", "server"}, Latency: Duration{Duration: MaxTime},
		Jitter: Duration{Duration: MaxTime}, Loss: .99}
	s.Links = append(s.Links, Link{Between: []string{"there", "server"}})
	s.StepTime = Duration{}
	var e *FieldError
	result, err := Run(t.Context(), s, census(t), Hooks{})
	if !errors.As(err, &e) || e.Path != "rounds" {
		t.Fatal(err)
	}
	if len(result.Notes) != 1 || !strings.Contains(result.Notes[0], `nobody is in "there"`) {
		t.Errorf("notes %q", result.Notes)
	}
	for _, r := range result.Rounds {
		if r.Took < 0 || r.Began < 0 {
			t.Errorf("round %d began at %v and took %v", r.Number, r.Began, r.Took)
		}
	}
}

// What fails on the way names the field that helps, however sums are taken.
func TestFailuresNameFields(t *testing.T) {
	rows := census(t)
	for _, kind := range []string{Private, Crowd, Clear} {
		for path, change := range map[string]func(s *Scenario){
			"training.rate": func(s *Scenario) { s.Training.Rate, s.Training.Lambda = 1e200, 1 },
			"sum.range":     func(s *Scenario) { s.Sum.Range = 1e-3 },
		} {
			s := small()
			s.Sum.Kind = kind
			change(&s)
			var e *FieldError
			if _, err := Run(t.Context(), s, rows, Hooks{}); !errors.As(err, &e) || e.Path != path ||
				e.Err == nil || e.Advice == "" {
				t.Errorf("%s, %s: %v", kind, path, err)
			}
		}
	}
}

// Budgets too far apart are refused at the party whose is the smallest, however small.
func TestBudgetsApart(t *testing.T) {
	rows := census(t)
	for _, epsilon := range []float64{.01, 1e-9, 5e-324} {
		s := small()
		s.Privacy = Privacy{Noise: "discrete-gaussian", Epsilon: 4}
		s.Parties = append(s.Parties, Party{Name: "q", Place: "here", Epsilon: epsilon})
		var e *FieldError
		_, err := Run(t.Context(), s, rows, Hooks{})
		if !errors.As(err, &e) || e.Path != "party.1.epsilon" {
			t.Errorf("%v: %v", epsilon, err)
		}
	}
}

// Thresholds are the least with which holders who collude with the server rebuild nothing
// alone (curious), or nothing of a party twice (cheating: 2t > h + c).
func TestThresholds(t *testing.T) {
	for _, c := range []struct {
		adversary            string
		n, colluders, degree int
		want                 int
	}{
		{"curious", 9, 0, 0, 1}, {"curious", 9, 3, 0, 4},
		{"cheating", 9, 0, 0, 5}, {"cheating", 9, 2, 0, 6}, {"cheating", 10, 2, 0, 6},
		{"semi-malicious", 9, 2, 0, 6},
		{"curious", 9, 3, 4, 0}, // the protocol's, of a sparse graph
	} {
		s := small()
		s.Recovery = &Recovery{Adversary: c.adversary}
		s.Privacy.Colluders, s.Sum.Degree = c.colluders, c.degree
		if got := s.config(c.n, c.n).Recovery.Threshold; got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}
