package simulation

import (
	"math"

	"github.com/hushsum/hushsum/accounting"
)

// account records what a run with noise has spent of every party's privacy; nil: there is no
// noise.
type account struct {
	ledger *accounting.Ledger // nil: there is no limit
	round  accounting.Round
	delta  float64
	names  []string
	rounds int // submissions of a party at most, or turns
	most   int // of those that a party has
	every  int // rounds in which a party is charged once
	begun  int // rounds
}

// newAccount opens the account of a run's parties.
func newAccount(o *setting) (a *account, err error) {
	s := o.settled
	a = &account{round: s.Round(), delta: o.job.Privacy.Delta, every: max(1, len(s.Band())),
		most: min(s.Charges(o.Rounds), s.Submissions())}
	for i := range o.Parties {
		a.names = append(a.names, partyName(i))
	}
	a.ledger, err = s.Ledger()
	return a, err
}

// spend charges all parties for one more round, before it begins: a party that
// drops out of it may have submitted by then, and a round that is lost may still
// have shown the server something. Nobody is charged for more rounds than it may be in.
// With *accounting.OverBudget nothing was charged.
func (a *account) spend() (server, public accounting.Claim, err error) {
	if a == nil {
		return a.spent()
	}
	a.begun++
	if a.rounds == a.most || (a.begun-1)%a.every > 0 {
		return a.spent()
	}
	if a.ledger != nil {
		if err := a.ledger.SpendRound(a.round, a.names...); err != nil {
			return server, public, err
		}
	}
	a.rounds++
	return a.spent()
}

// spent returns what all rounds until now have spent.
func (a *account) spent() (server, public accounting.Claim, err error) {
	if a != nil {
		return a.round.Views(a.rounds, a.delta)
	}
	unbounded := accounting.Figures{
		Bound: accounting.Bound{Upper: math.Inf(1), Reason: "there is no noise"}}
	var none accounting.Statement
	return accounting.NewClaim(none, unbounded), accounting.NewClaim(none.Public(), unbounded), nil
}
