package accounting

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// drawStatement draws any statement.
func drawStatement(t *rapid.T, name string) Statement {
	terms := Terms{
		Unit: rapid.SampledFrom([]Unit{PartyUnit, RecordUnit, RecordsOf("patient"),
			RecordsOf("site")}).Draw(t, name+" unit"),
		Adjacency: rapid.SampledFrom([]Adjacency{ZeroOut, AddRemove, ReplacesOne}).Draw(t, name+" by"),
		Server:    Server(rapid.IntRange(1, 4).Draw(t, name+" server")),
		Colluders: rapid.SampledFrom([]Colluders{0, 1, 3, AnyColluders}).Draw(t, name+" colluders"),
		Assumes:   Assumptions(rapid.IntRange(0, int(allAssumptions)).Draw(t, name+" assumes")),
	}
	for _, list := range rapid.SliceOfNDistinct(rapid.ByteRange(0, 2), 0, 2,
		func(b byte) byte { return b }).Draw(t, name+" committees") {
		terms.Committees = append(terms.Committees, Committee{[32]byte{list}, 4 + int(list),
			rapid.IntRange(0, 2).Draw(t, name+" in league")})
	}
	return statementOf(t, terms)
}

// statementOf is the statement of terms, without those in league with nobody at the server.
func statementOf(t *rapid.T, terms Terms) Statement {
	if terms.Server == PublicServer {
		terms.Colluders, terms.Committees = 0, nil
	}
	s, err := terms.Statement()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// near draws a statement that differs from another in few respects.
func near(t *rapid.T, s Statement) Statement {
	o, terms := drawStatement(t, "other").Terms(), s.Terms()
	for _, change := range []func(){
		func() { terms.Unit = o.Unit }, func() { terms.Adjacency = o.Adjacency },
		func() { terms.Server = o.Server }, func() { terms.Colluders = o.Colluders },
		func() { terms.Committees = o.Committees }, func() { terms.Assumes = o.Assumes },
		func() {
			if len(terms.Committees) > 0 { // one that is trusted further, or less
				terms.Committees[0].InLeague = (terms.Committees[0].InLeague + 1) % 3
			}
		},
	} {
		if rapid.IntRange(0, 5).Draw(t, "change") == 0 {
			change()
		}
	}
	return statementOf(t, terms)
}

// Implies is a partial order, and Meet its greatest lower bound where there is one.
func TestStatementOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := drawStatement(t, "a")
		b := near(t, a)
		c := near(t, b)
		implies := func(x, y Statement) bool { return x.Implies(y) == nil }
		if !implies(a, a) || !implies(a, a.Public()) {
			t.Fatalf("%v does not imply itself, or what follows against the public", a)
		}
		if implies(a, b) && implies(b, c) && !implies(a, c) {
			t.Fatalf("%v, %v and %v: not transitive", a, b, c)
		}
		if implies(a, b) && implies(b, a) && a != b && b.Public() != b {
			t.Fatalf("%v and %v imply each other", a, b)
		}
		m, err := a.Meet(b)
		if back, other := b.Meet(a); m != back || (err == nil) != (other == nil) {
			t.Fatalf("the meet of %v and %v depends on their order", a, b)
		}
		apart := a.unit != b.unit || a.adjacency != b.adjacency
		if apart != errors.Is(err, ErrStatement) || !apart && err != nil {
			t.Fatalf("%v and %v meet: %v", a, b, err)
		}
		if err != nil {
			return
		}
		if !implies(a, m) || !implies(b, m) {
			t.Fatalf("%v and %v do not imply their meet, %v", a, b, m)
		}
		if implies(a, c) && implies(b, c) && !implies(m, c) {
			t.Fatalf("%v and %v imply %v, and their meet, %v, does not", a, b, c, m)
		}
	})
}

