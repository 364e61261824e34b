package accounting

import "math"

// lower returns a law on the same nodes that the true law dominates: an
// optimistic discretisation whose error, like the upper one's, is of second
// order in h.
//
// Let H(γ) = δ(ln γ), convex and decreasing. The split law's curve is the chord
// through H at the nodes γ_i. In a cell with Q-mass q = ql + qr the chord
// exceeds H by at most D = ql·qr·Δγ/(ql+qr): the excess is an integral of
// Green's function of the second derivative, which is concave in the place of
// the mass, so by Jensen it is largest when the mass sits in one point. So the
// values H(γ_i) − c_i with c_i ≥ max(D left, D right) give a piecewise linear
// curve below H, and its lower convex hull is the curve of a law that the true
// law dominates. In terms of masses: c_i is a tent, mass taken from i−1 and i+1
// by the lever rule and put on i; the hull step removes a node of negative mass
// by the lever rule on its neighbours. Everything is relative arithmetic on
// masses, without the cancellation of differences of δ.
//
// At the left end H is the line 1−γ (mirrored: the axis 0), and no curve of a law
// can lie below it. Where a cell asks for more room than the curve has above
// that line, all mass up to there is first collected onto the line: see end.
// Where the hull would reach past an end, more of that end is collected. A law
// too narrow for all this keeps only what lies exactly on nodes.
func (g *lattice) lower() []float64 {
	skipL, skipR := 0, 0
	for {
		r, left, right := g.contract(skipL, skipR)
		if !left && !right {
			return r
		}
		// The hull ran past an end: collect more of that end onto its line.
		if left {
			skipL = 2*skipL + 1
		}
		if right {
			skipR = 2*skipR + 1
		}
	}
}

// kappa bounds the relative rounding of one sum of a few products.
const kappa = 16 * unit

// contract builds the lower law after collecting at least skipL and skipR nodes
// at the ends; left and right report an end past which the hull ran.
func (g *lattice) contract(skipL, skipR int) (out []float64, left, right bool) {
	n := g.n
	first, last := n, -1
	for i := range n {
		if g.at[i] > 0 {
			first, last = min(first, i), max(last, i)
		}
		if g.rl[i] > 0 || g.rr[i] > 0 {
			first, last = min(first, i), max(last, i+1)
		}
	}
	out = make([]float64, n)
	if last < first {
		return out, false, false
	}
	v := &cells{g: g, first: first, last: last}
	b, endL, okL := v.end(skipL)
	v.mirror = true
	e, endR, okR := v.end(skipR)
	v.mirror = false
	e = last + first - e
	if !okL || !okR || b > e {
		// Too narrow for tents: keep what lies exactly on nodes.
		for i := first; i <= last; i++ {
			out[i], _ = v.on(i)
		}
		return out, false, false
	}
	// tent[i] is the mass the tent on node i needs.
	tent := make([]float64, n)
	tent[b] = endL.need
	tent[e] = math.Max(tent[e], endR.need)
	twoCosh := 2 * math.Cosh(g.h/2)
	for i := b; i <= e; i++ {
		out[i], _ = v.on(i)
	}
	for i := b; i < e; i++ {
		c := v.cell(i)
		if c.hiL == 0 || c.hiR == 0 {
			out[i] += c.loL
			out[i+1] += c.loR
			continue
		}
		tent[i] = math.Max(tent[i], v.room(c, false))
		tent[i+1] = math.Max(tent[i+1], v.room(c, true))
		out[i] += c.loL
		out[i+1] += c.loR
	}
	take := make([]float64, n)
	for i := b; i <= e; i++ {
		take[i-1] += tent[i] / twoCosh
		take[i+1] += tent[i] / twoCosh
	}
	out[b-1] += endL.far * (1 - kappa)
	out[e+1] += endR.far * (1 - kappa)
	out[b] += math.Max(endL.near, 0) * (1 - kappa)
	take[b] -= math.Min(endL.near, 0)
	out[e] += math.Max(endR.near, 0) * (1 - kappa)
	take[e] -= math.Min(endR.near, 0)
	for i := b - 1; i <= e+1; i++ {
		out[i] = (out[i]+tent[i])*(1-kappa) - take[i]*(1+kappa)
	}
	left, right = g.hull(out, b-1, e+1)
	return out, left, right
}

// cells reads a lattice between two nodes, forwards or mirrored (losses negated,
// which exchanges the hypotheses and the two ends of each cell).
type cells struct {
	g           *lattice
	first, last int
	mirror      bool
}

// A cell's split with lower and upper bounds.
type cell struct{ loL, hiL, loR, hiR float64 }

