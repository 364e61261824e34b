package accounting

import (
	"fmt"
	"math"
)

// DiscreteLaplace is noise with P(k) ∝ e^{−|k|/Scale} on the integers, added to
// an integer that one client changes by at most Sensitivity. For vectors,
// Sensitivity is the L1 bound Δ₁.
type DiscreteLaplace struct {
	Scale       float64 // t, positive
	Sensitivity int     // at least 1
}

func (m DiscreteLaplace) key() string {
	return fmt.Sprintf("discrete laplace %x %d", m.Scale, m.Sensitivity)
}

func (m DiscreteLaplace) law() (law, error) { return plainLaw(m) }

func (m DiscreteLaplace) base() (base, error) {
	if err := checkPositive("discrete Laplace scale", m.Scale); err != nil {
		return nil, err
	}
	if err := checkSensitivity(m.Sensitivity); err != nil {
		return nil, err
	}
	if err := checkAtoms(float64(m.Sensitivity)); err != nil {
		return nil, err
	}
	d, t := m.Sensitivity, m.Scale
	if tooLoud(1/t, float64(d)/t) {
		return lostTable(), nil
	}
	b := &table{off: -float64(d) / t, step: 2 / t, relative: 64 * unit * (1 + float64(d)/t)}
	b.maxP, b.maxQ = float64(d)/t, float64(d)/t
	// P(k) = tanh(1/2t)·e^{−|k|/t}; everything at or below 0 has loss −Δ/t.
	side := 1 / (1 + math.Exp(-1/t)) // P(k ≤ 0)
	unitMass := math.Tanh(1 / (2 * t))
	for k := 0; k <= d; k++ {
		q, p := unitMass*math.Exp(-float64(k)/t), unitMass*math.Exp(-float64(d-k)/t)
		if k == 0 {
			q, p = side, side*math.Exp(-float64(d)/t)
		}
		if k == d {
			p, q = side, side*math.Exp(-float64(d)/t)
		}
		b.list = append(b.list, atom{float64(2*k-d) / t, p, q})
	}
	return b, nil
}

func (m DiscreteLaplace) mass() (masses, error) {
	t := m.Scale
	if err := checkPositive("discrete Laplace scale", t); err != nil {
		return masses{}, err
	}
	k := math.Ceil(140*t) + float64(max(m.Sensitivity, 0))
	if err := checkAtoms(2 * k); err != nil {
		return masses{}, err
	}
	out := masses{
		half:     make([]float64, int(k)+1),
		lost:     2 * math.Exp(-(k+1)/t),
		relative: 64 * unit * 140,
	}
	for i := range out.half {
		out.half[i] = math.Tanh(1/(2*t)) * math.Exp(-float64(i)/t)
	}
	return out, nil
}

func (m DiscreteLaplace) sensitivity() int { return m.Sensitivity }

// DiscreteGaussian is noise with P(k) ∝ e^{−k²/2σ²} on the integers
// (Canonne, Kamath, Steinke 2020), added to an integer that one client changes
// by at most Sensitivity.
type DiscreteGaussian struct {
	Sigma       float64 // σ of the exponent, positive
	Sensitivity int     // at least 1
}

func (m DiscreteGaussian) key() string {
	return fmt.Sprintf("discrete gaussian %x %d", m.Sigma, m.Sensitivity)
}

func (m DiscreteGaussian) law() (law, error)   { return plainLaw(m) }
func (m DiscreteGaussian) base() (base, error) { return shifted(m) }
func (m DiscreteGaussian) sensitivity() int    { return m.Sensitivity }
func (m DiscreteGaussian) logRatio(k int) float64 {
	// ln P(k−Δ)/P(k), exactly a lattice in k.
	d := float64(m.Sensitivity)
	return d * (2*float64(k) - d) / (2 * m.Sigma * m.Sigma)
}

func (m DiscreteGaussian) mass() (masses, error) {
	s := m.Sigma
	if err := checkPositive("discrete Gaussian sigma", s); err != nil {
		return masses{}, err
	}
	reach := math.Ceil(17*s) + float64(max(m.Sensitivity, 0))
	if err := checkAtoms(2 * reach); err != nil {
		return masses{}, err
	}
	n := int(reach) + 2
	out := masses{half: make([]float64, n), relative: 512 * unit}
	sum := 0.0
	for i := n - 1; i >= 0; i-- {
		out.half[i] = math.Exp(-float64(i) * float64(i) / (2 * s * s))
		if i > 0 {
			sum += 2 * out.half[i]
		}
	}
	sum += 1
	for i := range out.half {
		out.half[i] /= sum
	}
	// Σ_{k≥n} e^{−k²/2σ²} ≤ e^{−n²/2σ²}/(1−e^{−n/σ²})
	k := float64(n)
	out.lost = 2 * math.Exp(-k*k/(2*s*s)) / -math.Expm1(-k/(s*s))
	return out, nil
}

