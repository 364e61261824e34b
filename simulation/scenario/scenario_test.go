package scenario

import (
	"context"
	"errors"
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/hushsum/hushsum/learning"
)

// census are made-up rows of two classes.
func census(t testing.TB) Rows {
	t.Helper()
	all, _, err := learning.Census(6000, 1)
	if err != nil {
		t.Fatal(err)
	}
	train, test, err := all.Split(.25, 1)
	if err != nil {
		t.Fatal(err)
	}
	return Rows{train, test}
}

// small is five parties near a server.
func small() Scenario {
	return Scenario{
		Name:     "small",
		Rounds:   4,
		Seed:     3,
		StepTime: ms(20_000)[0],
		Data:     Data{Set: "synthetic", Rows: 100},
		Training: Training{Steps: 20, Rate: 2, Lambda: 1e-4},
		Links:    []Link{{Between: []string{"here", "server"}, Latency: ms(50)[0], Jitter: ms(10)[0]}},
		Parties:  []Party{{Name: "p", Place: "here", Count: 5}},
	}
}

func simulate(t *testing.T, s Scenario, rows Rows) *Result {
	t.Helper()
	result, err := Run(t.Context(), s, rows, Hooks{})
	if err != nil {
		t.Fatalf("%s: %v", s.Name, err)
	}
	return result
}

// From the same scenario the same comes out, times, models and noise; from another seed
// something else.
func TestDeterministic(t *testing.T) {
	rows := census(t)
	for _, kind := range []string{Private, Crowd, Clear} {
		s := small()
		s.Sum.Kind = kind
		s.Privacy = Privacy{Noise: "skellam", Epsilon: 20}
		first, second := simulate(t, s, rows), simulate(t, s, rows)
		if !reflect.DeepEqual(first.Rounds, second.Rounds) {
			t.Errorf("%s: two runs differ", kind)
		}
		s.Seed++
		if reflect.DeepEqual(first.Rounds, simulate(t, s, rows).Rounds) {
			t.Errorf("%s: the seed changes nothing", kind)
		}
	}
}

// However a sum is taken, the models are the same.
func TestSumsAgree(t *testing.T) {
	rows := census(t)
	s := small()
	s.Sum.Kind = Clear
	want := simulate(t, s, rows)
	for _, change := range []func(s *Scenario){
		func(s *Scenario) { s.Sum.Kind = Private },
		func(s *Scenario) { s.Sum.Kind = Private; s.Recovery = &Recovery{} },
		func(s *Scenario) { s.Sum.Kind = Crowd },
		func(s *Scenario) {
			s.Sum.Kind, s.Sum.Degree, s.Recovery = Crowd, 2, &Recovery{Adversary: "curious"}
		},
		func(s *Scenario) {
			s.Sum.Kind, s.Sum.Topology = Private, Serverless
			s.Links = append(s.Links, Link{Between: []string{"here", "here"}, Latency: ms(5)[0]})
		},
		func(s *Scenario) {
			s.Sum.Kind, s.Sum.Topology, s.Recovery = Private, Serverless, &Recovery{}
		},
	} {
		s := small()
		change(&s)
		got := simulate(t, s, rows)
		for k := range want.Rounds {
			if g := got.Rounds[k]; g.Accuracy != want.Rounds[k].Accuracy || g.MCC != want.Rounds[k].MCC ||
				g.Lost != "" || g.Included != 5 {
				t.Errorf("%+v: round %d: accuracy %v, want %v; %q", s.Sum, k+1, g.Accuracy,
					want.Rounds[k].Accuracy, g.Lost)
			}
		}
	}
}

// Parties crash at each moment of a round, are missed in it, and come back.
func TestCrashes(t *testing.T) {
	t.Run("server", func(t *testing.T) { testCrashes(t, ServerStar) })
	t.Run("serverless", func(t *testing.T) { testCrashes(t, Serverless) })
}

