package accounting

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
)

func TestLedgerStopsBeforeOverspending(t *testing.T) {
	l, err := NewLedger(budgetOf(ServerView, Target{2, 1e-5}))
	if err != nil {
		t.Fatal(err)
	}
	if err := l.SetBudget("shy", Target{0.5, 1e-5}); err != nil {
		t.Fatal(err)
	}
	step := Step{Gaussian{20}, 1}
	rounds := map[string]int{}
	active := []string{"bold", "shy"}
	for range 400 {
		err := l.Spend(step, active...)
		var over *OverBudget
		switch {
		case err == nil:
			for _, c := range active {
				rounds[c]++
			}
		case errors.As(err, &over) && errors.Is(err, ErrBudget):
			if over.Client == "shy" {
				active = []string{"bold"}
			} else {
				active = nil
			}
		default:
			t.Fatal(err)
		}
		if len(active) == 0 {
			break
		}
	}
	for c, n := range rounds {
		target := l.Budget(c).Target()
		want, err := CalibrateRounds(target, step)
		if err != nil {
			t.Fatal(err)
		}
		if n != want {
			t.Errorf("%s took part in %d rounds, budget allows %d", c, n, want)
		}
		if s, err := l.Spent(c); err != nil || s.Bare().Upper > target.Epsilon {
			t.Errorf("%s spent %v, %v", c, s, err)
		}
	}
	if rounds["shy"] >= rounds["bold"] {
		t.Error(rounds)
	}
}

// How many rounds are left is how many are recorded one by one, for each client.
func TestLedgerLeft(t *testing.T) {
	l, err := NewLedger(budgetOf(ServerView, Target{10, 1e-5}))
	if err != nil {
		t.Fatal(err)
	}
	if err := l.SetBudget("shy", Target{4, 1e-5}); err != nil {
		t.Fatal(err)
	}
	if err := l.SetBudget("spent", Target{1e-9, 1e-5}); err != nil {
		t.Fatal(err)
	}
	r := exampleRound()
	if err := l.SpendRounds(r, 2, "old"); err != nil {
		t.Fatal(err)
	}
	names := []string{"new", "old", "shy", "spent", "newer"}
	left, err := l.Left(r, 1000, names...)
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range names {
		n := 0
		for own := l.Clone(); own.SpendRound(r, name) == nil; n++ {
		}
		if left[i] != n || (n == 0) != (name == "spent") {
			t.Errorf("%s: %d rounds are left, and %d are recorded", name, left[i], n)
		}
	}
	if left[1] != left[0]-2 || left[2] >= left[0] {
		t.Error(left)
	}
	if some, err := l.Left(r, 3, names...); err != nil || some[0] != 3 || some[3] != 0 {
		t.Errorf("of 3: %v, %v", some, err)
	}
	if left, err := l.Left(Round{}, 3, "new"); !errors.Is(err, ErrConfig) {
		t.Errorf("of no round: %v, %v", left, err)
	}
}

// A refused round leaves every account as it was, and mechanisms may mix.
func TestLedgerMixedRoundsAndFile(t *testing.T) {
	l, err := NewLedger(budgetOf(PublicView, Target{8, 1e-6}))
	if err != nil {
		t.Fatal(err)
	}
	r := exampleRound()
	signs := Lane{ShareSigma: 40, Sensitivity: signs(10000)}
	r.Signs = &signs
	for _, f := range []func() error{
		func() error { return l.SpendRound(r, "a", "b") },
		func() error { return l.Spend(Step{Sampled{Gaussian{3}, 0.1}, 5}, "a") },
		func() error { return l.Spend(Step{Sampled{Laplace{10}, 0.1}, 5}, "a", "c") },
		func() error {
			return l.Spend(Step{Pair{P: []float64{0.5, 0.5}, Q: []float64{0.4, 0.6}}, 1}, "c")
		},
		func() error { return l.Spend(Step{ReplaceOne{Gaussian{9}, 0.5}, 1}, "d") },
		func() error { return l.Spend(Step{Skellam{100, 1}, 1}, "c") },
		func() error { return l.Spend(Step{Binomial{100, 1}, 1}, "c") },
		func() error { return l.Spend(Step{DiscreteGaussian{9, 1}, 1}, "c") },
		func() error { return l.Spend(Step{DiscreteLaplace{9, 1}, 1}, "c") },
		func() error { return l.Spend(Step{RandomisedResponse{0.1, 3}, 1}, "c") },
		func() error { return l.SetBudget("b", Target{1, 1e-7}) },
	} {
		if err := f(); err != nil {
			t.Fatal(err)
		}
	}
	saved, err := json.Marshal(l)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Spend(Step{Gaussian{0.1}, 1}, "a", "c"); !errors.Is(err, ErrBudget) {
		t.Fatal(err)
	}
	again, err := json.Marshal(l)
	if err != nil || !bytes.Equal(saved, again) {
		t.Fatal("a refused round changed the ledger", err)
	}
	var loaded Ledger
	if err := json.Unmarshal(saved, &loaded); err != nil {
		t.Fatal(err)
	}
	again, err = json.Marshal(&loaded)
	if err != nil || !bytes.Equal(saved, again) {
		t.Fatal("load and save changed the ledger", err)
	}
	for _, c := range l.Clients() {
		x, err := l.Spent(c)
		if err != nil {
			t.Fatal(err)
		}
		y, err := loaded.Spent(c)
		if err != nil || x.Bare() != y.Bare() {
			t.Errorf("%s: %v, %v, %v", c, x, y, err)
		}
		t.Logf("%s: ε(%v) ≤ %.4f by %s", c, x.Statement, x.Bare().Upper, x.Bare().Accountant)
	}
}

