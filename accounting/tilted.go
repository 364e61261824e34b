package accounting

import "math"

// A spectrum is one mechanism's law on the lattice, one rounding direction and
// one direction of the pair, ready to be tilted: ln of the P-mass per node.
type spectrum struct {
	off   float64 // loss of node 0
	h     float64
	ln    []float64 // ln p, −Inf where empty
	inf   float64   // mass at infinite loss
	count float64
	shift float64
}

// newSpectrum turns r into P-masses (or Q-masses with losses negated, for the
// add direction). upper adds the mass outside the nodes, lower drops it.
func newSpectrum(g *lattice, r []float64, count float64, add, upper bool) *spectrum {
	s := &spectrum{off: g.off, h: g.h, ln: make([]float64, g.n), count: count, shift: g.shift}
	if add {
		s.off = -g.node(g.n - 1)
	}
	for i := range s.ln {
		src, l := i, g.node(i)
		if add {
			src = g.n - 1 - i
			l = -g.node(src)
		}
		v := math.Inf(-1)
		if r[src] > 0 {
			v = math.Log(r[src]) + l/2
		}
		s.ln[i] = v
	}
	if upper {
		// Mass above the nodes has infinite loss; mass below moves up to node 0.
		low := g.botP
		s.inf = g.topP
		if add {
			low, s.inf = g.topQ, g.botQ
		}
		if low > 0 {
			s.ln[0] = logAdd(s.ln[0], math.Log(low))
		}
	}
	return s
}

// lnMoment returns ln Σ p·e^{θl} for one step.
func (s *spectrum) lnMoment(theta float64) float64 {
	top := math.Inf(-1)
	for i, v := range s.ln {
		if e := v + theta*(s.off+float64(i)*s.h); e > top {
			top = e
		}
	}
	if math.IsInf(top, -1) {
		return top
	}
	sum := 0.0
	for i, v := range s.ln {
		if e := v + theta*(s.off+float64(i)*s.h) - top; e > -50 {
			sum += math.Exp(e)
		}
	}
	// what was skipped, as an upper bound
	sum += float64(len(s.ln)) * 2e-22
	return top + math.Log(sum)
}

// momentSlack bounds the error of T·lnMoment relative to its parts: it is added
// in exponents of Chernoff bounds.
func (s *spectrum) momentSlack(theta float64) float64 {
	reach := math.Max(math.Abs(s.off), math.Abs(s.off+float64(len(s.ln))*s.h))
	return s.count * unit * (64 + 8*math.Abs(theta)*reach)
}

// tilt writes p·e^{θl−lnM} into x, folded modulo len(x), rounded up or down.
func (s *spectrum) tilt(x []float64, theta, lnM float64, upper bool) {
	clear(x)
	n := len(x)
	j := 0
	for i, v := range s.ln {
		if !math.IsInf(v, -1) {
			l := s.off + float64(i)*s.h
			e := v + theta*l - lnM
			if e > -700 {
				w := math.Exp(e)
				rel := unit * (16 + 4*(math.Abs(v)+math.Abs(l)*(1+math.Abs(theta))+math.Abs(lnM)))
				if upper {
					w *= 1 + rel
				} else {
					w *= 1 - rel
				}
				x[j] += w
			} else if upper {
				x[j] += 1e-300
			}
		}
		if j++; j == n {
			j = 0
		}
	}
}
