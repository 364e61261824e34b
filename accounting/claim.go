package accounting

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"github.com/hushsum/hushsum/internal/strict"
)

// A Claim is an ε with the statement that it is about. It neither compares nor adds: [Claim.Within]
// holds it against a budget, and a [Spending] adds up lines.
type Claim struct {
	Statement
	figures Figures
	_       [0]func() // so that == does not compile
}

// Figures are the numbers of a [Claim] without its statement.
type Figures struct {
	// Bound is attained at its lower end by Neighbour, if that end is above 0. For vectors under
	// discrete Laplace noise the two ends are up to a tenth apart, further with sampling or an ε
	// near δ; under other noise they are within a hundredth from a standard deviation of 7 units of
	// the sum on.
	Bound
	Delta float64
	// Accountant names the proof of the upper bound: "PLD", by the worst vector or by a Gaussian that
	// dominates all vectors, or "RDP" where that bound is smaller.
	Accountant string
	// Neighbour says what one client adds to each sum to attain Lower, as in "40 coordinates by 125",
	// in integer units. It is empty if no such neighbour is known, with Lower = 0, or if only
	// mechanisms were recorded, since each mechanism is itself a pair of neighbours.
	Neighbour string
}

// NewClaim returns the claim of figures that were calculated elsewhere, such as by a
// [Composition].
func NewClaim(s Statement, f Figures) Claim {
	return Claim{Statement: s.stated(), figures: f}
}

// Bare returns the numbers of the claim, for charts, tables and searches. Whoever compares them
// with those of another claim has to know that both are about the same: [Claim.Within] checks.
func (c Claim) Bare() Figures { return c.figures }

// Within returns nil if the claim is within a budget: a [StatementError] if the claim does not
// imply the budget's statement, and an [OverBudget] if its ε is larger, or its δ.
func (c Claim) Within(b Budget) error {
	if err := c.Implies(b.statement); err != nil {
		return err
	}
	if over := !(c.figures.Upper <= b.epsilon); over || c.figures.Delta > b.delta {
		return &OverBudget{Budget: b, Would: c.figures.Upper, Delta: c.figures.Delta}
	}
	return nil
}

// Bounded reports whether the upper bound is finite.
func (c Claim) Bounded() bool { return !math.IsInf(c.figures.Upper, 1) }

// Spends reports whether anything is spent.
func (c Claim) Spends() bool { return c.figures.Upper > 0 }

// Share returns which part of a budget the claim is, above 1 beyond it: for bars and curves. It
// fails with a [StatementError] if the claim does not imply the budget's statement.
func (c Claim) Share(b Budget) (float64, error) {
	if err := c.Implies(b.statement); err != nil {
		return 0, err
	}
	return c.figures.Upper / b.epsilon, nil
}

// Or returns what holds whichever of two claims is the case, such as of two parties in different
// sums: the greater figures, under the meet of the statements. It fails with a [StatementError].
func (c Claim) Or(other Claim) (Claim, error) {
	s, err := c.Meet(other.Statement)
	if err != nil {
		return Claim{}, err
	}
	most := c.figures
	if f := other.figures; f.Upper > most.Upper || f.Upper == most.Upper && f.Lower > most.Lower {
		most = f
	}
	most.Delta = max(c.figures.Delta, other.figures.Delta)
	return NewClaim(s, most), nil
}

// Most writes the upper bound, rounded up: for the column of a table that says elsewhere what its
// figures are [Claim.About]. Least writes the lower bound, rounded down, or a dash where none is
// known.
func (c Claim) Most() string { return rounded(c.figures.Upper, 1) }

// Least is described with [Claim.Most].
func (c Claim) Least() string {
	if !(c.figures.Lower > 0) {
		return "-"
	}
	return rounded(c.figures.Lower, -1)
}

