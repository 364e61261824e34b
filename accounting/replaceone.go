package accounting

import (
	"fmt"
	"math"

	"github.com/hushsum/hushsum/internal/fault"
)

// ReplaceOne is replace-one adjacency: one client's contribution is exchanged
// for any other, after Poisson sampling at Rate. The wrapped mechanism's
// parameters are relative to the add/remove sensitivity; replacing moves the
// sum by up to twice that, from −Δ to +Δ around the others, so at Rate 1 a
// Gaussian of multiplier z is one of z/2. The pair is (1−q)·X + q·(X+Δ) against
// (1−q)·X + q·(X−Δ) (Lebeda, Regehr, Kamath, Steinke 2024). Gaussian, discrete
// Laplace, discrete Gaussian and Skellam noise are supported at any rate,
// Laplace at rate 1; anything else is ErrUnsupported.
type ReplaceOne struct {
	Mechanism Mechanism
	Rate      float64 // 0 < Rate ≤ 1
}

func (m ReplaceOne) key() string {
	if m.Mechanism == nil {
		return "replace nil"
	}
	return fmt.Sprintf("replace-one %x of %s", m.Rate, m.Mechanism.key())
}

func (m ReplaceOne) law() (law, error) {
	if err := checkRate(m.Rate); err != nil {
		return nil, err
	}
	switch n := m.Mechanism.(type) {
	case Gaussian:
		if err := checkPositive("noise multiplier", n.NoiseMultiplier); err != nil {
			return nil, err
		}
		if m.Rate == 1 {
			return Gaussian{n.NoiseMultiplier / 2}.law()
		}
		return &replaceGaussian{mu: 1 / n.NoiseMultiplier, q: m.Rate}, nil
	case Laplace:
		if m.Rate == 1 {
			return Laplace{n.Scale / 2}.law()
		}
	case integerNoise:
		return m.integer(n)
	}
	return nil, fault.New(ErrUnsupported, "use rate 1, discrete or Gaussian noise, or RDP.FixedSize",
		"replace-one of %T at rate %v", m.Mechanism, m.Rate)
}

func (m ReplaceOne) integer(n integerNoise) (law, error) {
	d, q := n.sensitivity(), m.Rate
	if err := checkSensitivity(d); err != nil {
		return nil, err
	}
	t, err := n.mass()
	if err != nil {
		return nil, err
	}
	size := len(t.half)
	if err := checkAtoms(2 * float64(size+d)); err != nil {
		return nil, err
	}
	b := &table{
		relative: t.relative + 8*unit,
		maxP:     math.Inf(1),
		maxQ:     math.Inf(1),
		lostP:    t.lost,
		lostQ:    t.lost,
	}
	for k := -size - d + 1; k < size+d; k++ {
		here, up, down := t.at(k), t.at(k-d), t.at(k+d)
		p, r := (1-q)*here+q*up, (1-q)*here+q*down
		if p == 0 && r == 0 {
			continue
		}
		b.list = append(b.list, atom{math.Log(p) - math.Log(r), p, r})
	}
	if l, ok := n.(DiscreteLaplace); ok {
		// Bounded: the largest ratio is at one far end.
		e := float64(d) / l.Scale
		top := sampledLoss(q, e) - sampledLoss(q, -e)
		b.maxP, b.maxQ = top, top
		for _, a := range b.list {
			if !math.IsInf(a.l, 0) {
				b.maxP, b.maxQ = math.Max(b.maxP, a.l), math.Max(b.maxQ, -a.l)
			}
		}
	}
	return &mirrored{sampledLaw{base: b, q: 1}}, nil
}

// mirrored is a law whose two directions coincide.
type mirrored struct{ sampledLaw }

func (*mirrored) symmetric() bool { return true }

// replaceGaussian is (1−q)N(0,1)+qN(mu,1) against (1−q)N(0,1)+qN(−mu,1).
type replaceGaussian struct{ mu, q float64 }

func (g *replaceGaussian) symmetric() bool              { return true }
func (g *replaceGaussian) exact() bool                  { return false }
func (g *replaceGaussian) pure() (remove, add float64)  { return math.Inf(1), math.Inf(1) }
func (g *replaceGaussian) lattice() (off, step float64) { return 0, 0 }

