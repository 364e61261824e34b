package noise

import (
	"fmt"
	"io"
	"math/big"
	"math/bits"
)

// Exact samples a [Law] with statistical distance zero, whatever its parameters: it is the
// reference, and the sampler for claims with δ = 0. Its running time depends on the values that
// it draws (see the package comment). Not safe for concurrent use.
//
// Discrete Laplace, geometric and discrete Gaussian laws use Algorithms 1 to 3 of
// (Canonne, Kamath, Steinke 2020). The others invert their distribution
// function with a random number of as many bits as it takes for certified
// bounds to settle the outcome: 128 nearly always, 64 more each time they do not.
type Exact struct {
	law Law
	src *Source
	inv *inversion
	one func(*Exact) (int64, error)

	num, den uint64 // scale as words, where it fits
	fits     bool
	t        uint64 // ⌊σ⌋ + 1 of Algorithm 3
}

// NewExact prepares exact sampling of l from random; nil means Expand(nil), an explicit reader is
// read 256 bytes at a time. Laws sampled by inversion are limited to 2^20 outcomes
// ([ErrTooLarge]).
func NewExact(l Law, random io.Reader) (*Exact, error) {
	if l.family == 0 {
		return nil, fmt.Errorf("%w (the zero Law)", ErrConfig)
	}
	e := &Exact{law: l, src: NewSource(random)}
	if e.fits = l.scale.Num().IsUint64() && l.scale.Denom().IsUint64(); e.fits {
		e.num, e.den = l.scale.Num().Uint64(), l.scale.Denom().Uint64()
	}
	switch {
	case l.family == FamilyDiscreteLaplace:
		e.one = (*Exact).laplace
	case l.family == FamilyDiscreteGaussian:
		whole := new(big.Int).Quo(l.scale.Num(), l.scale.Denom())
		e.t = whole.Sqrt(whole).Uint64() + 1
		e.one = (*Exact).gaussian
	case l.family == FamilyPolya && l.shape.Cmp(big.NewRat(1, 1)) == 0:
		e.one = func(e *Exact) (int64, error) {
			return e.src.geometric(e.law.scale.Num(), e.law.scale.Denom())
		}
	default:
		inv, err := newInversion(l, 128)
		if err != nil {
			return nil, err
		}
		e.inv = inv
		e.one = func(e *Exact) (int64, error) { return e.inv.draw(e.src) }
	}
	return e, nil
}

// Law returns the law that is sampled.
func (e *Exact) Law() Law { return e.law }

// Distance returns zero.
func (e *Exact) Distance() float64 { return 0 }

// Erase forgets the random bytes that were read but not used.
func (e *Exact) Erase() {
	if e.src != nil {
		e.src.Erase()
	}
}

// Fill sets every element of dst to an independent sample. If the randomness
// fails, or is found stuck, dst is cleared and the error is [ErrRandom].
func (e *Exact) Fill(dst []int64) error {
	if e == nil || e.one == nil {
		clear(dst)
		return fmt.Errorf("%w (an Exact comes from NewExact)", ErrConfig)
	}
	for i := range dst {
		x, err := e.one(e)
		if err != nil {
			clear(dst)
			e.Erase()
			return err
		}
		dst[i] = x
	}
	return nil
}

// laplace is Algorithm 2.
func (e *Exact) laplace() (int64, error) {
	if e.fits && e.num < 1<<46 {
		return e.src.laplaceSmall(e.num, e.den)
	}
	for range stuck {
		y, err := e.src.geometricBig(e.law.scale.Num(), e.law.scale.Denom())
		if err != nil {
			return 0, err
		}
		sign, err := e.src.uint64()
		if err != nil {
			return 0, err
		}
		if sign&1 == 0 {
			return y, nil
		}
		if y != 0 {
			return -y, nil
		}
	}
	return 0, errStuck
}

// laplaceSmall is Algorithm 2 for scale num/den, num < 2^46.
func (s *Source) laplaceSmall(num, den uint64) (int64, error) {
	for range stuck {
		y, err := s.geometricSmall(num, den)
		if err != nil {
			return 0, err
		}
		sign, err := s.uint64()
		if err != nil {
			return 0, err
		}
		if sign&1 == 0 {
			return y, nil
		}
		if y != 0 {
			return -y, nil
		}
	}
	return 0, errStuck
}

// gaussian is Algorithm 3: a discrete Laplace variable Y of scale t = ⌊σ⌋ + 1,
// kept with probability exp(−(|Y| − σ²/t)²/2σ²). With σ² = a/b the exponent is
// (|Y|·t·b − a)²/(2·a·b·t²).
func (e *Exact) gaussian() (int64, error) {
	for range stuck {
		y, err := e.src.laplaceSmall(e.t, 1)
		if err != nil {
			return 0, err
		}
		keep, err := e.gaussianKeep(uint64(max(y, -y)))
		if err != nil {
			return 0, err
		}
		if keep {
			return y, nil
		}
	}
	return 0, errStuck
}

func (e *Exact) gaussianKeep(y uint64) (bool, error) {
	if e.fits {
		tb, ok1 := mul64(e.t, e.den)
		ytb, ok2 := mul64(y, tb)
		d := ytb - e.num
		if ytb < e.num {
			d = -d
		}
		num, ok3 := mul64(d, d)
		den, ok4 := mul64(2*e.num, e.t)
		den, ok5 := mul64(den, tb)
		if ok1 && ok2 && ok3 && ok4 && ok5 && e.num < 1<<63 {
			return e.src.bernoulliExp(num, den)
		}
	}
	a, b, t := e.law.scale.Num(), e.law.scale.Denom(), new(big.Int).SetUint64(e.t)
	tb := new(big.Int).Mul(t, b)
	num := new(big.Int).SetUint64(y)
	num.Mul(num, tb).Sub(num, a)
	num.Mul(num, num)
	den := tb.Mul(tb, t)
	den.Mul(den, a).Lsh(den, 1)
	return e.src.bernoulliExpBig(num, den)
}

func mul64(x, y uint64) (uint64, bool) {
	hi, lo := bits.Mul64(x, y)
	return lo, hi == 0
}
