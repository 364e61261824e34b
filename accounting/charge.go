package accounting

import (
	"math"
	"slices"
)

// A charge is one line of an account: a mechanism or a round, Count times.
type charge struct {
	Step  *Step
	Round *Round
	Count int
	Job   string // of a round in a Spending
}

// oneUnit refuses rounds of several units; mechanisms are about any.
func oneUnit(charges []charge) error {
	var first *Round
	for _, c := range charges {
		if c.Round == nil {
			continue
		}
		if first == nil {
			first = c.Round
		} else if one, two := first.Statement.unit, c.Round.Statement.unit; one != two {
			return &StatementError{"unit", "for " + one.Words(), "for " + two.Words()}
		}
	}
	return nil
}

// steps is how often a charge of a mechanism uses it.
func (c charge) steps() (int, error) {
	if c.Count > 0 && c.Step.Count > maxCount/c.Count {
		return 0, configError("counts multiply to more than 2^40")
	}
	return c.Count * c.Step.Count, nil
}

// seen is a charge's mechanism as a view has it: the server knows who takes part.
func (c charge) seen(v View) Mechanism {
	if v == ServerView {
		return unsampled(c.Step.Mechanism)
	}
	return c.Step.Mechanism
}

// spend totals charges at delta, from above and below.
func spend(charges []charge, v View, delta float64) (Claim, error) {
	out, err := spendAtMost(charges, v, delta)
	if err != nil {
		return Claim{}, err
	}
	if err := out.findLower(charges, v, delta); err != nil {
		return Claim{}, err
	}
	return Claim{Statement: v.Of(meetOf(charges)), figures: out.Figures}, nil
}

// spentAtMost is an upper bound, with what the one by steps was, if there is one: those of
// a one-dimensional worst case are attained, and their lower bound is known as well.
type spentAtMost struct {
	Figures
	steps []Step
	low   float64
}

// spendAtMost is spend without the lower bound: the least of what PLD proves, if every
// charge has a one-dimensional pair that dominates it and the tables fit, and for vectors
// what RDP and the Gaussian pair do. The distance of table samplers is solved for: ε must
// hold at δ − (1+e^ε)·N·distance.
func spendAtMost(charges []charge, v View, delta float64) (spentAtMost, error) {
	var recorded []Step
	for _, c := range charges {
		if c.Step != nil {
			recorded = append(recorded, *c.Step)
		}
	}
	if err := oneAdjacency(recorded, len(recorded) < len(charges)); err != nil {
		return spentAtMost{}, err
	}
	if err := oneUnit(charges); err != nil {
		return spentAtMost{}, err
	}
	out, err := spendAs(charges, v, delta)
	if err != nil || !sampledIn(charges, v) || out.steps != nil && !spreads(charges) {
		return out, err
	}
	// Rényi bounds of sampling can be above those without.
	whole := slices.Clone(charges)
	for i, c := range whole {
		if c.Round != nil {
			r := c.Round.unsampled()
			whole[i].Round = &r
		}
	}
	if b, err := spendAs(whole, ServerView, delta); err == nil && b.Upper < out.Upper {
		out.Upper, out.Reason, out.Accountant = b.Upper, b.Reason, b.Accountant
	}
	return out, nil
}

// sampledIn reports whether sampling counts in a view, of any charge.
func sampledIn(charges []charge, v View) bool {
	return slices.ContainsFunc(charges, func(c charge) bool {
		if c.Round != nil {
			return c.Round.rate(v) < 1
		}
		return rateOf(c.seen(v)) < 1
	})
}

// spreads reports whether a charge is of vectors that more than one norm bounds.
func spreads(charges []charge) bool {
	for _, c := range charges {
		if c.Round != nil && c.Round.spreads() {
			return true
		}
	}
	return false
}

// spreadsFar reports whether all vectors have an L1 norm far above the L2 norm.
func spreadsFar(charges []charge) bool {
	return !slices.ContainsFunc(charges, func(c charge) bool {
		return c.Round == nil || slices.ContainsFunc(c.Round.lanes(), func(l Lane) bool {
			s, err := l.Sensitivity.check()
			return err != nil || s.L1 < 1.5*s.L2
		})
	})
}

// asSteps returns all charges as steps, those of rounds by of, or ok = false.
func asSteps(charges []charge, v View, of func(Round) ([]Step, bool)) (out []Step, ok bool,
	err error) {
	for _, c := range charges {
		if c.Step != nil {
			n, err := c.steps()
			if err != nil {
				return nil, false, err
			}
			out = append(out, Step{c.seen(v), n})
			continue
		}
		if c.Count == 0 {
			continue
		}
		steps, ok := of(*c.Round)
		if !ok {
			return nil, false, nil
		}
		for _, x := range steps {
			out = append(out, Step{x.Mechanism, x.Count * c.Count})
		}
	}
	return out, true, nil
}

// losses take from δ, besides the laws that are accounted for.
type losses struct {
	distance float64 // of all that is released from these laws, at 1 + e^ε each
	failure  float64 // the probability that no law holds, at 1
}

// lossesOf adds up the losses of charges. It checks every round.
func lossesOf(charges []charge) (out losses, err error) {
	for _, c := range charges {
		if c.Round == nil {
			continue
		}
		if err := c.Round.check(); err != nil {
			return losses{}, err
		}
		n := float64(c.Count)
		out.distance += (c.Round.TableDistance*c.Round.Samples + c.Round.Overrun) * n
		out.failure += c.Round.Failure * n
	}
	out.failure *= 1 + 1e-12 // for rounding
	return out, nil
}

