package accounting

import "math"

// part is one mechanism of a composition with its count.
type part struct {
	law   law
	count float64
	pts   []point
}

// A guide estimates, without any guarantee, where the composed loss lies: it
// chooses tilt, window and step for the certified run.
type guide struct {
	parts []part
	add   bool // direction: P and Q exchanged, losses negated
}

// cgf returns the cumulant generating function K(θ) = ln E_P e^{θL} of the
// whole composition with two derivatives.
func (g guide) cgf(theta float64) (k, k1, k2 float64) {
	for _, p := range g.parts {
		top := math.Inf(-1)
		for _, x := range p.pts {
			top = math.Max(top, g.exponent(x, theta))
		}
		var s0, s1, s2 float64
		for _, x := range p.pts {
			e := g.exponent(x, theta) - top
			if e < -45 {
				continue
			}
			l := x.l
			if g.add {
				l = -l
			}
			w := math.Exp(e)
			s0 += w
			s1 += w * l
			s2 += w * l * l
		}
		if !(s0 > 0) {
			continue // no finite loss to go by
		}
		m := s1 / s0
		k += p.count * (top + math.Log(s0))
		k1 += p.count * m
		k2 += p.count * math.Max(s2/s0-m*m, 0)
	}
	return k, k1, k2
}

func (g guide) exponent(x point, theta float64) float64 {
	if g.add {
		return x.lq - theta*x.l
	}
	return x.lp + theta*x.l
}

// saddle is the guide's estimate at one tilt.
type saddle struct{ theta, eps, sd, lnDelta, k float64 }

func (g guide) at(theta float64) saddle {
	k, k1, k2 := g.cgf(theta)
	sd := math.Sqrt(k2)
	s := saddle{theta: theta, eps: k1, sd: sd, k: k}
	s.lnDelta = k - theta*k1 + math.Log(tiltedGap(theta, sd))
	return s
}

// tiltedGap is E[e^{−θU}(1−e^{−U}); U>0] for U normal with deviation sd: the
// saddle-point factor of δ.
func tiltedGap(theta, sd float64) float64 {
	g := (mills(theta*sd) - mills((theta+1)*sd)) / math.Sqrt(2*math.Pi)
	return math.Max(g, 1e-300)
}

const (
	minTheta = 1e-6
	maxTheta = 1e7
)

// forDelta finds the tilt whose estimated δ is delta, with ε ≥ 0.
func (g guide) forDelta(delta float64) saddle {
	want := math.Log(delta)
	s := g.search(func(s saddle) bool { return s.lnDelta <= want })
	if s.eps < 0 {
		return g.forEpsilon(0)
	}
	return s
}

// forEpsilon finds the tilt whose mean loss is eps.
func (g guide) forEpsilon(eps float64) saddle {
	return g.search(func(s saddle) bool { return s.eps >= eps })
}

// search finds the least tilt for which done holds, done being monotone, and
// returns the estimate just below it.
func (g guide) search(done func(saddle) bool) saddle {
	lo, hi := math.Log(minTheta), math.Log(maxTheta)
	best := g.at(minTheta)
	if done(best) {
		return best
	}
	// Tilts above e^4 are rare: look below first.
	if s := g.at(math.Exp(4)); done(s) {
		hi = 4
	} else {
		lo, best = 4, s
	}
	for hi-lo > 1e-3 {
		mid := (lo + hi) / 2
		if s := g.at(math.Exp(mid)); done(s) {
			hi = mid
		} else {
			lo, best = mid, s
		}
	}
	return best
}

// relax lowers the tilt a little. That costs a factor of about e^{0.01·ln(1/δ)}
// in the size of error terms and, where rare large losses are about to take
// over the tilted law, saves most of the window.
func (g guide) relax(s saddle, f float64) saddle {
	s.theta *= f
	s.k, _, _ = g.cgf(s.theta)
	return s
}

// window returns losses around the tilted law outside which it has mass about
// beta on each side, with the tilts whose Chernoff bounds say so.
func (g guide) window(s saddle, beta float64) (lo, hi, thetaLo, thetaHi float64) {
	lnBeta := math.Log(beta)
	lo, hi = math.Inf(-1), math.Inf(1)
	scale := 1 / math.Max(s.sd, 1e-12)
	for i := range 28 {
		x := scale * math.Exp(float64(i-14)/3)
		k, _, _ := g.cgf(s.theta + x)
		if w := (k - s.k - lnBeta) / x; w < hi {
			hi, thetaHi = w, s.theta+x
		}
		k, _, _ = g.cgf(s.theta - x)
		if w := -(k - s.k - lnBeta) / x; w > lo {
			lo, thetaLo = w, s.theta-x
		}
	}
	return lo, hi, thetaLo, thetaHi
}
