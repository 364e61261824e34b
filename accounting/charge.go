package accounting

import (
	"errors"
	"math"
)

// A charge is one line of an account: a mechanism or a round, Count times.
type charge struct {
	Step  *Step
	Round *Round
	Count int
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

// spend totals charges at delta: by PLD if every charge has a one-dimensional
// worst case and the tables fit, else by RDP. The distance of table samplers is
// solved for: ε must hold at δ − (1+e^ε)·N·distance.
func spend(charges []charge, v View, delta float64) (Spent, error) {
	var recorded []Step
	for _, c := range charges {
		if c.Step != nil {
			recorded = append(recorded, *c.Step)
		}
	}
	if err := oneAdjacency(recorded, len(recorded) < len(charges)); err != nil {
		return Spent{}, err
	}
	out, err := spendAs(charges, v, delta)
	if err != nil || v == ServerView || out.Accountant == "PLD" {
		return out, err
	}
	// Rényi bounds of sampling can be above those without.
	if whole, err := spendAs(charges, ServerView, delta); err == nil && whole.Upper < out.Upper {
		out.Upper, out.Reason, out.Accountant = whole.Upper, whole.Reason, whole.Accountant
	}
	return out, nil
}

func spendAs(charges []charge, v View, delta float64) (Spent, error) {
	if !(delta >= 0 && delta < 1) {
		return Spent{}, configError("delta is %v, want 0 ≤ delta < 1", delta)
	}
	var steps []Step
	pld := true
	distance := 0.0
	for _, c := range charges {
		if c.Step != nil {
			n, err := c.steps()
			if err != nil {
				return Spent{}, err
			}
			steps = append(steps, Step{c.seen(v), n})
			continue
		}
		if err := c.Round.check(); err != nil {
			return Spent{}, err
		}
		if c.Count == 0 {
			continue
		}
		distance += c.Round.TableDistance * c.Round.Samples * float64(c.Count)
		s, ok := c.Round.steps(v)
		if !ok {
			pld = false
			continue
		}
		for _, x := range s {
			steps = append(steps, Step{x.Mechanism, x.Count * c.Count})
		}
	}
	out := Spent{View: v, Accountant: "PLD"}
	var eval func(float64) (Bound, error)
	if pld {
		comp, err := Compose(steps...)
		if pld = !errors.Is(err, ErrTooLarge); pld {
			if err != nil {
				return Spent{}, err
			}
			eval = comp.Epsilon
		}
	}
	if !pld {
		out.Accountant = "RDP"
		pure := pureOf(charges)
		curve, err := totalRDP(charges, v)
		if err != nil {
			return Spent{}, err
		}
		eval = func(d float64) (Bound, error) {
			b := Bound{Upper: pure}
			if d == 0 {
				if math.IsInf(pure, 1) {
					b.Reason = reasonPure
				}
				return b, nil
			}
			e, _, err := curve.Epsilon(d)
			if err != nil {
				return Bound{}, err
			}
			if b.Upper = math.Min(e, pure); math.IsInf(b.Upper, 1) {
				b.Reason = reasonOverflow
			}
			return b, nil
		}
	}
	b, err := withDistance(eval, delta, distance)
	if err != nil {
		return Spent{}, err
	}
	out.Bound = b
	return out, nil
}

// withDistance solves ε = eval(δ − (1+e^ε)·distance) from below; the value
// returned satisfies it with ≥. The lower bound is the one of the ideal law at a
// δ enlarged likewise.
func withDistance(eval func(float64) (Bound, error), delta, distance float64) (Bound, error) {
	b, err := eval(delta)
	if err != nil || distance == 0 {
		return b, err
	}
	if d := delta + (1+math.Exp(math.Min(b.Lower, 700)))*distance; d < 1 {
		low, err := eval(d)
		if err != nil {
			return Bound{}, err
		}
		b.Lower = low.Lower
	} else {
		b.Lower = 0
	}
	fail := Bound{Lower: b.Lower, Upper: math.Inf(1), Reason: reasonTable}
	guess := b.Upper
	for range 60 {
		left := delta - (1+math.Exp(math.Min(guess, 709)))*distance
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
			total += float64(c.Count) * s.L1 / l.SumScale
		}
	}
	return total * (1 + 1e-9) // for rounding
}

const reasonTable = "the samplers' distance from their law uses up delta"

// totalRDP adds the Rényi curves of all charges.
func totalRDP(charges []charge, v View) (RDP, error) {
	total, err := NewRDP(nil, func(float64) float64 { return 0 })
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
			one, err = c.Round.rdp(v)
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
