package simulation

import (
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/hushsum/hushsum/job"
)

// council makes the sums of a scenario those of a committee of seven, of which two may be faulty.
func council(s *job.Job, dropOut float64, members ...job.WorldMember) *job.Job {
	s.Sum = job.Sum{Protocol: "oneshot", Members: 7, Faults: 2}
	s.Parties.DropOut = dropOut
	s.World.Member = members
	return s
}

// One-message sums come to the models that sums in a ring do, and two runs to the same.
func TestCommitteeSums(t *testing.T) {
	rows := dataRows(t)
	s := smallJob()
	s.World.Fidelity = "ring"
	want := simulate(t, s, rows)
	for _, covered := range []bool{false, true} {
		s := council(smallJob(), 0.2)
		s.Sum.Covered = covered
		got := simulate(t, s, rows)
		for k, r := range got.Rounds {
			if r.Accuracy() != want.Rounds[k].Accuracy() || r.Lost != nil || r.Parties != 5 {
				t.Errorf("covered %v, round %d: %v of %d, want %v; %v", covered, k+1, r.Accuracy(), r.Parties,
					want.Rounds[k].Accuracy(), r.Lost)
			}
		}
		if again := simulate(t, s, rows); !reflect.DeepEqual(again.Rounds, got.Rounds) {
			t.Errorf("covered %v: two runs differ", covered)
		}
	}
}

// Members that are silent, lie or die cost no sum, as long as they are no more than may: a silent
// one costs a step's time once, and is waited for less from then on.
func TestCommitteeMembers(t *testing.T) {
	rows := dataRows(t)
	crash := func(at string) []job.Crash { return []job.Crash{{Round: 2, At: at}} }
	for name, members := range map[string][]job.WorldMember{
		"silent":     {{Name: "member-1", Silent: true}, {Name: "member-4", Silent: true}},
		"wrong part": {{Name: "member-1", Lies: "part"}, {Name: "member-2", Lies: "part"}},
		"disputes":   {{Name: "member-1", Lies: "disputes"}},
		atBegin:      {{Name: "member-2", Crash: crash(atBegin)}},
		atSubmit:     {{Name: "member-2", Crash: crash(atSubmit)}, {Name: "member-3", Slow: 100}},
		atSign:       {{Name: "member-2", Crash: crash(atSign)}},
		atReveal:     {{Name: "member-2", Crash: crash(atReveal)}, {Name: "member-3", Silent: true}},
		"far away":   {{Name: "member", Place: "there"}, {Name: "member-7", Slow: 50}},
	} {
		s := council(smallJob(), 0.4, members...)
		s.World.Link = append(s.World.Link,
			job.Link{Between: []string{"there", "server"}, Latency: ms(100)[0]})
		silent := slices.ContainsFunc(members, func(m job.WorldMember) bool { return m.Silent })
		for k, r := range simulate(t, s, rows).Rounds {
			in := 5
			if name == "disputes" { // who is disputed by the one falls out with the other
				in = r.Parties
			}
			if r.Lost != nil || r.Parties < in || r.Parties < 3 {
				t.Errorf("%s, round %d is of %d: %s", name, k+1, r.Parties, r.Lost)
			}
			if waits := r.Took > 20*time.Second; waits != (silent && k == 0) {
				t.Errorf("%s, round %d took %v, and waited for %v", name, k+1, r.Took, r.Waited)
			}
			if silent != slices.Contains(r.Waited, members[len(members)-1].Name) {
				t.Errorf("%s, round %d waited for %v", name, k+1, r.Waited)
			}
			took := time.Duration(0)
			for _, step := range r.Steps {
				took += step.Took
			}
			if took != r.Took {
				t.Errorf("%s, round %d took %v: %v", name, k+1, r.Took, r.Steps)
			}
		}
	}
}

// Where more of the members are gone than may be, no round begins; once they are back, the next
// does.
func TestCommitteeGone(t *testing.T) {
	gone := func(name string) job.WorldMember {
		return job.WorldMember{Name: name, Crash: []job.Crash{{Round: 1, At: atBegin, Back: 3}}}
	}
	s := council(smallJob(), 0.2, gone("member-1"), gone("member-2"), gone("member-3"))
	for k, r := range simulate(t, s, dataRows(t)).Rounds {
		if lost := errors.Is(r.Lost, errMembers); lost != (k < 2) {
			t.Errorf("round %d: %v, of %d", k+1, r.Lost, r.Parties)
		}
	}
}

