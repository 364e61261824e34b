package privacy

import (
	"errors"
	"math"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/aggregation"
)

// DefaultDelta is the δ of a [Budget] that does not set one.
const DefaultDelta = 1e-5

// Budget is how much of every party's privacy a run may spend.
type Budget struct {
	Epsilon float64 // ε, above 0; 0: there is no limit
	Delta   float64 // δ at which ε is stated, above 0 and below 1; 0: DefaultDelta
	// Against is the view against which Epsilon holds; 0: accounting.ServerView. For the sums of a
	// [Release] both views give the same epsilon.
	Against accounting.View
	// Before records what parties have already spent, by their names, and counts against the budget;
	// nil: nothing.
	Before *accounting.Ledger
}

// WithDefaults returns the budget with its defaults filled in.
func (b Budget) WithDefaults() Budget {
	if b.Delta == 0 {
		b.Delta = DefaultDelta
	}
	if b.Against == 0 {
		b.Against = accounting.ServerView
	}
	return b
}

// Validate returns a [ConfigError] for the first field that is outside its range.
func (b Budget) Validate() error {
	b = b.WithDefaults()
	switch {
	case !(b.Epsilon >= 0) || math.IsInf(b.Epsilon, 1):
		return bad("Budget.Epsilon", "use a number above 0, such as 4, or 0 for none",
			"%v is not a privacy budget", b.Epsilon)
	case !(b.Delta > 0 && b.Delta < 1):
		return bad("Budget.Delta", "use a small number above 0, such as "+
			"1e-5", "%v is not a probability",
			b.Delta)
	case b.Against != accounting.ServerView && b.Against != accounting.PublicView:
		return bad("Budget.Against", "use accounting.ServerView or accounting.PublicView", "%v is nobody",
			b.Against)
	}
	return nil
}

// About returns the budget of each party, for rounds of a statement. It fails with a [ConfigError],
// also if there is no limit.
func (b Budget) About(s accounting.Statement) (accounting.Budget, error) {
	b = b.WithDefaults()
	budget, err := accounting.NewBudget(b.Against.Of(s), b.Epsilon, b.Delta)
	if err != nil {
		return accounting.Budget{}, because("Budget", err)
	}
	return budget, nil
}

// Ledger returns a ledger that holds every party to the budget, for rounds of a statement, and
// contains what Before records. It fails with a [ConfigError], also if there is no limit.
func (b Budget) Ledger(s accounting.Statement) (*accounting.Ledger, error) {
	if err := b.limited(); err != nil {
		return nil, err
	}
	budget, err := b.About(s)
	if err != nil {
		return nil, err
	}
	l, err := accounting.NewLedger(budget)
	if err == nil && b.Before != nil {
		err = l.Carry(b.Before, b.Before.Clients()...)
	}
	if err != nil {
		return nil, because("Budget.Before", err)
	}
	return l, nil
}

func (b Budget) target() accounting.Target {
	return accounting.Target{Epsilon: b.Epsilon, Delta: b.Delta}
}

// limited is Validate for uses that take a limit.
func (b Budget) limited() error {
	if b.Epsilon == 0 {
		return bad("Budget.Epsilon", "use a number above 0, such as 4", "there is no budget to keep")
	}
	return b.Validate()
}

// spent returns a [ConfigError] for a party that has no budget left before the first round.
func (b Budget) spent(ledger *accounting.Ledger) error {
	party, most, err := ledger.Most()
	if err != nil {
		return because("Budget.Before", err)
	}
	if party != "" && most.Bare().Upper >= b.Epsilon {
		return bad("Budget.Epsilon", "use more, or leave out the party", "%s has already spent %v",
			party, most)
	}
	return nil
}

// leastMultiplier is below which Calibrate looks no further.
const leastMultiplier = 0x1p-20

// Calibrate returns the least Noise.Multiplier, to 0.1 %, with which the given number of rounds
// keeps every party within the budget; Calibrate ignores the value of Noise.Multiplier. It fails
// with the errors of [Release.Mechanism], with a [ConfigError] for Noise.Bits if the noise required
// does not fit the ring; only Mechanism finds whether that noise can be sampled.
func (r *Release) Calibrate(b Budget, rounds int) (multiplier float64, err error) {
	if err := b.limited(); err != nil {
		return 0, err
	}
	if err := r.validate(); err != nil {
		return 0, err
	}
	b = b.WithDefaults()
	ledger, err := b.Ledger(r.Promise.Statement(r.Records.unit()).Assuming(r.Assumes))
	if err != nil {
		return 0, err
	}
	if over := b.spent(ledger); over != nil {
		return 0, over
	}
	within := func(multiplier float64) (bool, error) {
		m, err := r.mechanism(multiplier)
		if errors.Is(err, errTooLittle) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		ok, err := m.Round().Within(b.target(), b.Against, rounds)
		if !ok || len(ledger.Clients()) == 0 {
			return ok, err
		}
		err = ledger.Clone().SpendRounds(m.Round(), rounds, ledger.Clients()...)
		if errors.Is(err, accounting.ErrBudget) {
			return false, nil
		}
		return err == nil, err
	}
	// Of the multipliers tried, little is too little, wide too wide for the ring.
	enough, little, wide := 1.0, 0.0, math.Inf(1)
	var noRoom error
	for {
		ok, err := within(enough)
		if ok {
			break
		}
		switch {
		case errors.Is(err, aggregation.ErrBits):
			wide, noRoom = enough, err
		case err != nil:
			return 0, err
		default:
			little = enough
		}
		if wide < leastMultiplier || wide-little <= little/1000 {
			return 0, noRoom // for noise that would do
		}
		switch {
		case math.IsInf(wide, 1):
			enough *= 2
		case little == 0:
			enough /= 4
		default:
			enough = (little + wide) / 2
		}
	}
	for little == 0 || enough-little > enough/1000 {
		middle := (little + enough) / 2
		ok, err := within(middle)
		switch {
		case err != nil:
			return 0, err
		case ok && middle < leastMultiplier:
			return middle, nil
		case ok:
			enough = middle
		default:
			little = middle
		}
	}
	return enough, nil
}
