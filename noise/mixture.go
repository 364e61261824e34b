package noise

import (
	"fmt"
	"math"
	"math/big"

	"github.com/hushsum/hushsum/noise/internal/fixed"
	"github.com/hushsum/hushsum/noise/internal/interval"
)

// Wide differences of Pólya variables of shape r < 1: shares of discrete Laplace noise.
// Since Γ(x+r)/(x!·Γ(r)) is the moment E[B^x] of a variable B of the Beta law with
// parameters r and 1 − r, the law is a mixture of two-sided geometric ones:
//
//	P(x) = ∫ e^{−λ|x|} dμ(λ),   λ = −ln(pB),   dμ = (1−p)^2r·(1−p²B)^−r · dBeta(B).
//
// It has details of all sizes: a peak at 0, and tails that reach to 80·t. One grid
// resolves the peak, a coarser one what is further out, and so on:
//
//	P ≈ A_0 + h_1 ∗ A_1 + … + h_L ∗ A_L,
//
// where A_l lives on the multiples of k_l = 2^{s_l} (s_0 = 0) and h_l is the law of
// Σ_{j<s_l} 2^j·(heads − m/2), the spline of smooth.go. All A_l are ≥ 0 and of mass one
// together: one table for all says from which grid a sample is, and from where on it.
//
// Let C_l(y) = k_l·∫ e^{−λk_l|y|}/H_l(λ) dμ, with H_l(λ) = Σ_j h_l(j)·e^{λj}; C_0 is P.
// Let b = k_{l+1}/k_l, and h the spline that leads from one grid to the next. From y =
// R = m(b−1)/2 on, which is as far as h reaches, C_l and h ∗ C_{l+1} are the same but for
// a factor 1 ± ε in the integrand: h meets but one side of the exponential there, and its
// parts on all residues modulo b have about the same Σ_j h(j)·e^{λj}. So A_l is C_l −
// h ∗ C_{l+1} up to R, which is positive since the side of an exponential that h does
// not meet would be higher, and nothing beyond; and A_L is all of C_L. What is neglected,
// in units of each grid, is
//
//	Σ_{|y|>R} |C_l − h ∗ C_{l+1}| ≤ sup_λ ε(λ)·e^{−λR},
//	ε(λ) = Σ_{0<n<b} (1 + sin²(πn/b)/sinh²(λ/2))^{−m/2},
//
// since ∫ 2/(e^λ−1) dμ ≤ 1, and k(e^{λ/k}−1)/(1−e^{−λ}) ≤ e^λ for k ≥ 1.

// directScale is the least t of a law that is split up.
var directScale = big.NewRat(32, 1)

// mixtureGrid is one of the grids of a law.
type mixtureGrid struct {
	shift uint32 // s_l
	step  uint32 // to that of the next, 0 in the last
	n     int    // values y ≥ 0 with an A_l, and of C_l that are needed
}

// mixtureGrids lays out grids for a scale t ≥ 8 of a law: steps of three and four bits,
// to a grid in whose units t is between 4 and 8.
func mixtureGrids(t float64) []mixtureGrid {
	top := uint32(math.Log2(t / 4))
	steps := max(1, top/3)
	var grids []mixtureGrid
	shift := uint32(0)
	for i := range steps {
		step := (top - shift) / (steps - i)
		grids = append(grids, mixtureGrid{shift, step, coins/2*(1<<step-1) + 1})
		shift += step
	}
	n := int(math.Ldexp(t, -int(shift))*math.Ln2*(tableBits+4)) + 2
	return append(grids, mixtureGrid{shift, 0, n})
}