// One statement has one text, which no other has.
func TestStatementText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := drawStatement(t, "a")
		b := near(t, a)
		text, err := json.Marshal(a)
		other, err2 := json.Marshal(b)
		var back Statement
		if err != nil || err2 != nil || json.Unmarshal(text, &back) != nil || back != a {
			t.Fatalf("%v: %s, %v", a, text, back)
		}
		if (a == b) != (string(text) == string(other)) {
			t.Fatalf("%s and %s", text, other)
		}
	})
	for _, wrong := range []string{`{}`, `null`, `{"unit":"party"}`,
		strings.Replace(standard(1), `"curious"`, `"evil"`, 1), `{"unit":"party","unit":"party"}`} {
		if err := new(Budget).UnmarshalJSON([]byte(wrong)); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: %v", wrong, err)
		}
	}
}

// A claim is within a budget only if it is about the same, at no larger ε and no larger δ.
func TestClaimWithin(t *testing.T) {
	terms := Terms{Server: CheatingServer, Colluders: 2}
	s, err := terms.Statement()
	if err != nil {
		t.Fatal(err)
	}
	terms.Colluders = 3
	more, err := terms.Statement()
	if err != nil {
		t.Fatal(err)
	}
	claim := NewClaim(s, Figures{Bound: Bound{0.5, 1, ""}, Delta: 1e-5})
	for _, c := range []struct {
		s              Statement
		epsilon, delta float64
		want           error
	}{
		{s, 1, 1e-5, nil}, {s, 1.5, 1e-4, nil}, {s.Public(), 1, 1e-5, nil},
		{s.Assuming(AssumesCoins), 1, 1e-5, nil},
		{s, 0.99, 1e-5, ErrBudget}, {s, 1, 9e-6, ErrBudget}, {more, 1, 1e-5, ErrStatement},
		{Calculated(RecordUnit), 1, 1e-5, ErrStatement},
	} {
		b, err := NewBudget(c.s, c.epsilon, c.delta)
		if err != nil {
			t.Fatal(err)
		}
		if err := claim.Within(b); !errors.Is(err, c.want) {
			t.Errorf("%v within %v: %v", claim, b, err)
		}
	}
	if assuming := NewClaim(s.Assuming(AssumesAhead), claim.Bare()); !errors.Is(
		assuming.Within(Budget{s, 9, 0.1}), ErrStatement) {
		t.Error("an assumption is forgotten")
	}
	half, err := NewBudget(s.Public(), 2, 1e-5)
	if err != nil {
		t.Fatal(err)
	}
	if share, err := claim.Share(half); share != 0.5 || err != nil {
		t.Errorf("%v of %v is %v, %v", claim, half, share, err)
	}
	if _, err := claim.Share(Budget{more, 2, 1e-5}); !errors.Is(err, ErrStatement) {
		t.Errorf("a share of another statement's budget: %v", err)
	}
}

// A claim is said whole: an upper bound is rounded up and a lower one down, and what it assumes is
// explained.
func TestClaimWords(t *testing.T) {
	terms := Terms{Unit: RecordsOf("patient"), Server: CheatingServer, Colluders: 1,
		Committees: []Committee{{[32]byte{0x3f, 0xc1}, 13, 3}}, Assumes: AssumesCoins}
	s, err := terms.Statement()
	if err != nil {
		t.Fatal(err)
	}
	terms.Committees[0].List = [32]byte{}
	declared, err := terms.Statement()
	if err != nil {
		t.Fatal(err)
	}
	const infinite = "No finite epsilon could be proved: delta is 0."
	for _, c := range []struct {
		claim   Claim
		words   string
		explain []string
	}{
		{NewClaim(s, Figures{Bound{0.99876, 0.99901, ""}, 1e-5, "PLD", "1 coordinate by 5"}),
			"epsilon 0.9991 (at least 0.9987) at delta 1e-05 for each patient's records at a party, " +
				"against a server that cheats with any 1 party and up to 3 of the 13 members of committee " +
				"3fc1…; assumes coins",
			[]string{"PLD proves the upper bound.", "Epsilon 0.9987 is attained: by a record whose part " +
				"differs in 1 coordinate by 5, in each sum.", "It assumes coins: nothing but a party's " +
				"submissions shows how its secret coins fell."}},
		{NewClaim(declared, Figures{Bound: Bound{Upper: 123456}}),
			"epsilon 1.235e+05 at delta 0 for each patient's records at a party, against a server that " +
				"cheats with any 1 party and up to 3 of the 13 members of the committee; assumes coins", nil},
		{NewClaim(s.Public(), Figures{Bound: Bound{Upper: math.Inf(1), Reason: "delta is 0"}}),
			"epsilon infinite at delta 0 for each patient's records at a party, against those who see " +
				"released sums; assumes coins", []string{infinite}},
	} {
		if got := c.claim.String(); got != c.words {
			t.Errorf("%q, want %q", got, c.words)
		}
		if got := c.claim.Explain(); c.explain != nil && !slices.Equal(got[:len(c.explain)], c.explain) {
			t.Errorf("%q, want %q", got, c.explain)
		}
	}
	page, err := os.ReadFile("../docs/privacy.md")
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range assumptionNames {
		if line := fmt.Sprintf("\n| `%s` | %s |\n", name, assumptionWords[i]); !strings.Contains(
			string(page), line) {
			t.Errorf("docs/privacy.md does not say %q", line)
		}
	}
	for server := PublicServer; server <= CheatingServer; server++ {
		words := strings.Replace(server.Words(), "a server that cheats", "… that cheats", 1)
		if server <= CuriousServer {
			words = "against " + words
		}
		if !strings.Contains(string(page), "\n| "+words+" |") {
			t.Errorf("docs/privacy.md does not say what %q means", words)
		}
	}
}

