package noise

import (
	"fmt"
	"math"
	"math/big"
	"sync"

	"github.com/hushsum/hushsum/noise/internal/interval"
)

// Wide discrete Gaussian and Skellam laws. A sample is
//
//	X = B + k·Y,   k = 2^J,   B = Σ_{j<J} 2^j·(W_j − m/2),
//
// with Y from one table of a standard deviation below 32, and W_j the number of heads
// of m = 40 fair coins. B is a sum of m uniform numbers of J bits less its mean: a
// discrete B-spline, whose characteristic function is S(θ)^m with S(θ) =
// sin(kθ/2)/(k·sin(θ/2)). It is very flat near the multiples of 2π/k but 0, and there
// lies, of the characteristic function of k·Y, all that X must not have; like the
// discrete Gaussian smoothing of (Micciancio, Walter 2017), at 40 bits for each doubling of σ
// and without a table.
//
// The law that X is to have, P, has the characteristic function exp(−c²φ²/2 + …) in
// φ = kθ, c² being its variance (the parameter σ², for Gaussians) over k². Y must have
// that over S^m:
//
//	exp(−sφ²/2 + ρ(φ)),   s = c² − m·(1 − k^-2)/12,   ρ(φ) = Σ_{j≥2} r_j·φ^2j,
//	r_j = m·(1 − k^-2j)·|B_2j|/(2j·(2j)!)  [+ V·(−1)^j/((2j)!·k^2j) for Skellam],
//
// with Bernoulli numbers B_2j. T is the polynomial of degree 2d that begins the series
// of exp(ρ). exp(−y²/2s) times a polynomial in y² (of Hermite's) transforms to
// a function exp(−sφ²/2)·T(φ), so that the table of Y has the closed form
//
//	q(y) = exp(−y²/2s)/√(2πs) · Σ_i t_i·(−1)^i·s^-i·He_2i(y/√s),
//
// sampled at the integers: an Edgeworth series with a bounded rest. edgeworth.bound says
// how far the law of X is from P at most.

const (
	coins    = 40 // m
	minWidth = 16 // least standard deviation of Y
	maxOrder = 48 // most terms of T
)

// directVariance is the largest variance that one table serves; wider laws are smoothed.
var directVariance = big.NewRat(16*minWidth*minWidth, 1)

// smooth makes the cascade of a discrete Gaussian or Skellam law of a variance above
// directVariance.
func (p *cascade) smooth(l Law) error {
	variance, planes := new(big.Rat).Set(l.scale), uint32(0)
	for narrow := big.NewRat(4*minWidth*minWidth, 1); variance.Cmp(narrow) >= 0; planes++ {
		variance.Quo(variance, big.NewRat(4, 1))
	}
	y := newEdgeworth(l, planes)
	for order := 2; order <= maxOrder; order++ {
		bound := y.bound(order)
		if bound > smoothGoal {
			continue
		}
		e, err := y.enclose(order)
		if err != nil {
			return err
		}
		if err := p.folded(e); err != nil {
			return err
		}
		p.finest, p.planes = planes, planes
		p.reach = p.reach<<planes + coins/2*(1<<planes-1)
		p.distance.Add(p.distance, new(big.Rat).SetFloat64(math.Exp2(math.Ceil(bound))))
		return nil
	}
	return fmt.Errorf("%w (no smooth table)", ErrTooLarge)
}

// smoothGoal is the logarithm of what smoothing may add to a table's distance.
const smoothGoal = -106

// edgeworth is the law of Y.
type edgeworth struct {
	skellam bool
	c2      float64      // c², as computed
	k       float64      // 2^J
	s       *big.Rat     // s
	t       []*big.Float // the coefficients of T, t[i] that of φ^2i, maxOrder of them
}

// floatBits is the precision of the coefficients. They and what is made of them are
// within 2^-400 of what they stand for, relative to the sum of the magnitudes, which
// is below 2^60 times the probability where that is above 2^-160: the bounds below have room
// for 2^-200.
const floatBits = 512