// mixture makes the cascade of a Pólya difference law with r < 1 and t ≥ directScale.
func (p *cascade) mixture(l Law) error {
	t := ratFloat(l.scale)
	grids := mixtureGrids(t)
	c, err := mixtureValues(l, grids)
	if err != nil {
		return err
	}
	// In units of 2^-256: by how much an A_l(y) is off, what is neglected, and what is
	// left for A_0(0), which is the rest to one.
	each := new(big.Int).Lsh(big.NewInt(1), fixed.Bits-mixtureBits+1) // of two C
	neglected, rest, off := new(big.Int), new(big.Int).Lsh(big.NewInt(1), fixed.Bits), new(big.Int)
	listed := []interval.Interval{{}} // of A_0(0), below
	for i, g := range grids {
		values := c[i]
		if g.step > 0 {
			values = withoutCoarser(values, c[i+1], g.step)
			p.grids = append(p.grids, grid{uint32(g.n), g.step})
		}
		p.reach = max(p.reach, int64(g.n-1)<<g.shift+coins/2*(1<<g.shift-1))
		for y, v := range values {
			if i == 0 && y == 0 {
				continue
			}
			lo, hi := new(big.Int).Sub(v, each), new(big.Int).Add(v, each)
			if lo.Sign() < 0 {
				neglected.Sub(neglected, lo)
				lo.SetInt64(0)
			}
			if hi.Sign() < 0 {
				hi.SetInt64(0)
			}
			if y > 0 { // on both sides
				lo.Lsh(lo, 1)
				hi.Lsh(hi, 1)
			}
			listed = append(listed, interval.FromFixed(lo, hi, fixed.Bits))
			rest.Sub(rest, hi)
			off.Add(off, hi.Sub(hi, lo))
		}
	}
	// C_L falls by exp(−k_L/t) a step at least.
	fall := -math.Expm1(-math.Ldexp(1, int(grids[len(grids)-1].shift))/t) * (1 - 1e-9)
	tail := new(big.Float).SetPrec(64).SetMode(big.ToPositiveInf)
	tail.Quo(listed[len(listed)-1].Hi, big.NewFloat(fall))
	beyond := interval.Ceil(tail, fixed.Bits)
	rest.Sub(rest, beyond)
	if rest.Sign() < 0 {
		return fmt.Errorf("%w (no mixture)", ErrTooLarge)
	}
	listed[0] = interval.FromFixed(rest, off.Add(off, beyond).Add(off, rest), fixed.Bits)
	s, err := newStage(listed, tail)
	if err != nil {
		return err
	}
	reach := p.reach
	p.add(s, 1)
	p.reach, p.planes = reach, grids[len(grids)-1].shift
	// What is neglected is missing, or too much, at 0.
	neglected.Lsh(neglected, 1)
	p.distance.Add(p.distance,
		new(big.Rat).SetFrac(neglected, new(big.Int).Lsh(big.NewInt(1), fixed.Bits)))
	for _, g := range grids[:len(grids)-1] {
		p.distance.Add(p.distance, new(big.Rat).SetFloat64(splineError(1<<g.step)))
	}
	return nil
}

// withoutCoarser returns C_l − h ∗ C_{l+1} where A_l lives, in the units of its operands, for
// y = 0, 1, ….
func withoutCoarser(fine, coarse []*big.Int, step uint32) []*big.Int {
	b := 1 << step
	h := splineCounts(b)
	reach := len(h) / 2
	out := make([]*big.Int, len(fine))
	for y, v := range fine {
		sum := new(big.Int)
		for z := -((reach - y) / b); z*b <= y+reach; z++ {
			sum.Add(sum, new(big.Int).Mul(coarse[max(z, -z)], h[reach+y-z*b]))
		}
		out[y] = new(big.Int).Sub(v, sum.Rsh(sum, coins*uint(step)))
	}
	return out
}

// splineCounts counts, of the b^m ways to draw m numbers below b, those of each sum.
func splineCounts(b int) []*big.Int {
	h := []*big.Int{big.NewInt(1)}
	for range coins {
		next := make([]*big.Int, len(h)+b-1)
		window := new(big.Int)
		for i := range next {
			if i < len(h) {
				window.Add(window, h[i])
			}
			if i >= b {
				window.Sub(window, h[i-b])
			}
			next[i] = new(big.Int).Set(window)
		}
		h = next
	}
	return h
}

// splineError is at least sup ε(λ)·e^{−λR}, with λ = 2a: ε grows with a and the other factor
// falls, so that cell by cell the values at its ends bound both. The floats are rounded
// by far less than the factor in front allows for.
func splineError(b int) float64 {
	const cells = 4096
	reach := coins / 2 * float64(b-1)
	top := 55 / reach
	most := float64(b) * math.Exp(-2*top*reach)
	for i := range cells {
		from, to := top*float64(i)/cells, top*float64(i+1)/cells
		alias := 0.0
		for n := 1; n < b; n++ {
			s := math.Sin(math.Pi*float64(n)/float64(b)) / math.Sinh(to)
			alias += math.Pow(1+s*s, -coins/2)
		}
		most = max(most, alias*math.Exp(-2*from*reach))
	}
	return (1 + 1e-9) * most
}

