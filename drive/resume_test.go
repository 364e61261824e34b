package drive_test

import (
	"errors"
	"testing"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/drive"
)

// limits are of ten rounds with a budget for three.
func limits(t *testing.T) drive.Limits {
	t.Helper()
	round := accounting.Round{
		Family: accounting.FamilyDiscreteGaussian,
		Shares: 2,
		Honest: 2,
		Update: accounting.Lane{
			ShareSigma:  50,
			Sensitivity: accounting.Sensitivity{L1: 30, L2: 10, Dimension: 9},
		},
		Rate: 1,
	}
	three, err := round.Spent(accounting.ServerView, 3, 1e-5)
	if err != nil {
		t.Fatal(err)
	}
	budget, err := accounting.NewBudget(accounting.Statement{}, three.Bare().Upper, 1e-5)
	if err != nil {
		t.Fatal(err)
	}
	ledger, err := accounting.NewLedger(budget)
	if err != nil {
		t.Fatal(err)
	}
	return drive.Limits{Rounds: 10, Cost: round, Ledger: ledger}
}

// A guard that is made again from what was counted refuses what the one before refused, also
// where there was no budget for the rounds that count as spent.
func TestGuardResumes(t *testing.T) {
	limits := limits(t)
	for _, c := range []struct {
		last, count, round uint64
		want               error
	}{
		{0, 0, 1, nil},
		{7, 2, 8, nil},
		{7, 2, 7, drive.ErrRepeated},
		{7, 2, 11, drive.ErrRound},
		{7, 3, 8, drive.ErrSpent},
		{5, 5, 6, drive.ErrSpent}, // of which three fit
	} {
		g, err := drive.ResumeGuard(limits, c.last, c.count)
		if err != nil {
			t.Fatal(err)
		}
		if g.Last() != c.last || g.Count() < c.count {
			t.Errorf("%+v: made again as %d, %d", c, g.Last(), g.Count())
		}
		if err := g.Charge(c.round); !errors.Is(err, c.want) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	for _, c := range [][2]uint64{{11, 1}, {9, 10}, {1, 0}} {
		if _, err := drive.ResumeGuard(limits, c[0], c[1]); !errors.Is(err, drive.ErrState) {
			t.Errorf("%v: %v", c, err)
		}
	}
}
