package accounting

import "math"

// A coupling bounds δ of the true law from below by the curve of its split law,
// less what splitting may have added. It serves laws with few, widely spaced
// atoms (a sampled discrete Gaussian of small σ), where the contraction of
// lower.go has to take mass from far neighbours and errs by the first order in h.
//
// Splitting moves each loss L to a node L' by D = L'−L, within a range of h, and
// keeps both hypotheses' masses: E[e^{−D}|L] = 1. By Jensen's inequality and
// Hoeffding's lemma 0 ≤ E[D|L] ≤ h²/8, and D less its mean is sub-Gaussian with
// parameter h²/4. Over T steps, given all losses, the sum D has mean at most
// μ = Th²/8, variance and sub-Gaussian parameter at most v = Th²/4. With X the
// true total and f(x) = (1−e^{ε−x})⁺, the split curve exceeds the true one by
// E[f(X+D) − f(X)]. Given X, for X = ε−r ≤ ε that is at most E(D−r)⁺. For
// X = ε+r it is E(e^{−r−D}−1)⁺ ≤ E[e^{−D}(−D−r)⁺], the same under the measure
// weighted by e^{−D}, where −D has the properties of D. Both are at most G(r):
// with a = r−μ, the smaller of (√(v+a²)−a)/2 and, for a ≥ 0, the integral of the
// tail bound, √(πv/2)·erfc(a/√(2v)).
//
// The law of X is not known, that of X+D is. By Chebyshev's inequality |D| ≤ s =
// μ+2√v with probability at least 3/4 given X, so
// E[G(|X−ε|)] ≤ 4/3·E[G((|X+D−ε|−s)⁺)]: the charge, of second order in h. Where
// that is too much, because D spreads as far as X, the first order remains: δ of
// the true law at ε−x is at least that of the split law at ε less P(D > x) ≤
// e^{−(x−μ)²/2v}.
type coupling struct {
	split *curve    // lower curve of the split law
	upper *composed // upper law of the same
	mu, v float64
}

func newCoupling(split *composed, upper *composed, moved float64) *coupling {
	h := upper.h
	return &coupling{split.curve(), upper, moved * h * h / 8, moved * h * h / 4}
}

// gap is G(r), rounded up, or 1, more than which no curve gains.
func (k *coupling) gap(r float64) float64 {
	a := r - k.mu
	if a < 0 {
		return math.Min(1, (math.Sqrt(k.v+a*a)-a)/2*(1+16*unit))
	}
	// (√(v+a²)−a)/2 without cancellation
	b := k.v / (math.Sqrt(k.v+a*a) + a) / 2
	x := a / math.Sqrt(2*k.v)
	c := math.Sqrt(math.Pi*k.v/2) * math.Erfc(x) * (1 + unit*(16+4*x*x))
	return math.Min(1, math.Min(b, c)*(1+16*unit))
}

// charge bounds by how much the split curve exceeds the true one at eps; far
// bounds what losses too far from eps to be summed may add to it.
func (k *coupling) charge(eps, far float64) float64 {
	if k.v == 0 {
		return 0
	}
	c := k.upper
	s := k.mu + 2*math.Sqrt(k.v) + c.shift + k.split.c.shift
	reach := s + k.mu + math.Sqrt(2*k.v*math.Log(1+2*math.Sqrt(k.v)/far))
	first := max(0, int(math.Floor((eps-reach-c.off)/c.h))-c.start)
	last := min(len(c.mass)-1, int(math.Ceil((eps+reach-c.off)/c.h))-c.start)
	// Mass below the window is nowhere in it; mass above is in extra.
	bottom := c.off + float64(c.start)*c.h
	sum := k.gap(math.Max(0, math.Min(reach, eps-bottom)-s)) + c.extra*k.gap(0)
	for i := first; i <= last; i++ {
		l := c.off + float64(c.start+i)*c.h
		ln := c.lnScale - c.theta*l
		rel := 16 * unit * (math.Abs(c.lnScale) + math.Abs(c.theta*l) + 4)
		sum += math.Exp(ln) * (c.mass[i] + c.point) * (1 + rel) * k.gap(math.Max(0, math.Abs(l-eps)-s))
	}
	return 4.0 / 3 * sum * (1 + float64(last-first+8)*2*unit)
}

// retreat returns x with P(D > x) ≤ eta.
func (k *coupling) retreat(eta float64) float64 {
	return (k.mu + math.Sqrt(2*k.v*math.Log(1/eta))) * (1 + 16*unit)
}

// delta returns a lower bound of δ(ε); it may be negative.
func (k *coupling) delta(eps float64) float64 {
	d := k.split.delta(eps)
	out := d - k.charge(eps, d*1e-6+1e-300)
	if eta := d * 1e-6; eta > 0 && eta < 1 {
		out = math.Max(out, k.split.delta(eps+k.retreat(eta))-eta)
	}
	return out
}

// epsilon returns a lower bound of ε(δ), 0 if it finds none.
func (k *coupling) epsilon(delta float64) float64 {
	eta := delta * 1e-6
	first, _ := k.split.epsilon(delta + 2*eta)
	first = math.Max(0, first-k.retreat(eta))
	want := delta
	for range 12 {
		e, ok := k.split.epsilon(want)
		if !ok || !(e > first) {
			break
		}
		charge := k.charge(e, eta)
		if k.split.delta(e)-charge >= delta {
			return e
		}
		want = (delta + charge) * (1 + 1e-6)
		if !(want < 1) {
			break
		}
	}
	return first
}
