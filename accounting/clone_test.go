package accounting

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
)

// A clone and its original go on apart, and rounds charged at once are those charged one by
// one, or none.
func TestClone(t *testing.T) {
	l, err := NewLedger(budgetOf(ServerView, Target{Epsilon: 3, Delta: 1e-5}))
	if err != nil {
		t.Fatal(err)
	}
	round := Round{Family: FamilyDiscreteGaussian, Shares: 4, Honest: 4,
		Update: Lane{ShareSigma: 9, Sensitivity: Sensitivity{1, 1, 1}}, Rate: 1}
	text := func(l *Ledger) []byte {
		b, err := l.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	for range 3 {
		if err := l.SpendRound(round, "a", "b"); err != nil {
			t.Fatal(err)
		}
	}
	before, c := text(l), l.Clone()
	if err := c.SpendRounds(round, 4, "a"); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(text(l), before) {
		t.Error("the original changes with its clone")
	}
	for range 4 {
		if err := l.SpendRound(round, "a"); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(text(l), text(c)) {
		t.Error("4 rounds at once are not 4 rounds")
	}
	if err := c.SpendRounds(round, 1<<30, "a"); !errors.Is(err, ErrBudget) ||
		!bytes.Equal(text(l), text(c)) {
		t.Errorf("rounds over the budget: %v", err)
	}
	for _, count := range []int{0, -1, maxCount + 1} {
		if err := c.SpendRounds(round, count, "a"); !errors.Is(err, ErrConfig) {
			t.Errorf("%d rounds: %v", count, err)
		}
	}
}

// budgetOf is a calculator's budget in a view.
func budgetOf(v View, t Target) Budget {
	return Budget{v.Of(Calculated(PartyUnit)), t.Epsilon, t.Delta}
}

// standard is the text of a calculator's budget.
func standard(epsilon float64) string {
	return fmt.Sprintf(`{"epsilon":%v,"delta":0.00001,"unit":"party","adjacency":"zero-out",`+
		`"server":"curious","colluders":0,"committees":[],"assumes":["sums"]}`, epsilon)
}
