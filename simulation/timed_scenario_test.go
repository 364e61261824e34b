package simulation

import (
	"context"
	"errors"
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/learning"
)

// dataRows are made-up rows of two classes.
func dataRows(t testing.TB) Rows {
	t.Helper()
	all, _, err := learning.Census(6000, 1)
	if err != nil {
		t.Fatal(err)
	}
	train, test, err := all.Split(0.25, 1)
	if err != nil {
		t.Fatal(err)
	}
	return Rows{Train: train, Test: test}
}

func simulate(t *testing.T, s *job.Job, rows Rows) *Result {
	t.Helper()
	result, err := runJob(t.Context(), s, rows, nil)
	if err != nil {
		t.Fatalf("%s: %v", s.Name, err)
	}
	return result
}

// runJob settles and runs a job.
func runJob(
	ctx context.Context, j *job.Job, rows Rows, report func(RoundResult),
) (*Result, error) {
	s, w, err := Settle(j, rows)
	if err != nil {
		return nil, err
	}
	return Run(ctx, s, w, report)
}

// newRounds settles a job in virtual time whose first round has not begun.
func newRounds(ctx context.Context, j *job.Job, rows Rows) (*timed, error) {
	s, w, err := Settle(j, rows)
	if err != nil {
		return nil, err
	}
	o, err := newSetting(s, w)
	if err != nil {
		return nil, err
	}
	x, err := newCourse(ctx, o)
	if err != nil {
		return nil, err
	}
	return x.rounds.(*timed), nil
}

