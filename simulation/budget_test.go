package simulation

import (
	"errors"
	"testing"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/privacy"
	"github.com/hushsum/hushsum/protocol"
)

// private returns options of a small noisy run of ten parties.
func private(t testing.TB, n privacy.Noise) Options {
	t.Helper()
	o := noisy(t, n)
	o.Parties, o.Test = census(t, 700, 10, 20)
	o.Rounds, o.Local.Steps = 4, 2
	return o
}

// A run with a budget stops before the round that would overspend: the rounds that
// it did are within, and with one more they are not.
func TestBudgetEndsTheRun(t *testing.T) {
	n := DefaultNoise()
	n.Multiplier = 3
	o := private(t, n)
	o.Budget.Epsilon = 2.5
	s, err := Run(t.Context(), o, nil)
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
	o = private(t, n)
	o.Recovery, o.Drop, o.Rounds = &protocol.Recovery{}, 1, 2
	if s, err = Run(t.Context(), o, nil); err != nil {
		t.Fatal(err)
	}
	if s.Lost() != 2 || s.Rounds[1].Server.Bare().Upper <= s.Rounds[0].Server.Bare().Upper {
		t.Errorf("%d lost, spent %v and %v", s.Lost(), s.Rounds[0].Server, s.Rounds[1].Server)
	}
}
