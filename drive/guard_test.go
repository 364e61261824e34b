package drive

import (
	"bytes"
	"encoding/gob"
	"errors"
	"testing"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/privacy"
)

// limitsOf are the limits of a job of this many rounds. Its budget of ε 1 lets fit of them fit; 0:
// it has no noise.
func limitsOf(t *testing.T, rounds uint64, fit int) Limits {
	t.Helper()
	limits := Limits{Rounds: rounds}
	if fit == 0 {
		return limits
	}
	release := privacy.Release{
		Promise:   privacy.Assumed(3, 3),
		Noise:     privacy.Noise{Family: accounting.FamilyDiscreteGaussian, Clip: 1, Bits: 30},
		Dimension: 1,
	}
	budget := privacy.Budget{Epsilon: 1}
	var err error
	if release.Noise.Multiplier, err = release.Calibrate(budget, fit); err != nil {
		t.Fatal(err)
	}
	if limits.Cost, err = release.Round(); err != nil {
		t.Fatal(err)
	}
	if limits.Ledger, err = budget.Ledger(accounting.Statement{}); err != nil {
		t.Fatal(err)
	}
	return limits
}

func newGuard(t *testing.T, limits Limits, spent uint64) *Guard {
	t.Helper()
	g, err := NewGuard(limits, spent)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// upper is the ε that a guard says is spent.
func upper(t *testing.T, g *Guard) float64 {
	t.Helper()
	spent, err := g.Spent()
	if err != nil {
		t.Fatal(err)
	}
	return spent.Bare().Upper
}

// charge is one round and what a guard has to say of it.
type charge struct {
	round uint64
	want  error
}

// Known answers: each round is answered once, rounds rise, and the last ends it.
func TestGuardRounds(t *testing.T) {
	for name, c := range map[string]struct {
		rounds, spent uint64
		fit           int
		charges       []charge
	}{
		"in turn":       {2, 0, 0, []charge{{1, nil}, {2, nil}, {2, ErrRepeated}, {3, ErrRound}}},
		"no round 0":    {2, 0, 0, []charge{{0, ErrRound}, {1, nil}, {0, ErrRound}}},
		"one left out":  {3, 0, 0, []charge{{2, nil}, {1, ErrRepeated}, {3, nil}, {3, ErrRepeated}}},
		"the last":      {3, 0, 0, []charge{{3, nil}, {1, ErrRepeated}, {2, ErrRepeated}, {4, ErrRound}}},
		"far":           {3, 0, 0, []charge{{1 << 63, ErrRound}, {^uint64(0), ErrRound}, {1, nil}}},
		"spent":         {3, 2, 0, []charge{{1, ErrRepeated}, {2, ErrRepeated}, {3, nil}}},
		"all spent":     {3, 3, 0, []charge{{3, ErrRepeated}, {4, ErrRound}}},
		"with noise":    {2, 0, 2, []charge{{1, nil}, {2, nil}, {2, ErrRepeated}}},
		"budget first":  {4, 0, 2, []charge{{1, nil}, {3, nil}, {4, ErrSpent}, {4, ErrSpent}}},
		"spent, noise":  {4, 1, 2, []charge{{1, ErrRepeated}, {2, nil}, {3, ErrSpent}}},
		"over budget":   {4, 3, 2, []charge{{3, ErrRepeated}, {4, ErrSpent}}},
		"without money": {4, 0, 2, []charge{{4, nil}, {5, ErrRound}}},
	} {
		t.Run(name, func(t *testing.T) {
			limits := limitsOf(t, c.rounds, c.fit)
			g := newGuard(t, limits, c.spent)
			for _, one := range c.charges {
				before := *g
				if err := g.Check(one.round); !errors.Is(err, one.want) || *g != before {
					t.Errorf("Check(%d): %v, want %v", one.round, err, one.want)
				}
				err := g.Charge(one.round)
				if !errors.Is(err, one.want) || err != nil && *g != before {
					t.Errorf("Charge(%d): %v, want %v; %+v", one.round, err, one.want, g)
				}
				if errors.Is(err, ErrSpent) && c.fit > 0 && !errors.Is(err, accounting.ErrBudget) {
					t.Errorf("round %d: %v is not of the accountant", one.round, err)
				}
				if err == nil && (g.Last() != one.round || g.Count() != before.Count()+1) {
					t.Errorf("round %d: %+v", one.round, g)
				}
				// What is saved of it says the same.
				again, err := g.state().restore(limits)
				if err != nil || again.Last() != g.Last() || again.Count() != g.Count() {
					t.Fatalf("%+v comes back as %+v, %v", g, again, err)
				}
				if c.fit > 0 && upper(t, again) != upper(t, g) {
					t.Errorf("%g is spent, and then %g", upper(t, g), upper(t, again))
				}
				g = again
			}
			// The caller's ledger is its own.
			if limits.Ledger != nil && len(limits.Ledger.Clients()) != 0 {
				t.Error("the limits' ledger has changed")
			}
		})
	}
}

// A party that says it spent more rounds than its state counts is believed: the rounds that it adds
// count with a submission each, up to as many as it agreed to, and none is answered again.
func TestGuardCatchesUp(t *testing.T) {
	for _, c := range []struct {
		submissions, last, count, spent, wantLast, wantCount uint64
	}{
		{0, 3, 3, 7, 7, 7}, {0, 3, 2, 7, 7, 6}, {0, 0, 0, 1, 1, 1}, {0, 1, 1, 2, 2, 2},
		{4, 3, 2, 7, 7, 4}, {4, 6, 4, 7, 7, 4}, {0, 7, 6, 7, 7, 6}, {0, 7, 7, 3, 7, 7}, {0, 3, 3, 0, 3, 3},
	} {
		limits := limitsOf(t, 9, 9)
		limits.Submissions = c.submissions
		g, err := ResumeGuard(limits, c.last, c.count)
		if err != nil {
			t.Fatal(err)
		}
		lower, err := g.catchUp(c.spent)
		if err != nil || g.Last() != c.wantLast || g.Count() != c.wantCount ||
			(lower == nil) != (c.last >= c.spent) || lower != nil && !errors.Is(lower, ErrLower) {
			t.Errorf("%+v: %d of %d, %v, %v", c, g.Count(), g.Last(), lower, err)
		}
		want, err := ResumeGuard(limits, c.wantLast, c.wantCount)
		if err != nil || upper(t, g) != upper(t, want) {
			t.Errorf("%+v: %v is spent, want %v, %v", c, upper(t, g), upper(t, want), err)
		}
		if err := g.Check(c.wantLast); !errors.Is(err, ErrRepeated) {
			t.Errorf("%+v: round %d: %v", c, c.wantLast, err)
		}
	}
	g := newGuard(t, limitsOf(t, 4, 0), 2)
	if _, err := g.catchUp(5); !errors.Is(err, ErrRound) || g.Last() != 2 {
		t.Errorf("%v, round %d", err, g.Last())
	}
}

// A party that has agreed to two submissions of six rounds makes two, whoever picks the rounds, is
// charged for two, and refuses the third when it has been killed and what was saved comes back too.
// Where its state is lost, what may have left counts.
func TestGuardOften(t *testing.T) {
	limits := limitsOf(t, 6, 2)
	limits.Submissions = 2
	g := newGuard(t, limits, 0)
	for _, c := range []charge{{2, nil}, {2, ErrRepeated}, {5, nil}, {6, ErrOften}, {7, ErrRound}} {
		if err := g.Charge(c.round); !errors.Is(err, c.want) {
			t.Errorf("round %d: %v, want %v", c.round, err, c.want)
		}
		again, err := g.state().restore(limits)
		if err != nil || again.Last() != g.Last() || again.Count() != g.Count() ||
			upper(t, again) != upper(t, g) {
			t.Fatalf("%+v comes back as %+v, %v", g, again, err)
		}
		g = again
	}
	want, err := limits.Cost.Spent(accounting.ServerView, 2, privacy.DefaultDelta)
	if err != nil || upper(t, g) != want.Bare().Upper {
		t.Errorf("%g is spent, want %g (%v)", upper(t, g), want.Bare().Upper, err)
	}
	for spent, left := range []error{nil, nil, ErrOften, ErrOften} {
		if err := newGuard(t, limits, uint64(spent)).Check(6); !errors.Is(err, left) {
			t.Errorf("%d spent: %v, want %v", spent, err, left)
		}
	}
	if _, err := ResumeGuard(limits, 5, 3); !errors.Is(err, ErrState) {
		t.Errorf("three submissions: %v", err)
	}
	limits.Submissions = 9 // no more than there are rounds
	if g := newGuard(t, limits, 6); g.Count() != 6 {
		t.Errorf("%+v", g)
	}
}

// Spent reports the accountant's certificate for the rounds that count, also beyond the budget.
func TestGuardSpent(t *testing.T) {
	limits := limitsOf(t, 6, 2)
	for _, spent := range []uint64{0, 1, 2, 5} {
		want, err := limits.Cost.Spent(accounting.ServerView, int(spent), privacy.DefaultDelta)
		if err != nil {
			t.Fatal(err)
		}
		g := newGuard(t, limits, spent)
		if got := upper(t, g); got != want.Bare().Upper || g.Count() != spent || g.Last() != spent {
			t.Errorf("%d rounds: %g is spent, want %g; %+v", spent, got, want.Bare().Upper, g)
		}
	}
	if spent, err := newGuard(t, limitsOf(t, 6, 0), 3).Spent(); spent != nil || err != nil {
		t.Errorf("without noise: %v, %v", spent, err)
	}
}

// A job has rounds, and nobody has submitted in more.
func TestGuardLimits(t *testing.T) {
	for _, c := range []struct{ rounds, spent uint64 }{{0, 0}, {0, 1}, {3, 4}, {3, ^uint64(0)}} {
		if _, err := NewGuard(Limits{Rounds: c.rounds}, c.spent); !errors.Is(err, ErrRound) {
			t.Errorf("%d spent of %d: %v", c.spent, c.rounds, err)
		}
	}
	limits := limitsOf(t, 3, 3)
	limits.Cost.Shares = 0
	if _, err := NewGuard(limits, 1); !errors.Is(err, accounting.ErrConfig) {
		t.Errorf("a cost of no round: %v", err)
	}
}

// Counts that no guard comes to are no state: they were saved for another job, or changed.
func TestGuardStates(t *testing.T) {
	limits := limitsOf(t, 3, 0)
	for _, s := range []guardState{{0, 0}, {1, 1}, {2, 1}, {3, 1}, {3, 2}, {3, 3}} {
		if g, err := s.restore(limits); err != nil || g.state() != s {
			t.Errorf("%+v: %+v, %v", s, g, err)
		}
	}
	for _, s := range []guardState{{0, 1}, {1, 0}, {1, 2}, {2, 3}, {3, 4}, {4, 1}, {4, 4},
		{^uint64(0), 1}, {1, ^uint64(0)}} {
		if g, err := s.restore(limits); !errors.Is(err, ErrState) {
			t.Errorf("%+v: %+v, %v", s, g, err)
		}
	}
	// With a budget for less than was spent, nothing more leaves.
	g, err := guardState{Last: 2, Count: 2}.restore(limitsOf(t, 3, 1))
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Charge(3); !errors.Is(err, ErrSpent) || g.Count() != 2 {
		t.Errorf("%v, %+v", err, g)
	}
}

// A state of another format is none.
func TestGuardFormat(t *testing.T) {
	for _, format := range []int{0, partyFormat + 1} {
		var b bytes.Buffer
		in := partyState{Format: format, Guard: guardState{1, 1}}
		if err := gob.NewEncoder(&b).Encode(in); err != nil {
			t.Fatal(err)
		}
		c := PartSettings{Limits: limitsOf(t, 3, 0)}
		if _, err := LoadPart(c, new(keyexchange.SealKey), b.Bytes()); !errors.Is(err, ErrState) {
			t.Errorf("format %d: %v", format, err)
		}
	}
}

// Where submissions are parts of one vector, a party is charged in the first of this many rounds,
// whichever of them it is in; a round is answered once all the same, and what is saved says so.
func TestGuardBands(t *testing.T) {
	limits := limitsOf(t, 7, 3)
	limits.Every = 3
	for _, c := range []struct {
		rounds []uint64
		bands  int
	}{
		{[]uint64{1}, 1}, {[]uint64{1, 2, 3}, 1}, {[]uint64{3}, 1}, {[]uint64{3, 4}, 2},
		{[]uint64{1, 2, 3, 4, 5, 6, 7}, 3}, {[]uint64{7}, 3}, {nil, 0},
	} {
		g := newGuard(t, limits, 0)
		for _, round := range c.rounds {
			if err := g.Charge(round); err != nil {
				t.Fatalf("%v: %v", c.rounds, err)
			}
			if err := g.Check(round); !errors.Is(err, ErrRepeated) {
				t.Errorf("%v: a second submission in round %d: %v", c.rounds, round, err)
			}
			var err error
			if g, err = g.state().restore(limits); err != nil {
				t.Fatal(err)
			}
		}
		want, err := limits.Cost.Spent(accounting.ServerView, c.bands, privacy.DefaultDelta)
		if err != nil || upper(t, g) != want.Bare().Upper {
			t.Errorf("%v: %g is spent, want %g (%v)", c.rounds, upper(t, g), want.Bare().Upper, err)
		}
	}
	tight := limitsOf(t, 7, 1)
	tight.Every = 3
	g := newGuard(t, tight, 2)
	if err := g.Charge(3); err != nil {
		t.Error(err)
	}
	if err := g.Charge(4); !errors.Is(err, ErrSpent) || g.Last() != 3 {
		t.Errorf("a second band: %v", err)
	}
}
