package noise

import (
	"errors"
	"math"
	"math/big"
	"testing"
)

// TestBernoulli: frequencies within 5 standard errors (false alarm 6e-7 each).
func TestBernoulli(t *testing.T) {
	s := NewSource(seeded(1))
	const n = 100000
	wide := new(big.Int).Lsh(big.NewInt(3), 200)
	exp := func(gamma *big.Rat) (bool, error) {
		return s.bernoulliExpBig(gamma.Num(), gamma.Denom())
	}
	for _, c := range []struct {
		name string
		p    float64
		draw func() (bool, error)
	}{
		{"0", 0, func() (bool, error) { return s.Bernoulli(new(big.Rat)) }},
		{"1", 1, func() (bool, error) { return s.Bernoulli(big.NewRat(1, 1)) }},
		{"2/7", 2.0 / 7, func() (bool, error) { return s.Bernoulli(big.NewRat(2, 7)) }},
		{"wide", 1.0 / 3, func() (bool, error) {
			return s.Bernoulli(new(big.Rat).
				SetFrac(new(big.Int).Add(new(big.Int).Quo(wide, big.NewInt(3)), big.NewInt(1)), wide))
		}},
		{"exp 0", 1, func() (bool, error) { return exp(new(big.Rat)) }},
		{"exp 1/3", math.Exp(-1.0 / 3), func() (bool, error) { return exp(big.NewRat(1, 3)) }},
		{"exp 1", math.Exp(-1), func() (bool, error) { return exp(big.NewRat(1, 1)) }},
		{"exp 5/2", math.Exp(-2.5), func() (bool, error) { return exp(big.NewRat(5, 2)) }},
		{"exp wide", math.Exp(-4.0 / 3), func() (bool, error) {
			return exp(new(big.Rat).
				SetFrac(new(big.Int).Add(new(big.Int).Lsh(big.NewInt(1), 202), big.NewInt(1)), wide))
		}},
		{"exp huge", 0, func() (bool, error) {
			return exp(new(big.Rat).SetInt(new(big.Int).Lsh(big.NewInt(1), 200)))
		}},
	} {
		hits := 0.0
		for range n {
			ok, err := c.draw()
			if err != nil {
				t.Fatal(err)
			}
			if ok {
				hits++
			}
		}
		if math.Abs(hits-n*c.p) > 5*math.Sqrt(n*c.p*(1-c.p)) {
			t.Errorf("%s: %g, want %g", c.name, hits/n, c.p)
		}
	}
	for _, p := range []*big.Rat{nil, big.NewRat(-1, 2), big.NewRat(3, 2)} {
		if _, err := s.Bernoulli(p); !errors.Is(err, ErrConfig) {
			t.Errorf("Bernoulli(%v): %v", p, err)
		}
	}
	sum := 0.0
	for range n {
		k, err := s.geometric(big.NewInt(7), big.NewInt(2))
		if err != nil {
			t.Fatal(err)
		}
		sum += float64(k)
	}
	p := math.Exp(-2.0 / 7)
	if mean := p / (1 - p); math.Abs(sum/n-mean) > 5*math.Sqrt(p/((1-p)*(1-p)*n)) {
		t.Errorf("geometric mean %g, want %g", sum/n, mean)
	}
}

// TestExactBig sends laws through the big.Int path that also fit words, with the
// numerator and denominator scaled beyond them by a hair.
func TestExactBig(t *testing.T) {
	shift := new(big.Int).Lsh(big.NewInt(1), 100)
	near := func(x int64) *big.Rat { // x + 2^-100
		n := new(big.Int).Mul(big.NewInt(x), shift)
		return new(big.Rat).SetFrac(n.Add(n, big.NewInt(1)), shift)
	}
	for i, f := range []func(*big.Rat) (Law, error){
		DiscreteLaplace, DiscreteGaussian,
		func(t *big.Rat) (Law, error) { return Polya(big.NewRat(1, 1), t) },
	} {
		l, err := f(near(30))
		e, err2 := NewExact(must(t, l, err), seeded(byte(10+i)))
		if err2 != nil {
			t.Fatal(err2)
		}
		checkHistogram(t, l, e, 20000)
	}
	// The widest parameters give values that fit and errors for nobody.
	top := new(big.Rat).SetInt(new(big.Int).Lsh(big.NewInt(1), 40))
	dl, err := DiscreteLaplace(top)
	dl = must(t, dl, err)
	dg, err := DiscreteGaussian(new(big.Rat).Mul(top, top))
	dg = must(t, dg, err)
	for _, l := range []Law{dl, dg} {
		e, err := NewExact(l, seeded(40))
		if err != nil {
			t.Fatal(err)
		}
		x := make([]int64, 2000)
		if err := e.Fill(x); err != nil {
			t.Fatal(err)
		}
		v := 0.0
		for _, k := range x {
			v += float64(k) * float64(k) / 2000
		}
		// 5 standard errors of 2000 Laplace squares are 0.25
		if q := v / l.Variance(); q < 0.7 || q > 1.4 {
			t.Errorf("%v: variance ratio %g", l, q)
		}
	}
}

// TestInversionRefines widens the bounds so far, still enclosing the truth, that one
// sample in a few needs more bits, and checks the histogram and that a sample never
// changes when more bits are known.
func TestInversionRefines(t *testing.T) {
	for i, f := range []func(*big.Rat) (Law, error){Skellam, Poisson} {
		l, err := f(big.NewRat(300, 1))
		l = must(t, l, err)
		v, err := newInversion(l, 64)
		if err != nil {
			t.Fatal(err)
		}
		fine, err := newInversion(l, 128)
		if err != nil {
			t.Fatal(err)
		}
		slack := new(big.Int).Lsh(big.NewInt(1), 64+guardBits-10)
		if v.offset > 0 {
			v.below = new(big.Int).Add(v.below, slack)
		}
		for k := range v.lo {
			v.lo[k], v.hi[k] = new(big.Int).Sub(v.lo[k], slack), new(big.Int).Add(v.hi[k], slack)
		}
		src := NewSource(seeded(byte(3 + i)))
		refined := 0
		for range 2000 {
			u := new(big.Int)
			for range 2 {
				w, err := src.uint64()
				if err != nil {
					t.Fatal(err)
				}
				u.Or(u.Lsh(u, 64), new(big.Int).SetUint64(w))
			}
			a, ok := v.find(new(big.Int).Rsh(u, 64))
			b, ok2 := fine.find(u)
			if !ok2 {
				t.Fatal("128 bits do not settle a sample")
			}
			if !ok {
				refined++
			} else if a != b {
				t.Fatalf("%d became %d", a, b)
			}
		}
		if refined < 50 {
			t.Errorf("only %d of 2000 needed more bits", refined)
		}
		checkHistogram(t, l, fillFunc(func(dst []int64) error {
			for i := range dst {
				var err error
				if dst[i], err = v.draw(src); err != nil {
					return err
				}
			}
			return nil
		}), 1000)
	}
}

type fillFunc func([]int64) error

func (f fillFunc) Fill(dst []int64) error { return f(dst) }
