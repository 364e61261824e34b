package accounting

import (
	"math"
	"math/bits"
	"slices"
	"strings"

	"github.com/hushsum/hushsum/internal/fault"
)

// Step is a mechanism used Count times.
type Step struct {
	Mechanism Mechanism
	Count     int // at least 0; 0 adds nothing
}

// Composition is the adaptive composition of steps. It is immutable and safe
// for concurrent use.
type Composition struct {
	parts []part
	// mu2 is Σ count/z² of all unsampled Gaussians, which compose in closed form
	// (Dong, Roth, Su 2022 Corollary 3.3).
	mu2 float64
	// chance is Σ count·rate, which bounds δ(0): with probability 1 − chance at
	// least the client is in no step at all.
	chance float64
	// whole are the steps without their sampling, which spend no less: a sampled
	// pair is a mixture of the pair and of one with equal sides. Nil: none is sampled.
	whole []Step
}

// maxCount caps a composition's steps so that counts are exact in float64
// arithmetic with room for the error terms: 2^40, or 2^30 where an int has 32 bits.
const maxCount = 1 << (20 + 10*(bits.UintSize/32))

// maxParts caps the different laws of a composition, unsampled Gaussians apart:
// each costs a lattice and a transform, about 8 ms together.
const maxParts = 1 << 11

// Compose describes a run. The order of steps does not matter: equal mechanisms are merged and all
// are sorted. All steps must be about one neighbouring relation: [Sampled] and [ReplaceOne] cannot
// both be among them, and the parameters of all other steps are relative to the change that this
// relation allows. Errors wrap ErrConfig, ErrUnsupported or ErrTooLarge, the last also if there are
// more than 2,048 different mechanisms, where all different unsampled Gaussians count as one.
func Compose(steps ...Step) (*Composition, error) {
	if err := oneAdjacency(steps, false); err != nil {
		return nil, err
	}
	counts := map[string]int{}
	byKey := map[string]Mechanism{}
	c := &Composition{}
	for i, s := range steps {
		if s.Mechanism == nil {
			return nil, configError("step %d has no mechanism", i)
		}
		if s.Count < 0 || s.Count > maxCount {
			return nil, configError("step %d has count %d, want 0 to 2^40", i, s.Count)
		}
		if s.Count == 0 {
			continue
		}
		k := s.Mechanism.key()
		if counts[k] > maxCount-s.Count {
			return nil, configError("counts of equal steps add up to more than 2^40")
		}
		counts[k] += s.Count
		byKey[k] = s.Mechanism
	}
	keys := make([]string, 0, len(counts))
	for k := range counts {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, strings.Compare)
	sampled := false
	for _, k := range keys {
		m := byKey[k]
		c.chance += float64(counts[k]) * rateOf(m)
		c.whole = append(c.whole, Step{unsampled(m), counts[k]})
		sampled = sampled || rateOf(m) < 1
		l, err := m.law()
		if err != nil {
			return nil, fault.Note(err, "in a step of "+kind(m))
		}
		if s, ok := l.(*sampledLaw); ok && s.q == 1 {
			if g, ok := s.base.(gaussianBase); ok {
				c.mu2 += float64(counts[k]) * g.mu * g.mu
				continue
			}
		}
		if len(c.parts) == maxParts {
			return nil, fault.New(ErrTooLarge, "", "more than %d different mechanisms", maxParts)
		}
		c.parts = append(c.parts, part{law: l, count: float64(counts[k]), pts: l.guide()})
	}
	c.chance *= 1 + 1e-9 // for rounding
	if !sampled {
		c.whole = nil
	}
	if c.mu2 > 0 && len(c.parts) > 0 {
		l := &sampledLaw{base: gaussianBase{mu: math.Sqrt(c.mu2)}, q: 1}
		c.parts = append(c.parts, part{law: l, count: 1, pts: l.guide()})
	}
	return c, nil
}

// symmetric reports whether both directions coincide.
func (c *Composition) symmetric() bool {
	for _, p := range c.parts {
		if !p.law.symmetric() {
			return false
		}
	}
	return true
}