// mixtureBits: C_l(y) is known to 2^-mixtureBits, but for C_0(0), which is not.
const mixtureBits = 122

// mostNodes bounds the terms of a sum in place of the integral.
const mostNodes = 1 << 15

// mixtureValues returns C_l(y) for the grids, in units of 2^-256.
//
// With B = 1/(1+e^{−u}), the integral over u of
//
//	sin(πr)/π·(1−p)^2r · B^r·(1−B)^{1−r}·(1−p²B)^−r · k·q^{ky}/H(q),   q = pB,
//
// becomes a sum with steps of 1/v (Trefethen, Weideman 2014, Theorem 5.1): for |Im u| ≤
// π/4 the integrand is analytic, and at most 1.2·k times what it is without its last
// factor on the real line, where the integral of that is P(0) ≤ 1. For |1+w| ≥
// (1+|w|)·cos(arg(w)/2), λ has an argument of at most π/4 as u has, so that |q| ≤ 1, and
// 1/H is a product of 1/cosh(2^{j−1}λ)^m for j < s, with |cosh| ≥ 1 in that sector. So
// the sum is off by at most 2.4·k/(e^{π²v/2} − 1). Beyond the ends of the sum the integrand is
// at most k·e^{−(1−r)u} on the right and, for all C but C_0(0), k·e^u on the left.
//
// The arithmetic is off by less than 2^-140: by 2^44 units of 2^-256 in the weight of a term
// (1/(1−p) is below 2^41, and known to 2^41 units relative), by 2^50 in a power of q (an
// exponent below 2^48 times a few), for 2^15 terms, and times k ≤ 2^38.
func mixtureValues(l Law, grids []mixtureGrid) ([][]*big.Int, error) {
	r, t := ratFloat(l.shape), ratFloat(l.scale)
	top := int(grids[len(grids)-1].shift)
	v := int(2*math.Ln2*float64(mixtureBits+4+top)/(math.Pi*math.Pi)) + 1
	left := int((mixtureBits + 4) * math.Ln2 * float64(v))
	right := int((float64(mixtureBits+4+top)*math.Ln2-math.Log(1-r))/(1-r)*float64(v)) + 1
	if left+right > mostNodes {
		return nil, fmt.Errorf("%w (a shape of %v with a scale of %v)", ErrTooLarge, r, t)
	}
	m := newMixing(l)
	sums := make([][]fixed.Number, len(grids))
	for i, g := range grids {
		sums[i] = make([]fixed.Number, g.n)
	}
	for i := -left; i <= right; i++ {
		weight, q := m.node(i, v)
		shift := uint32(0)
		for j, g := range grids {
			for ; shift < g.shift; shift++ {
				flatten(&weight, &q)
				q = product(q, q)
			}
			term := weight
			for y := range sums[j] {
				if sums[j][y].Add(&term); term.IsZero() {
					break
				}
				term.Mul(&q)
			}
		}
	}
	values := make([][]*big.Int, len(grids))
	for i, g := range grids {
		for _, x := range sums[i] {
			x.Mul(&m.factor)
			n := x.Int()
			values[i] = append(values[i], n.Lsh(n, uint(g.shift)).Quo(n, big.NewInt(int64(v))))
		}
	}
	return values, nil
}

// flatten multiplies x by what one more plane makes of 1/H: (2·√q/(1+q))^m.
func flatten(x, q *fixed.Number) {
	up, down := *q, *q
	down.Add(&fixed.One)
	down = product(down, down)
	up.Add(&up)
	up.Add(&up)
	up.Quo(&down) // its power of m/2 = 20
	fourth := product(up, up)
	fourth = product(fourth, fourth)
	x.Mul(&fourth)
	fourth = product(fourth, fourth)
	fourth = product(fourth, fourth)
	x.Mul(&fourth)
}

func product(x, y fixed.Number) fixed.Number {
	x.Mul(&y)
	return x
}

// mixing holds what all nodes of a law have in common.
type mixing struct {
	p, gap   fixed.Number // p and 1 − p²
	r, other fixed.Number // r and 1 − r
	edge     fixed.Number // r·(ln(1+p) − ln(1−p))
	corner   fixed.Number // −2r·ln(1−p)
	factor   fixed.Number // sin(πr)/π
}

