package accounting

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"math"

	"github.com/hushsum/hushsum/internal/recent"
)

// spendAs is the least upper bound of charges in a view, with sampling as it is there.
func spendAs(charges []charge, v View, delta float64) (spentAtMost, error) {
	if !(delta >= 0 && delta < 1) {
		return spentAtMost{}, configError("delta is %v, want 0 ≤ delta < 1", delta)
	}
	lost, err := lossesOf(charges)
	if err != nil {
		return spentAtMost{}, err
	}
	out := spentAtMost{Figures: Figures{Delta: delta, Accountant: "RDP"}}
	out.Upper = math.Inf(1)
	found := false
	take := func(b Bound, accountant string) {
		if !found || b.Upper < out.Upper {
			out.Upper, out.Reason, out.Accountant, found = b.Upper, b.Reason, accountant, true
		}
	}
	wide := spreads(charges)
	steps, pld, err := asSteps(charges, v, func(r Round) ([]Step, bool) { return r.steps(v) })
	if err != nil {
		return spentAtMost{}, err
	}
	others := func() error { // that may fail where steps do not
		b, err := byRDP(charges, v, delta, lost)
		if err != nil {
			return err
		}
		take(b, "RDP")
		b, ok, err := byNormal(charges, v, delta, lost)
		if err == nil && ok {
			take(b, "PLD")
		}
		return err
	}
	var failed error
	if wide {
		// The worst vector of the L1 norm costs most to compose, and is far from the least but for
		// an ε near the pure one.
		failed = others()
		if failed == nil && pureOf(charges) > 3*out.Upper && spreadsFar(charges) {
			return out, nil
		}
	}
	if pld {
		b, fits, err := byPLD(steps, delta, lost, nil)
		if err != nil {
			return spentAtMost{}, err
		}
		if pld = fits; fits {
			take(b, "PLD")
			out.low = b.Lower
			if out.steps = steps; steps == nil {
				out.steps = []Step{}
			}
		}
	}
	if !wide && !pld {
		failed = others()
	}
	if found {
		failed = nil
	}
	return out, failed
}

// byNormal bounds charges by Gaussians that dominate them, or returns ok = false if there are
// none.
func byNormal(charges []charge, v View, delta float64, lost losses) (b Bound, ok bool, err error) {
	for _, scan := range []bool{true, false} {
		cut := false
		steps, ok, err := asSteps(charges, v, func(r Round) ([]Step, bool) {
			out, c, ok := r.normalSteps(v, scan)
			cut = cut || c
			return out, ok
		})
		if err != nil || !ok {
			return Bound{}, false, err
		}
		fits := true
		b, ok, err := byPLD(steps, delta, lost, func(of epsilonOf) epsilonOf {
			return func(d float64) (Bound, error) {
				if !cut {
					return of(d)
				}
				b, err := of(d * (1 - 1e-12))
				fits = fits && d >= cutDelta && b.Upper <= cutEpsilon
				return b, err
			}
		})
		if err != nil || fits {
			return b, ok, err
		}
	}
	return Bound{}, false, nil
}

// epsilonOf bounds ε at a δ.
type epsilonOf func(delta float64) (Bound, error)

// byPLD bounds what steps spend, or returns ok = false if their tables would not fit. read, if not
// nil, changes how the bounds of a δ are read off.
func byPLD(steps []Step, delta float64, lost losses, read func(epsilonOf) epsilonOf) (
	b Bound, ok bool, err error,
) {
	of, err := composedEpsilon(steps)
	if of == nil {
		return Bound{}, false, err
	}
	if read != nil {
		of = read(of)
	}
	b, err = withLosses(of, delta, lost)
	return b, err == nil, err
}

// composedEpsilon is that of steps together, or nil if their tables would not fit.
func composedEpsilon(steps []Step) (epsilonOf, error) {
	c, err := Compose(steps...)
	if errors.Is(err, ErrTooLarge) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	h := sha256.New()
	for _, s := range steps {
		fmt.Fprintf(h, "%d × %s\n", s.Count, s.Mechanism.key())
	}
	digest := [sha256.Size]byte(h.Sum(nil))
	return func(delta float64) (Bound, error) {
		q := asked{digest, delta}
		return answers.Get(q, func() (Bound, error) { return c.Epsilon(delta) })
	}, nil
}

// asked is a question about ε: the digest of the steps, and a δ.
type asked struct {
	steps [sha256.Size]byte
	delta float64
}

// answers keeps what steps together spend, which takes up to tenths of a second to work out and is
// asked again and again: by a guard before a submission and when it is made, by a job's pages and
// its record, and by parties of one process alike.
var answers = recent.New[asked, Bound](1 << 12)

// byRDP bounds what charges spend by their Rényi curves, which show nothing from below.
func byRDP(charges []charge, v View, delta float64, lost losses) (Bound, error) {
	pure := pureOf(charges)
	curve, err := totalRDP(charges, v)
	if err != nil {
		return Bound{}, err
	}
	return withLosses(func(d float64) (Bound, error) {
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
	}, delta, lost)
}
