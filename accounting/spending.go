package accounting

import (
	"math"
	"slices"
)

// A Line is a [Round] with how often it was, or will be, spent.
type Line struct {
	Round Round `json:"round"`
	Count int   `json:"count"`
	// Job names the job that the line is of, where jobs are to add up by [AddsPlan].
	Job string `json:"job,omitempty"`
}

// A Plan says how lines are chosen, which decides by what theorem they add up. A plan is declared
// before the first sum that it covers: to take the least of several figures would be a choice too.
// The proofs are in docs/privacy-proofs.md.
type Plan int

const (
	// EqualPlan is of one Round, however often up to a count that was declared.
	EqualPlan Plan = iota
	// GaussianPlan is of lines without discrete Laplace noise, which anybody chooses by anything seen
	// before: their squared μ add up, and a coin counts as 1.
	GaussianPlan
	// AddsPlan is of lines whose jobs are named and were each declared whole, chosen by anything: the
	// i-th line is stated at δ·2^-i, and their ε add up. Of equal rounds that jobs of no name share
	// nothing is proved: how many belong to a job may have been chosen late.
	AddsPlan
	// FixedPlan is of any lines that were all fixed before the first sum was seen, which nothing
	// checks: [AssumesAhead].
	FixedPlan
)

var planNames = []string{"equal", "gaussian", "adds", "fixed"}

func (p Plan) String() string {
	if p < 0 || int(p) >= len(planNames) {
		return "no plan"
	}
	return planNames[p]
}

// MarshalText returns the name.
func (p Plan) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText reads a name. It fails with [ErrConfig].
func (p *Plan) UnmarshalText(text []byte) error {
	i := slices.Index(planNames, string(text))
	if i < 0 {
		return configError("plan %.40q, want equal, gaussian, adds or fixed", text)
	}
	*p = Plan(i)
	return nil
}

// A Spending adds up lines, in the order in which they were added. All are of one unit
// and adjacency. The zero Spending is empty.
type Spending struct{ charges []charge }

// NewSpending returns a spending of lines. It fails as [Spending.Add] does.
func NewSpending(lines ...Line) (Spending, error) {
	var s Spending
	for _, l := range lines {
		if err := s.Add(l); err != nil {
			return Spending{}, err
		}
	}
	return s, nil
}

// Add adds a line, merging it with one of the same job and an equal Round. It fails with
// [ErrConfig], and with a [StatementError] for a line of another unit or adjacency.
func (s *Spending) Add(l Line) error {
	if l.Count < 1 || l.Count > maxCount {
		return configError("a line of %d rounds, want 1 to 2^40", l.Count)
	}
	r := l.Round.owned()
	if err := r.check(); err != nil {
		return err
	}
	if len(s.charges) > 0 {
		if _, err := s.charges[0].Round.Statement.Meet(r.Statement); err != nil {
			return err
		}
	}
	next, err := appendCharge(s.charges, charge{Round: &r, Count: l.Count, Job: l.Job})
	if err == nil {
		s.charges = next
	}
	return err
}

// Lines returns the lines, in order.
func (s Spending) Lines() []Line {
	out := make([]Line, len(s.charges))
	for i, c := range s.charges {
		out[i] = Line{c.Round.owned(), c.Count, c.Job}
	}
	return out
}

// Count returns how often a round is in the spending.
func (s Spending) Count(r Round) int {
	key := charge{Round: &r}.key()
	i := slices.IndexFunc(s.charges, func(c charge) bool { return c.key() == key })
	if i < 0 {
		return 0
	}
	return s.charges[i].Count
}

// Contains reports whether each line of other is in s, by at least its count.
func (s Spending) Contains(other Spending) bool {
	return !slices.ContainsFunc(other.charges, func(c charge) bool {
		return s.Count(*c.Round) < c.Count
	})
}

// Most returns the spending of the lines of both, each by the larger of its counts.
func (s Spending) Most(other Spending) (Spending, error) {
	out := Spending{slices.Clone(s.charges)}
	for _, c := range other.charges {
		i := slices.IndexFunc(out.charges, func(o charge) bool { return o.key() == c.key() })
		if i >= 0 {
			out.charges[i].Count = max(out.charges[i].Count, c.Count)
		} else if err := out.Add(Line{*c.Round, c.Count, c.Job}); err != nil {
			return Spending{}, err
		}
	}
	return out, nil
}

