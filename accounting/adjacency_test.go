package accounting

import (
	"encoding/json"
	"errors"
	"math"
	"testing"

	"github.com/hushsum/hushsum/internal/suite"
)

// A server knows who takes part, however a mechanism is recorded.
func TestServerLedgerHasNoAmplification(t *testing.T) {
	spent := map[View]float64{}
	for _, v := range []View{ServerView, PublicView} {
		l := mustLedger(t, v, Target{1e4, 1e-5})
		if err := l.Spend(Step{Sampled{Gaussian{2}, 0.01}, 50}, "ann"); err != nil {
			t.Fatal(err)
		}
		s, err := l.Spent("ann")
		if err != nil {
			t.Fatal(err)
		}
		spent[v] = s.Bare().Upper
	}
	if want := mustEpsilon(t, 1e-5, Step{Gaussian{2}, 50}).Upper; spent[ServerView] != want ||
		spent[PublicView] > 0.1*want {
		t.Errorf("spent %v, unsampled %v", spent, want)
	}
	l := mustLedger(t, ServerView, Target{1e4, 1e-5})
	for _, r := range []float64{0, 2, math.NaN()} { // refused in the view that does not need it too
		if err := l.Spend(Step{Sampled{Gaussian{2}, r}, 1}, "ann"); !errors.Is(err, ErrConfig) {
			t.Errorf("rate %v: %v", r, err)
		}
	}
}

func mustLedger(t *testing.T, v View, b Target) *Ledger {
	t.Helper()
	l, err := NewLedger(budgetOf(v, b))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// No count wraps: what is recorded never makes an account smaller.
func TestLedgerCounts(t *testing.T) {
	l := mustLedger(t, ServerView, Target{1, 1e-5})
	large := Step{DiscreteGaussian{1 << 34, 1}, maxCount} // too large for a table
	if err := l.Spend(Step{large.Mechanism, maxCount + 1}, "ann"); !errors.Is(err, ErrConfig) {
		t.Error(err)
	}
	if err := l.Spend(large, "ann"); err != nil {
		t.Fatal(err)
	}
	before, err := l.Spent("ann")
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := l.Spend(large, "ann"); !errors.Is(err, ErrConfig) {
			t.Error(err)
		}
	}
	if after, err := l.Spent("ann"); err != nil || after.Bare() != before.Bare() ||
		!(before.Bare().Upper > 0) {
		t.Errorf("%v, then %v, %v", before, after, err)
	}
	saved, err := json.Marshal(l)
	if err != nil {
		t.Fatal(err)
	}
	var loaded Ledger
	if err := json.Unmarshal(saved, &loaded); err != nil {
		t.Error(err)
	}
	// Neither do lines that are added up.
	full := `{"version":2,"standard":` + standard(9) + `,"accounts":{"ann":[
		{"count":1099511627776,"step_count":1,
		"mechanism":{"discrete_gaussian":{"Sigma":17179869184,"Sensitivity":1}}}]}}`
	if err := json.Unmarshal([]byte(full), &loaded); err != nil {
		t.Fatal(err)
	}
	if err := loaded.Spend(Step{large.Mechanism, 1}, "ann"); !errors.Is(err, ErrConfig) {
		t.Error(err)
	}
	for _, wrong := range []string{
		`"a":[{"count":4294967296,"step_count":4294967296,
			"mechanism":{"gaussian":{"NoiseMultiplier":1}}}]`,
		`"":[{"count":1,"step_count":1,"mechanism":{"gaussian":{"NoiseMultiplier":1}}}]`,
	} {
		wrong = `{"version":2,"standard":` + standard(1) + `,"accounts":{` +
			wrong + `}}`
		if err := json.Unmarshal([]byte(wrong), &loaded); !errors.Is(err, ErrLedger) {
			t.Error(err)
		}
	}
}