// String says the claim in words, with its upper bound rounded up and, where one is known, its
// lower bound rounded down: "epsilon 0.9991 (at least 0.9987) at delta 1e-05 for each party,
// against a server that cheats with any 1 party".
func (c Claim) String() string {
	least := ""
	if c.figures.Lower > 0 && c.figures.Lower < c.figures.Upper {
		least = fmt.Sprintf(" (at least %s)", c.Least())
	}
	return fmt.Sprintf("epsilon %s%s %s", c.Most(), least, c.About())
}

// About says what the bounds are about, as in "at delta 1e-05 for each party, against a server that
// cheats": for the heading of a table of them.
func (c Claim) About() string {
	return fmt.Sprintf("at delta %v for %v", c.figures.Delta, c.Statement)
}

// rounded writes a number of 0 or more with four decimals, or digits if it is large or small:
// rounded up if sign is 1, down if it is -1.
func rounded(x, sign float64) string {
	switch {
	case math.IsInf(x, 1) || math.IsNaN(x):
		return "infinite"
	case x >= 10000:
		return fmt.Sprintf("%.4g", x*(1+sign*5e-4))
	case x > 0 && x < 0.01:
		unit := math.Pow(10, math.Floor(math.Log10(x))-3)
		return fmt.Sprintf("%.4g", sign*math.Ceil(sign*x/unit)*unit)
	}
	return fmt.Sprintf("%.4f", sign*math.Ceil(sign*x*1e4)/1e4)
}

// Explain says in sentences what proves the bounds, why there is none, and what the assumptions
// mean.
func (c Claim) Explain() (lines []string) {
	f := c.figures
	switch {
	case f.Reason != "" && math.IsInf(f.Lower, 1):
		lines = append(lines, fmt.Sprintf("There is no finite epsilon: %s.", f.Reason))
	case f.Reason != "":
		lines = append(lines, fmt.Sprintf("No finite epsilon could be proved: %s.", f.Reason))
	case f.Accountant != "":
		lines = append(lines, f.Accountant+" proves the upper bound.")
	}
	if f.Neighbour != "" {
		lines = append(lines, c.attained())
	}
	for _, words := range c.Assumes().Words() {
		lines = append(lines, "It assumes "+words+".")
	}
	return lines
}

// attained says by what the lower bound is attained, and how far that is below the upper one.
func (c Claim) attained() string {
	f, apart := c.figures, ""
	if d := f.Width() / f.Upper; d > 0.001 && d < 1 {
		apart = fmt.Sprintf(", %.1f %% below the upper bound", math.Ceil(1000*d)/10)
	}
	whose, where := "one party's vector that", ", in each sum"
	switch {
	case strings.HasPrefix(f.Neighbour, "vectors "): // these name the sums
		whose, where = "one party that", ""
	case c.unit.OfRecords():
		whose = "a record whose part"
	}
	return fmt.Sprintf("Epsilon %s is attained%s: by %s differs in %s%s.", c.Least(), apart, whose,
		f.Neighbour, where)
}

// claimJSON is the text form of a claim, in the order in which it is written.
type claimJSON struct {
	Epsilon    *float64 `json:"epsilon"` // nil is infinite
	AtLeast    *float64 `json:"at_least"`
	Delta      float64  `json:"delta"`
	Accountant string   `json:"accountant,omitempty"`
	Neighbour  string   `json:"neighbour,omitempty"`
	Reason     string   `json:"reason,omitempty"`
	statementJSON
}

// MarshalJSON writes the figures and the statement: an infinite bound as null.
func (c Claim) MarshalJSON() ([]byte, error) {
	finite := func(x float64) *float64 {
		if math.IsInf(x, 1) {
			return nil
		}
		return &x
	}
	f := c.figures
	return json.Marshal(claimJSON{finite(f.Upper), finite(f.Lower), f.Delta, f.Accountant,
		f.Neighbour, f.Reason, c.json()})
}