// Parties crash at each moment of a round, join and leave. Who has sent its one message is in the
// sum, and sends nothing more.
func TestCommitteeParties(t *testing.T) {
	rows := dataRows(t)
	for at, in := range map[string]int{atBegin: 5, atSubmit: 5, atReveal: 6} {
		s := council(smallJob(), 0.4)
		add(s, who{Name: "weak", Place: "here", Crash: []job.Crash{{Round: 2, At: at, Back: 4}}})
		for k, r := range simulate(t, s, rows).Rounds {
			want := []int{6, in, 5, 6}[k]
			if weak := r.Each[5]; r.Lost != nil || r.Parties != want ||
				weak.Included != (want == 6) || weak.Received != (k == 0 || k == 3) {
				t.Errorf("%s, round %d is of %d, want %d; %v", at, k+1, r.Parties, want, r.Lost)
			}
			for _, p := range r.Each {
				if p.Included && (p.Sent < 37_000 || p.Sent > 45_000) {
					t.Errorf("%s, round %d: %s sent %d bytes", at, k+1, p.Party, p.Sent)
				}
			}
		}
	}
	s := council(smallJob(), 0.4)
	add(s, who{Name: "late", Place: "here", Joins: 2}, who{Name: "short", Place: "here", Leaves: 2})
	for k, r := range simulate(t, s, rows).Rounds {
		if want := []int{6, 7, 6, 6}[k]; r.Parties != want {
			t.Errorf("round %d is of %d, want %d; %v", k+1, r.Parties, want, r.Lost)
		}
	}
	s = council(smallJob(), 0.4)
	s.World.Drop = 0.2
	for k, r := range simulate(t, s, rows).Rounds {
		if r.Parties != 4 {
			t.Errorf("round %d is of %d: one of five drops out", k+1, r.Parties)
		}
	}
}

// A round that too many parties are missing from stays open, and has its sum once they are back.
func TestCommitteeWaits(t *testing.T) {
	s := council(smallJob(), 0.2)
	add(s, who{Name: "q", Place: "here", Count: 3, Crash: []job.Crash{{Round: 2, Back: 3}}})
	var in []int
	for _, r := range simulate(t, s, dataRows(t)).Rounds {
		in = append(in, r.Parties)
	}
	if !slices.Equal(in, []int{8, 0, 8, 8}) {
		t.Errorf("rounds are of %v", in)
	}
}

// With noise the share of each party is in its mask, and certifies what was asked for.
func TestConcurrentCommittee(t *testing.T) {
	rows := dataRows(t)
	s := council(smallJob(), 0.2)
	s.Privacy = job.Privacy{Noise: "discrete-gaussian", Epsilon: 20, Clip: 1}
	first, second := simulate(t, s, rows), simulate(t, s, rows)
	if p := first.Privacy[0]; p.Certified.Bare().Upper > 20 || p.Certified.Bare().Upper < 19 {
		t.Errorf("%+v", p)
	}
	if !reflect.DeepEqual(first.Rounds, second.Rounds) {
		t.Error("two runs differ")
	}
	s.World.Fidelity = "ring"
	s.Sum = job.Sum{}
	ring := simulate(t, s, rows)
	last := len(first.Rounds) - 1
	if a, b := first.Rounds[last].Accuracy(), ring.Rounds[last].Accuracy(); a < b-0.1 || a > b+0.1 {
		t.Errorf("accuracy %v, of pairwise sums %v", a, b)
	}
}

// Noise is counted on the shares that its sums have: the parties' that remain, or the members' that
// are honest and dealt.
func TestCommitteeHonest(t *testing.T) {
	for by, want := range map[string]int{"parties": 4, "committee": 3} {
		s := council(smallJob(), 0.2)
		s.Rounds = 1
		s.Privacy = job.Privacy{Noise: "discrete-gaussian", NoiseBy: by, Epsilon: 4, Clip: 1, Bits: 30}
		for _, p := range simulate(t, s, dataRows(t)).Privacy {
			if p.Honest != want || p.Certified.Bare().Upper > 4 || p.Certified.Bare().Upper < 3.9 {
				t.Errorf("noise of %s: %+v, want %d shares", by, p, want)
			}
		}
	}
}

func TestCommitteeRefused(t *testing.T) {
	for path, change := range map[string]func(s *job.Job){
		"world.fidelity": func(s *job.Job) { s.World.Fidelity = Crowd },
		"world.servers":  func(s *job.Job) { s.World.Servers = []string{"a", "b"} },
		"parties.drop_out": func(s *job.Job) {
			add(s, who{Name: "late", Place: "here", Count: 3, Joins: 2})
		},
		"world.member":        func(s *job.Job) { s.World.Member[0].Place = "nowhere" },
		"world.member.0.name": func(s *job.Job) { s.World.Member[0].Name = "member-8" },
		"world.member.0.crash.0.round": func(s *job.Job) {
			s.World.Member[0].Crash = []job.Crash{{Round: 9}}
		},
		"world.member.0": func(s *job.Job) { s.Sum = job.Sum{} },
		"parties.count": func(s *job.Job) {
			s.Parties.Group[0].Count = maxOneshot + 1
		},
	} {
		s := council(smallJob(), 0.2, job.WorldMember{Name: "member-1"})
		change(s)
		var wrong *job.ConfigError
		if err := Validate(s); !errors.As(err, &wrong) || wrong.Path != path {
			t.Errorf("%s: %v", path, err)
		}
	}
}