// What is printed of a bound is still one, but for the last bits of a float64, with
// four digits or decimals.
func TestClaimRounds(t *testing.T) {
	printed := func(e float64) (most, least string) {
		c := NewClaim(Statement{}, Figures{Bound: Bound{Lower: e, Upper: e}})
		return c.Most(), c.Least()
	}
	rapid.Check(t, func(t *rapid.T) {
		e := math.Pow(10, rapid.Float64Range(-12, 12).Draw(t, "exponent"))
		most, least := printed(e)
		upper, err := strconv.ParseFloat(most, 64)
		lower, wrong := strconv.ParseFloat(least, 64)
		const bits = 1e-14
		if err != nil || wrong != nil || upper < e*(1-bits) || lower > e*(1+bits) ||
			upper-lower > max(2e-3*e, 1.0001e-4) {
			t.Fatalf("%v is between %v and %v", e, lower, upper)
		}
	})
	for e, want := range map[float64][2]string{
		0:           {"0.0000", "-"},
		0.00123456:  {"0.001235", "0.001234"},
		1.23456:     {"1.2346", "1.2345"},
		123456:      {"1.235e+05", "1.234e+05"},
		math.Inf(1): {"infinite", "infinite"},
		math.NaN():  {"infinite", "-"},
	} {
		if most, least := printed(e); [2]string{most, least} != want {
			t.Errorf("%v is printed as %v and %v, want %v", e, most, least, want)
		}
	}
}

// Whichever of two claims is the case, both figures and what they have in common hold.
func TestClaimOr(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string, s Statement) Claim {
			f := Figures{Bound: Bound{Lower: rapid.Float64Range(0, 2).Draw(t, name)}, Delta: 1e-5}
			f.Upper = f.Lower + rapid.Float64Range(0, 1).Draw(t, name+" more")
			return NewClaim(s, f)
		}
		a := draw("a", drawStatement(t, "a"))
		b := draw("b", near(t, a.Statement))
		c, err := a.Or(b)
		if apart := a.unit != b.unit || a.adjacency != b.adjacency; apart {
			if !errors.Is(err, ErrStatement) {
				t.Fatalf("%v or %v: %v, %v", a, b, c, err)
			}
			return
		}
		if c.figures.Upper != max(a.figures.Upper, b.figures.Upper) ||
			a.Implies(c.Statement) != nil || b.Implies(c.Statement) != nil {
			t.Fatalf("%v or %v: %v", a, b, c)
		}
	})
}

