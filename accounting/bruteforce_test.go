package accounting

import (
	"cmp"
	"flag"
	"math"
	"math/rand"
	"slices"
	"testing"
)

var bruteRuns = flag.Int("brute", 15, "random compositions to compare with their enumeration")

// An exactAtom is one outcome of a whole run: its loss and both probabilities.
type exactAtom struct{ l, p, q float64 }

// enumerate lists every outcome of the steps, equal draws of one step counted
// once with their multinomial weight. All terms are positive, so the result is
// good to about 1e-13 relative without any lattice, tilt or transform.
func enumerate(steps []finiteStep) []exactAtom {
	out := []exactAtom{{0, 1, 1}}
	for _, s := range steps {
		var law []exactAtom
		fact := func(n int) float64 { return math.Gamma(float64(n) + 1) }
		var draw func(i, left int, a exactAtom)
		draw = func(i, left int, a exactAtom) {
			if i == len(s.p)-1 {
				w := 1 / fact(left)
				law = append(law, a.with(s, i, left, w*fact(s.n)))
				return
			}
			for k := 0; k <= left; k++ {
				draw(i+1, left-k, a.with(s, i, k, 1/fact(k)))
			}
		}
		draw(0, s.n, exactAtom{0, 1, 1})
		next := make([]exactAtom, 0, len(out)*len(law))
		for _, a := range out {
			for _, b := range law {
				next = append(next, exactAtom{a.l + b.l, a.p * b.p, a.q * b.q})
			}
		}
		out = next
	}
	return out
}

func (a exactAtom) with(s finiteStep, i, k int, w float64) exactAtom {
	if k == 0 {
		return exactAtom{a.l, a.p * w, a.q * w}
	}
	n := float64(k)
	return exactAtom{a.l + n*(math.Log(s.p[i])-math.Log(s.q[i])), a.p * w * math.Pow(s.p[i], n),
		a.q * w * math.Pow(s.q[i], n)}
}

// A finiteStep is a mechanism with its pair written out by the test.
type finiteStep struct {
	m    Mechanism
	p, q []float64
	n    int
}

// exactCurve is δ(ε) in both directions from the enumeration.
type exactCurve [2][]exactAtom

func newExactCurve(steps []finiteStep) exactCurve {
	all := enumerate(steps)
	var c exactCurve
	for i := range c {
		c[i] = slices.Clone(all)
		if i == 1 {
			for k, a := range c[i] {
				c[i][k] = exactAtom{-a.l, a.q, a.p}
			}
		}
		slices.SortFunc(c[i], func(a, b exactAtom) int { return cmp.Compare(a.l, b.l) })
	}
	return c
}

func (c exactCurve) direction(i int, eps float64) float64 {
	d := 0.0
	for _, a := range c[i] {
		if a.l > eps {
			d += a.p * -math.Expm1(eps-a.l)
		}
	}
	return d
}

func (c exactCurve) delta(eps float64) float64 {
	return math.Max(c.direction(0, eps), c.direction(1, eps))
}

func (c exactCurve) epsilon(delta float64) float64 {
	lo, hi := 0.0, math.Max(c[0][len(c[0])-1].l, c[1][len(c[1])-1].l)
	if c.delta(0) <= delta {
		return 0
	}
	for range 60 {
		if mid := (lo + hi) / 2; c.delta(mid) > delta {
			lo = mid
		} else {
			hi = mid
		}
	}
	return hi
}