func newEdgeworth(l Law, planes uint32) *edgeworth {
	k2 := new(big.Rat).SetInt(new(big.Int).Lsh(big.NewInt(1), uint(2*planes))) // k²
	e := &edgeworth{
		skellam: l.family == FamilySkellam,
		k:       math.Ldexp(1, int(planes)),
		s:       new(big.Rat).Quo(l.scale, k2),
		t:       make([]*big.Float, maxOrder+1),
	}
	e.c2, _ = e.s.Float64()
	spline := new(big.Rat).Sub(big.NewRat(1, 1), new(big.Rat).Inv(k2))
	e.s.Sub(e.s, spline.Mul(spline, big.NewRat(coins, 12)))

	bernoulli := bernoulliOfT()
	r := make([]*big.Float, maxOrder+1) // j·r_j
	power := big.NewRat(1, 1)           // k^2j
	factorial := big.NewInt(1)          // (2j)!
	for j := 1; j <= maxOrder; j++ {
		power.Mul(power, k2)
		factorial.Mul(factorial, big.NewInt(int64(2*j)*int64(2*j-1)))
		x := new(big.Rat).Sub(big.NewRat(1, 1), new(big.Rat).Inv(power))
		x.Mul(x, new(big.Rat).Abs(bernoulli[2*j]))
		x.Mul(x, big.NewRat(coins, int64(2*j)))
		if e.skellam {
			term := new(big.Rat).Quo(l.scale, power)
			if j%2 == 1 {
				term.Neg(term)
			}
			x.Add(x, term)
		}
		x.Quo(x.Mul(x, big.NewRat(int64(j), 1)), new(big.Rat).SetInt(factorial))
		r[j] = newFloat().SetRat(x)
	}
	// T = exp(ρ) by T′ = ρ′·T: i·t_i = Σ_j j·r_j·t_{i−j}.
	e.t[0] = newFloat().SetInt64(1)
	for i := 1; i <= maxOrder; i++ {
		e.t[i] = newFloat()
		for j := 2; j <= i; j++ {
			e.t[i].Add(e.t[i], newFloat().Mul(r[j], e.t[i-j]))
		}
		e.t[i].Quo(e.t[i], newFloat().SetInt64(int64(i)))
	}
	return e
}

func newFloat() *big.Float { return new(big.Float).SetPrec(floatBits) }

// bernoulliOfT returns the Bernoulli numbers of T, which are the same for every law and take longer
// than what a table computes from them.
var bernoulliOfT = sync.OnceValue(func() []*big.Rat { return bernoulliNumbers(2 * maxOrder) })

// bernoulliNumbers returns B_0 to B_n: Σ_{i≤j} C(j+1, i)·B_i = 0.
func bernoulliNumbers(n int) []*big.Rat {
	b := []*big.Rat{big.NewRat(1, 1)}
	for j := int64(1); j <= int64(n); j++ {
		sum := new(big.Rat)
		for i, x := range b {
			c := new(big.Rat).SetInt(new(big.Int).Binomial(j+1, int64(i)))
			sum.Add(sum, c.Mul(c, x))
		}
		b = append(b, sum.Quo(sum, big.NewRat(-(j+1), 1)))
	}
	return b
}

// enclose returns certified probabilities of q, normalised, where T has the given order.
func (e *edgeworth) enclose(order int) (*enclosure, error) {
	const prec = tableBits + 8
	s, _ := e.s.Float64()
	n := int64(math.Sqrt(2*math.Ln2*(prec+8)*s)) + 8
	for range 16 {
		c := interval.Context{Prec: 2*prec + 64}
		if w, tail, ok := e.weights(c, order, n); ok {
			enc, ok := newEnclosure(c, 0, w, tail, true, prec)
			if ok && float64(n) <= e.outcomes() {
				return enc, nil
			}
		}
		n += n/8 + 1
	}
	return nil, fmt.Errorf("%w (no enclosure of a smooth table)", ErrTooLarge)
}