func (v *cells) cell(i int) cell {
	j := i
	if v.mirror {
		j = v.last + v.first - i - 1
	}
	g := v.g
	if g.rl[j] == 0 && g.rr[j] == 0 {
		return cell{}
	}
	c := cell{
		math.Max(g.rl[j]-g.el[j], 0), g.rl[j] + g.el[j],
		math.Max(g.rr[j]-g.er[j], 0), g.rr[j] + g.er[j],
	}
	if v.mirror {
		return cell{c.loR, c.hiR, c.loL, c.hiL}
	}
	return c
}

func (v *cells) on(i int) (lo, hi float64) {
	if v.mirror {
		i = v.last + v.first - i
	}
	r := v.g.at[i]
	return r * (1 - v.g.atRel), r * (1 + v.g.atRel)
}

// room is the tent that covers cell c's excess on its left node, or its right.
func (v *cells) room(c cell, onRight bool) float64 {
	if c.hiL == 0 || c.hiR == 0 {
		return 0
	}
	e := math.Exp(-v.g.h / 2)
	num := 2 * math.Cosh(v.g.h/2) * c.hiL * c.hiR * (1 + kappa)
	if onRight {
		return num / (c.hiL*e + c.hiR)
	}
	return num / (c.hiL + c.hiR*e)
}

// An end is the outcome of collecting one end's mass: far on node b−1, near on
// node b (may be negative: the tents and the hull pay for it) and the tent that
// node b needs.
type end struct{ far, near, need float64 }

// end walks inward from the left end. All mass below node b is expressed as a
// mass x on node b−1 and y on node b with the same totals P and Q under both
// hypotheses. The curve may then be lowered at b by a tent of at most
// 2cosh(h/2)·x before it meets the line. It stops at the first b, at least skip
// nodes in, where that is room enough for the cell to the right of b and for
// what the cell to the left still needs.
func (v *cells) end(skip int) (b int, out end, ok bool) {
	h := v.g.h
	twoCosh := 2 * math.Cosh(h/2)
	e := math.Exp(-h / 2)
	cosh, sinh := math.Cosh(h/2), v.g.sinhHalf
	// a = Σ r_i·sinh((b−i)h/2) and c = Σ r_i·cosh((b−i)h/2) over nodes below b
	// move inward by addition theorems: positive terms only.
	var aLo, aHi, cLo, cHi, carryLo, carryHi float64
	capPrev := 0.0 // tent on node b−1 that puts it on the line, lower bound
	for b = v.first + 1; b < v.last; b++ {
		lo, hi := v.on(b - 1)
		c := v.cell(b - 1)
		cLo += lo + c.loL + carryLo
		cHi += hi + c.hiL + carryHi
		carryLo, carryHi = c.loR, c.hiR
		prevHi := aHi
		aLo, cLo = (aLo*cosh+cLo*sinh)*(1-4*unit), (cLo*cosh+aLo*sinh)*(1-4*unit)
		aHi, cHi = (aHi*cosh+cHi*sinh)*(1+4*unit), (cHi*cosh+aHi*sinh)*(1+4*unit)
		if b < v.first+skip-1 {
			continue
		}
		x := aLo / sinh * (1 - kappa)
		y := carryLo*(1-kappa) - prevHi/sinh*(1+kappa)
		room := twoCosh * x * (1 - kappa)
		left := 0.0
		if c.hiL > 0 && c.hiR > 0 {
			lambda := c.hiR * e / (c.hiL + c.hiR*e)
			lambdaLo := c.loR * e / (c.hiL + c.loR*e)
			if lambdaLo > 0 {
				left = (v.room(c, true) - capPrev*e*(1-lambda)*(1-kappa)) / lambdaLo * (1 + kappa)
			} else {
				left = math.Inf(1)
			}
		}
		need := math.Max(0, math.Max(left, v.room(v.cell(b), false)))
		if need <= room && b > v.first+skip {
			return b, end{x, y, need}, true
		}
		capPrev = math.Max(room, 0)
	}
	return b, end{}, false
}

// hull removes nodes of negative mass by the lever rule. It reports an end whose
// outermost node would have to pay more than it has.
func (g *lattice) hull(r []float64, first, last int) (left, right bool) {
	if r[first] < 0 {
		return true, r[last] < 0
	}
	stack := make([]int, 1, last-first+1)
	stack[0] = first
	for i := first + 1; i < last; i++ {
		stack = append(stack, i)
		for r[stack[len(stack)-1]] < 0 {
			k := len(stack) - 1
			if k == 0 {
				return true, false
			}
			c := stack[k]
			a := stack[k-1]
			b := i + 1
			need := -r[c] * (1 + kappa)
			r[c] = 0
			w := math.Sinh(float64(b-a) * g.h / 2)
			x := need * math.Sinh(float64(b-c)*g.h/2) / w
			y := need * math.Sinh(float64(c-a)*g.h/2) / w
			r[a] = r[a]*(1-unit) - x*(1+kappa)
			r[b] -= y * (1 + kappa)
			stack = stack[:k]
		}
	}
	return false, r[last] < 0
}
