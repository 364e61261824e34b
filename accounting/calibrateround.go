package accounting

// Within reports whether the upper bound of [Round.Spent] for the given number of rounds stays
// within a budget in one view. It does not compute the lower bound, which would take most of the
// time.
func (r Round) Within(t Target, v View, rounds int) (bool, error) {
	charges, err := r.charges(v, rounds)
	if err != nil {
		return false, err
	}
	s, err := spendAtMost(charges, v, t.Delta)
	return err == nil && s.Upper <= t.Epsilon, err
}

func (t Target) checkView(v View) error {
	if v != ServerView && v != PublicView {
		return configError("unknown %v", v)
	}
	return t.check()
}

// CalibrateRound returns the least noise parameter for which the given number of
// rounds meets the target in one view, to 1e-5 relative, from above. round maps
// the parameter, whatever its unit, to a round that spends less as it grows; it is
// called with values from 2^-10 to 2^40. Unlike [CalibrateNoise] it serves
// vector releases that have no one-dimensional worst case. Errors: those of
// [Round.Spent], and ErrUnreachable if even the largest noise does not suffice.
func CalibrateRound(
	t Target, v View, rounds int, round func(noise float64) Round,
) (float64, error) {
	if err := t.checkView(v); err != nil {
		return 0, err
	}
	return leastNoise(func(x float64) (bool, error) { return round(x).Within(t, v, rounds) })
}

// CalibrateRoundCount returns the largest number of rounds that meets the target
// in one view, at most 2^30; 0 if not even one does.
func CalibrateRoundCount(t Target, v View, r Round) (int, error) {
	if err := t.checkView(v); err != nil {
		return 0, err
	}
	return mostRounds(func(n int) (bool, error) { return r.Within(t, v, n) })
}

// CalibrateRoundRate returns the largest sampling rate for which the given number
// of rounds meets the target in the public view, to 1e-5 relative, from below.
// The round's own Rate is ignored; its schedule must be hidden, or the rate
// changes nothing. ErrUnreachable if even a rate of 2^-40 spends too much.
func CalibrateRoundRate(t Target, rounds int, r Round) (float64, error) {
	if err := t.check(); err != nil {
		return 0, err
	}
	return largestRate(func(q float64) (bool, error) {
		r.Rate = q
		return r.Within(t, PublicView, rounds)
	})
}