// randomFinite draws a mechanism and tabulates its pair independently.
func randomFinite(rng *rand.Rand) finiteStep {
	s := finiteStep{n: 1 + rng.Intn(4)}
	var inner Mechanism
	switch rng.Intn(4) {
	case 0:
		n := 2 + rng.Intn(3)
		table := func() []float64 {
			t, sum := make([]float64, n), 0.0
			for i := range t {
				t[i] = math.Exp(4 * rng.Float64() * rng.NormFloat64())
				sum += t[i]
			}
			for i := range t {
				t[i] /= sum
			}
			return t
		}
		s.p, s.q = table(), table()
		inner = Pair{P: s.p, Q: s.q}
	case 1:
		e, k := 0.1+3*rng.Float64(), 2+rng.Intn(4)
		z := math.Exp(e) + float64(k) - 1
		s.p = []float64{math.Exp(e) / z, 1 / z, float64(k-2) / z}
		s.q = []float64{1 / z, math.Exp(e) / z, float64(k-2) / z}
		if k == 2 {
			s.p, s.q = s.p[:2], s.q[:2]
		}
		inner = RandomisedResponse{e, k}
	case 2:
		t, d := 0.3+4*rng.Float64(), 1+rng.Intn(3)
		rho := math.Exp(-1 / t)
		for k := 0; k <= d; k++ {
			at := func(k int) float64 {
				switch {
				case k <= 0:
					return 1 / (1 + rho)
				case k == d:
					return math.Pow(rho, float64(d)) / (1 + rho)
				}
				return (1 - rho) / (1 + rho) * math.Pow(rho, float64(k))
			}
			s.q = append(s.q, at(k))
			s.p = append(s.p, at(d-k))
		}
		inner = DiscreteLaplace{t, d}
	default:
		// Tiny σ: eleven outcomes hold all but 1e-30 of the law.
		sigma := 0.25 + 0.12*rng.Float64()
		const reach = 5
		sum := 0.0
		weight := func(k int) float64 { return math.Exp(-float64(k*k) / (2 * sigma * sigma)) }
		for k := -reach - 20; k <= reach+20; k++ {
			sum += weight(k)
		}
		for k := -reach; k <= reach+1; k++ {
			s.q = append(s.q, weight(k)/sum)
			s.p = append(s.p, weight(k-1)/sum)
		}
		inner = DiscreteGaussian{sigma, 1}
		s.n = 1 + rng.Intn(2)
	}
	s.m = inner
	if rng.Intn(2) == 0 {
		rate := math.Exp(-6 * rng.Float64())
		s.m = Sampled{inner, rate}
		for i := range s.p {
			s.p[i] = (1-rate)*s.q[i] + rate*s.p[i]
		}
		if pr, ok := inner.(Pair); ok {
			// s.p was the pair's own table: give it back its copy.
			p := slices.Clone(s.p)
			for i := range p {
				p[i] = (s.p[i] - (1-rate)*s.q[i]) / rate
			}
			pr.P = p
			s.m = Sampled{pr, rate}
		}
	}
	return s
}

// Random heterogeneous compositions of finite pairs, sampled and not, against
// their full enumeration: certified intervals of ε and δ contain the exact
// value, and both lower bounds hold by themselves on lattices far too coarse.
func TestCertificationAgainstEnumeration(t *testing.T) {
	rng := rand.New(rand.NewSource(5))
	wide, checked := 0.0, 0
	const slip = 1e-11 // of the reference
	for run := range *bruteRuns {
		var steps []finiteStep
		var parts []Step
		size := 1.0
		for len(steps) < 1+rng.Intn(3) {
			s := randomFinite(rng)
			n := 1.0
			for i := range s.n {
				n *= float64(len(s.p)+i) / float64(i+1)
			}
			if size *= n; size > 3e4 && len(steps) > 0 {
				break
			}
			steps = append(steps, s)
			parts = append(parts, Step{s.m, s.n})
		}
		exact := newExactCurve(steps)
		c, err := Compose(parts...)
		if err != nil {
			t.Fatal(err)
		}
		for _, delta := range []float64{0.2, 1e-2, 1e-5, 1e-9} {
			b, err := c.Epsilon(delta)
			if err != nil {
				t.Fatal(err)
			}
			// The tables end at masses of 1e-30: δ this large does not see it.
			v := exact.epsilon(delta)
			if b.Lower > v*(1+slip)+1e-12 || b.Upper < v*(1-slip)-1e-12 {
				t.Errorf("run %d, %v, δ=%v: [%v, %v] misses exact %v", run, parts, delta, b.Lower, b.Upper, v)
			}
			if v > 1e-2 {
				wide = math.Max(wide, b.Width()/v)
			}
			checked++
			d, err := c.Delta(v)
			if err != nil {
				t.Fatal(err)
			}
			if w := exact.delta(v); d.Lower > w*(1+slip)+1e-14 || d.Upper < w*(1-slip)-1e-14 {
				t.Errorf("run %d, %v, ε=%v: δ in [%v, %v] misses exact %v", run, parts, v, d.Lower, d.Upper, w)
			}
		}
		for i, d := range c.directions(func(g guide) saddle { return g.forDelta(1e-4) }, 1e-4) {
			d.finer = math.Exp(2 - 6*rng.Float64())
			r, ok := d.run(1e-4)
			if !ok {
				continue
			}
			side := 0
			if d.add {
				side = 1
			}
			k := r.couple()
			for range 12 {
				eps := 1.2 * d.est.eps * rng.Float64()
				w := exact.direction(side, eps)
				checked++
				for name, low := range map[string]float64{"contraction": r.lower.delta(eps),
					"coupling": k.delta(eps)} {
					if low > w*(1+slip)+1e-14 {
						t.Errorf("run %d direction %d, %v, step %v, ε=%v: %s %v above exact %v", run, i, parts,
							r.lower.c.h, eps, name, low, w)
					}
				}
				if up := r.upper.delta(eps); up < w*(1-slip)-1e-14 {
					t.Errorf("run %d direction %d, %v, step %v, ε=%v: upper %v below exact %v", run, i, parts,
						r.lower.c.h, eps, up, w)
				}
			}
		}
	}
	t.Logf("%d values of %d compositions, widest interval of ε %.2g relative", checked, *bruteRuns,
		wide)
}