func (g *replaceGaussian) loss(t float64) float64 {
	m := g.mu * g.mu / 2
	return sampledLoss(g.q, g.mu*t-m) - sampledLoss(g.q, -g.mu*t-m)
}

// place inverts loss: with w = e^{mu·t} and r = q·e^{−mu²/2} it solves
// r·w + (1−q)(1−e^l) − e^l·r/w = 0, in the root that does not cancel.
func (g *replaceGaussian) place(l float64) float64 {
	if l < 0 {
		return -g.place(-l)
	}
	// half = (1−q)(e^l−1)/(2r) ≥ 0, w = half + √(half² + e^l)
	r := g.q * math.Exp(-g.mu*g.mu/2)
	half := (1 - g.q) * math.Expm1(l) / (2 * r)
	// ln w = l/2 + asinh(half·e^{−l/2})
	return (l/2 + math.Asinh(half*math.Exp(-l/2))) / g.mu
}

func (g *replaceGaussian) span(tail float64) (lo, hi float64) {
	t := g.mu + normalQuantile(tail)
	return g.loss(-t), g.loss(t)
}

func (g *replaceGaussian) guide() []point {
	const span, n = 38, 900
	step := (2*span + 2*g.mu) / n
	lnStep := math.Log(step) - 0.5*math.Log(2*math.Pi)
	l0, l1 := math.Log1p(-g.q), math.Log(g.q)
	out := make([]point, n+1)
	for i := range out {
		t := -span - g.mu + float64(i)*step
		u, v := t-g.mu, t+g.mu
		base := lnStep + l0 - t*t/2
		out[i] = point{g.loss(t), logAdd(base, lnStep+l1-u*u/2), logAdd(base, lnStep+l1-v*v/2)}
	}
	return out
}

func (g *replaceGaussian) fill(out *lattice) {
	q := g.q
	var prev [3]tail
	for i := range out.n {
		l := out.node(i)
		t := g.place(l)
		// An error dt of the place is one of at most mu·dt in the loss.
		out.shift = math.Max(out.shift, 16*unit*(1+math.Abs(l)+g.mu*math.Abs(t)))
		here := [3]tail{normalTail(t), normalTail(t - g.mu), normalTail(t + g.mu)}
		if i > 0 {
			a0, e0 := between(prev[0], here[0])
			ap, ep := between(prev[1], here[1])
			am, em := between(prev[2], here[2])
			lo := out.node(i - 1)
			// Masses under both hypotheses; with weights e^{∓l/2} the split is
			// rr = (P·e^{−l0/2} − Q·e^{l0/2})/(2 sinh(h/2)), likewise rl.
			p, pe := (1-q)*a0+q*ap, (1-q)*e0+q*ep
			s, se := (1-q)*a0+q*am, (1-q)*e0+q*em
			x, y := math.Exp(-lo/2), math.Exp(lo/2)
			den := 2 * out.sinhHalf
			rr := (p*x - s*y) / den
			top := math.Exp(out.h / 2)
			rl := (s*y*top - p*x/top) / den
			err := ((pe+4*unit*p)*x + (se+4*unit*s)*y + 4*unit*(1+math.Abs(l))*(p*x+s*y)) * top / den
			out.rl[i-1] += math.Max(rl, 0)
			out.rr[i-1] += math.Max(rr, 0)
			out.el[i-1] += err
			out.er[i-1] += err
		}
		prev = here
		if i == 0 || i == out.n-1 {
			side := func(v float64) float64 {
				if i == 0 {
					v = -v
				}
				return math.Erfc(v*invSqrt2) / 2 * (1 + 1e-12)
			}
			p := (1-q)*side(t) + q*side(t-g.mu)
			s := (1-q)*side(t) + q*side(t+g.mu)
			if i == 0 {
				out.botP, out.botQ = out.botP+p, out.botQ+s
			} else {
				out.topP, out.topQ = out.topP+p, out.topQ+s
			}
		}
	}
}