// weights are the n first q(y), y ≥ 0, without the factor 1/√(2πs), and a bound on
// the others. ok is false if one of them is not known to be positive.
//
// With He_2i written out, the polynomial is Σ_n a_n·y^2n, where
//
//	a_n = (−1)^n/((2n)!·s^n) · Σ_{i≥n} t_i·s^-i·(2i)!/((i−n)!·2^(i−n)).
func (e *edgeworth) weights(
	c interval.Context, order int, n int64,
) (w []interval.Interval, tail interval.Interval, ok bool) {
	s := newFloat().SetRat(e.s)
	var plus, minus, both []interval.Interval // a_n by sign, and |a_n|
	for j := 0; j <= order; j++ {
		a := newFloat()
		for i := order; i >= j; i-- { // Horner in 1/s
			x := newFloat().Mul(e.t[i], newFloat().SetInt(new(big.Int).MulRange(int64(2*j+1), int64(2*i))))
			x.Quo(x, newFloat().SetInt(new(big.Int).Lsh(new(big.Int).MulRange(1, int64(i-j)), uint(i-j))))
			a.Add(a.Quo(a, s), x)
		}
		for range 2 * j { // s^-j of the sum, which begins at s^-j, and s^-j before it
			a.Quo(a, s)
		}
		size := newFloat().Abs(a)
		x := interval.Interval{
			Lo: new(big.Float).SetPrec(c.Prec).SetMode(big.ToNegativeInf).Set(size),
			Hi: new(big.Float).SetPrec(c.Prec).SetMode(big.ToPositiveInf).Set(size),
		}
		zero := c.Int(0)
		both = append(both, x)
		if (a.Sign() > 0) == (j%2 == 0) {
			plus, minus = append(plus, x), append(minus, zero)
		} else {
			plus, minus = append(plus, zero), append(minus, x)
		}
	}
	at := func(p []interval.Interval, y int64) interval.Interval {
		sum, square := c.Int(0), c.Mul(c.Int(y), c.Int(y))
		for i := order; i >= 0; i-- {
			sum = c.Add(c.Mul(sum, square), p[i])
		}
		return sum
	}
	half := new(big.Rat).Inv(e.s)
	g := c.ExpNeg(new(big.Rat).Mul(half, big.NewRat(1, 2)))
	h := c.ExpNeg(half)
	w = make([]interval.Interval, n)
	bell := c.Int(1)
	for y := range n {
		x := c.Sub(at(plus, y), at(minus, y))
		if x.Lo.Sign() <= 0 {
			return nil, interval.Interval{}, false
		}
		w[y] = c.Mul(bell, x)
		bell = c.Mul(bell, g) // exp(−y²/2s) = exp(−(y−1)²/2s)·exp(−(2y−1)/2s)
		g = c.Mul(g, h)
	}
	// From n on, exp(−y²/2s)·Σ|a_n|·y^2n falls at least by the ratio of its first two.
	ratio := c.Mul(g, c.Int(1))
	step := c.Quo(c.Int(n+1), c.Int(n))
	for range 2 * order {
		ratio = c.Mul(ratio, step)
	}
	if ratio.Hi.Cmp(big.NewFloat(1)) >= 0 {
		return nil, interval.Interval{}, false
	}
	t := geometricTail(c, c.Mul(bell, at(both, n)), ratio)
	return w, c.Add(t, t), true
}

