package noise

import (
	"fmt"
	"math"
	"math/big"
	"math/bits"

	"github.com/hushsum/hushsum/noise/internal/interval"
)

// maxEnclosure bounds the number of probabilities that one enclosure holds or
// walks through.
const maxEnclosure = 1 << 20

// enclosure is a law with certified numbers: p[i] encloses the probability of
// the value offset+i, or, for symmetric laws (offset 0), of i and of −i each.
// tail is at least the probability of all values that are not listed.
type enclosure struct {
	offset int64
	p      []interval.Interval
	tail   *big.Float
}

// enclose computes the law so that the tail is at most 2^-prec and every listed
// probability is known to 2^-prec relative, and lists at least the values
// (absolute values, for symmetric laws) up to hi.
func (l Law) enclose(prec int, hi int64) (*enclosure, error) {
	if l.family == 0 {
		return nil, ErrConfig
	}
	if hi >= maxEnclosure {
		return nil, fmt.Errorf("%w (values up to %d)", ErrTooLarge, hi)
	}
	lo, top := l.extent(float64(prec + 8))
	for range 16 {
		top = math.Max(top, float64(hi)+1)
		if top-lo >= maxEnclosure {
			break
		}
		e, ok := l.encloseTo(prec, int64(lo), int64(top))
		if ok {
			return e, nil
		}
		top += (top-lo)/4 + 16
		lo = math.Max(0, lo-(top-lo)/4)
	}
	return nil, fmt.Errorf("%w (%v needs more than %d probabilities)", ErrTooLarge, l.family,
		maxEnclosure)
}

// extent guesses, from Chernoff bounds, the values outside which less than
// 2^-prec lies. The guess is checked afterwards, with certified numbers.
func (l Law) extent(prec float64) (lo, hi float64) {
	s, c := ratFloat(l.scale), prec*math.Ln2
	switch l.family {
	case FamilyDiscreteGaussian:
		return 0, math.Ceil(math.Sqrt(2*c*s)) + 8
	case FamilySkellam:
		return 0, math.Ceil(c/3+math.Sqrt(c*c/9+2*c*s)) + 8
	case FamilyPoisson:
		return math.Max(0, math.Floor(s-math.Sqrt(2*c*s))-8), math.Ceil(s+c/3+math.Sqrt(c*c/9+2*c*s)) + 8
	}
	r := 1.0
	if l.shape != nil {
		r = math.Max(1, ratFloat(l.shape))
	}
	return 0, math.Ceil(s*(c+math.Sqrt(2*r*c)+r)) + 8
}

// encloseTo lists the values lo..hi and reports whether the result is as tight
// as asked.
func (l Law) encloseTo(prec int, lo, hi int64) (*enclosure, bool) {
	n := hi - lo + 1
	c := interval.Context{Prec: uint(prec + 64 + 2*bits.Len64(uint64(n)))}
	var w []interval.Interval
	var tail interval.Interval // its Hi bounds the weight outside
	switch l.family {
	case FamilyDiscreteGaussian:
		w, tail = l.gaussianWeights(c, n)
	case FamilyDiscreteLaplace, FamilyPolya:
		w, tail = l.polyaWeights(c, n)
	case FamilyPoisson:
		w, tail = l.poissonWeights(c, lo, n)
	default:
		var ok bool
		if w, tail, ok = l.ratioWeights(c, n); !ok {
			return nil, false
		}
	}
	return newEnclosure(c, lo, w, tail, l.symmetric(), prec)
}

// newEnclosure divides weights by their sum, which the tail may be a part of, and
// reports whether the result is as tight as enclose promises.
func newEnclosure(
	c interval.Context, offset int64, w []interval.Interval, tail interval.Interval, symmetric bool,
	prec int,
) (*enclosure, bool) {
	if tail.Hi.IsInf() {
		return nil, false
	}
	sum := c.Int(0)
	for i, x := range w {
		sum = c.Add(sum, x)
		if i > 0 && symmetric {
			sum = c.Add(sum, x)
		}
	}
	// The whole mass is between what is listed and that plus the tail.
	total := interval.Interval{Lo: sum.Lo, Hi: c.Add(sum, tail).Hi}
	e := &enclosure{offset: offset, p: w, tail: c.Quo(tail, total).Hi}
	for i := range w {
		w[i] = c.Quo(w[i], total)
	}
	limit := new(big.Float).SetMantExp(big.NewFloat(1), -prec)
	if e.tail.Cmp(limit) > 0 {
		return nil, false
	}
	for _, x := range w {
		d := c.Sub(interval.Interval{Lo: x.Hi, Hi: x.Hi}, interval.Interval{Lo: x.Lo, Hi: x.Lo})
		if d.Hi.Cmp(new(big.Float).SetMantExp(x.Lo, -prec)) > 0 {
			return nil, false
		}
	}
	return e, true
}

