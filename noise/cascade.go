package noise

import (
	"math"
	"math/big"

	"github.com/hushsum/hushsum/noise/internal/interval"
)

// combination says how the outcomes of the stages make one sample.
type combination uint8

const (
	// smoothed: ±2^s·y + Σ_{j<s} 2^j·(heads of 40 coins − 20), where the outcome of the
	// one stage says which grid, s being the grid's, and y on it.
	smoothed combination = iota
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
	finest   uint32 // under smoothed: s of the first grid
	grids    []grid // under smoothed: those that follow
	planes   uint32 // under smoothed: the largest s
	distance *big.Rat
	reach    int64 // largest absolute value
}

// grid follows that many outcomes of the grid before it, and is coarser by a factor of 2^step.
type grid struct{ outcomes, step uint32 }

func (p *cascade) add(s *stage, weight int64) {
	p.stages = append(p.stages, s)
	p.weights = append(p.weights, weight)
	p.distance.Add(p.distance, s.distance)
	p.reach += weight * int64(s.n-1)
}

func newCascade(l Law) (*cascade, error) {
	p, one := new(cascade), big.NewRat(1, 1)
	p.distance = new(big.Rat)
	switch l.family {
	case FamilyDiscreteLaplace:
		return p, p.digits(l.scale, true)
	case FamilyPolya:
		if l.shape.Cmp(one) == 0 {
			return p, p.digits(l.scale, false)
		}
	case FamilyDiscreteGaussian, FamilySkellam:
		if l.scale.Cmp(directVariance) > 0 {
			return p, p.smooth(l)
		}
	case FamilyPolyaDifference:
		if l.shape.Cmp(one) < 0 && l.scale.Cmp(directScale) >= 0 {
			if err := p.mixture(l); err == nil {
				return p, nil
			}
			p = &cascade{distance: new(big.Rat)} // a shape close to 1: perhaps as it is
		}
	}
	return p, p.direct(l)
}

// direct adds one stage for the whole law.
func (p *cascade) direct(l Law) error {
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
		return p.folded(e)
	}
	p.how, p.offset = plainSum, e.offset
	s, err := newStage(e.p, e.tail)
	if err != nil {
		return err
	}
	p.add(s, 1)
	p.reach += p.offset
	return nil
}

// folded adds one stage for the absolute value of a symmetric law.
func (p *cascade) folded(e *enclosure) error {
	c := interval.Context{Prec: e.p[0].Lo.Prec()}
	for k := 1; k < len(e.p); k++ {
		e.p[k] = c.Add(e.p[k], e.p[k])
	}
	s, err := newStage(e.p, e.tail)
	if err != nil {
		return err
	}
	p.add(s, 1)
	return nil
}

// digitBase is the number of outcomes of one digit of a geometric variable:
// larger digits scan longer tables, smaller ones spend more randomness.
const digitBase = 256

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