func TestLedgerFileErrors(t *testing.T) {
	good := `{"version":2,"standard":` + standard(1) + `,"budgets":{},"accounts":{}}`
	var l Ledger
	if err := json.Unmarshal([]byte(good), &l); err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{
		`{}`,
		`{"version":9,"standard":` + standard(1) + `}`,
		`{"version":2,"view":"server","standard":{"Epsilon":1,"Delta":1e-5}}`,
		`{"version":2,"standard":` + standard(-1) + `}`,
		`{"version":2,"standard":` + standard(1) + `,"extra":1}`,
		`{"version":2,"standard":` + standard(1) + `,"budgets":{"a":{"Epsilon":0,"Delta":0}}}`,
		`{"version":2,"standard":` + standard(1) + `,"accounts":{"a":[{"count":1}]}}`,
		`{"version":2,"standard":` + standard(1) + `,` +
			`"accounts":{"a":[{"count":0,"mechanism":{"gaussian":{"NoiseMultiplier":1}}}]}}`,
		`{"version":2,"standard":` + standard(1) + `,` +
			`"accounts":{"a":[{"count":1,"step_count":1,"mechanism":{"gaussian":{"NoiseMultiplier":0}}}]}}`,
		`{"version":2,"standard":` + standard(1) + `,` +
			`"accounts":{"a":[{"count":1,"step_count":1,"mechanism":{}}]}}`,
	} {
		before := l.Budget("x")
		if err := json.Unmarshal([]byte(s), &l); !errors.Is(err, ErrLedger) {
			t.Errorf("%s: %v", s, err)
		}
		if l.Budget("x") != before {
			t.Error("a failed load changed the ledger")
		}
	}
	if _, err := NewLedger(budgetOf(ServerView, Target{0, 0})); !errors.Is(err, ErrConfig) {
		t.Error(err)
	}
	if err := l.Spend(Step{}, "a"); !errors.Is(err, ErrConfig) {
		t.Error(err)
	}
}

// Of several mistakes in a file the same one is told every time.
func TestLedgerFileTellsOneMistake(t *testing.T) {
	head := `{"version":2,"standard":` + standard(1) + `,`
	for s, first := range map[string]string{
		head + `"budgets":{"c":{},"b":{},"a":{},"d":{}}}`:                                     `of "a"`,
		head + `"accounts":{"c":[{}],"b":[{}],"d":[{}],"a":[{"count":0}],"e":[{"count":1}]}}`: `of "a"`,
	} {
		for range 20 {
			var l Ledger
			if err := l.UnmarshalJSON([]byte(s)); err == nil || !strings.Contains(err.Error(), first) {
				t.Fatalf("%s: %v, want what is wrong %s", s, err, first)
			}
		}
	}
}

// Most names the client that has spent most, of those that are asked for.
func TestLedgerMost(t *testing.T) {
	l := mustLedger(t, ServerView, Target{10, 1e-5})
	if who, most, err := l.Most(); who != "" || most.Bare().Upper != 0 || err != nil {
		t.Errorf("of nobody: %q, %v, %v", who, most, err)
	}
	step := Step{Gaussian{20}, 1}
	for count, who := range []string{1: "ann", 3: "ben", 2: "cid"} {
		for range count {
			if err := l.Spend(step, who); err != nil {
				t.Fatal(err)
			}
		}
	}
	for want, of := range map[string][]string{"ben": nil, "cid": {"ann", "cid"}, "ann": {"ann", "dan"},
		"": {"dan"}} {
		all, err := l.SpentBy(of...)
		if err != nil || len(all) != len(of) {
			t.Fatal(all, err)
		}
		for k, id := range of {
			if spent, err := l.Spent(id); err != nil || all[k].String() != spent.String() {
				t.Errorf("%s: %v, want %v", id, all[k], spent)
			}
		}
		who, most, err := l.Most(of...)
		spent, err2 := l.Spent(who)
		if who != want || most.Bare().Upper != spent.Bare().Upper || err != nil || err2 != nil {
			t.Errorf("of %v: %q, %v, %v; want %q, %v", of, who, most, err, want, spent)
		}
	}
}

// What is kept of equal steps is told for the δ alone that it was asked for.
func TestFiguresOfOtherDelta(t *testing.T) {
	last := math.Inf(1)
	for _, delta := range []float64{1e-9, 1e-6, 1e-3, 1e-9} {
		s := Step{Gaussian{NoiseMultiplier: 1.25}, 3}
		got, err := spend([]charge{{Step: &s, Count: 1}}, PublicView, delta)
		c, err2 := Compose(s)
		if err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		want, err := c.Epsilon(delta)
		if upper := got.Bare().Upper; err != nil || upper != want.Upper || upper == last {
			t.Errorf("at delta %v: %v, want %v; %v", delta, upper, want.Upper, err)
		} else {
			last = upper
		}
	}
}
