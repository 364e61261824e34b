package accounting

import (
	"fmt"
	"math"

	"github.com/hushsum/hushsum/internal/fault"
)

// Sampled is Poisson sampling at Rate under add/remove adjacency: the client
// takes part with probability Rate, independently of all others, and the
// adversary does not learn whether it did. Both directions are accounted and
// the larger one is reported (Zhu, Dong, Wang 2022 Theorem 11: the pair
// (1−q)Q+qP against Q dominates when P against Q does).
type Sampled struct {
	Mechanism Mechanism // an unsampled mechanism of this package
	Rate      float64   // 0 < Rate ≤ 1
}

func (m Sampled) key() string {
	if m.Mechanism == nil {
		return "sampled nil"
	}
	if m.Rate == 1 {
		return m.Mechanism.key()
	}
	return fmt.Sprintf("poisson %x of %s", m.Rate, m.Mechanism.key())
}

func (m Sampled) law() (law, error) {
	if err := checkRate(m.Rate); err != nil {
		return nil, err
	}
	inner, ok := m.Mechanism.(baser)
	if !ok {
		return nil, fault.New(ErrUnsupported, "",
			"Sampled wraps an unsampled mechanism, not %T", m.Mechanism)
	}
	b, err := inner.base()
	if err != nil {
		return nil, err
	}
	return &sampledLaw{base: b, q: m.Rate}, nil
}

// sampledLaw is the pair ((1−q)·Q1 + q·P1, Q1). With y = P1/Q1 the likelihood
// ratio is γ = 1−q+q·y, affine in y, so a split of cells in γ is the base
// pair's split in y, and nothing cancels when q is small.
type sampledLaw struct {
	base base
	q    float64
}

func (s *sampledLaw) symmetric() bool { return false }

func (s *sampledLaw) exact() bool {
	_, step := s.base.lattice()
	return s.q == 1 && step > 0 && !s.base.continuous()
}

// loss maps a base loss to the sampled loss ln(1−q+q·e^ℓ).
func (s *sampledLaw) loss(l float64) float64 { return sampledLoss(s.q, l) }

func sampledLoss(q, l float64) float64 {
	switch {
	case q == 1:
		return l
	case l > 700:
		return l + math.Log(q)
	}
	return math.Log1p(q * math.Expm1(l))
}

func (s *sampledLaw) pure() (remove, add float64) {
	p, q := s.base.pure()
	return s.loss(p), -s.loss(-q)
}

func (s *sampledLaw) lattice() (off, step float64) {
	off, step = s.base.lattice()
	if s.q == 1 || step == 0 {
		return off, step
	}
	// Sampling bends the lattice; its ends can still be met if they are finite.
	p, q := s.base.pure()
	if math.IsInf(p, 1) || math.IsInf(q, 1) {
		return 0, 0
	}
	lo, hi := s.loss(-q), s.loss(p)
	return lo, hi - lo
}

func (s *sampledLaw) span(tail float64) (lo, hi float64) {
	lo, hi = s.base.span(tail)
	lo, hi = s.loss(lo), s.loss(hi)
	if floor := math.Log1p(-s.q); s.q < 1 && lo-floor < (hi-lo)/4 {
		lo = floor
	}
	return lo, hi
}

func (s *sampledLaw) guide() []point {
	pts := s.base.guide()
	if s.q == 1 {
		return pts
	}
	out := make([]point, len(pts))
	ln1q, lnq := math.Log1p(-s.q), math.Log(s.q)
	for i, p := range pts {
		out[i] = point{s.loss(p.l), logAdd(ln1q+p.lq, lnq+p.lp), p.lq}
	}
	return out
}

func logAdd(a, b float64) float64 {
	if a < b {
		a, b = b, a
	}
	if math.IsInf(b, -1) || math.IsInf(a, 1) {
		return a
	}
	return a + math.Log1p(math.Exp(b-a))
}

func (s *sampledLaw) fill(g *lattice) {
	q := s.q
	lp, lq := s.base.lost()
	g.topP += (1-q)*lq + q*lp
	g.topQ += lq
	g.botP += (1-q)*lq + q*lp
	g.botQ += lq
	rel := s.base.rel()
	for _, a := range s.base.atoms() {
		l := s.loss(a.l)
		p := (1-q)*a.q + q*a.p
		g.addAtom(l, p, a.q, rel, 4*unit*(math.Abs(l)+1e-300)+4*unit*q*math.Abs(slope(q, a.l)))
	}
	if s.base.continuous() {
		s.fillCells(g)
	}
}

// slope is an upper bound of the derivative of the sampled loss at base loss l.
func slope(q, l float64) float64 {
	if l > 0 {
		return 1 / q
	}
	return math.Exp(math.Max(l, -700)) / (1 - q + q*math.Exp(math.Max(l, -700)))
}

func (s *sampledLaw) fillCells(g *lattice) {
	q := s.q
	eh := math.Expm1(g.h)
	invHalf := math.Exp(-g.h / 2)
	var yPrev, dyPrev float64
	var aPrev, bPrev tail
	var rootPrev float64
	for i := range g.n {
		e := g.node(i)
		em1 := math.Expm1(e)
		y := 1 + em1/q
		if q < 1 {
			y = (em1 + q) / q
		}
		dy := 4 * unit * (math.Abs(em1) + math.Abs(e)*(1+em1) + q) / q
		var a, b tail
		if y > 0 {
			l := math.Log(y)
			if d := em1 / q; math.Abs(d) < 0.5 {
				l = math.Log1p(d)
			}
			if q == 1 {
				l = e
			}
			var place float64
			a, b, place = s.base.tails(l)
			// the weight of base losses in the sampled loss: q·y/γ
			w := q * y / (1 + em1)
			g.shift = math.Max(g.shift, 2*(w*place+q*dy/(1+em1)))
			dy += y * place
		} else {
			a, b, _ = s.base.tails(math.Inf(-1))
		}
		if i == 0 {
			s.edge(g, a, b, false)
		} else {
			massA, errA := between(aPrev, a)
			massB, errB := between(bPrev, b)
			if massA > 0 || massB > 0 {
				width := (1 + math.Expm1(g.node(i-1))) * eh / q
				excess := massB - yPrev*massA
				err := errB + math.Abs(yPrev)*errA + dyPrev*massA + 4*unit*(massB+math.Abs(yPrev)*massA)
				excess = math.Min(math.Max(excess, 0), massA*width)
				qr := excess / width
				eqr := err / width
				// Q-mass m weighs r = m·e^{l/2}.
				g.addCell(i-1, massA-qr, qr, errA+eqr, eqr, rootPrev, rootPrev/invHalf)
			}
		}
		yPrev, dyPrev, aPrev, bPrev = y, dy, a, b
		rootPrev = math.Exp(e / 2)
	}
	s.edge(g, aPrev, bPrev, true)
}

// edge records the continuous mass beyond the first or last node.
func (s *sampledLaw) edge(g *lattice, a, b tail, top bool) {
	beyond := func(t tail) float64 {
		if t.upper == top {
			return t.v + t.err
		}
		total := 1.0
		if l, ok := s.base.(laplaceBase); ok {
			total = -math.Expm1(-1/l.b) / 2
		}
		return math.Max(0, total-t.v+t.err+unit)
	}
	qa, pb := beyond(a), beyond(b)
	p := (1-s.q)*qa + s.q*pb
	if top {
		g.topP += p
		g.topQ += qa
	} else {
		g.botP += p
		g.botQ += qa
	}
}