func testCrashes(t *testing.T, topology string) {
	rows := census(t)
	small := func() Scenario {
		s := small()
		s.Sum.Topology = topology
		s.Links = append(s.Links, Link{Between: []string{"here", "here"}, Latency: ms(70)[0]})
		return s
	}
	for _, at := range []string{AtBegin, AtSubmit, AtSign, AtReveal} {
		s := small()
		s.Parties = append(s.Parties, Party{Name: "weak", Place: "here", Crashes: []Crash{{Round: 2,
			At: at}}})
		s.Recovery = &Recovery{DropOut: .3, Adversary: "curious"}
		result := simulate(t, s, rows)
		for k, r := range result.Rounds {
			in := 6
			if k == 1 && (at == AtBegin || at == AtSubmit) {
				in = 5
			}
			if r.Lost != "" || r.Included != in {
				t.Errorf("%s: round %d has %d, want %d; %q", at, k+1, r.Included, in, r.Lost)
			}
			weak := r.Parties[5]
			if missing := k == 1; weak.Received == missing {
				t.Errorf("%s: round %d: received %v", at, k+1, weak.Received)
			}
		}
		// Who is gone is not waited for until the time of a step is up.
		if took := result.Rounds[1].Took; took > 2*time.Second {
			t.Errorf("%s: round 2 took %v", at, took)
		}
		if len(result.SetUps) != 1 {
			t.Errorf("%s: %d set-ups", at, len(result.SetUps))
		}
	}
	// With too many gone a round is lost, and the next is not.
	s := small()
	s.Parties[0].Crashes = []Crash{{Round: 2}}
	s.Recovery = &Recovery{DropOut: 0.3, Adversary: "curious"}
	result := simulate(t, s, rows)
	if result.Rounds[1].Lost == "" || result.Rounds[2].Lost != "" || result.Lost() != 1 {
		t.Errorf("all gone: %q, then %q", result.Rounds[1].Lost, result.Rounds[2].Lost)
	}
	if result.Rounds[1].Accuracy != result.Rounds[0].Accuracy {
		t.Error("a lost round changed the model")
	}
}

// Without a server who joins and who leaves has sums that agree too.
func TestServerlessJoins(t *testing.T) {
	rows := census(t)
	for _, recovery := range []*Recovery{nil, {DropOut: 0.4, Adversary: "curious"}} {
		s := small()
		s.Rounds = 6
		s.Sum.Topology, s.Recovery = Serverless, recovery
		s.Links = []Link{{Between: []string{"here", "here"}, Latency: ms(20)[0]},
			{Between: []string{"here", "there"}, Latency: ms(500)[0], Jitter: ms(100)[0]},
			{Between: []string{"there", "there"}}}
		s.Parties = append(s.Parties, Party{Name: "late", Place: "there", Joins: 3},
			Party{Name: "brief", Place: "here", Leaves: 4})
		if recovery != nil {
			weak := Party{Name: "weak", Place: "here", Crashes: []Crash{{Round: 2, Back: 4}}}
			s.Parties = append(s.Parties, weak)
			s.Parties[0].Count = 4
		}
		for k, r := range simulate(t, s, rows).Rounds {
			joined, left := k >= 2, k >= 4
			in := 6
			if joined {
				in++
			}
			if left {
				in--
			}
			away := 0
			if recovery != nil && (k == 1 || k == 2) {
				away = 1
			}
			if r.Lost != "" || len(r.Parties) != in || r.Included != in-away {
				t.Errorf("%+v: round %d has %d of %d: %q", recovery, k+1, r.Included, in, r.Lost)
			}
		}
	}
}