// UnmarshalJSON reads what MarshalJSON writes: what a program that is trusted has worked out. It
// fails with [ErrConfig].
func (c *Claim) UnmarshalJSON(text []byte) error {
	var in claimJSON
	if err := strict.JSON(text, &in); err != nil {
		return configError("a claim: %v", err)
	}
	s, err := in.statement()
	if err != nil {
		return err
	}
	f := Figures{Bound{math.Inf(1), math.Inf(1), in.Reason}, in.Delta, in.Accountant, in.Neighbour}
	if in.Epsilon != nil {
		f.Upper = *in.Epsilon
	}
	if in.AtLeast != nil {
		f.Lower = *in.AtLeast
	}
	if !(0 <= f.Lower && f.Lower <= f.Upper && 0 <= f.Delta && f.Delta <= 1) {
		return configError("a claim of epsilon %v to %v at delta %v", f.Lower, f.Upper, f.Delta)
	}
	*c = NewClaim(s, f)
	return nil
}

// A Budget is an ε that was declared ahead, with its δ and the statement that it is about. Budgets
// are compared with ==.
type Budget struct {
	statement      Statement
	epsilon, delta float64
}

// NewBudget returns a budget, epsilon above 0 and 0 ≤ delta < 1. It fails with [ErrConfig].
func NewBudget(s Statement, epsilon, delta float64) (Budget, error) {
	if err := (Target{epsilon, delta}).check(); err != nil {
		return Budget{}, err
	}
	return Budget{s.stated(), epsilon, delta}, nil
}

// Statement returns what the budget is about.
func (b Budget) Statement() Statement { return b.statement }

// Target returns the budget's ε and δ, to calibrate to.
func (b Budget) Target() Target { return Target{b.epsilon, b.delta} }

// String says the budget in words.
func (b Budget) String() string {
	return fmt.Sprintf("epsilon %g at delta %v for %v", b.epsilon, b.delta, b.statement)
}

type budgetJSON struct {
	Epsilon float64 `json:"epsilon"`
	Delta   float64 `json:"delta"`
	statementJSON
}

// MarshalJSON writes the only text form of the budget.
func (b Budget) MarshalJSON() ([]byte, error) {
	return json.Marshal(budgetJSON{b.epsilon, b.delta, b.statement.json()})
}

// UnmarshalJSON reads what MarshalJSON writes. It fails with [ErrConfig].
func (b *Budget) UnmarshalJSON(text []byte) error {
	var in budgetJSON
	if err := strict.JSON(text, &in); err != nil {
		return configError("a budget: %v", err)
	}
	s, err := in.statement()
	if err != nil {
		return err
	}
	out, err := NewBudget(s, in.Epsilon, in.Delta)
	if err == nil {
		*b = out
	}
	return err
}

// OverBudget reports what a refused round, or a claim, would spend beyond a budget. It matches
// ErrBudget.
type OverBudget struct {
	Client string // "" where no account is concerned
	Budget Budget
	Would  float64 // the ε, +Inf if unbounded
	Delta  float64 // at which Would is stated
}

// Most writes Would, rounded up.
func (e *OverBudget) Most() string { return rounded(e.Would, 1) }

// Words says what is beyond what, as in "epsilon 1.1000 at delta 1e-05 is beyond the budget,
// epsilon 1 at delta 1e-05".
func (e *OverBudget) Words() string {
	t := e.Budget.Target()
	return fmt.Sprintf("epsilon %s at delta %v is beyond the budget, epsilon %g at delta %v", e.Most(),
		e.Delta, t.Epsilon, t.Delta)
}

func (e *OverBudget) Error() string {
	if e.Client == "" {
		return "accounting: " + e.Words()
	}
	t := e.Budget.Target()
	return fmt.Sprintf("accounting: round would take client %q to epsilon %s, budget is %g at "+
		"delta %v: leave it out or stop", e.Client, e.Most(), t.Epsilon, t.Delta)
}

// Is reports a match with ErrBudget.
func (e *OverBudget) Is(target error) bool { return target == ErrBudget }