// findLower sets the lower bound to the largest that a neighbour attains: vectors spread
// over as many coordinates as can differ, then over half of them, and so on while they
// spend more, and over one.
func (s *spentAtMost) findLower(charges []charge, v View, delta float64) error {
	lost, err := lossesOf(charges)
	if err != nil {
		return err
	}
	try := func(n int) (low float64, err error) {
		w := attainedBy(charges, v, n)
		if w.steps == nil {
			return 0, nil
		}
		if s.steps != nil && sameSteps(w.steps, s.steps) {
			low = s.low
		} else {
			of, err := composedEpsilon(w.steps)
			if of == nil {
				return 0, err
			}
			of = w.read(of)
			b, err := of(delta)
			if err == nil {
				low, err = lowerWithLosses(of, b.Lower, delta, lost)
			}
			if err != nil {
				return 0, err
			}
		}
		if low > s.Lower {
			s.Lower, s.Neighbour = math.Min(low, s.Upper), w.name
		}
		return low, nil
	}
	last := math.Inf(-1)
	n := widest(charges)
	for ; n > 1; n /= 2 {
		low, err := try(n)
		if err != nil {
			return err
		}
		if low < last || math.IsInf(low, 1) {
			break
		}
		last = low
	}
	_, err = try(1)
	return err
}

// sameSteps reports whether two compositions have the same laws in the same order.
func sameSteps(a, b []Step) bool {
	return slices.EqualFunc(a, b, func(x, y Step) bool {
		return x.Count == y.Count && x.Mechanism.key() == y.Mechanism.key()
	})
}

// lowerWithLosses is the lower bound of the ideal law at a δ that the losses enlarge.
// low is that at delta itself.
func lowerWithLosses(eval epsilonOf, low, delta float64, lost losses) (float64, error) {
	if lost == (losses{}) || low == 0 {
		return low, nil
	}
	delta += (1+math.Exp(math.Min(low, 700)))*lost.distance + lost.failure
	if delta >= 1 {
		return 0, nil
	}
	b, err := eval(delta)
	return b.Lower, err
}

// withLosses solves ε = eval(δ − failure − (1+e^ε)·distance) from below; the value
// returned satisfies it with ≥. The lower bound is that of lowerWithLosses.
func withLosses(eval epsilonOf, delta float64, lost losses) (Bound, error) {
	b, err := eval(delta)
	if err != nil || lost == (losses{}) {
		return b, err
	}
	if b.Lower, err = lowerWithLosses(eval, b.Lower, delta, lost); err != nil {
		return Bound{}, err
	}
	fail := Bound{Lower: b.Lower, Upper: math.Inf(1), Reason: reasonTable}
	guess := b.Upper
	for range 60 {
		left := delta - lost.failure - (1+math.Exp(math.Min(guess, 709)))*lost.distance
		if left <= 0 {
			return fail, nil
		}
		next, err := eval(left)
		if err != nil {
			return Bound{}, err
		}
		if next.Upper <= guess {
			b.Upper, b.Reason = guess, ""
			return b, nil
		}
		// A little above the new value, so that the next check succeeds once the
		// dependence has died out.
		guess = next.Upper * (1 + 1e-9)
	}
	return fail, nil
}

// pureOf is the sum of the charges' pure ε where all are rounds of discrete
// Laplace noise, else +Inf.
func pureOf(charges []charge) float64 {
	total := 0.0
	for _, c := range charges {
		if c.Round == nil || c.Round.Family != FamilyDiscreteLaplace {
			return math.Inf(1)
		}
		for _, l := range c.Round.lanes() {
			s, err := l.Sensitivity.check()
			if err != nil {
				return math.Inf(1)
			}
			total += float64(c.Count) * float64(integerNorm(s.L1)) / l.SumScale
		}
	}
	return total * (1 + 1e-9) // for rounding
}

const reasonTable = "the samplers' distance from their law, overruns, or failures of sessions " +
	"use up delta"

// farOrders are the default orders and those above them, which bounds far below 1 need.
var farOrders = func() []float64 {
	out := DefaultOrders()
	for i := 8*10 + 1; i <= 8*30; i++ {
		out = append(out, math.Round(math.Exp2(float64(i)/8)))
	}
	return out
}()

// totalRDP adds the Rényi curves of all charges: at far orders too if all are closed forms.
func totalRDP(charges []charge, v View) (RDP, error) {
	orders := farOrders
	for _, c := range charges {
		if c.Step != nil || c.Round.rate(v) < 1 {
			orders = nil
		}
	}
	total, err := NewRDP(orders, func(float64) float64 { return 0 })
	if err != nil {
		return RDP{}, err
	}
	for _, c := range charges {
		var one RDP
		n := c.Count
		if c.Step != nil {
			if n, err = c.steps(); err == nil {
				one, err = MechanismRDP(c.seen(v), nil)
			}
		} else {
			one, err = c.Round.rdp(v, orders)
		}
		if err == nil {
			total, err = total.Plus(one.Times(n))
		}
		if err != nil {
			return RDP{}, err
		}
	}
	return total, nil
}