// A straggler is left out when the step's time is up. Who joins is in the next session, which is
// set up beside the round in which it joined, and who leaves costs none.
func TestStragglersJoinsLeaves(t *testing.T) {
	rows := census(t)
	s := small()
	s.StepTime = ms(2000)[0]
	s.Recovery = &Recovery{DropOut: 0.3, Adversary: "curious"}
	s.Parties = append(s.Parties,
		Party{Name: "slow", Place: "here", Compute: ms(1000), Slow: 10, Straggle: .5},
		Party{Name: "late", Place: "here", Joins: 3},
		Party{Name: "brief", Place: "here", Leaves: 1})
	s.Rounds = 8
	result := simulate(t, s, rows)
	slow, in := 0, 0
	for k, r := range result.Rounds {
		names := map[string]PartyRound{}
		for _, p := range r.Parties {
			names[p.Party] = p
		}
		if _, there := names["late"]; there != (k >= 2) {
			t.Errorf("round %d: late is there: %v", k+1, there)
		}
		if _, there := names["brief"]; there != (k < 1) {
			t.Errorf("round %d: brief is there: %v", k+1, there)
		}
		if late := names["late"]; late.Included != (k >= 3) {
			t.Errorf("round %d: late is in the sum: %v", k+1, late.Included)
		}
		if names["slow"].Included {
			in++
		} else {
			slow++
		}
		if r.Lost != "" {
			t.Errorf("round %d: %s", k+1, r.Lost)
		}
	}
	if slow == 0 || in == 0 {
		t.Errorf("slow was in %d rounds, and late in %d", in, slow)
	}
	// The second is for late, and the third for slow, which missed that.
	if s := result.SetUps; len(s) != 3 || s[0].Round != 1 || s[1].Round != 4 {
		t.Errorf("set-ups %+v", s)
	}
}

// With a step_time shorter than a message's way and back every round is tried, and given up when
// session after session has not formed, also once somebody has left who was to be in the next.
func TestGivenUp(t *testing.T) {
	s := small()
	s.StepTime = ms(80)[0]
	s.Parties = append(s.Parties, Party{Name: "brief", Place: "here", Leaves: 1})
	for _, r := range simulate(t, s, census(t)).Rounds {
		if r.Lost == "" || r.Lost == errFew.Error() || r.Took == 0 || r.Took > 10*time.Second {
			t.Errorf("round %d took %v: %q", r.Number, r.Took, r.Lost)
		}
	}
}

// Several servers have jobs of their own: what one loses all lose, and no more than that.
func TestServersApart(t *testing.T) {
	rows := census(t)
	s := small()
	s.Rounds = 7
	s.Recovery = &Recovery{DropOut: 0.3, Adversary: "curious"}
	s.Sum.Servers = []string{"server", "other"}
	s.Links = append(s.Links, Link{Between: []string{"there", "other"}, Latency: ms(90)[0]},
		Link{Between: []string{"server", "other"}, Latency: ms(700)[0]})
	s.Parties = []Party{{Name: "p", Place: "here", Count: 4},
		{Name: "q", Place: "there", Count: 3},
		{Name: "late", Place: "there", Joins: 3},
		{Name: "weak", Place: "there", Crashes: []Crash{{Round: 2}, {Round: 6, Back: 7}}},
		{Name: "too", Place: "there", Crashes: []Crash{{Round: 6, At: AtBegin}}}}
	result := simulate(t, s, rows)
	for k, in := range []int{9, 8, 9, 10, 10, 0, 10} {
		if r := result.Rounds[k]; r.Included != in || (r.Lost == "") != (in > 0) {
			t.Errorf("round %d has %d, want %d: %q", k+1, r.Included, in, r.Lost)
		}
	}
	if s := result.SetUps; len(s) != 2 || s[0].Parties != 9 || s[1].Parties != 6 || s[1].Round != 4 {
		t.Errorf("set-ups %+v", s)
	}
}

// On a sparse graph rounds go on without those who are away, and with them when they are back.
func TestSparse(t *testing.T) {
	s := small()
	s.Rounds = 5
	s.Sum.Degree = 4
	s.Recovery = &Recovery{DropOut: 0.3, Adversary: "semi-malicious"}
	s.Parties = []Party{{Name: "p", Place: "here", Count: 7},
		{Name: "weak", Place: "here", Crashes: []Crash{{Round: 2, Back: 4}}}}
	result := simulate(t, s, census(t))
	for k, in := range []int{8, 7, 7, 8, 8} {
		if r := result.Rounds[k]; r.Included != in || r.Lost != "" {
			t.Errorf("round %d has %d, want %d: %q", k+1, r.Included, in, r.Lost)
		}
	}
	if len(result.SetUps) != 1 {
		t.Errorf("set-ups %+v", result.SetUps)
	}
}

