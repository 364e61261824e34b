package accounting

import "math"

// A lattice holds the law of one step's privacy loss L = ln(P/Q) on the nodes
// off + i·h. Masses are stored as r = √(p·q), from which the P-mass at a node
// with loss l is r·e^{l/2} and the Q-mass r·e^{−l/2}: one array serves both
// directions and neither under- nor overflows for |l| ≤ 1000.
//
// Mass strictly inside cell i (between nodes i and i+1) is stored as its split
// onto the two ends: the pair (rl, rr) that has the cell's P-mass and its
// Q-mass. The split law dominates the true one, so it is the upper law as it
// stands; lower.go contracts it.
type lattice struct {
	off, h float64
	n      int
	at     []float64 // mass exactly on a node
	rl, rr []float64 // cell i's split onto nodes i and i+1
	el, er []float64 // absolute error bounds of rl and rr
	// mass outside the nodes, upper bounds
	topP, topQ, botP, botQ float64
	// shift bounds how far a loss was moved by rounding of node positions.
	shift float64
	// atRel bounds the relative error of at.
	atRel float64
	// sinhHalf = sinh(h/2).
	sinhHalf float64
}

func newLattice(off, h float64, n int) *lattice {
	buf := make([]float64, 5*n)
	return &lattice{
		off:      off,
		h:        h,
		n:        n,
		sinhHalf: math.Sinh(h / 2),
		at:       buf[:n],
		rl:       buf[n : 2*n],
		rr:       buf[2*n : 3*n],
		el:       buf[3*n : 4*n],
		er:       buf[4*n:],
		shift:    8 * unit * (math.Abs(off) + float64(n)*h),
	}
}

func (g *lattice) node(i int) float64 { return g.off + float64(i)*g.h }

// addAtom places mass p under P and q under Q at loss l; rel bounds the
// relative error of p and q, and dl the absolute error of l.
func (g *lattice) addAtom(l, p, q, rel, dl float64) {
	if p <= 0 && q <= 0 {
		return
	}
	top := g.node(g.n - 1)
	slack := 8*unit*(math.Abs(l)+math.Abs(g.off)+float64(g.n)*g.h) + dl
	switch {
	case q <= 0 || l > top+slack:
		g.topP += p * (1 + rel)
		g.topQ += q * (1 + rel)
		return
	case p <= 0 || l < g.off-slack:
		g.botP += p * (1 + rel)
		g.botQ += q * (1 + rel)
		return
	}
	g.shift = math.Max(g.shift, 2*slack)
	r := math.Sqrt(p) * math.Sqrt(q)
	rel += 8 * unit
	i := int(math.Round((l - g.off) / g.h))
	i = min(max(i, 0), g.n-1)
	if math.Abs(l-g.node(i)) <= slack {
		g.at[i] += r
		g.atRel = math.Max(g.atRel, rel+4*unit)
		return
	}
	i = int(math.Floor((l - g.off) / g.h))
	i = min(max(i, 0), g.n-2)
	d := math.Min(math.Max(l-g.node(i), 0), g.h)
	a := r * math.Sinh((g.h-d)/2) / g.sinhHalf
	b := r * math.Sinh(d/2) / g.sinhHalf
	g.rl[i] += a
	g.rr[i] += b
	g.el[i] += a * rel
	g.er[i] += b * rel
}

// addCell places the mass of a continuous law in cell i from its split in
// Q-mass, ql on node i and qr on node i+1, with absolute errors.
func (g *lattice) addCell(i int, ql, qr, errL, errR, rootL, rootR float64) {
	g.rl[i] += math.Max(ql, 0) * rootL
	g.rr[i] += math.Max(qr, 0) * rootR
	g.el[i] += errL*rootL + 4*unit*math.Abs(ql)*rootL
	g.er[i] += errR*rootR + 4*unit*math.Abs(qr)*rootR
}

// upper returns the dominating law r per node.
func (g *lattice) upper() []float64 {
	r := make([]float64, g.n)
	for i := range r {
		r[i] = g.at[i]*(1+g.atRel) + g.rl[i] + g.el[i]
		if i > 0 {
			r[i] += g.rr[i-1] + g.er[i-1]
		}
		r[i] *= 1 + 4*unit
	}
	return r
}

// split returns the same law rounded down, without the mass outside the nodes.
func (g *lattice) split() []float64 {
	r := make([]float64, g.n)
	for i := range r {
		r[i] = g.at[i]*(1-g.atRel) + math.Max(g.rl[i]-g.el[i], 0)
		if i > 0 {
			r[i] += math.Max(g.rr[i-1]-g.er[i-1], 0)
		}
		r[i] = math.Max(r[i], 0) * (1 - 4*unit)
	}
	return r
}

// moves reports whether any mass lies off the nodes.
func (g *lattice) moves() bool {
	for i := range g.n {
		if g.rl[i] > 0 || g.rr[i] > 0 || g.el[i] > 0 || g.er[i] > 0 {
			return true
		}
	}
	return false
}