// Doubled returns the spending of a smaller unit, of lines that are about its party: a record
// changes its party's vector by at most twice the vector's bound (docs/privacy-proofs.md, P3). It
// fails with [ErrStatement] unless the lines are of parties, without a coin and without overruns.
func (s Spending) Doubled(u Unit) (Spending, error) {
	var out Spending
	for _, c := range s.charges {
		r := c.Round.owned()
		if r.Statement.Unit() != PartyUnit || r.rate(ServerView) < 1 || r.Overrun > 0 {
			return Spending{}, &StatementError{"unit",
				"for " + r.Statement.Unit().Words() + " whose coins count", "for " + u.Words()}
		}
		t := r.Statement.Terms()
		t.Unit = u
		var err error
		if r.Statement, err = t.Statement(); err != nil {
			return Spending{}, err
		}
		r.Update.Sensitivity = r.Update.Sensitivity.doubled()
		if r.Signs != nil {
			r.Signs.Sensitivity = r.Signs.Sensitivity.doubled()
		}
		if err := out.Add(Line{r, c.Count, c.Job}); err != nil {
			return Spending{}, err
		}
	}
	return out, nil
}

// Statement returns the meet of the lines: the statement of all of them together.
func (s Spending) Statement() Statement {
	return meetOf(s.charges)
}

// meetOf is the meet of charges that have one.
func meetOf(charges []charge) (out Statement) {
	found := false
	for _, c := range charges {
		if c.Round == nil {
			continue
		}
		of := c.Round.Statement.stated()
		if found {
			of, _ = out.Meet(of)
		}
		out, found = of, true
	}
	return out.stated()
}

// At returns what the lines spend together at delta, against the server, under the meet of their
// statements. It fails with [ErrPlan] if the lines do not fit the plan, and with errors of the
// accountant.
func (s Spending) At(delta float64, p Plan) (Claim, error) {
	return s.at(delta, p, spend)
}

// Within returns nil if what the lines spend together by a plan is within a budget, at its delta.
// It fails as [Claim.Within] and [Spending.At] do, and is faster: it takes no lower bound.
func (s Spending) Within(b Budget, p Plan) error {
	claim, err := s.at(b.delta, p, func(charges []charge, v View, delta float64) (Claim, error) {
		most, err := spendAtMost(charges, v, delta)
		return Claim{figures: most.Figures}, err
	})
	if err != nil {
		return err
	}
	return claim.Within(b)
}

func (s Spending) at(delta float64, p Plan, total func([]charge, View, float64) (Claim, error),
) (Claim, error) {
	statement := s.Statement()
	switch p {
	case EqualPlan:
		if len(s.charges) > 1 {
			return Claim{}, planError("%d different lines are not equal rounds", len(s.charges))
		}
	case GaussianPlan:
		return s.gaussian(delta)
	case AddsPlan:
		return s.adds(delta)
	case FixedPlan:
		if len(s.charges) > 1 {
			statement = statement.Assuming(AssumesAhead)
		}
	default:
		return Claim{}, configError("unknown plan %d", int(p))
	}
	out, err := total(s.charges, ServerView, delta)
	out.Statement = statement
	return out, err
}

// gaussian adds up squares of μ (docs/privacy-proofs.md, Theorem 7).
func (s Spending) gaussian(delta float64) (Claim, error) {
	whole := make([]charge, len(s.charges))
	for i, c := range s.charges {
		if c.Round.Family == FamilyDiscreteLaplace {
			return Claim{}, planError("discrete Laplace noise is no Gaussian's")
		}
		r := c.Round.unsampled()
		whole[i] = charge{Round: &r, Count: c.Count}
	}
	lost, err := lossesOf(whole)
	if err != nil {
		return Claim{}, err
	}
	steps, ok, err := asSteps(whole, ServerView, func(r Round) ([]Step, bool) {
		steps, _, ok := r.normalSteps(ServerView, true)
		return steps, ok
	})
	if err != nil {
		return Claim{}, err
	}
	if !ok {
		return Claim{}, planError("no Gaussian is known to dominate the noise of a line")
	}
	f := Figures{Delta: delta, Accountant: "Gaussian"}
	if len(steps) > 0 {
		of, err := composedEpsilon(steps)
		if err != nil {
			return Claim{}, err
		}
		if of == nil {
			return Claim{}, planError("the lines are too large to tabulate")
		}
		if f.Bound, err = withLosses(of, delta, lost); err != nil {
			return Claim{}, err
		}
		f.Lower = 0 // of the Gaussian, and of no neighbour
	}
	return Claim{Statement: s.Statement(), figures: f}, nil
}

// adds states the i-th line at δ·2^-i (docs/privacy-proofs.md, P4).
func (s Spending) adds(delta float64) (Claim, error) {
	f := Figures{Delta: delta, Accountant: "sum"}
	for i, c := range s.charges {
		if c.Job == "" && len(s.charges) > 1 {
			return Claim{}, planError("equal rounds of different jobs may be one line")
		}
		one, err := spendAtMost([]charge{c}, ServerView, math.Ldexp(delta, -(i+1)))
		if err != nil {
			return Claim{}, err
		}
		f.Upper = math.Nextafter(f.Upper+one.Upper, math.Inf(1))
		if f.Reason == "" {
			f.Reason = one.Reason
		}
	}
	return Claim{Statement: s.Statement(), figures: f}, nil
}
