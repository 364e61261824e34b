package simulation

import (
	"errors"
	"math"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/noise"
)

// accountingLaws are the laws of [Noise] in the words of package accounting.
var accountingLaws = map[noise.Family]accounting.Law{
	noise.FamilyDiscreteGaussian: accounting.LawDiscreteGaussian,
	noise.FamilySkellam:          accounting.LawSkellam,
	noise.FamilyDiscreteLaplace:  accounting.LawDiscreteLaplace,
}

// Round returns what one round spends: the noise of the fewest honest shares
// against the sensitivity after rounding, and the distance of the samplers from
// their law. Every party is in every round, and that is no secret.
func (m *Mechanism) Round() accounting.Round {
	s := m.Sensitivity
	return accounting.Round{
		Law:          accountingLaws[m.Shares.Law.Family()],
		Shares:       m.Shares.MinHonest,
		MinSurvivors: m.survivors.least,
		Colluders:    m.survivors.colluders,
		Rate:         1,
		Update: accounting.Lane{
			Scale:       shareScale(m.Shares),
			Sensitivity: accounting.Sensitivity{Delta1: s.L1, Delta2: s.L2, Dim: s.Dimension},
		},
		// The shares of all parties count, though those beyond MinHonest protect
		// nothing that is claimed.
		Samples:       float64(m.Shares.Parties) * float64(s.Dimension),
		TableDistance: tableDistance,
	}
}

// shareScale is the parameter of one party's share as package accounting has it.
func shareScale(s noise.Shares) float64 {
	scale, _ := s.Law.Scale().Float64()
	switch s.Law.Family() {
	case noise.FamilyDiscreteGaussian:
		scale = math.Sqrt(scale / float64(s.MinHonest))
	case noise.FamilySkellam:
		scale /= float64(s.MinHonest)
	}
	return scale * (1 - 0x1p-50) // no rounding above may make the noise look larger
}

// tableDistance is what package noise promises of every table.
const tableDistance = 0x1p-100

// Calibrate returns the least Noise.Multiplier, to 0.1 %, with which Rounds rounds
// keep every party within Noise.Epsilon at Noise.Delta against the server. Noise
// must be set, with an Epsilon; its Multiplier is not read. It fails as Mechanism
// does, with an [OptionError] for Noise.Bits if the noise that it takes does not fit
// the ring; that it can be sampled only Mechanism finds.
func (o *Options) Calibrate(dimension int) (float64, error) {
	if o.Noise == nil || o.Noise.Epsilon == 0 {
		return 0, &OptionError{Option: "Noise.Epsilon", Reason: "there is no budget to calibrate to", Advice: "use a number above 0, such as 4"}
	}
	settled := *o
	settled.Noise = new(Noise)
	*settled.Noise = *o.Noise
	settled.Noise.Multiplier = 1
	if err := settled.Validate(); err != nil {
		return 0, err
	}
	return calibrate(o.Noise, o.Rounds, func(z float64) (accounting.Round, error) {
		m, err := settled.plan(dimension, z)
		if err != nil {
			return accounting.Round{}, err
		}
		return m.Round(), nil
	})
}

// calibrate returns the least multiplier, to 0.1 %, with which the rounds stay
// within the budget.
func calibrate(n *Noise, rounds int, round func(multiplier float64) (accounting.Round, error)) (float64, error) {
	within := func(multiplier float64) (bool, error) {
		r, err := round(multiplier)
		if errors.Is(err, errNextToNone) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		spent, err := r.Spent(n.view(), rounds, n.delta())
		return spent.Upper <= n.Epsilon, err
	}
	good, bad := 1.0, 0.0
	for {
		ok, err := within(good)
		if errors.Is(err, aggregation.ErrBits) && bad == 0 && good > least {
			good /= 4 // too wide for the ring; less may do
			continue
		}
		if err != nil {
			return 0, err
		}
		if ok {
			break
		}
		bad, good = good, 2*good
	}
	for bad == 0 || good-bad > good/1000 {
		middle := (good + bad) / 2
		ok, err := within(middle)
		switch {
		case err != nil:
			return 0, err
		case ok && middle < least:
			return middle, nil
		case ok:
			good = middle
		default:
			bad = middle
		}
	}
	return good, nil
}

// least is the noise multiplier below which Calibrate looks no further.
const least = 0x1p-20

// withoutNoise is what a round without noise spends.
func withoutNoise() (server, public accounting.Spent) {
	unbounded := accounting.Bound{Upper: math.Inf(1), Reason: "there is no noise"}
	return accounting.Spent{Bound: unbounded, View: accounting.Server}, accounting.Spent{Bound: unbounded, View: accounting.Public}
}

// budget is the account of a run with noise.
type budget struct {
	ledger *accounting.Ledger // nil: there is no limit
	round  accounting.Round
	delta  float64
	names  []string
	rounds int
}

// newBudget opens the account of so many parties.
func newBudget(n *Noise, parties int, round accounting.Round) (*budget, error) {
	b := &budget{round: round, delta: n.delta()}
	if n.Epsilon == 0 {
		return b, nil
	}
	for i := range parties {
		b.names = append(b.names, partyName(i))
	}
	var err error
	b.ledger, err = accounting.NewLedger(n.view(), accounting.Target{Epsilon: n.Epsilon, Delta: b.delta})
	return b, err
}

// spend charges all parties for one more round, before it begins: a party that
// drops out of it may have submitted by then, and a round that is lost may still
// have shown the server something. With *accounting.OverBudget nothing was charged.
func (b *budget) spend() (server, public accounting.Spent, err error) {
	if b.ledger != nil {
		if err := b.ledger.SpendRound(b.round, b.names...); err != nil {
			return server, public, err
		}
	}
	b.rounds++
	return b.round.Views(b.rounds, b.delta)
}
