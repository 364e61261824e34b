package accounting

import (
	"math"
	"slices"
)

const (
	// tolerance is the relative width of ε that the lattice aims at.
	tolerance = 2e-4
	// maxLoss is the largest loss of one step that the lattice represents.
	maxLoss = 500
	// maxNodes caps lattice and transform.
	maxNodes = 1 << 20
	// windowMass is the tilted mass that may lie outside the window.
	windowMass = 1e-13
	// tailShare is the share of δ that losses cut off a law may take.
	tailShare = 1e-6
	// maxStep is the coarsest lattice: beyond it nothing useful is proved and
	// hyperbolic functions of the step would overflow.
	maxStep = 50
)

// A direction is one order of the two hypotheses of a composition, with the
// guide's estimate of where δ is decided.
type direction struct {
	c     *Composition
	add   bool
	guide guide
	est   saddle
	pure  float64
	// finer divides the step.
	finer float64
	// tail is the mass that each step may lose at either end.
	tail float64
}

// A run is one direction's pair of certified curves.
type run struct {
	upper, lower *curve
	clipped      bool
	nodes        int // the larger of lattice and transform
	// couple computes the other lower bound, which costs one more composition.
	couple func() *coupling
}

func (r run) reason(delta float64) string {
	if r.clipped {
		return reasonRange
	}
	if r.upper.c.extra > delta {
		return reasonInfinite
	}
	return reasonOverflow
}

// directions returns the directions to account, the likely larger one first.
// target is the δ of interest, or 0 to take it from the guide.
func (c *Composition) directions(find func(guide) saddle, target float64) []direction {
	var out []direction
	remove, add := c.pureBoth()
	for _, d := range []direction{{add: false, pure: remove}, {add: true, pure: add}} {
		d.c, d.finer = c, 1
		d.guide = guide{parts: c.parts, add: d.add}
		if d.add && c.symmetric() {
			break
		}
		delta := target
		if delta == 0 {
			delta = math.Exp(math.Max(find(d.guide).lnDelta, -600))
		}
		d.tail = math.Max(delta*tailShare/d.total(), 1e-290)
		// Losses that will be cut off must not mislead the estimate either: rare
		// huge ones would dominate every tilt.
		d.guide.parts = slices.Clone(c.parts)
		for i, p := range d.guide.parts {
			d.guide.parts[i].pts = within(p, d.tail)
		}
		d.est = find(d.guide)
		out = append(out, d)
	}
	if len(out) == 2 && out[1].est.eps+1e-12 > out[0].est.eps*(1+1e-9) &&
		out[1].est.lnDelta > out[0].est.lnDelta-50 {
		slices.Reverse(out)
	}
	return out
}

// within keeps the guide's points inside the span of the law at the given tail.
func within(p part, tail float64) []point {
	lo, hi := p.law.span(tail)
	slack := 1e-9 * (math.Abs(lo) + math.Abs(hi))
	lo, hi = lo-slack, hi+slack
	var out []point
	for _, x := range p.pts {
		if x.l >= lo && x.l <= hi {
			out = append(out, x)
		}
	}
	if len(out) == 0 {
		return p.pts
	}
	return out
}

// negligible reports that this direction is certified to lie below the other
// one's lower bound, eps being the loss at which the two are compared.
func (d direction) negligible(below func(*composed) bool, eps float64) bool {
	if d.pure*(1+64*unit) <= eps {
		return true
	}
	if d.est.theta >= maxTheta/2 || math.IsNaN(d.est.eps) {
		return false
	}
	theta := d.guide.forEpsilon(math.Max(eps, 0)).theta
	return below(d.moments(d.step(1024), d.tail*1e-6, theta)[0])
}

// farOut bounds δ(ε) where it is below what any window resolves. The guide may
// be far off there, so tilts below its own are tried too.
func (d direction) farOut(eps float64) float64 {
	if eps == 0 {
		return 1
	}
	theta := d.guide.forEpsilon(eps).theta
	best := 1.0
	for _, h := range []float64{d.step(1024), math.Min(eps/64, maxStep)} {
		for _, l := range d.moments(h, d.tail, theta, theta/8, theta/64) {
			if v := l.chernoff(eps); v < best {
				best = v
			}
		}
		if best < 1e-30 {
			break
		}
	}
	return best
}

// moments returns what Chernoff's inequality needs of the upper law at step h,
// for every tilt.
func (d direction) moments(h, tail float64, thetas ...float64) []*composed {
	lattices, _ := d.lattices(h, tail)
	out := make([]*composed, len(thetas))
	for k, theta := range thetas {
		out[k] = &composed{theta: theta, upper: true}
	}
	for i, g := range lattices {
		s := newSpectrum(g, g.upper(), d.c.parts[i].count, d.add, true)
		for _, l := range out {
			l.lnScale += s.count*s.lnMoment(l.theta) + s.momentSlack(l.theta)
			l.extra += s.count * s.inf
			l.shift += s.count * s.shift
		}
	}
	return out
}