// With too few there nothing begins, and nothing is lost but the round: it goes on among those
// who are back, with the keys that they have.
func TestTooFew(t *testing.T) {
	s := small()
	s.Recovery = &Recovery{Adversary: "curious"}
	s.Parties = []Party{{Name: "p", Place: "here", Count: 3},
		{Name: "q", Place: "here", Count: 2, Crashes: []Crash{{Round: 2, Back: 4}}}}
	result := simulate(t, s, census(t))
	for k, in := range []int{5, 0, 0, 5} {
		if r := result.Rounds[k]; r.Included != in || (r.Lost == "") != (in > 0) {
			t.Errorf("round %d has %d, want %d: %q", k+1, r.Included, in, r.Lost)
		}
	}
	if r := result.Rounds[2]; r.Lost != errFew.Error() || r.Took != 0 {
		t.Errorf("round 3 took %v: %q", r.Took, r.Lost)
	}
	if len(result.SetUps) != 1 {
		t.Errorf("set-ups %+v", result.SetUps)
	}
	// Once too few have stayed for what the session promises, another promises less.
	s.Parties[1] = Party{Name: "q", Place: "here", Count: 4, Leaves: 2}
	result = simulate(t, s, census(t))
	for k, in := range []int{7, 7, 3, 3} {
		if r := result.Rounds[k]; r.Included != in || r.Lost != "" {
			t.Errorf("round %d has %d, want %d: %q", k+1, r.Included, in, r.Lost)
		}
	}
	if s := result.SetUps; len(s) != 2 || s[1].Round != 3 || s[1].Parties != 3 {
		t.Errorf("set-ups %+v", s)
	}
}

// Several servers: sums of their own parties, the model is the mean over all, and it
// takes the latency between servers longer.
func TestServers(t *testing.T) {
	rows := census(t)
	s := small()
	want := simulate(t, s, rows)
	s.Sum.Servers = []string{"server", "other"}
	s.Links = append(s.Links, Link{Between: []string{"there", "other"}, Latency: ms(50)[0]},
		Link{Between: []string{"server", "other"}, Latency: ms(700)[0]})
	s.Parties = []Party{{Name: "p", Place: "here", Count: 3}, {Name: "q", Place: "there", Count: 2}}
	got := simulate(t, s, rows)
	for k := range got.Rounds {
		if math.Abs(got.Rounds[k].Accuracy-want.Rounds[k].Accuracy) > .002 ||
			got.Rounds[k].Included != 5 {
			t.Errorf("round %d: %v, want %v", k+1, got.Rounds[k].Accuracy, want.Rounds[k].Accuracy)
		}
		if more := got.Rounds[k].Took - want.Rounds[k].Took; more < 650*time.Millisecond {
			t.Errorf("round %d: %v longer", k+1, more)
		}
	}
	s.Parties[1].Count = 1
	if _, err := Run(t.Context(), s, rows, Hooks{}); !errors.Is(err, ErrScenario) {
		t.Errorf("a server with one party: %v", err)
	}
}