// masses is a symmetric probability table: half[k] = P(|X| = k, one sign),
// lost a bound on the mass beyond it, relative the masses' relative error.
type masses struct {
	half     []float64
	lost     float64
	relative float64
}

func (m masses) at(k int) float64 {
	if k < 0 {
		k = -k
	}
	if k >= len(m.half) {
		return 0
	}
	return m.half[k]
}

// integerNoise is a mechanism that adds symmetric integer noise.
type integerNoise interface {
	baser
	mass() (masses, error)
	sensitivity() int
}

// shifted builds the pair (law of X+Δ, law of X) from a table.
func shifted(m integerNoise) (base, error) {
	d := m.sensitivity()
	if err := checkSensitivity(d); err != nil {
		return nil, err
	}
	t, err := m.mass()
	if err != nil {
		return nil, err
	}
	n := len(t.half)
	b := &table{
		relative: t.relative,
		maxP:     math.Inf(1),
		maxQ:     math.Inf(1),
		lostP:    t.lost,
		lostQ:    t.lost,
	}
	exact, isGauss := m.(DiscreteGaussian)
	b.list = make([]atom, 0, 2*n+d)
	for k := -n + 1; k < n+d; k++ {
		p, q := t.at(k-d), t.at(k)
		if p == 0 && q == 0 {
			continue
		}
		l := math.Log(p) - math.Log(q)
		if isGauss {
			l = exact.logRatio(k)
			// The pair's other member is known from the ratio even where the
			// table has ended; keep both inside it, charge the rest.
			if p == 0 || q == 0 {
				b.lostP += p
				b.lostQ += q
				continue
			}
		}
		b.list = append(b.list, atom{l, p, q})
	}
	if isGauss && tooLoud(float64(d)/(exact.Sigma*exact.Sigma), exact.logRatio(n)) {
		return lostTable(), nil
	}
	if isGauss {
		b.off, b.step = exact.logRatio(-n+1), float64(d)/(exact.Sigma*exact.Sigma)
	}
	return b, nil
}

// table is a base pair made of atoms alone, in order of loss or not.
type table struct {
	list         []atom
	relative     float64
	lostP, lostQ float64
	maxP, maxQ   float64
	off, step    float64
}

// loudest is the largest privacy loss of one step that is computed with.
const loudest = 1e280

// tooLoud reports whether the losses of a mechanism are beyond that: there is next
// to no noise.
func tooLoud(losses ...float64) bool {
	for _, l := range losses {
		if !(math.Abs(l) <= loudest) {
			return true
		}
	}
	return false
}

// lostTable is a pair without any privacy that can be shown.
func lostTable() *table {
	return &table{lostP: 1, lostQ: 1, maxP: math.Inf(1), maxQ: math.Inf(1)}
}

func (t *table) atoms() []atom                { return t.list }
func (t *table) rel() float64                 { return t.relative }
func (t *table) lost() (p, q float64)         { return t.lostP, t.lostQ }
func (t *table) continuous() bool             { return false }
func (t *table) pure() (p, q float64)         { return t.maxP, t.maxQ }
func (t *table) lattice() (off, step float64) { return t.off, t.step }

func (t *table) tails(float64) (a, b tail, place float64) { return tail{}, tail{}, 0 }

func (t *table) span(tail float64) (lo, hi float64) {
	lo, hi = math.Inf(1), math.Inf(-1)
	for _, a := range t.list {
		if math.IsInf(a.l, 0) {
			continue
		}
		// An atom too light to matter next to the tail of all others is cut; the
		// lattice still charges it.
		if a.p+a.q > tail/float64(len(t.list)) {
			lo, hi = math.Min(lo, a.l), math.Max(hi, a.l)
		}
	}
	return lo, hi
}

func (t *table) guide() []point {
	const limit = 4096
	stride := 1 + len(t.list)/limit
	out := make([]point, 0, limit+1)
	for i := 0; i < len(t.list); i += stride {
		var l, p, q float64
		for j := i; j < min(i+stride, len(t.list)); j++ {
			a := t.list[j]
			if math.IsInf(a.l, 0) {
				continue
			}
			w := a.p + a.q
			l += w * a.l
			p += a.p
			q += a.q
		}
		if p+q > 0 {
			out = append(out, point{l / (p + q), math.Log(p), math.Log(q)})
		}
	}
	return out
}
