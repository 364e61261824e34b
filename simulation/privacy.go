package simulation

import (
	"errors"
	"math"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/noise"
)

// Round returns what one round spends: the noise of the fewest honest shares
// against the sensitivity after rounding, and the distance of the samplers from
// their law. Every party is in every round, and that is no secret.
func (m *Mechanism) Round() accounting.Round {
	s := m.Sensitivity
	return accounting.Round{
		Family:       m.Encoder.NoiseFamily,
		Shares:       m.Shares.MinHonest,
		MinSurvivors: m.survivors.least,
		Colluders:    m.survivors.colluders,
		Rate:         1,
		Update:       laneOf(m.Encoder.NoiseFamily, shareScale(m.Encoder.NoiseFamily, m.Shares), s),
		// The shares of all parties count, though those beyond MinHonest protect
		// nothing that is claimed.
		Samples:       float64(m.Shares.Parties) * float64(s.Dimension),
		TableDistance: tableDistance,
	}
}

// laneOf states noise in the unit of its family.
func laneOf(f accounting.Family, scale float64, s accounting.Sensitivity) accounting.Lane {
	l := accounting.Lane{Sensitivity: s}
	switch f {
	case accounting.FamilyDiscreteGaussian:
		l.ShareSigma = scale
	case accounting.FamilySkellam:
		l.ShareVariance = scale
	default:
		l.SumScale = scale
	}
	return l
}

// shareScale is the parameter of one party's share as package accounting has it.
func shareScale(f accounting.Family, s noise.Shares) float64 {
	scale, _ := s.Law.Scale().Float64()
	switch f {
	case accounting.FamilyDiscreteGaussian:
		scale = math.Sqrt(scale / float64(s.MinHonest))
	case accounting.FamilySkellam:
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
	settled := *o
	var err error
	if settled.Noise, err = o.Noise.toCalibrate(); err != nil {
		return 0, err
	}
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

// Calibrate returns the least Noise.Multiplier, to 0.1 %, with which all rounds keep
// every party within Noise.Epsilon; see [Options.Calibrate].
func (t Training) Calibrate() (float64, error) {
	var err error
	if t.Noise, err = t.Noise.toCalibrate(); err != nil {
		return 0, err
	}
	if err := t.Validate(); err != nil {
		return 0, err
	}
	t = t.settle()
	return calibrate(t.Noise, t.Rounds, t.roundOf)
}

// Round returns what one round of a training with Noise spends, as
// [Mechanism.Round] does for [Run].
func (t Training) Round() (accounting.Round, error) {
	if t.Noise == nil {
		return accounting.Round{}, bad("Noise", "set it", "there is none, and without it there is no bound")
	}
	if err := t.Validate(); err != nil {
		return accounting.Round{}, err
	}
	return t.settle().roundOf(t.Noise.Multiplier)
}

// roundOf is Round of a settled training for any multiplier.
func (t Training) roundOf(multiplier float64) (accounting.Round, error) {
	without := t
	without.Noise = nil
	l, err := without.newLanes()
	if err == nil {
		l.plain = nil
		err = t.addNoise(l, multiplier)
	}
	if err != nil {
		return accounting.Round{}, err
	}
	return l.round(&t), nil
}

// toCalibrate returns a copy of n with a multiplier that passes Validate.
func (n *Noise) toCalibrate() (*Noise, error) {
	if n == nil || n.Epsilon == 0 {
		return nil, bad("Noise.Epsilon", "use a number above 0, such as 4", "there is no budget to calibrate to")
	}
	settled := *n
	settled.Multiplier = 1
	return &settled, nil
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
		return err == nil && spent.Upper <= n.Epsilon, err
	}
	// Of the multipliers tried, bad is too little, wide too wide for the ring.
	good, bad, wide := 1.0, 0.0, math.Inf(1)
	var noRoom error
	for {
		ok, err := within(good)
		if ok {
			break
		}
		switch {
		case errors.Is(err, aggregation.ErrBits):
			wide, noRoom = good, err
		case err != nil:
			return 0, err
		default:
			bad = good
		}
		if wide < least || wide-bad <= bad/1000 {
			return 0, noRoom // for noise that would do
		}
		switch {
		case math.IsInf(wide, 1):
			good *= 2
		case bad == 0:
			good /= 4
		default:
			good = (bad + wide) / 2
		}
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
	return accounting.Spent{Bound: unbounded, View: accounting.ServerView}, accounting.Spent{Bound: unbounded, View: accounting.PublicView}
}

// budget is the account of a run with noise; nil: without.
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
	if b == nil {
		return b.spent()
	}
	if b.ledger != nil {
		if err := b.ledger.SpendRound(b.round, b.names...); err != nil {
			return server, public, err
		}
	}
	b.rounds++
	return b.spent()
}

// spent is what all rounds until now have spent.
func (b *budget) spent() (server, public accounting.Spent, err error) {
	if b == nil {
		server, public = withoutNoise()
		return server, public, nil
	}
	return b.round.Views(b.rounds, b.delta)
}