// Budgets of their own: who wants less spent adds more shares, all of which protect
// everybody, unless their owner colludes.
func TestBudgets(t *testing.T) {
	rows := census(t)
	s := small()
	s.Privacy = Privacy{Noise: "discrete-gaussian", Epsilon: 4}
	s.Parties = []Party{{Name: "a", Place: "here", Count: 4}, {Name: "b", Place: "here", Epsilon: 1}}
	of := func(s Scenario) map[string]Promise {
		all := map[string]Promise{}
		for _, p := range simulate(t, s, rows).Privacy {
			all[p.Party] = p
		}
		return all
	}
	got := of(s)
	if got["a"].Shares != 1 || got["b"].Shares != 16 || got["a"].Honest != 20 ||
		got["b"].Honest != 20 {
		t.Errorf("shares %+v", got)
	}
	// Twenty shares in place of the five that give ε = 4.
	if e := got["a"].Certified; e != got["b"].Certified || e > 2.5 || e < 1.5 {
		t.Errorf("certified %v, %v", e, got["b"].Certified)
	}
	s.Privacy.Colluders = 1
	got = of(s)
	if got["a"].Honest != 4 || got["b"].Honest != 19 {
		t.Errorf("with a colluder: %+v", got)
	}
	// The four that are left when b colludes are what ε = 4 was calibrated to.
	if e := got["a"].Certified; e > 4 || e < 3.9 {
		t.Errorf("a with a colluder: %v", e)
	}
	if e := got["b"].Certified; e >= got["a"].Certified {
		t.Errorf("b with a colluder: %v", e)
	}
	// All alike: what was asked for.
	s.Parties = []Party{{Name: "a", Place: "here", Count: 5}}
	got = of(s)
	if e := got["a"].Certified; e > 4 || e < 3.9 {
		t.Errorf("alike: %v", e)
	}
}

// The noise of a session is calibrated to what its machines promise: no sum has fewer parties
// than that of however many are in the scenario when the session forms.
func TestSessionsKeepPromises(t *testing.T) {
	kept := 0
	for _, adversary := range []string{"", "curious", "semi-malicious", "cheating"} {
		for _, degree := range []int{0, 4, 5} {
			for roster := 6; roster <= 16; roster++ {
				for n := 2; n <= roster; n++ {
					s := small().WithDefaults()
					s.Sum.Degree, s.Privacy.Colluders = degree, 1
					if adversary != "" {
						s.Recovery = &Recovery{Adversary: adversary, DropOut: 0.25}
					}
					config, err := s.trial(n, roster)
					if err != nil {
						t.Fatal(err)
					}
					recovery, err := config.EffectiveRecovery()
					least := config.MinMembers
					switch {
					case err != nil:
						continue
					case recovery != nil:
						least = recovery.MinSurvivors
					}
					kept++
					if least != s.fewest(n) || config.MinMembers > n {
						t.Errorf("%s, degree %d: sums of %d of %d, noise for %d", adversary, degree, least, n,
							s.fewest(n))
					}
				}
			}
		}
	}
	if kept < 100 {
		t.Errorf("%d configurations", kept)
	}
}

// Whoever comes and goes, all get what they asked for: who joins is in no session whose noise was
// settled without it.
func TestBudgetsOfJoiners(t *testing.T) {
	for _, recovery := range []*Recovery{nil, {Adversary: "curious", DropOut: 0.35}} {
		s := small()
		s.Rounds, s.Recovery = 8, recovery
		s.Privacy = Privacy{Noise: "discrete-gaussian", Epsilon: 4, Colluders: 1}
		s.Parties = []Party{{Name: "a", Place: "here", Count: 4},
			{Name: "slow", Place: "here", Compute: ms(900)},
			{Name: "late", Place: "here", Joins: 3},
			{Name: "last", Place: "here", Joins: 4, Leaves: 7},
			{Name: "sparing", Place: "here", Joins: 5, Epsilon: 1}}
		result := simulate(t, s, census(t))
		if len(result.Privacy) != 5 {
			t.Errorf("%+v", result.Privacy)
		}
		for _, p := range result.Privacy {
			// Who asks for less than all others is protected by their noise too, or not as it asked.
			if !(p.Certified <= p.Asked) && p.Party != "sparing" || !(p.Certified < 4) {
				t.Errorf("%+v: %s asked for %v and has %v", recovery, p.Party, p.Asked, p.Certified)
			}
		}
		for _, r := range result.Rounds {
			if r.Lost != "" {
				t.Errorf("round %d: %s", r.Number, r.Lost)
			}
		}
		if in := result.Final().Included; in != 7 {
			t.Errorf("%+v: %d at the end", recovery, in)
		}
	}
}

