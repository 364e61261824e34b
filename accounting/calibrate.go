package accounting

import "math"

// Target is a privacy budget to calibrate to.
type Target struct {
	Epsilon float64 // positive
	Delta   float64 // 0 ≤ Delta < 1; 0 asks for pure differential privacy
}

func (t Target) check() error {
	if err := checkPositive("target epsilon", t.Epsilon); err != nil {
		return err
	}
	if !(t.Delta >= 0 && t.Delta < 1) {
		return configError("target delta is %v, want 0 ≤ delta < 1", t.Delta)
	}
	return nil
}

// meets reports whether the certified upper bound of a run is within the target.
func (t Target) meets(steps []Step) (bool, error) {
	c, err := Compose(steps...)
	if err != nil {
		return false, err
	}
	b, err := c.Epsilon(t.Delta)
	return err == nil && b.Upper <= t.Epsilon, err
}

// calibrationTolerance is the relative precision of a calibrated real.
const calibrationTolerance = 1e-5

// CalibrateNoise returns the least noise parameter for which the run that steps
// describes meets the target, to 1e-5 relative, from above: the run at the
// returned value was itself certified. steps must spend less as noise grows; it
// is called with values from 2^-10 to 2^40. Errors: those of Compose, and
// ErrUnreachable if even the largest noise does not suffice.
func CalibrateNoise(t Target, steps func(noise float64) []Step) (float64, error) {
	if err := t.check(); err != nil {
		return 0, err
	}
	return leastNoise(func(x float64) (bool, error) { return t.meets(steps(x)) })
}

// leastNoise brackets the least noise for which ok holds.
func leastNoise(ok func(noise float64) (bool, error)) (float64, error) {
	good := 1.0
	for {
		yes, err := ok(good)
		if err != nil {
			return 0, err
		}
		if yes {
			break
		}
		if good *= 2; good > 1<<40 {
			return 0, ErrUnreachable
		}
	}
	bad := good / 2
	for bad > 1.0/1024 {
		yes, err := ok(bad)
		if err != nil {
			return 0, err
		}
		if !yes {
			break
		}
		good, bad = bad, bad/2
	}
	return narrow(good, bad, ok)
}

// narrow moves good towards bad while ok holds.
func narrow(good, bad float64, ok func(float64) (bool, error)) (float64, error) {
	for math.Abs(good-bad) > calibrationTolerance*good {
		mid := (good + bad) / 2
		yes, err := ok(mid)
		if err != nil {
			return 0, err
		}
		if yes {
			good = mid
		} else {
			bad = mid
		}
	}
	return good, nil
}

// CalibrateRounds returns the largest number of repetitions of round that meets
// the target, at most 2^30; 0 if not even one does.
func CalibrateRounds(t Target, round ...Step) (int, error) {
	if err := t.check(); err != nil {
		return 0, err
	}
	return mostRounds(func(n int) (bool, error) {
		steps := make([]Step, len(round))
		for i, s := range round {
			if s.Count < 0 || s.Count > 1<<9 {
				return false, configError("count per round is %d, want 0 to 512", s.Count)
			}
			steps[i] = Step{s.Mechanism, s.Count * n}
		}
		return t.meets(steps)
	})
}

// mostRounds brackets the largest count for which ok holds.
func mostRounds(ok func(n int) (bool, error)) (int, error) {
	good, bad := 0, 1
	for {
		yes, err := ok(bad)
		if err != nil {
			return 0, err
		}
		if !yes {
			break
		}
		if good, bad = bad, 2*bad; good >= 1<<30 {
			return good, nil
		}
	}
	for bad-good > 1 {
		mid := good + (bad-good)/2
		yes, err := ok(mid)
		if err != nil {
			return 0, err
		}
		if yes {
			good = mid
		} else {
			bad = mid
		}
	}
	return good, nil
}

// CalibrateRate returns the largest sampling rate for which the run that steps
// describes meets the target, to 1e-5 relative, from below. steps must spend more
// as the rate grows; it is called with rates from 2^-40 to 1. ErrUnreachable
// if even the smallest rate spends too much.
func CalibrateRate(t Target, steps func(rate float64) []Step) (float64, error) {
	if err := t.check(); err != nil {
		return 0, err
	}
	return largestRate(func(x float64) (bool, error) { return t.meets(steps(x)) })
}

// largestRate brackets the largest rate for which ok holds.
func largestRate(ok func(rate float64) (bool, error)) (float64, error) {
	good, bad := 1.0, 0.0
	for {
		yes, err := ok(good)
		if err != nil {
			return 0, err
		}
		if yes {
			break
		}
		bad = good
		if good /= 2; good < 1.0/(1<<40) {
			return 0, ErrUnreachable
		}
	}
	if bad == 0 {
		return 1, nil
	}
	return narrow(good, bad, ok)
}
