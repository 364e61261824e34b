package main

import (
	"testing"
	"time"

	"github.com/hushsum/hushsum/service/runner"
)

// A federation without answers says whom it waits for: the parties that a sum lacks, or those of
// whom an answer is due.
func TestWaits(t *testing.T) {
	until := time.Date(2026, 12, 1, 20, 0, 0, 0, time.UTC)
	parties := func(states ...string) (list []runner.PartyStatus) {
		for i, state := range states {
			list = append(list, runner.PartyStatus{Name: string(rune('a' + i)), State: state})
		}
		return list
	}
	due := parties("here", "late", "gone")
	due[1].Awaited = true
	for _, c := range []struct {
		s    runner.Status
		want string
	}{
		{runner.Status{State: "waiting", Least: 3, Parties: parties("here", "never", "gone", "left out")},
			"waiting; waits for: b (never here), c (gone), d (left out); a sum needs 3 of 4 parties, " +
				"and 1 are here"},
		{runner.Status{State: "running", Least: 2, Parties: due, Until: &until},
			"running; waits for: b, until 2026-12-01T20:00:00Z at the latest"},
		{runner.Status{State: "running", Least: 2, Parties: due}, "running; waits for: b"},
		{runner.Status{State: "waiting", Least: 2, Parties: parties("here", "here"),
			Committee: parties("here", "never")},
			"waiting; of the committee 1 of 2 are here, not: b (never here)"},
		{runner.Status{State: "waiting", Least: 2, Parties: parties("here", "here", "gone")},
			"waiting; not here: c (gone)"},
		{runner.Status{State: "running", Least: 2, Parties: parties("here", "here")}, "running"},
		{runner.Status{State: "paused", Why: "by ann", Least: 2, Parties: parties("gone", "here")},
			"paused; by ann; 'hushsumd federation resume' ends that"},
		{runner.Status{State: "ended", Why: "ended by ann", Parties: parties("gone")},
			"ended; ended by ann"},
	} {
		if got := standingOf(&c.s); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// Who leaves out a party that every sum needs is warned.
func TestLacking(t *testing.T) {
	list := []runner.PartyStatus{{Name: "a", State: "here"}, {Name: "b", State: "left out"},
		{Name: "c", State: "gone"}}
	s := &runner.Status{Name: "study", State: "running", Least: 3, Parties: list}
	const want = "a sum needs 3 of 3 parties, and without b 2 are left: no round has a sum until " +
		"'hushsumd federation readmit study b', or end it\n"
	if got := lacking(s, "b"); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if s.Least = 2; lacking(s, "b") != "" {
		t.Errorf("two are left: %q", lacking(s, "b"))
	}
}
