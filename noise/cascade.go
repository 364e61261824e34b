package noise

import (
	"math"
	"math/big"

	"github.com/hushsum/hushsum/noise/internal/interval"
)

// combination says how the outcomes of the stages make one sample.
type combination uint8

const (
	// signedSum: Σ weight·(±outcome), each with a sign bit of its own.
	signedSum combination = iota
	// plainSum: offset + Σ weight·outcome.
	plainSum
	// signedDigits: ±(x₀ + [x₀ ≠ 0]·Σ_{i≥1} weight·x_i).
	signedDigits
)

// cascade is a law as a composition of stages.
type cascade struct {
	how      combination
	stages   []*stage
	weights  []int64
	offset   int64
	distance *big.Rat
	reach    int64 // largest absolute value
}

func (p *cascade) add(s *stage, weight int64) {
	p.stages = append(p.stages, s)
	p.weights = append(p.weights, weight)
	p.distance.Add(p.distance, s.distance)
	p.reach += weight * int64(s.n-1)
}

func newCascade(l Law) (*cascade, error) {
	p := &cascade{distance: new(big.Rat)}
	switch l.family {
	case FamilyDiscreteLaplace:
		return p, p.digits(l.scale, true)
	case FamilyPolya:
		if l.shape.Cmp(big.NewRat(1, 1)) == 0 {
			return p, p.digits(l.scale, false)
		}
	case FamilyDiscreteGaussian:
		return p, p.gaussian(l.scale)
	}
	return p, p.direct(l, 1)
}

// direct adds one stage for the whole law; symmetric laws are folded to |k|.
func (p *cascade) direct(l Law, weight int64) error {
	if l.family == 0 {
		return ErrConfig
	}
	// Refuse laws far beyond a table before computing them.
	if lo, hi := l.extent(tableBits); hi-lo > 2*maxOutcomes {
		return ErrTooLarge
	}
	e, err := l.enclose(tableBits, 0)
	if err != nil {
		return err
	}
	if l.symmetric() {
		c := interval.Context{Prec: e.p[0].Lo.Prec()}
		for k := 1; k < len(e.p); k++ {
			e.p[k] = c.Add(e.p[k], e.p[k])
		}
	} else {
		p.how, p.offset = plainSum, e.offset
	}
	s, err := newStage(e.p, e.tail)
	if err != nil {
		return err
	}
	p.add(s, weight)
	p.reach += p.offset
	return nil
}

// digitBase is the number of outcomes of one digit of a geometric variable:
// larger digits scan longer tables, smaller ones spend more randomness.
const digitBase = 32

// digits writes the geometric law P(k) = (1−q)q^k, q = exp(−1/t), in base B:
// since q^{Bj+i} = (q^B)^j·q^i the digits are independent, each a geometric
// law cut off at B, and the rest above them is geometric with q^B. With
// two sides, |X| of a discrete Laplace variable is 0 with probability
// (1−q)/(1+q) and otherwise 1 plus such a variable, whose lowest digit joins the
// question whether X = 0 in one table.
func (p *cascade) digits(t *big.Rat, twoSided bool) error {
	ctx := interval.Context{Prec: tableBits + 160}
	if p.how = plainSum; twoSided {
		p.how = signedDigits
	}
	rate := new(big.Rat).Inv(t) // q = exp(−rate)
	weight := int64(1)
	for lowest := true; ; lowest = false {
		q := ctx.ExpNeg(rate)
		one := ctx.Int(1)
		// Outcomes 0..n−1 of this digit; the last digit takes the whole tail.
		n := digitBase
		r, _ := rate.Float64()
		last := r*digitBase > math.Ln2*(tableBits+2)/2
		if last {
			n = int(math.Ln2*(tableBits+2)/r) + 2
		}
		w := make([]interval.Interval, 0, n+1)
		if lowest && twoSided {
			// In units of P(|X| = 1) = 2q(1−q)/(1+q): (1−q)/(1+q) is 1/2q of it.
			w = append(w, one)
			q2 := ctx.Mul(ctx.Int(2), q)
			for range n {
				w = append(w, q2)
				q2 = ctx.Mul(q2, q)
			}
		} else {
			x := one
			for range n {
				w = append(w, x)
				x = ctx.Mul(x, q)
			}
		}
		sum := ctx.Int(0)
		if !last && lowest && twoSided {
			// The zero outcome keeps its share: the others stand for all |X| ≥ 1,
			// of total weight 2q/(1−q), not only for the digits listed.
			part := ctx.Int(0)
			for _, x := range w[1:] {
				part = ctx.Add(part, x)
			}
			grow := ctx.Quo(ctx.Quo(ctx.Mul(ctx.Int(2), q), ctx.Sub(one, q)), part)
			for i := range w[1:] {
				w[i+1] = ctx.Mul(w[i+1], grow)
			}
		}
		for _, x := range w {
			sum = ctx.Add(sum, x)
		}
		tail := ctx.Int(0)
		if last {
			tail = geometricTail(ctx, ctx.Mul(w[len(w)-1], q), q)
			sum.Hi = ctx.Add(sum, tail).Hi
			tail = ctx.Quo(tail, sum)
		}
		for i := range w {
			w[i] = ctx.Quo(w[i], sum)
		}
		s, err := newStage(w, tail.Hi)
		if err != nil {
			return err
		}
		p.add(s, weight)
		if last {
			return nil
		}
		rate.Mul(rate, big.NewRat(digitBase, 1))
		weight *= digitBase
	}
}