// bound is the base-2 logarithm of a bound on the statistical distance between the law
// of X, with Y exactly as q says and T of the given order, and P. With ψ for the
// Fourier series of q and θ = (φ + 2πl)/k, two probabilities differ by at most 1/2πk
// of the integral over |φ| ≤ π and the sum over l of
//
//	|P̂(θ) − S(θ)^m·ψ(φ)|,   ψ(φ) = Σ_n exp(−s(φ+2πn)²/2)·T(φ+2πn),
//
// and at 2L+1 values of X, beyond which both laws are in their tails. Four parts:
//
//   - l = 0, n = 0: exp(−c²φ²/2)·|exp(ρ) − T|, as S(θ)^m ≤ exp(−mφ²(1−k^-2)/24). For
//     |φ| ≤ 0.9·φ₁ and any φ₁ the rest of the series is at most exp(ρ̄(φ₁))·(φ/φ₁)^(2d+2)/(1−0.81),
//     where ρ̄ has the coefficients |r_j|; beyond, both terms are at most
//     exp(−c²φ²/2 + ρ̄(φ)).
//   - l = 0, n ≠ 0: what the integers alias of q, of size exp(−sπ²/2).
//   - l ≠ 0, P̂: at most exp(−c²π²/2) for Gaussians, exp(−2c²) for Skellam.
//   - l ≠ 0, S(θ)^m·ψ: S(θ) = sin(φ/2)/(k·sin((φ+2πl)/2k)), ±1 being the largest and
//     the others at most sin(φ/2)/(2|l|−1).
//
// The floats are rounded by far less than the margins.
func (e *edgeworth) bound(order int) float64 {
	const margin = 1e-9
	c2, k := e.c2*(1-margin), e.k
	s, _ := e.s.Float64()
	s *= 1 - margin
	rho := func(x float64) float64 { // ρ̄, or a little more
		r := coins*(math.Log(x/2/math.Sin(x/2))-x*x/24) + margin
		if e.skellam {
			r += c2 / (k * k) * x * x * x * x / 24 * math.Cosh(x/k)
		}
		return r
	}
	poly := func(x float64) float64 { // the logarithm of Σ|t_i|·x^2i
		sum := 0.0
		for i := order; i >= 0; i-- {
			t, _ := e.t[i].Float64()
			sum = sum*x*x + math.Abs(t)
		}
		return math.Log(sum) + margin
	}

	// The best of some φ₁.
	rest := math.Inf(1)
	p := float64(2*order + 2)
	gamma, _ := math.Lgamma((p + 1) / 2)
	moment := gamma + (p+1)/2*math.Log(2/c2) // twice the integral of exp(−c²φ²/2)·φ^p from 0
	for x := 0.5; x < 3; x += 0.05 {
		near := rho(x) + moment - p*math.Log(x) - math.Log(1-0.81)
		far := math.Inf(-1)
		const cells = 32
		for i := range cells {
			from := 0.9*x + (math.Pi-0.9*x)*float64(i)/cells
			to := from + (math.Pi-0.9*x)/cells
			far = max(far, rho(to)-c2*from*from/2)
		}
		rest = min(rest, math.Exp(near)+4*math.Pi*math.Exp(far))
	}
	aliasOfQ := 8 * math.Pi * math.Exp(poly(3*math.Pi)-s*math.Pi*math.Pi/2)
	flat := c2 * math.Pi * math.Pi / 2
	if e.skellam {
		flat = 2 * c2
	}
	aliasOfP := 2 * math.Pi * k * math.Exp(-flat)
	aliasOfS := 3 * aliasOfQ
	const cells = 512
	for i := range cells {
		from, to := math.Pi*float64(i)/cells, math.Pi*float64(i+1)/cells
		up := math.Sin(to / 2)
		first := coins * math.Log(up/(k*math.Sin((2*math.Pi-to)/(2*k))))
		others := coins * math.Log(up/3)
		small := poly(to) - s*from*from/2
		aliasOfS += 2 * math.Pi / cells * (2*math.Exp(first+small) + 2.1*math.Exp(others+small))
	}

	reach := e.outcomes() + coins/2
	total := (2*reach + 1) / 2 / (2 * math.Pi) * (rest + aliasOfQ + aliasOfP + aliasOfS)
	// The tails: of P, beyond k·√s·13.1 at least, by Chernoff's bound, and of q; and what is
	// left out above.
	x2 := 13.1 * 13.1 * s / c2
	total += 2*math.Exp(-x2/2*(1-x2/(12*c2*k*k))) + 0x1p-118 + 0x1p-200
	return math.Log2(total) + margin
}

// outcomes is more than the number of outcomes |y| that enclose lists.
func (e *edgeworth) outcomes() float64 {
	s, _ := e.s.Float64()
	return 15*math.Sqrt(s) + 32
}