// From the same scenario the same comes out, times, models and noise; from another seed
// something else.
func TestDeterministic(t *testing.T) {
	rows := dataRows(t)
	for _, kind := range []string{Messages, Crowd, "ring"} {
		s := smallJob()
		s.World.Fidelity = kind
		s.Privacy = job.Privacy{Noise: "skellam", Epsilon: 20, Clip: 1}
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
	rows := dataRows(t)
	s := smallJob()
	s.World.Fidelity = "ring"
	want := simulate(t, s, rows)
	for _, change := range []func(s *job.Job){
		func(s *job.Job) { s.World.Fidelity = Messages },
		func(s *job.Job) { s.World.Fidelity = Messages; recovers(s, 0.2, "cheating") },
		func(s *job.Job) { s.World.Fidelity = Crowd },
		func(s *job.Job) {
			s.World.Fidelity, s.Sum.Sparse, s.Sum.Degree = Crowd, true, 2
			recovers(s, 0.1, "curious")
		},
		func(s *job.Job) {
			s.World.Topology = serverless
			s.World.Link = append(s.World.Link,
				job.Link{Between: []string{"here", "here"}, Latency: ms(5)[0]})
		},
		func(s *job.Job) {
			s.World.Topology = serverless
			recovers(s, 0.2, "cheating")
		},
	} {
		s := smallJob()
		change(s)
		got := simulate(t, s, rows)
		for k := range want.Rounds {
			if g := got.Rounds[k]; !reflect.DeepEqual(g.Test, want.Rounds[k].Test) ||
				g.Lost != nil || g.Parties != 5 {
				t.Errorf("%+v: round %d: accuracy %v, want %v; %v", s.World, k+1, g.Accuracy(),
					want.Rounds[k].Accuracy(), g.Lost)
			}
		}
	}
}

// Parties crash at each moment of a round, are missed in it, and come back.
func TestCrashes(t *testing.T) {
	t.Run("server", func(t *testing.T) { testCrashes(t, "server") })
	t.Run("serverless", func(t *testing.T) { testCrashes(t, serverless) })
}

func testCrashes(t *testing.T, topology string) {
	rows := dataRows(t)
	small := func() *job.Job {
		s := smallJob()
		s.World.Topology = topology
		s.World.Link = append(s.World.Link,
			job.Link{Between: []string{"here", "here"}, Latency: ms(70)[0]})
		return s
	}
	for _, at := range []string{atBegin, atSubmit, atSign, atReveal} {
		s := small()
		add(s, who{Name: "weak", Place: "here", Crash: []job.Crash{{Round: 2,
			At: at}}})
		recovers(s, 0.3, "curious")
		result := simulate(t, s, rows)
		for k, r := range result.Rounds {
			in := 6
			if k == 1 && (at == atBegin || at == atSubmit) {
				in = 5
			}
			if r.Lost != nil || r.Parties != in {
				t.Errorf("%s: round %d has %d, want %d; %v", at, k+1, r.Parties, in, r.Lost)
			}
			weak := r.Each[5]
			if missing := k == 1; weak.Received == missing {
				t.Errorf("%s: round %d: received %v", at, k+1, weak.Received)
			}
		}
		// Who is gone is waited for as if it came back soon, and not until the time of a step is up.
		if took := result.Rounds[1].Took; took > 3*time.Second {
			t.Errorf("%s: round 2 took %v", at, took)
		}
		if len(result.SetUps) != 1 {
			t.Errorf("%s: %d set-ups", at, len(result.SetUps))
		}
	}
	// With too many gone a round is lost, and the next is not.
	s := small()
	s.World.Party[0].Crash = []job.Crash{{Round: 2}}
	recovers(s, 0.3, "curious")
	result := simulate(t, s, rows)
	if result.Rounds[1].Lost == nil || result.Rounds[2].Lost != nil || result.Lost() != 1 {
		t.Errorf("all gone: %q, then %q", result.Rounds[1].Lost, result.Rounds[2].Lost)
	}
	if result.Rounds[1].Accuracy() != result.Rounds[0].Accuracy() {
		t.Error("a lost round changed the model")
	}
}

// Without a server who joins and who leaves has sums that agree too.
func TestServerlessJoins(t *testing.T) {
	rows := dataRows(t)
	for _, recovery := range []bool{false, true} {
		s := smallJob()
		s.Rounds = 6
		s.World.Topology = serverless
		if recovery {
			recovers(s, 0.4, "curious")
		}
		s.World.Link = []job.Link{{Between: []string{"here", "here"}, Latency: ms(20)[0]},
			{Between: []string{"here", "there"}, Latency: ms(500)[0], Jitter: ms(100)[0]},
			{Between: []string{"there", "there"}}}
		add(s, who{Name: "late", Place: "there", Joins: 3},
			who{Name: "brief", Place: "here", Leaves: 4})
		if recovery {
			weak := who{Name: "weak", Place: "here", Crash: []job.Crash{{Round: 2, Back: 4}}}
			add(s, weak)
			s.Parties.Group[0].Count = 4
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
			if recovery && (k == 1 || k == 2) {
				away = 1
			}
			if r.Lost != nil || len(r.Each) != in || r.Parties != in-away {
				t.Errorf("%v: round %d has %d of %d: %v", recovery, k+1, r.Parties, in, r.Lost)
			}
		}
	}
}

// A straggler is left out when the step's time is up. Who joins is in the next session, which is
// set up in parallel with the round in which it joined, and who leaves costs none.
func TestStragglersJoinsLeaves(t *testing.T) {
	rows := dataRows(t)
	s := smallJob()
	s.Time.StepTime = ms(2000)[0]
	recovers(s, 0.3, "curious")
	add(s, who{Name: "slow", Place: "here", Compute: ms(1000), Slow: 10, Straggle: 0.5},
		who{Name: "late", Place: "here", Joins: 3},
		who{Name: "brief", Place: "here", Leaves: 1})
	s.Rounds = 8
	result := simulate(t, s, rows)
	slow, in := 0, 0
	for k, r := range result.Rounds {
		names := map[string]PartyRound{}
		for _, p := range r.Each {
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
		if r.Lost != nil {
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
	s := smallJob()
	s.Time.StepTime = ms(80)[0]
	add(s, who{Name: "brief", Place: "here", Leaves: 1})
	for _, r := range simulate(t, s, dataRows(t)).Rounds {
		if r.Lost == nil || errors.Is(r.Lost, errFew) || r.Took == 0 || r.Took > 10*time.Second {
			t.Errorf("round %d took %v: %v", r.Round, r.Took, r.Lost)
		}
	}
}

// Several servers have jobs of their own: what one loses all lose, and no more than that.
func TestServersApart(t *testing.T) {
	rows := dataRows(t)
	s := smallJob()
	s.Rounds = 7
	recovers(s, 0.3, "curious")
	s.World.Servers = []string{"server", "other"}
	s.World.Link = append(s.World.Link,
		job.Link{Between: []string{"there", "other"}, Latency: ms(90)[0]},
		job.Link{Between: []string{"server", "other"}, Latency: ms(700)[0]})
	set(s, who{Name: "p", Place: "here", Count: 4},
		who{Name: "q", Place: "there", Count: 3},
		who{Name: "late", Place: "there", Joins: 3},
		who{Name: "weak", Place: "there", Crash: []job.Crash{{Round: 2}, {Round: 6, Back: 7}}},
		who{Name: "too", Place: "there", Crash: []job.Crash{{Round: 6, At: atBegin}}})
	result := simulate(t, s, rows)
	for k, in := range []int{9, 8, 9, 10, 10, 0, 10} {
		if r := result.Rounds[k]; r.Parties != in || (r.Lost == nil) != (in > 0) {
			t.Errorf("round %d has %d, want %d: %v", k+1, r.Parties, in, r.Lost)
		}
	}
	if s := result.SetUps; len(s) != 2 || s[0].Parties != 9 || s[1].Parties != 6 || s[1].Round != 4 {
		t.Errorf("set-ups %+v", s)
	}
}

// On a sparse graph rounds go on without those who are away, and with them when they are back.
func TestSparse(t *testing.T) {
	s := smallJob()
	s.Rounds = 5
	s.Sum.Sparse = true
	recovers(s, 0.2, "curious")
	set(s, who{Name: "p", Place: "here", Count: 7},
		who{Name: "weak", Place: "here", Crash: []job.Crash{{Round: 2, Back: 4}}})
	result := simulate(t, s, dataRows(t))
	for k, in := range []int{8, 7, 7, 8, 8} {
		if r := result.Rounds[k]; r.Parties != in || r.Lost != nil {
			t.Errorf("round %d has %d, want %d: %v", k+1, r.Parties, in, r.Lost)
		}
	}
	if len(result.SetUps) != 1 {
		t.Errorf("set-ups %+v", result.SetUps)
	}
}

// With too few there nothing begins, and nothing is lost but the round: it goes on among those
// who are back, with the keys that they have.
func TestTooFew(t *testing.T) {
	s := smallJob()
	recovers(s, 0.2, "curious")
	set(s, who{Name: "p", Place: "here", Count: 3},
		who{Name: "q", Place: "here", Count: 2, Crash: []job.Crash{{Round: 2, Back: 4}}})
	result := simulate(t, s, dataRows(t))
	for k, in := range []int{5, 0, 0, 5} {
		if r := result.Rounds[k]; r.Parties != in || (r.Lost == nil) != (in > 0) {
			t.Errorf("round %d has %d, want %d: %v", k+1, r.Parties, in, r.Lost)
		}
	}
	if r := result.Rounds[2]; !errors.Is(r.Lost, errFew) || r.Took > 2*time.Second {
		t.Errorf("round 3 took %v: %v", r.Took, r.Lost)
	}
	if len(result.SetUps) != 1 {
		t.Errorf("set-ups %+v", result.SetUps)
	}
	// Once too few have stayed for what the session promises, another promises less.
	set(s, who{Name: "p", Place: "here", Count: 3},
		who{Name: "q", Place: "here", Count: 4, Leaves: 2})
	result = simulate(t, s, dataRows(t))
	for k, in := range []int{7, 7, 3, 3} {
		if r := result.Rounds[k]; r.Parties != in || r.Lost != nil {
			t.Errorf("round %d has %d, want %d: %v", k+1, r.Parties, in, r.Lost)
		}
	}
	if s := result.SetUps; len(s) != 2 || s[1].Round != 3 || s[1].Parties != 3 {
		t.Errorf("set-ups %+v", s)
	}
}

// Several servers: sums of their own parties, the model is the mean over all, and it
// takes the latency between servers longer.
func TestServers(t *testing.T) {
	rows := dataRows(t)
	s := smallJob()
	want := simulate(t, s, rows)
	s.World.Servers = []string{"server", "other"}
	s.World.Link = append(s.World.Link,
		job.Link{Between: []string{"there", "other"}, Latency: ms(50)[0]},
		job.Link{Between: []string{"server", "other"}, Latency: ms(700)[0]})
	set(s, who{Name: "p", Place: "here", Count: 3}, who{Name: "q", Place: "there", Count: 2})
	got := simulate(t, s, rows)
	for k := range got.Rounds {
		if math.Abs(got.Rounds[k].Accuracy()-want.Rounds[k].Accuracy()) > 0.002 ||
			got.Rounds[k].Parties != 5 {
			t.Errorf("round %d: %v, want %v", k+1, got.Rounds[k].Accuracy(), want.Rounds[k].Accuracy())
		}
		if more := got.Rounds[k].Took - want.Rounds[k].Took; more < 650*time.Millisecond {
			t.Errorf("round %d: %v longer", k+1, more)
		}
	}
	s.Parties.Group[1].Count = 1
	if _, err := runJob(t.Context(), s, rows, nil); !errors.Is(err, job.ErrConfig) {
		t.Errorf("a server with one party: %v", err)
	}
}

// Whoever drops out or colludes, all get the epsilon of the job, and no more noise than it takes.
func TestBudgets(t *testing.T) {
	rows := dataRows(t)
	for _, colluders := range []int{0, 1} {
		for _, dropOut := range []float64{0, 0.2, 0.4} {
			s := smallJob()
			if dropOut > 0 {
				recovers(s, dropOut, "curious")
			}
			s.Parties.Colluders = colluders
			s.Privacy = job.Privacy{Noise: "discrete-gaussian", Epsilon: 4, Clip: 1}
			honest := 5 - int(5*dropOut) - colluders
			for _, p := range simulate(t, s, rows).Privacy {
				if p.Certified.Bare().Upper > 4 || p.Certified.Bare().Upper < 3.9 || p.Honest != honest {
					t.Errorf("%d colluders, drop_out %v: %+v", colluders, dropOut, p)
				}
			}
		}
	}
}

// The noise of a session is calibrated to what its machines promise: no sum has fewer parties
// than that of however many are in the scenario when the session forms.
func TestSessionsKeepPromises(t *testing.T) {
	kept := 0
	for _, adversary := range []string{"", "curious", "semi-malicious", "cheating"} {
		for _, sparse := range []bool{false, true} {
			for roster := 6; roster <= 16; roster++ {
				for n := 2; n <= roster; n++ {
					j := smallJob()
					j.Sum.Sparse, j.Parties.Colluders = sparse, 1
					if adversary != "" {
						recovers(j, 0.25, adversary)
					}
					j.Model.Features, j.Model.Classes = 3, 2
					names, err := job.Nobody(roster)
					if err != nil {
						t.Fatal(err)
					}
					settled, err := federationOf(j).own(roster).Settle(job.Files{Roster: names, Present: n})
					if errors.Is(err, job.ErrConfig) {
						continue // too few
					}
					if err != nil {
						t.Fatal(err)
					}
					config, want := settled.Config(1), j.Parties.Fewest(n)
					least := config.MinMembers
					recovery, err := config.EffectiveRecovery()
					if err != nil {
						t.Fatal(err)
					}
					if recovery != nil {
						least = recovery.MinSurvivors
					}
					kept++
					if least != want || settled.MinSurvivors() != want || config.MinMembers > n {
						t.Errorf("%s, sparse %v: sums of %d of %d, noise for %d", adversary, sparse, least, n,
							want)
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
	for _, recovery := range []bool{false, true} {
		s := smallJob()
		if s.Rounds = 8; recovery {
			recovers(s, 0.35, "curious")
		}
		s.Privacy = job.Privacy{Noise: "discrete-gaussian", Epsilon: 4, Clip: 1}
		s.Parties.Colluders = 1
		set(s, who{Name: "a", Place: "here", Count: 4},
			who{Name: "slow", Place: "here", Compute: ms(900)},
			who{Name: "late", Place: "here", Joins: 3},
			who{Name: "last", Place: "here", Joins: 4, Leaves: 7},
			who{Name: "fifth", Place: "here", Joins: 5})
		result := simulate(t, s, dataRows(t))
		if len(result.Privacy) != 5 {
			t.Errorf("%+v", result.Privacy)
		}
		for _, p := range result.Privacy {
			if !(p.Certified.Bare().Upper <= p.Asked) {
				t.Errorf("%v: %s asked for %v and has %v", recovery, p.Party, p.Asked, p.Certified.Bare().Upper)
			}
		}
		for _, r := range result.Rounds {
			if r.Lost != nil {
				t.Errorf("round %d: %s", r.Round, r.Lost)
			}
		}
		if in := result.Final().Parties; in != 7 {
			t.Errorf("%v: %d at the end", recovery, in)
		}
	}
}

// A party that subtracts its own noise has a model nearer to the one without noise, and
// the federated model is the same.
func TestSubtractOwn(t *testing.T) {
	rows := dataRows(t)
	s := smallJob()
	s.Rounds = 1
	set(s, who{Name: "p", Place: "here", Count: 2})
	s.Privacy = job.Privacy{Noise: "discrete-gaussian", Epsilon: 10, Clip: 1}
	s.Training.Steps, s.Training.Rate = 200, 4
	plain := simulate(t, s, rows)
	s.World.SubtractOwn = true
	own := simulate(t, s, rows)
	if plain.Rounds[0].Accuracy() != own.Rounds[0].Accuracy() {
		t.Error("subtracting changed the federated model")
	}
	if own.Rounds[0].Each[0].MCC == plain.Rounds[0].Each[0].MCC ||
		own.Rounds[0].Each[0].MCC == own.Rounds[0].Each[1].MCC {
		t.Error("the parties' models are all the same")
	}
	if own.Privacy[0].Certified.Bare().Upper != plain.Privacy[0].Certified.Bare().Upper {
		t.Error("subtracting changed what is certified")
	}
}

// Reference laws are simulated, and what is certified of discrete noise as wide is worse
// than what their formula claims of one coordinate and round.
func TestReferenceLaws(t *testing.T) {
	rows := dataRows(t)
	for _, law := range []string{"staircase", "continuous-laplace", "continuous-gaussian"} {
		s := smallJob()
		s.Training.Lambda = 0.01
		s.World.Reference = job.Reference{Law: law, Epsilon: 1}
		result := simulate(t, s, rows)
		p := result.Privacy[0]
		if p.Asked != 1 || !(p.Certified.Bare().Upper > 2) {
			t.Errorf("%s: claimed %v, certified %v", law, p.Asked, p.Certified.Bare().Upper)
		}
		if result.Rounds[3].Accuracy() < 0.4 {
			t.Errorf("%s: accuracy %v", law, result.Rounds[3].Accuracy())
		}
	}
	// So little that δ alone covers it is certified as 0, which is not none.
	s := smallJob()
	s.Training.Lambda = 0.01
	s.World.Fidelity, s.Sum.Range = "ring", 1e12
	s.World.Reference = job.Reference{Law: "continuous-laplace", Epsilon: 1e-7}
	p := simulate(t, s, rows).Privacy[0]
	if p.Certified.Spends() || p.Certified.Bare().Accountant == "" {
		t.Errorf("claimed %v, certified %v", p.Asked, p.Certified.Bare().Upper)
	}
}

// What is certified of a reference law is for all the noise in the sum: one party that
// claims little among many adds little of it, and colluders add none.
func TestReferenceShares(t *testing.T) {
	rows := dataRows(t)
	certified := func(law string, colluders int, parties ...who) map[string]float64 {
		s := smallJob()
		s.Rounds = 1
		s.Training.Lambda = 0.01
		s.World.Fidelity, s.Sum.Range = "ring", 1e6
		s.World.Reference = job.Reference{Law: law, Epsilon: 1}
		s.Parties.Colluders = colluders
		set(s, parties...)
		all := map[string]float64{}
		for _, p := range simulate(t, s, rows).Privacy {
			all[p.Party] = p.Certified.Bare().Upper
		}
		return all
	}
	for _, law := range []string{"continuous-laplace", "continuous-gaussian"} {
		alike := certified(law, 0, who{Name: "p", Place: "here", Count: 4})["p"]
		careful := who{Name: "q", Place: "here", Epsilon: 0.1}
		alone := certified(law, 0, who{Name: "p", Place: "here", Count: 4, Epsilon: 0.1})["p"]
		mixed := certified(law, 0, who{Name: "p", Place: "here", Count: 3}, careful)
		if mixed["p"] >= alike || mixed["q"] <= 1.5*alone || mixed["q"] > 3*alone {
			t.Errorf("%s: mixed %v, all at 1 %v, all at 0.1 %v", law, mixed, alike, alone)
		}
		less := certified(law, 1, who{Name: "p", Place: "here", Count: 3}, careful)
		if less["p"] <= alike || less["q"] < mixed["q"] {
			t.Errorf("%s: with a colluder %v, without %v", law, less, mixed)
		}
	}
	// Each of n adds a whole variable of the staircase law, not an n-th of one.
	one := certified("staircase", 0, who{Name: "p", Place: "here", Count: 2})["p"]
	if many := certified("staircase", 0, who{Name: "p", Place: "here", Count: 18})["p"]; many > one/2 {
		t.Errorf("staircase: 2 parties %v, 18 parties %v", one, many)
	}
}

// Rows are drawn as the scenario says.
func TestDraws(t *testing.T) {
	rows := dataRows(t)
	for _, test := range []struct {
		draw string
		want []int
	}{
		{"fixed", []int{10, 10, 10}}, {drawNew, []int{10, 10, 10}}, {drawGrowing, []int{10, 20, 30}},
		{drawAnew, []int{10, 10, 10}},
	} {
		s := smallJob()
		s.World.Data.Draw, s.World.Data.Rows = test.draw, 10
		r, err := newRounds(t.Context(), s, rows)
		if err != nil {
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
					if same := slices.Equal(last, d.Row(0)); same != (test.draw == "fixed" ||
						test.draw == drawGrowing) && r.round > 1 {
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
	rows := dataRows(t)
	s := smallJob()
	s.Training = job.Training{Steps: 200, Rate: 4, Lambda: 1e-4, Restart: true, Submit: "weights"}
	result := simulate(t, s, rows)
	if first, last := result.Rounds[0], result.Rounds[3]; first.Accuracy() != last.Accuracy() {
		t.Errorf("on the same rows: %v, then %v", first.Accuracy(), last.Accuracy())
	}
	s.World.Data.Draw, s.World.Data.Rows = drawGrowing, 30
	result = simulate(t, s, rows)
	if first, last := result.Rounds[0], result.Rounds[3]; first.Accuracy() == last.Accuracy() {
		t.Error("on more rows the model is the same")
	}
}

func TestEnds(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := runJob(ended, smallJob(), dataRows(t), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("an ended context: %v", err)
	}
	s := smallJob()
	s.Privacy = job.Privacy{Noise: "skellam", Epsilon: 8, Clip: 1}
	ended, cancel = context.WithCancel(t.Context())
	result, err := runJob(ended, s, dataRows(t), func(r RoundResult) {
		if r.Round == 2 {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) || len(result.Rounds) != 2 || len(result.Privacy) != 1 ||
		!(result.Privacy[0].Certified.Bare().Upper > 7) {
		t.Errorf("ended after two rounds: %+v, %v", result, err)
	}
	s = smallJob()
	s.Rounds = 0
	if _, err := runJob(t.Context(), s, dataRows(t), nil); !errors.Is(err, job.ErrConfig) {
		t.Errorf("no rounds: %v", err)
	}
	s = smallJob()
	s.World.Data.Rows = 5000
	if _, err := runJob(t.Context(), s, dataRows(t), nil); !errors.Is(err, job.ErrConfig) {
		t.Errorf("too many rows: %v", err)
	}
}