// A party that subtracts its own noise has a model nearer to the one without noise, and
// the federated model is the same.
func TestSubtractOwn(t *testing.T) {
	rows := census(t)
	s := small()
	s.Rounds = 1
	s.Parties = []Party{{Name: "p", Place: "here", Count: 2}}
	s.Privacy = Privacy{Noise: "discrete-gaussian", Epsilon: 10}
	s.Training.Steps, s.Training.Rate = 200, 4
	plain := simulate(t, s, rows)
	s.Privacy.SubtractOwn = true
	own := simulate(t, s, rows)
	if plain.Rounds[0].Accuracy != own.Rounds[0].Accuracy {
		t.Error("subtracting changed the federated model")
	}
	if own.Rounds[0].Parties[0].MCC == plain.Rounds[0].Parties[0].MCC ||
		own.Rounds[0].Parties[0].MCC == own.Rounds[0].Parties[1].MCC {
		t.Error("the parties' models are all the same")
	}
	if own.Privacy[0].Certified != plain.Privacy[0].Certified {
		t.Error("subtracting changed what is certified")
	}
}

// Reference laws are simulated, and what is certified of discrete noise as wide is worse
// than what their formula claims of one coordinate and round.
func TestReferenceLaws(t *testing.T) {
	rows := census(t)
	for _, law := range []string{Staircase, ContinuousLaplace, ContinuousGaussian} {
		s := small()
		s.Training.Lambda = .01
		s.Privacy = Privacy{Noise: law, Epsilon: 1}
		result := simulate(t, s, rows)
		p := result.Privacy[0]
		if p.Asked != 1 || !(p.Certified > 2) {
			t.Errorf("%s: claimed %v, certified %v", law, p.Asked, p.Certified)
		}
		if result.Rounds[3].Accuracy < .4 {
			t.Errorf("%s: accuracy %v", law, result.Rounds[3].Accuracy)
		}
	}
	// So little that δ alone covers it is certified as that, and not as 0, which says none.
	s := small()
	s.Training.Lambda = .01
	s.Sum.Kind, s.Sum.Range = Clear, 1e12
	s.Privacy = Privacy{Noise: ContinuousLaplace, Epsilon: 1e-7}
	if p := simulate(t, s, rows).Privacy[0]; p.Certified != p.Delta || p.Delta == 0 {
		t.Errorf("claimed %v, certified %v", p.Asked, p.Certified)
	}
}

// What is certified of a reference law is for all the noise in the sum: one party that
// claims little among many adds little of it, and colluders add none.
func TestReferenceShares(t *testing.T) {
	rows := census(t)
	certified := func(law string, colluders int, parties ...Party) map[string]float64 {
		s := small()
		s.Rounds = 1
		s.Training.Lambda = .01
		s.Sum.Kind, s.Sum.Range = Clear, 1e6
		s.Privacy = Privacy{Noise: law, Epsilon: 1, Colluders: colluders}
		s.Parties = parties
		all := map[string]float64{}
		for _, p := range simulate(t, s, rows).Privacy {
			all[p.Party] = p.Certified
		}
		return all
	}
	for _, law := range []string{ContinuousLaplace, ContinuousGaussian} {
		alike := certified(law, 0, Party{Name: "p", Place: "here", Count: 4})["p"]
		careful := Party{Name: "q", Place: "here", Epsilon: .1}
		alone := certified(law, 0, Party{Name: "p", Place: "here", Count: 4, Epsilon: .1})["p"]
		mixed := certified(law, 0, Party{Name: "p", Place: "here", Count: 3}, careful)
		if mixed["p"] >= alike || mixed["q"] <= 1.5*alone || mixed["q"] > 3*alone {
			t.Errorf("%s: mixed %v, all at 1 %v, all at 0.1 %v", law, mixed, alike, alone)
		}
		less := certified(law, 1, Party{Name: "p", Place: "here", Count: 3}, careful)
		if less["p"] <= alike || less["q"] < mixed["q"] {
			t.Errorf("%s: with a colluder %v, without %v", law, less, mixed)
		}
	}
	// Each of n adds a whole variable of the staircase law, not an n-th of one.
	one := certified(Staircase, 0, Party{Name: "p", Place: "here", Count: 2})["p"]
	if many := certified(Staircase, 0, Party{Name: "p", Place: "here", Count: 18})["p"]; many > one/2 {
		t.Errorf("staircase: 2 parties %v, 18 parties %v", one, many)
	}
}