// chernoff bounds δ(ε) from above by e^{K(θ)−θε}·max(e^{−θu}(1−e^{−u})).
func (c *composed) chernoff(eps float64) float64 {
	if math.IsInf(c.lnScale, -1) {
		return 1 // a law without finite losses: nothing to go by
	}
	e := eps - c.shift
	slack := 64 * unit * (math.Abs(c.lnScale) + math.Abs(c.theta*e) + 1)
	return math.Exp(c.lnScale-c.theta*e+slack)*c.peak() + c.extra
}

// peak is the largest value of e^{−θu}(1−e^{−u}) over u ≥ 0.
func (c *composed) peak() float64 {
	if c.theta == 0 {
		return 1
	}
	return math.Exp(-c.theta*math.Log1p(1/c.theta)) / (1 + c.theta)
}

func (d direction) total() float64 {
	n := 0.0
	for _, p := range d.c.parts {
		n += p.count
	}
	return n
}

// step chooses the lattice step. Splitting cells adds about h²/6 to the variance
// of each step, which moves ε by count·h²·(1+θ)/12; the lower law errs by about
// as much. nodes, if positive, asks for a coarse lattice of about that size.
func (d direction) step(nodes float64) float64 {
	s := d.est
	scale := math.Max(math.Max(s.eps, 0.05*s.sd), 1e-12)
	h := math.Sqrt(4 * tolerance * scale / (d.total() * (1 + s.theta)))
	if nodes > 0 {
		h *= 4
	}
	if h = h / d.finer; h > 0 && h <= maxStep {
		return h
	}
	return maxStep // the estimate broke down: prove what little can be proved
}

// settings chooses tilt and window. Tilts below the optimum are tried where they make
// the window much smaller and cost little: error terms grow with
// e^{K(θ)−θε} over its minimum. Every retry accepts less tilt.
func (d direction) settings(retry int) settings {
	var best settings
	for i, f := range []float64{0.97, 0.85, 0.7, 0.5} {
		p := settings{saddle: d.guide.relax(d.est, math.Pow(f, float64(1+2*retry)))}
		cost := p.saddle.k - p.saddle.theta*d.est.eps - (d.est.k - d.est.theta*d.est.eps)
		if i > 0 && cost > 6 {
			break
		}
		p.lo, p.hi, p.thetaLo, p.thetaHi = d.guide.window(p.saddle, windowMass)
		if i == 0 || (p.hi-p.lo)*1.3 < best.hi-best.lo {
			best = p
		}
	}
	return best
}

// run composes this direction. target is the δ of interest, or 0 to take it
// from the guide. A run whose estimate turns out too optimistic to prove
// anything is repeated with less tilt.
func (d direction) run(target float64) (r run, ok bool) {
	if target == 0 {
		target = math.Exp(math.Max(d.est.lnDelta, -600))
	}
	for retry := range 3 {
		p := d.settings(3 * retry)
		h := math.Min(d.step(0), (p.hi-p.lo)/4096)
		h = math.Max(h, (p.hi-p.lo)/(maxNodes-8))
		if !(h <= maxStep) {
			return run{}, false
		}
		lattices, clipped := d.lattices(h, d.tail)
		h = lattices[0].h
		p.n = 1 << 8
		for float64(p.n) < (p.hi-p.lo)/h+4 {
			p.n *= 2
		}
		var up, low []*spectrum
		for j, g := range lattices {
			up = append(up, newSpectrum(g, g.upper(), d.c.parts[j].count, d.add, true))
			low = append(low, newSpectrum(g, g.lower(), d.c.parts[j].count, d.add, false))
		}
		top := convolve(up, p, true)
		r = run{
			upper:   top.curve(),
			lower:   convolve(low, p, false).curve(),
			clipped: clipped,
			nodes:   max(p.n, lattices[0].n),
		}
		r.couple = func() *coupling {
			var split []*spectrum
			moved := 0.0
			for j, g := range lattices {
				split = append(split, newSpectrum(g, g.split(), d.c.parts[j].count, d.add, false))
				if g.moves() {
					moved += d.c.parts[j].count
				}
			}
			return newCoupling(convolve(split, p, false), top, moved)
		}
		if r.upper.c.extra < target || r.upper.c.infinite >= target {
			break
		}
	}
	return r, true
}

