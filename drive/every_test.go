package drive

import (
	"testing"

	"github.com/hushsum/hushsum/accounting"
)

// A server charges all parties in the first round of each block, also for rounds that it skipped.
func TestCourseBands(t *testing.T) {
	limits := limitsOf(t, 9, 9)
	for _, c := range []struct {
		round, more uint64
		bands       int
	}{{0, 1, 1}, {1, 1, 0}, {2, 1, 0}, {3, 1, 1}, {0, 9, 3}, {4, 3, 1}, {1, 2, 0}} {
		s := &course{config: Settings{Cost: limits.Cost, Every: 3}, round: c.round,
			names: []string{"a", "b"}, ledger: limits.Ledger.Clone()}
		after, err := s.charge([]string{"b"}, c.more)
		if err != nil {
			t.Fatal(err)
		}
		want, err := limits.Cost.Spent(accounting.ServerView, c.bands, 1e-5)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range s.names {
			if got, err := after.Spent(name); err != nil || got.Bare().Upper != want.Bare().Upper {
				t.Errorf("%d rounds after %d: %s has spent %v, want %v (%v)", c.more, c.round, name,
					got.Bare().Upper, want.Bare().Upper, err)
			}
		}
	}
}

// A party whose answer alone a step waits for is not the measure of how long answers take, and of a
// step of which nothing is known the slowest of the others is.
func TestUsual(t *testing.T) {
	for _, c := range []struct {
		before int
		delays []Time
		usual  Time
	}{{0, []Time{9, 3, 5}, 5}, {1, []Time{9, 3, 5}, 5}, {2, []Time{9, 3}, 3}, {3, []Time{9}, 1},
		{5, nil, 7}} {
		var l learned
		l.median[Signing] = 7
		l.ended(&waiting{before: c.before, delays: c.delays}, Preparing)
		if got := l.usual(Preparing); got != c.usual {
			t.Errorf("%+v: %d", c, got)
		}
	}
}