// Rows are drawn as the scenario says.
func TestDraws(t *testing.T) {
	rows := census(t)
	for _, test := range []struct {
		draw string
		want []int
	}{
		{DrawFixed, []int{10, 10, 10}}, {DrawNew, []int{10, 10, 10}}, {DrawGrowing, []int{10, 20, 30}},
		{DrawAnew, []int{10, 10, 10}},
	} {
		s := small()
		s.Data.Draw, s.Data.Rows = test.draw, 10
		r := &run{Scenario: s.WithDefaults(), train: rows.Train, test: rows.Test}
		if err := r.prepare(); err != nil {
			t.Fatal(err)
		}
		seen := map[int]int{}
		var last []float64
		for r.round = 1; r.round <= 3; r.round++ {
			for _, p := range r.parties {
				d, err := r.rowsOf(p)
				if err != nil {
					t.Fatal(err)
				}
				if d.Len() != test.want[r.round-1] {
					t.Errorf("%s, round %d: %d rows", test.draw, r.round, d.Len())
				}
				if p.index == 0 {
					if same := slices.Equal(last, d.Row(0)); same != (test.draw == DrawFixed ||
						test.draw == DrawGrowing) && r.round > 1 {
						t.Errorf("%s, round %d: the first row is the same: %v", test.draw, r.round, same)
					}
					last = slices.Clone(d.Row(0))
				}
			}
		}
		for _, p := range r.parties {
			for _, i := range p.rows {
				if seen[i]++; seen[i] > 1 {
					t.Fatalf("%s: two parties have row %d", test.draw, i)
				}
			}
		}
	}
}

// Algorithm 3 of the thesis: a round's models do not depend on the federated one.
func TestFresh(t *testing.T) {
	rows := census(t)
	s := small()
	s.Training = Training{Algorithm: Fresh, Steps: 200, Rate: 4, Lambda: 1e-4}
	result := simulate(t, s, rows)
	if first, last := result.Rounds[0], result.Rounds[3]; first.Accuracy != last.Accuracy {
		t.Errorf("on the same rows: %v, then %v", first.Accuracy, last.Accuracy)
	}
	s.Data.Draw, s.Data.Rows = DrawGrowing, 30
	result = simulate(t, s, rows)
	if first, last := result.Rounds[0], result.Rounds[3]; first.Accuracy == last.Accuracy {
		t.Error("on more rows the model is the same")
	}
}

func TestEnds(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Run(ended, small(), census(t), Hooks{}); !errors.Is(err, context.Canceled) {
		t.Errorf("an ended context: %v", err)
	}
	s := small()
	s.Privacy = Privacy{Noise: "skellam", Epsilon: 8}
	ended, cancel = context.WithCancel(t.Context())
	result, err := Run(ended, s, census(t), Hooks{Round: func(r Round) {
		if r.Number == 2 {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) || len(result.Rounds) != 2 || len(result.Privacy) != 1 ||
		!(result.Privacy[0].Certified > 7) {
		t.Errorf("ended after two rounds: %+v, %v", result, err)
	}
	s = small()
	s.Rounds = 0
	if _, err := Run(t.Context(), s, census(t), Hooks{}); !errors.Is(err, ErrScenario) {
		t.Errorf("no rounds: %v", err)
	}
	s = small()
	s.Data.Rows = 5000
	if _, err := Run(t.Context(), s, census(t), Hooks{}); !errors.Is(err, ErrScenario) {
		t.Errorf("too many rows: %v", err)
	}
}
