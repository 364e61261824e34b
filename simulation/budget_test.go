package simulation

import (
	"errors"
	"testing"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/privacy"
)

// private returns a small noisy run of ten parties.
func private(t testing.TB, multiplier float64) trial {
	t.Helper()
	o := noisy(t, someNoise)
	o.Privacy.Multiplier = multiplier
	o.rows, o.test = census(t, 700, 10, 20)
	o.Rounds, o.Training.Steps = 4, 2
	return o
}

// A run with a budget stops before the round that would overspend: the rounds that
// it did are within, and with one more they are not.
func TestBudgetEndsTheRun(t *testing.T) {
	o := private(t, 3)
	o.Privacy.Epsilon = 2.5
	s, err := o.run(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	server, _, err := mechanism(t, o).Round().Views(len(s.Rounds)+1, privacy.DefaultDelta)
	if err != nil {
		t.Fatal(err)
	}
	done := len(s.Rounds)
	if s.Stopped == nil || done == 0 || done == o.Rounds ||
		!errors.Is(s.Stopped, accounting.ErrBudget) {
		t.Fatalf("%d rounds, stopped by %v", done, s.Stopped)
	}
	if last := s.Rounds[done-1]; last.Server.Bare().Upper > 2.5 || server.Bare().Upper <= 2.5 ||
		s.Stopped.Would != server.Bare().Upper || last.Public.Bare().Upper != last.Server.Bare().Upper {
		t.Errorf("spent %v and %v, one more would be %v or %v", last.Server, last.Public, server,
			s.Stopped.Would)
	}

	// Lost rounds count: nobody is left to reveal anything, and ε grows all the same.
	o = private(t, 3)
	o.Sum.Recovery, o.World.Drop, o.Rounds = true, 0.99, 2
	if s, err = o.run(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if s.Lost() != 2 || s.Rounds[1].Server.Bare().Upper <= s.Rounds[0].Server.Bare().Upper {
		t.Errorf("%d lost, spent %v and %v", s.Lost(), s.Rounds[0].Server, s.Rounds[1].Server)
	}
}