// One claim has one text.
func TestClaimText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := Figures{Bound{Lower: rapid.Float64Range(0, 1e9).Draw(t, "lower")},
			rapid.Float64Range(0, 1).Draw(t, "delta"), "PLD", ""}
		f.Upper = f.Lower + rapid.Float64Range(0, 1e9).Draw(t, "more")
		switch rapid.IntRange(0, 5).Draw(t, "infinite") {
		case 0:
			f.Lower = math.Inf(1)
			fallthrough
		case 1:
			f.Upper, f.Reason = math.Inf(1), "delta is 0"
		}
		c := NewClaim(drawStatement(t, "about"), f)
		text, err := json.Marshal(c)
		var back Claim
		if err != nil || json.Unmarshal(text, &back) != nil || back.figures != f ||
			back.Statement != c.Statement {
			t.Fatalf("%v: %s, %v", c, text, back)
		}
	})
	good, err := json.Marshal(NewClaim(Statement{}, Figures{Bound: Bound{1, 2, ""}, Delta: 0.5}))
	if err != nil {
		t.Fatal(err)
	}
	for _, wrong := range [][2]string{{`"epsilon":2`, `"epsilon":0.5`}, {`"at_least":1`,
		`"at_least":-1`}, {`"at_least":1`, `"at_least":null`}, {`"delta":0.5`, `"delta":1.5`},
		{`"curious"`, `"evil"`}, {`"epsilon":2`, `"epsilon":2,"epsilon":2`}, {`"sums"`, `"hopes"`}} {
		text := strings.Replace(string(good), wrong[0], wrong[1], 1)
		if err := new(Claim).UnmarshalJSON([]byte(text)); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// Lines add up under their meet by their plan, in whatever plan no less than the largest line.
func TestSpending(t *testing.T) {
	r := exampleRound()
	wider := r
	wider.Update.ShareSigma *= 2
	s, err := NewSpending(Line{r, 3, ""}, Line{wider, 2, ""}, Line{r, 1, ""})
	if err != nil || len(s.Lines()) != 2 || s.Lines()[0].Count != 4 {
		t.Fatalf("%+v, %v", s.Lines(), err)
	}
	alone, err := NewSpending(Line{r, 4, ""})
	if err != nil || !s.Contains(alone) || alone.Contains(s) {
		t.Fatal(err)
	}
	const delta = 1e-5
	equal, err := alone.At(delta, EqualPlan)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.At(delta, EqualPlan); !errors.Is(err, ErrPlan) {
		t.Errorf("two rounds as equal ones: %v", err)
	}
	if _, err := s.At(delta, AddsPlan); !errors.Is(err, ErrPlan) {
		t.Errorf("lines of no job: %v", err)
	}
	jobs, err := NewSpending(Line{r, 3, "a"}, Line{wider, 2, "b"}, Line{r, 1, "b"})
	if err != nil || len(jobs.Lines()) != 3 {
		t.Fatalf("%+v, %v", jobs.Lines(), err)
	}
	for p, s := range map[Plan]Spending{GaussianPlan: s, AddsPlan: jobs, FixedPlan: s} {
		c, err := s.At(delta, p)
		if err != nil || c.Bare().Upper < equal.Bare().Upper*(1-1e-9) {
			t.Errorf("%v: %v, one line alone %v, %v", p, c, equal, err)
		}
		if ahead := c.Assumes()&AssumesAhead != 0; ahead != (p == FixedPlan) {
			t.Errorf("%v: %v", p, c)
		}
	}
	other := r
	other.Statement = Calculated(RecordUnit)
	if err := s.Add(Line{other, 1, ""}); !errors.Is(err, ErrStatement) || len(s.Lines()) != 2 {
		t.Errorf("a line of another unit: %v", err)
	}
	twice, err := alone.Doubled(RecordUnit)
	if err != nil {
		t.Fatal(err)
	}
	record, err := twice.At(delta, EqualPlan)
	if err != nil || record.Unit() != RecordUnit || record.Bare().Upper < 2*equal.Bare().Upper {
		t.Errorf("of a record %v, of its party %v, %v", record, equal, err)
	}
	most, err := s.Most(alone)
	if err != nil || !most.Contains(s) || most.Lines()[0].Count != 4 {
		t.Errorf("%+v, %v", most.Lines(), err)
	}
}
