package accounting

import (
	"errors"
	"math"
)

// A charge is one line of an account: a mechanism or a round, Count times.
type charge struct {
	Step  *Step
	Round *Round
	View  View
	Count int
}

// spend totals charges at delta: by PLD if every charge has a one-dimensional
// worst case and the tables fit, else by RDP. The distance of table samplers is solved for: ε must
// hold at δ − (1+e^ε)·N·distance.
func spend(charges []charge, v View, delta float64) (Spent, error) {
	if !(delta >= 0 && delta < 1) {
		return Spent{}, parameterError("delta is %v, want 0 ≤ delta < 1", delta)
	}
	var steps []Step
	pld := true
	distance := 0.0
	for _, c := range charges {
		if c.Step != nil {
			steps = append(steps, Step{c.Step.Mechanism, c.Step.Count * c.Count})
			continue
		}
		if err := c.Round.check(); err != nil {
			return Spent{}, err
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
		curve, err := totalRDP(charges, v)
		if err != nil {
			return Spent{}, err
		}
		eval = func(d float64) (Bound, error) {
			if d == 0 {
				return Bound{Upper: math.Inf(1), Reason: reasonPure}, nil
			}
			e, _, err := curve.Epsilon(d)
			b := Bound{Upper: e}
			if math.IsInf(e, 1) {
				b.Reason = reasonOverflow
			}
			return b, err
		}
	}
	b, err := withDistance(eval, delta, distance)
	out.Bound = b
	return out, err
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
			one, err = MechanismRDP(c.Step.Mechanism, nil)
			n *= c.Step.Count
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