// pure returns the larger direction's pure ε, +Inf if unbounded.
func (c *Composition) pure() float64 {
	if len(c.parts) == 0 && c.mu2 > 0 {
		return math.Inf(1)
	}
	remove, add := c.pureBoth()
	return math.Max(remove, add)
}

func (c *Composition) pureBoth() (remove, add float64) {
	for _, p := range c.parts {
		r, a := p.law.pure()
		remove += p.count * r
		add += p.count * a
	}
	return remove, add
}

// Epsilon returns the bound of the least ε ≥ 0 for which the run is
// (ε, δ)-differentially private, 0 ≤ delta ≤ 1. Upper is +Inf with a Reason when
// no finite ε can be proved; that is not an error.
func (c *Composition) Epsilon(delta float64) (Bound, error) {
	if !(delta >= 0 && delta <= 1) {
		return Bound{}, configError("delta is %v, want 0 to 1", delta)
	}
	pure := c.pure()
	switch {
	case delta == 1, delta > 0 && c.chance <= delta:
		return Bound{}, nil
	case delta == 0:
		b := Bound{Lower: pure * (1 - 64*unit), Upper: pure * (1 + 64*unit)}
		if math.IsInf(pure, 1) {
			b.Lower = 0
			b.Reason = reasonPure
			if len(c.parts) == 0 {
				b.Lower = math.Inf(1)
			}
		}
		return b, nil
	case len(c.parts) == 0:
		return gaussianEpsilon(math.Sqrt(c.mu2), delta), nil
	}
	var out Bound
	for i, d := range c.directions(func(g guide) saddle { return g.forDelta(delta) }, delta) {
		if i > 0 && d.negligible(func(l *composed) bool { return l.chernoff(out.Lower) <= delta },
			out.Lower) {
			continue
		}
		b := d.epsilon(delta)
		out = maxBound(out, b)
	}
	if !math.IsInf(out.Upper, 1) || c.whole == nil {
		return out, nil
	}
	if whole, err := Compose(c.whole...); err == nil { // else there is just no such bound
		if b, err := whole.Epsilon(delta); err == nil && b.Upper < out.Upper {
			out.Upper, out.Reason = b.Upper, ""
		}
	}
	return out, nil
}

// Delta returns the bound of δ(ε), epsilon ≥ 0.
func (c *Composition) Delta(epsilon float64) (Bound, error) {
	if !(epsilon >= 0) {
		return Bound{}, configError("epsilon is %v, want 0 or more", epsilon)
	}
	if pure := c.pure(); !math.IsInf(pure, 1) && epsilon >= pure*(1+64*unit) {
		return Bound{}, nil
	}
	if len(c.parts) == 0 {
		return gaussianDelta(math.Sqrt(c.mu2), epsilon), nil
	}
	if math.IsInf(epsilon, 1) {
		b, err := c.Delta(math.MaxFloat64) // δ falls with ε
		if err != nil {
			return Bound{}, err
		}
		return Bound{Upper: b.Upper, Reason: b.Reason}, nil
	}
	var out Bound
	for i, d := range c.directions(func(g guide) saddle { return g.forEpsilon(epsilon) }, 0) {
		if i > 0 && d.negligible(func(l *composed) bool { return l.chernoff(epsilon) <= out.Lower },
			epsilon) {
			continue
		}
		if delta, ok := d.beyond(epsilon); ok {
			out = maxBound(out, Bound{Upper: delta})
			continue
		}
		b := Bound{Upper: 1}
		if r, ok := d.run(0); ok {
			if v := r.upper.delta(epsilon); v < 1 {
				b.Upper = v
			}
			if v := r.lower.delta(epsilon); v > 0 {
				b.Lower = v
			}
			if b.Upper < 1 && b.Upper-b.Lower > 1e-2*b.Upper {
				b.Lower = math.Max(b.Lower, r.couple().delta(epsilon))
			}
		}
		if !(b.Lower > b.Upper/2) {
			b.Upper = math.Min(b.Upper, d.farOut(epsilon))
		}
		b.Lower = math.Min(b.Lower, b.Upper)
		out = maxBound(out, b)
	}
	out.Upper = math.Min(out.Upper, c.chance)
	return out, nil
}