// epsilon bounds ε(δ) in this direction. Where rare large losses mislead the
// guide, the first result is the better guide for a second run.
func (d direction) epsilon(delta float64) Bound {
	best := Bound{Upper: math.Inf(1)}
	for attempt := range 4 {
		r, ok := d.run(delta)
		if !ok {
			best.Reason = reasonRange
			break
		}
		up, ok := r.upper.epsilon(delta)
		low, _ := r.lower.epsilon(delta)
		ok = ok && !math.IsNaN(up)
		if math.IsNaN(low) {
			low = 0
		}
		if ok && up-low > 3*tolerance*up {
			low = math.Max(low, r.couple().epsilon(delta))
		}
		if ok && up < best.Upper {
			best.Upper, best.Reason = up, ""
		} else if math.IsInf(best.Upper, 1) {
			best.Reason = r.reason(delta)
		}
		best.Lower = math.Max(best.Lower, low)
		// Several times the width aimed at is the sign of a law with a scale finer
		// than its deviation: rare jumps on top of a narrow bulk.
		wide := (best.Upper - best.Lower) / (5*tolerance*best.Upper + 1e-9)
		if !ok || wide <= 1 {
			break
		}
		if d.est.eps > 1.1*best.Upper {
			lnDelta := d.est.lnDelta
			d.est = d.guide.forEpsilon(best.Upper)
			d.est.lnDelta = lnDelta
			continue
		}
		if r.nodes*4 > maxNodes || attempt > 0 && r.nodes > maxNodes/8 {
			break
		}
		// The error falls as the square of the step.
		if wide < 2 {
			d.finer *= 2
		} else {
			d.finer *= 4
		}
	}
	if limit := d.pure * (1 + 64*unit); best.Upper > limit {
		best.Upper, best.Reason = limit, ""
	}
	best.Lower = math.Min(best.Lower, best.Upper)
	return best
}

// beyond reports that epsilon exceeds every finite loss of this direction's
// discretised law; delta is then the mass that was cut off.
func (d direction) beyond(epsilon float64) (delta float64, ok bool) {
	lattices, _ := d.lattices(d.step(1024), d.tail)
	top := 0.0
	for i, g := range lattices {
		n := d.c.parts[i].count
		if d.add {
			top += n * (g.shift - g.off)
			delta += n * g.botQ
		} else {
			top += n * (g.shift + g.node(g.n-1))
			delta += n * g.topP
		}
	}
	return math.Min(1, delta*(1+1e-9)), epsilon > top
}

// lattices discretises every part with one common step near h.
func (d direction) lattices(h, tail float64) (out []*lattice, clipped bool) {
	h = d.c.stepSize(h, tail)
	for _, p := range d.c.parts {
		g, cut := newPartLattice(p.law, h, tail)
		out = append(out, g)
		clipped = clipped || cut
	}
	return out, clipped
}

// stepSize fits h to the span of the widest part and to the lattice on which a
// part's losses lie, if there is one that is not too fine.
func (c *Composition) stepSize(h, tail float64) float64 {
	for _, p := range c.parts {
		lo, hi := p.law.span(tail)
		lo, hi = math.Max(lo, -maxLoss), math.Min(hi, maxLoss)
		h = math.Max(h, (hi-lo)/(maxNodes-8))
	}
	best, count := 0.0, 0.0
	for _, p := range c.parts {
		if _, step := p.law.lattice(); step >= h && p.count > count {
			best, count = step, p.count
		}
	}
	if best == 0 {
		return h
	}
	if len(c.parts) == 1 && c.parts[0].law.exact() && best <= maxStep {
		return best
	}
	return best / math.Ceil(best/h)
}

// newPartLattice discretises one law with step h; cut reports that losses beyond
// maxLoss were given up.
func newPartLattice(l law, h, tail float64) (g *lattice, cut bool) {
	lo, hi := l.span(tail)
	cut = hi > maxLoss || lo < -maxLoss
	lo, hi = math.Max(lo, -maxLoss), math.Min(hi, maxLoss)
	if !(lo <= hi) {
		lo, hi = 0, 0
	}
	off, aligned := lo, false
	if o, step := l.lattice(); step > 0 {
		if k := step / h; math.Abs(k-math.Round(k)) < 1e-9*k {
			off, aligned = o+math.Floor((lo-o)/h+1e-6)*h, true
		}
	}
	if !aligned {
		// Mass piled up just above the lowest loss (small z, small q) cannot be
		// contracted downwards: put a node on its mean, and one below.
		probe := newLattice(off, h, 2)
		l.fill(probe)
		if sum := probe.rl[0] + probe.rr[0]; sum > 0.2 || sum > 0 && probe.rr[0] < 0.05*sum {
			off += h*probe.rr[0]/sum - h
		}
	}
	n := int(math.Ceil((hi-off)/h-1e-6)) + 2
	g = newLattice(off, h, n)
	l.fill(g)
	return g, cut
}