// geometricTail bounds next/(1−ratio): the rest of a series that falls at least
// by the given ratio from its first term on.
func geometricTail(c interval.Context, next, ratio interval.Interval) interval.Interval {
	return c.Quo(next, c.Sub(c.Int(1), ratio))
}

func (l Law) gaussianWeights(c interval.Context, n int64) ([]interval.Interval, interval.Interval) {
	inv := new(big.Rat).Inv(l.scale)
	g := c.ExpNeg(new(big.Rat).Mul(inv, big.NewRat(1, 2)))
	h := c.ExpNeg(inv)
	w := make([]interval.Interval, n)
	w[0] = c.Int(1)
	for k := int64(1); k < n; k++ {
		w[k] = c.Mul(w[k-1], g) // exp(−k²/2σ²) = exp(−(k−1)²/2σ²)·exp(−(2k−1)/2σ²)
		g = c.Mul(g, h)
	}
	t := geometricTail(c, c.Mul(w[n-1], g), g)
	return w, c.Add(t, t)
}

// polyaWeights serves the Pólya laws and, with ratio p throughout and two
// sides, discrete Laplace.
func (l Law) polyaWeights(c interval.Context, n int64) ([]interval.Interval, interval.Interval) {
	p := c.ExpNeg(new(big.Rat).Inv(l.scale))
	w := make([]interval.Interval, n)
	w[0] = c.Int(1)
	if l.family == FamilyDiscreteLaplace {
		for k := int64(1); k < n; k++ {
			w[k] = c.Mul(w[k-1], p)
		}
		t := geometricTail(c, c.Mul(w[n-1], p), p)
		return w, c.Add(t, t)
	}
	r := c.Rat(l.shape)
	step := p
	for k := int64(1); k <= n; k++ {
		step = c.Mul(p, c.Quo(c.Add(c.Int(k-1), r), c.Int(k)))
		if k < n {
			w[k] = c.Mul(w[k-1], step)
		}
	}
	// The steps p(k+r)/(k+1) rise to p if r < 1 and fall to it if r > 1.
	ratio := step
	if p.Hi.Cmp(ratio.Hi) > 0 {
		ratio = p
	}
	return w, geometricTail(c, c.Mul(w[n-1], step), ratio)
}

func (l Law) poissonWeights(
	c interval.Context, lo, n int64,
) ([]interval.Interval, interval.Interval) {
	mean := c.Rat(l.scale)
	w := make([]interval.Interval, n)
	w[0] = c.Int(1)
	for k := int64(1); k < n; k++ {
		w[k] = c.Mul(w[k-1], c.Quo(mean, c.Int(lo+k)))
	}
	step := c.Quo(mean, c.Int(lo+n))
	t := geometricTail(c, c.Mul(w[n-1], step), step)
	if lo > 0 {
		down := c.Quo(c.Int(lo), mean)
		t = c.Add(t, geometricTail(c, down, down))
	}
	return w, t
}