// A ledger keeps its own copy of what it records, saves by value, and is of somebody.
func TestLedgerOwnsItsRecords(t *testing.T) {
	l := mustLedger(t, PublicView, Target{9, 1e-5})
	p, q := []float64{0.6, 0.4}, []float64{0.4, 0.6}
	if err := l.Spend(Step{Sampled{Pair{P: p, Q: q}, 1}, 1}, "ann"); err != nil {
		t.Fatal(err)
	}
	before, _ := l.Spent("ann")
	copy(p, []float64{0.5, 0.5})
	copy(q, p)
	if after, err := l.Spent("ann"); err != nil || after.Bare() != before.Bare() {
		t.Errorf("%v became %v, %v", before, after, err)
	}
	byValue, err := json.Marshal(struct{ Ledger Ledger }{*l})
	if err != nil {
		t.Fatal(err)
	}
	var back struct{ Ledger Ledger }
	if err := json.Unmarshal(byValue, &back); err != nil || back.Ledger.View() != PublicView {
		t.Error(err)
	}
	if got, err := back.Ledger.Spent("ann"); err != nil || got.Bare() != before.Bare() {
		t.Errorf("%v loaded as %v, %v", before, got, err)
	}
	if _, err := json.Marshal(Ledger{}); !errors.Is(err, ErrLedger) {
		t.Error(err)
	}
	if err := l.Spend(Step{Gaussian{9}, 1}, "ann", ""); !errors.Is(err, ErrConfig) {
		t.Error(err)
	}
	if err := l.SetBudget("", Target{1, 1e-5}); !errors.Is(err, ErrConfig) {
		t.Error(err)
	}
}

func TestOneAdjacency(t *testing.T) {
	joins, exchanged := Step{Sampled{Gaussian{5}, 0.1}, 10}, Step{ReplaceOne{Gaussian{5}, 0.1}, 10}
	if _, err := Compose(joins, exchanged); !errors.Is(err, ErrConfig) {
		t.Error(err)
	}
	large := Step{DiscreteGaussian{1 << 34, 1}, 1} // by RDP
	l := mustLedger(t, PublicView, Target{9, 1e-5})
	if err := errors.Join(l.Spend(joins, "ann"), l.Spend(large, "ann")); err != nil {
		t.Fatal(err)
	}
	if err := l.Spend(exchanged, "ann"); !errors.Is(err, ErrConfig) {
		t.Error(err)
	}
	for _, plain := range []Step{{Sampled{Gaussian{5}, 1}, 1}, {Sampled{Gaussian{5}, 0.1}, 0}} {
		if _, err := Compose(plain, exchanged); err != nil {
			t.Error(err)
		}
	}
	// In the server's view too, and together with rounds of any law.
	for name, first := range map[string]func(*Ledger) error{
		"sampled": func(l *Ledger) error { return l.Spend(joins, "ann") },
		"round":   func(l *Ledger) error { return l.SpendRound(exampleRound(), "ann") },
	} {
		for _, v := range []View{ServerView, PublicView} {
			l := mustLedger(t, v, Target{1e9, 1e-5})
			if err := first(l); err != nil {
				t.Fatal(err)
			}
			if err := l.Spend(exchanged, "ann"); !errors.Is(err, ErrConfig) {
				t.Errorf("%s, %v: %v", name, v, err)
			}
		}
	}
	// To the server replace-one is at rate 1, which Laplace noise has a bound for.
	l = mustLedger(t, ServerView, Target{9, 1e-5})
	if err := l.Spend(Step{ReplaceOne{Laplace{10}, 0.5}, 1}, "ann"); err != nil {
		t.Error(err)
	}
}