func newMixing(l Law) *mixing {
	ctx := interval.Context{Prec: fixed.Bits + 64}
	m := &mixing{p: fixed.FromBig(ctx.ExpNeg(new(big.Rat).Inv(l.scale)).Lo),
		r: fixed.FromBig(ctx.Rat(l.shape).Lo)}
	m.other, m.gap = fixed.One, fixed.One
	m.other.Sub(&m.r)
	square := product(m.p, m.p)
	m.gap.Sub(&square)

	inverse, far := fixed.One, fixed.One // 1/(1−p)
	far.Sub(&m.p)
	inverse.Quo(&far)
	down := product(fixed.Log(inverse), m.r)
	up := fixed.One
	up.Add(&m.p)
	m.edge = product(fixed.Log(up), m.r)
	m.edge.Add(&down)
	m.corner = down
	m.corner.Add(&down)
	m.factor = sine(l.shape)
	return m
}

// node returns the integrand without its last factor, and without m.factor, at u = i/v,
// and q there. Every logarithm is of a number of at least 1, and every sum of them
// has terms of one sign.
func (m *mixing) node(i, v int) (weight, q fixed.Number) {
	u := fixed.Number{4: uint64(max(i, -i))}
	u.QuoWord(uint64(v))
	e := fixed.ExpNeg(u) // e^{−|u|}
	one := e
	one.Add(&fixed.One)
	log := fixed.Log(one) // ln(1+e^{−|u|})
	var exponent fixed.Number
	if i > 0 {
		// (1−r)·(u + ln(1+e^{−u})) + r·ln(1 + e^{−u}/(1−p²)) + edge
		log.Add(&u)
		exponent = product(log, m.other)
		x := e
		x.Quo(&m.gap)
		x.Add(&fixed.One)
		x = product(fixed.Log(x), m.r)
		exponent.Add(&x)
		exponent.Add(&m.edge)
		q = m.p
	} else {
		// (1−r)·ln(1+e^u) + r·(|u| + ln(1+(1−p²)·e^u)) + corner
		exponent = product(log, m.other)
		x := product(e, m.gap)
		x.Add(&fixed.One)
		x = fixed.Log(x)
		x.Add(&u)
		x.Mul(&m.r)
		exponent.Add(&x)
		exponent.Add(&m.corner)
		q = product(e, m.p)
	}
	q.Quo(&one)
	return fixed.ExpNeg(exponent), q
}

// sine is sin(πr)/π for 0 < r < 1, to some units: r·(1 − (πr)²/3! + (πr)⁴/5! − …).
func sine(r *big.Rat) fixed.Number {
	if r.Cmp(big.NewRat(1, 2)) > 0 {
		r = new(big.Rat).Sub(big.NewRat(1, 1), r)
	}
	x := fixed.FromBig(interval.Context{Prec: fixed.Bits + 64}.Rat(r).Lo)
	pi := fixed.FromBig(pi())
	square := product(product(x, x), product(pi, pi))
	sum, term := x, x
	for i := uint64(1); i <= 40; i++ {
		term.Mul(&square)
		term.QuoWord(2 * i)
		term.QuoWord(2*i + 1)
		if i%2 == 1 {
			sum.Sub(&term)
		} else {
			sum.Add(&term)
		}
	}
	return sum
}

// pi is 16·atan(1/5) − 4·atan(1/239) (Machin), within 2^-300.
func pi() *big.Float {
	atan := func(inverse int64) *big.Float {
		const prec = 400
		sum, term := new(big.Float).SetPrec(prec), new(big.Float).SetPrec(prec).SetInt64(1)
		term.Quo(term, big.NewFloat(float64(inverse)))
		square := new(big.Float).SetInt64(inverse * inverse)
		for i := int64(0); i < 80; i++ {
			x := new(big.Float).SetPrec(prec).Quo(term, new(big.Float).SetInt64(2*i+1))
			if i%2 == 1 {
				x.Neg(x)
			}
			sum.Add(sum, x)
			term.Quo(term, square)
		}
		return sum
	}
	fifth, other := atan(5), atan(239)
	fifth.Mul(fifth, big.NewFloat(4))
	fifth.Sub(fifth, other)
	return fifth.Mul(fifth, big.NewFloat(4))
}