// ratioWeights serves the laws whose probabilities D_k follow a three-term
// recurrence of which they are the minimal solution, so that only the backward
// direction is stable: ρ_k = D_k/D_{k−1} from ρ_{k+1}, begun far out with
// ρ ∈ [0, 1], which holds since both laws are symmetric and unimodal.
//
//	Skellam:          ρ_k = 1/(2k/V + ρ_{k+1})
//	Pólya difference: ρ_k = p(k−1+r) / ((1+p²)k − p(k+1−r)·ρ_{k+1})
//
// The second restates z·f'(z)·(1−pz)(1−p/z) = rp(z−1/z)·f(z) for the
// coefficients of the generating function f(z) ∝ ((1−pz)(1−p/z))^−r.
func (l Law) ratioWeights(
	c interval.Context, n int64,
) ([]interval.Interval, interval.Interval, bool) {
	s := ratFloat(l.scale)
	polya := l.family == FamilyPolyaDifference
	start := n + n/2 + 64
	if polya {
		start = n + int64(0.36*s*float64(c.Prec)) + 64
	}
	if start >= 4*maxEnclosure {
		return nil, interval.Interval{}, false
	}
	var p, q, r interval.Interval // p, 1+p², r
	var vInv interval.Interval    // 2/V
	if polya {
		p = c.ExpNeg(new(big.Rat).Inv(l.scale))
		q = c.Add(c.Int(1), c.Mul(p, p))
		r = c.Rat(l.shape)
	} else {
		vInv = c.Rat(new(big.Rat).Quo(big.NewRat(2, 1), l.scale))
	}
	rho := make([]interval.Interval, n+1) // rho[k] for k = 1..n
	cur := c.Unit()
	for k := start; k >= 1; k-- {
		if polya {
			den := c.Mul(q, c.Int(k))
			if new(big.Rat).SetInt64(k+1).Cmp(l.shape) >= 0 {
				den = c.Sub(den, c.Mul(p, c.Mul(c.Sub(c.Int(k+1), r), cur)))
			} else {
				den = c.Add(den, c.Mul(p, c.Mul(c.Sub(r, c.Int(k+1)), cur)))
			}
			cur = c.Quo(c.Mul(p, c.Add(c.Int(k-1), r)), den)
		} else {
			cur = c.Quo(c.Int(1), c.Add(c.Mul(vInv, c.Int(k)), cur))
		}
		if cur.Hi.IsInf() {
			return nil, interval.Interval{}, false
		}
		if k <= n {
			rho[k] = cur
		}
	}
	w := make([]interval.Interval, n)
	w[0] = c.Int(1)
	for k := int64(1); k < n; k++ {
		w[k] = c.Mul(w[k-1], rho[k])
	}
	// The ratios fall with k for log-concave laws (Skellam; r ≥ 1, a convolution
	// of log-concave laws); for r < 1, D_{k+1} ≤ p·D_k term by term.
	ratio := rho[n]
	if polya && p.Hi.Cmp(ratio.Hi) > 0 {
		ratio = p
	}
	t := geometricTail(c, c.Mul(w[n-1], rho[n]), ratio)
	return w, c.Add(t, t), true
}

// Probabilities returns P(lo), …, P(hi), each within 1e-15 relative, also deep in the tails, as
// far as the range of normal float64 goes. It starts from the law's centre, so values beyond
// ±2^20, and laws spread over more than that, are [ErrTooLarge]; hi < lo is [ErrConfig].
func (l Law) Probabilities(lo, hi int64) ([]float64, error) {
	if hi < lo {
		return nil, fmt.Errorf("%w (empty range)", ErrConfig)
	}
	if lo <= -maxEnclosure || hi >= maxEnclosure {
		return nil, fmt.Errorf("%w (values %d to %d)", ErrTooLarge, lo, hi)
	}
	reach := hi
	if l.symmetric() {
		reach = max(hi, -lo, -hi, lo)
	}
	e, err := l.enclose(72, max(reach, 0))
	if err != nil {
		return nil, err
	}
	if e.offset > max(lo, 0) {
		// Values below a Poisson enclosure hold less than 2^-72 in all; list them too.
		if e.offset+int64(len(e.p)) >= maxEnclosure {
			return nil, fmt.Errorf("%w (values down to %d)", ErrTooLarge, lo)
		}
		w, ok := l.encloseTo(72, max(lo, 0), e.offset+int64(len(e.p))-1)
		if !ok {
			return nil, fmt.Errorf("%w (%v)", ErrTooLarge, l.family)
		}
		e = w
	}
	out := make([]float64, hi-lo+1)
	for i := range out {
		k := lo + int64(i)
		if k < 0 && l.symmetric() {
			k = -k
		}
		if k -= e.offset; k >= 0 && k < int64(len(e.p)) {
			out[i], _ = e.p[k].Lo.Float64()
		}
	}
	return out, nil
}