// Convolution of narrow discrete Gaussians: x = x₁ + k·x₂ with x₁ ~ N_Z(σ₁²), x₂ ~ N_Z(σ₂²) has
//
//	P(x) ∝ exp(−x²/2σ²)·Σ_y exp(−(y − cx)²/2σ₃²),
//	σ² = σ₁² + k²σ₂²,  σ₃ = σ₁σ₂/σ,
//
// and by Poisson summation the sum over y is constant in x up to a factor in
// [1−ε, 1+ε] with ε = 2·Σ_{j≥1} exp(−2π²σ₃²j²). The law of x is then within
// ε/(1−ε) of N_Z(σ²) in statistical distance. This is the convolution theorem of
// (Micciancio, Walter 2017; Pöppelmann, Ducas, Güneysu 2014) with its
// constant written out. minSigma3Squared makes ε/(1−ε) ≤ 2^-106:
// 2π²·3.76 = 74.21 > 107·ln 2 = 74.17.
const convolutionBits = 106

var minSigma3Squared = big.NewRat(376, 100)

// directSigma2 is the largest σ² that one table serves; wider laws are split.
var directSigma2 = big.NewRat(14*14, 1)

// gaussian adds stages for N_Z(σ²): x₁ + k·x₂ with x₂ split again while it is
// wide, every σ₁² and σ₂² rational so that the variances add up exactly.
func (p *cascade) gaussian(sigma2 *big.Rat) error {
	rest, weight := new(big.Rat).Set(sigma2), int64(1)
	for rest.Cmp(directSigma2) > 0 {
		k, s1 := splitGaussian(rest)
		if err := p.direct(Law{family: FamilyDiscreteGaussian, scale: s1}, weight); err != nil {
			return err
		}
		rest.Sub(rest, s1)
		rest.Quo(rest, big.NewRat(k*k, 1))
		weight *= k
		p.distance.Add(p.distance, new(big.Rat).
			SetFrac(big.NewInt(1), new(big.Int).Lsh(big.NewInt(1), convolutionBits)))
	}
	return p.direct(Law{family: FamilyDiscreteGaussian, scale: rest}, weight)
}

// splitGaussian chooses k and σ₁² with σ₁²·σ₂² ≥ minSigma3Squared·σ², where
// σ₂² = (σ² − σ₁²)/k²: the σ₁² is the smallest integer that will do. The k
// balances the number of stages against their width.
func splitGaussian(sigma2 *big.Rat) (k int64, s1 *big.Rat) {
	s, _ := sigma2.Float64()
	k = 4
	for k > 2 && s < 16*float64(k*k) {
		k-- // keep σ₂ wide enough for the condition to have a solution
	}
	floor := new(big.Rat).Mul(minSigma3Squared, sigma2)
	floor.Mul(floor, big.NewRat(k*k, 1))
	for n := int64(3 * k * k); ; n++ {
		s1 = big.NewRat(n, 1)
		have := new(big.Rat).Sub(sigma2, s1)
		if have.Sign() <= 0 {
			return k, s1 // not reached for σ² > directSigma2
		}
		if have.Mul(have, s1).Cmp(floor) >= 0 {
			return k, s1
		}
	}
}
