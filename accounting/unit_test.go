package accounting

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

// What is spent says of which unit it is, from a round, from a ledger and from a saved one; rounds
// of two units do not add up.
func TestUnit(t *testing.T) {
	r := exampleRound()
	if s, err := r.Spent(ServerView, 1, 1e-6); err != nil || s.Unit() != PartyUnit {
		t.Errorf("%v, %v", s.Unit(), err)
	}
	l, err := NewLedger(Budget{Calculated(RecordUnit), 100, 1e-3})
	if err != nil {
		t.Fatal(err)
	}
	r.Statement = Calculated(RecordUnit)
	if err := l.SpendRound(r, "ann"); err != nil {
		t.Fatal(err)
	}
	saved, err := json.Marshal(l)
	var loaded Ledger
	if err != nil || !strings.Contains(string(saved), `"unit":"record"`) ||
		json.Unmarshal(saved, &loaded) != nil {
		t.Fatalf("%s, %v", saved, err)
	}
	if s, err := loaded.Spent("ann"); err != nil || s.Unit() != RecordUnit {
		t.Errorf("%v, %v", s.Unit(), err)
	}
	r.Statement = Statement{}
	if err := loaded.SpendRound(r, "ann"); !errors.Is(err, ErrStatement) {
		t.Errorf("a round of the other unit: %v", err)
	}
	var u Unit
	if err := u.UnmarshalText([]byte("patient")); !errors.Is(err, ErrConfig) {
		t.Errorf("unit patient: %v", err)
	}
}