// No rounds spend nothing; sampling never costs; the pure ε of discrete Laplace noise
// is there however large the sensitivity.
func TestRoundsAtTheEdges(t *testing.T) {
	for _, law := range []Family{FamilyDiscreteGaussian, FamilySkellam, FamilyDiscreteLaplace} {
		r := Round{
			Family: law, Shares: 8, Honest: 8, Rate: 0.1, HiddenSchedule: true,
			Update:        stated(law, 1e6, Sensitivity{L1: 1e4, L2: 400, Dimension: 1000}),
			TableDistance: 0x1p-100, Samples: 1e4,
		}
		signs := stated(law, 1e6, signs(1000))
		r.Signs = &signs
		server, public, err := r.Views(0, 1e-5)
		if err != nil || server.Bare().Bound != (Bound{}) || public.Bare().Bound != (Bound{}) {
			t.Errorf("%v: no rounds spend %v and %v, %v", law, server, public, err)
		}
		if server, public, err = r.Views(1, 1e-5); err != nil ||
			public.Bare().Upper > server.Bare().Upper ||
			public.Bare().Lower > public.Bare().Upper {
			t.Errorf("%v: spent %v and %v, %v", law, server, public, err)
		}
	}
	for _, d := range []float64{1 << 20, 1<<20 + 1, 1 << 40} {
		r := Round{Family: FamilyDiscreteLaplace, Shares: 1, Honest: 1, Rate: 1,
			Update: Lane{SumScale: d, Sensitivity: Sensitivity{L1: d, L2: d, Dimension: 1}}}
		for _, delta := range []float64{0, 1e-12} {
			if s, err := r.Spent(ServerView, 3, delta); err != nil || s.Bare().Upper > 3.0001 ||
				s.Bare().Upper < 2.9 {
				t.Errorf("Δ₁ = %v, δ = %v: %v, %v", d, delta, s, err)
			}
		}
	}
}

// An event of infinite loss is in δ(ε) for every ε, +Inf too.
func TestDeltaAtInfinity(t *testing.T) {
	leak := Pair{P: []float64{0.5, 0.5}, Q: []float64{1, 0}}
	for _, c := range []struct {
		m     Mechanism
		delta float64
	}{{leak, 0.5}, {Sampled{leak, 0.1}, 0.05}, {Sampled{Gaussian{1}, 0.1}, 0}, {Laplace{1}, 0}} {
		comp, err := Compose(Step{c.m, 1})
		if err != nil {
			t.Fatal(err)
		}
		if b, err := comp.Delta(math.Inf(1)); err != nil || !b.Contains(c.delta) ||
			b.Upper > c.delta+1e-6 {
			t.Errorf("%s: %v, %v", c.m.key(), b, err)
		}
	}
}

// What sampling is bounded by need not exist: two rates of one mechanism can be too
// many steps as one.
func TestNoWholeBound(t *testing.T) {
	b := mustEpsilon(t, 1e-6, Step{Sampled{Gaussian{0.001}, 0.5}, maxCount},
		Step{Sampled{Gaussian{0.001}, 0.6}, maxCount})
	if !math.IsInf(b.Upper, 1) || b.Reason == "" {
		t.Error(b)
	}
}

// A client that is in no step at all but with probability δ has spent nothing, and
// less noise is never better.
func TestSmallRates(t *testing.T) {
	last := math.Inf(1)
	multipliers := []float64{1}
	if suite.Long() {
		multipliers = []float64{0.1, 0.2, 0.5, 1}
	}
	for _, z := range multipliers {
		c, err := Compose(Step{Sampled{Gaussian{z}, 1e-9}, 10})
		if err != nil {
			t.Fatal(err)
		}
		if b, err := c.Epsilon(1e-5); err != nil || b != (Bound{}) {
			t.Errorf("z = %v: %v, %v", z, b, err)
		}
		b, err := c.Epsilon(1e-9)
		if err != nil || b.Upper > last || !(b.Upper > 0) {
			t.Errorf("z = %v: %v after %v, %v", z, b, last, err)
		}
		last = b.Upper
		if d, err := c.Delta(0); err != nil || d.Upper > 1.00001e-8 || d.Lower > d.Upper {
			t.Errorf("z = %v: δ(0) is %v, %v", z, d, err)
		}
	}
	for _, s := range []Step{{Sampled{Gaussian{1}, 1e-300}, 1 << 30},
		{Sampled{Gaussian{0.03}, 0.01}, 10}} {
		if b := mustEpsilon(t, 1e-6, s); math.IsInf(b.Upper, 1) {
			t.Errorf("%s: %v", s.Mechanism.key(), b)
		}
	}
}
