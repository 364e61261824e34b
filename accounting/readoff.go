package accounting

import "math"

// A curve is δ at the nodes of a composed law's window, certified: an upper or a
// lower bound at every node, and between nodes by interpolation linear in e^ε,
// which is exact for the law and conservative for the error terms.
type curve struct {
	c *composed
	d []float64
}

// curve sums the window from the top. With W = Σ_{l>ε} p̃·e^{−θ(l−ε)}(1−e^{ε−l})
// and V = Σ p̃·e^{−(θ+1)(l−ε)}, one node down is
// W' = e^{−θh}(W + (V+p̃)(1−e^{−h})), V' = e^{−(θ+1)h}(V+p̃): no cancellation.
func (c *composed) curve() *curve {
	n := len(c.mass)
	d := make([]float64, n)
	a, b, g := math.Exp(-c.theta*c.h), math.Exp(-(c.theta+1)*c.h), -math.Expm1(-c.h)
	// Σ over the window of the weight that one entry's error carries
	spread := float64(n)
	if den := -math.Expm1(-c.theta * c.h); den > 0 {
		spread = math.Min(spread, a/den)
	}
	// the largest weight e^{−θu}(1−e^{−u}) of mass that was folded in
	peak := c.peak()
	w, v := 0.0, 0.0
	slip := 8 * unit * float64(n)
	for k := n - 1; k >= 0; k-- {
		ln := c.lnScale - c.theta*(c.off+float64(c.start+k)*c.h)
		rel := slip + 8*unit*(math.Abs(c.lnScale)+math.Abs(c.theta*(c.off+float64(c.start+k)*c.h))+4)
		scale := math.Exp(math.Min(ln, 700))
		if c.upper && ln > 700 {
			d[k] = math.Inf(1)
		} else if c.upper {
			d[k] = scale*(w+c.point*spread)*(1+rel) + c.extra
		} else if e := (c.point*spread + c.alias*peak) * (1 + rel); e < 1 {
			d[k] = scale * (w*(1-rel) - e)
		}
		if math.IsNaN(d[k]) {
			// 0·∞ at the edge of the range proves nothing.
			d[k] = 0
			if c.upper {
				d[k] = math.Inf(1)
			}
		}
		w, v = a*(w+(v+c.mass[k])*g), b*(v+c.mass[k])
	}
	return &curve{c, d}
}

func (u *curve) loss(k int) float64 { return u.c.off + float64(u.c.start+k)*u.c.h }

// epsilon returns a bound of ε(δ) from the upper (lower) curve: the least
// (largest) ε at which the curve is at most (at least) δ. ok is false when an
// upper curve stays above δ throughout the window.
func (u *curve) epsilon(delta float64) (eps float64, ok bool) {
	n := len(u.d)
	for k := n - 1; k >= 0; k-- {
		if u.d[k] <= delta {
			continue
		}
		e := u.loss(k)
		if k == n-1 {
			if u.c.upper {
				return math.Inf(1), false
			}
			return u.back(e), true
		}
		f := (u.d[k] - delta) / (u.d[k] - u.d[k+1])
		return u.back(e + math.Log1p(f*math.Expm1(u.c.h))), true
	}
	if u.c.upper {
		return u.back(u.loss(0)), true
	}
	return 0, true
}

// back moves a loss outward by all shifts of the run.
func (u *curve) back(e float64) float64 {
	s := u.c.shift + 8*unit*math.Abs(e)
	if u.c.upper {
		return math.Max(0, e+s)
	}
	return math.Max(0, e-s)
}

// delta returns a bound of δ(ε).
func (u *curve) delta(eps float64) float64 {
	s := u.c.shift + 8*unit*math.Abs(eps)
	n := len(u.d)
	if u.c.upper {
		e := eps - s
		x := (e-u.c.off)/u.c.h - float64(u.c.start)
		k := int(math.Floor(x))
		switch {
		case x < 0:
			return 1
		case k >= n-1:
			return math.Min(1, u.d[n-1])
		}
		return math.Min(1, u.between(k, e))
	}
	e := eps + s
	x := (e-u.c.off)/u.c.h - float64(u.c.start)
	k := int(math.Floor(x))
	switch {
	case x < 0:
		return math.Max(0, u.d[0])
	case k >= n-1:
		return 0
	}
	return math.Max(0, u.between(k, e))
}

func (u *curve) between(k int, e float64) float64 {
	f := math.Expm1(e-u.loss(k)) / math.Expm1(u.c.h)
	f = math.Min(math.Max(f, 0), 1)
	return u.d[k] + f*(u.d[k+1]-u.d[k])
}
