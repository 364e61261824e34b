package accounting

import (
	"errors"
	"math"
	"math/big"
	"testing"
)

// headsOutcomes is a count of heads that differs by k, from exact binomial coefficients.
func headsOutcomes(n, k int) outcomes {
	heads := make([]float64, n+1)
	c := big.NewInt(1)
	for i := range heads {
		p := new(big.Float).SetInt(c)
		heads[i], _ = p.SetMantExp(p, -n).Float64()
		c.Mul(c, big.NewInt(int64(n-i)))
		c.Quo(c, big.NewInt(int64(i+1)))
	}
	mass := func(i int) float64 {
		if i < 0 || i > n {
			return 0
		}
		return heads[i]
	}
	var out outcomes
	for i := range n + k + 1 {
		out = append(out, [2]float64{mass(i - k), mass(i)})
	}
	return out
}

// Bounds of one coordinate and of several hold the δ of all outcomes, one by one, and are
// narrow but for outcomes that only one of the two laws has, which no lower bound counts.
func TestBinomialAgainstEnumeration(t *testing.T) {
	for _, c := range []struct{ coins, sensitivity, coordinates int }{
		{1, 2, 1}, {2, 1, 2}, {7, 1, 3}, {7, 3, 2}, {30, 1, 3}, {61, 4, 2}, {61, 62, 1},
		{200, 2, 2}, {5000, 16, 1},
	} {
		exact := headsOutcomes(c.coins, c.sensitivity).times(c.coordinates)
		alone := 0.0
		for _, x := range headsOutcomes(c.coins, c.sensitivity) {
			if x[1] == 0 {
				alone += x[0] * float64(c.coordinates)
			}
		}
		run, err := Compose(Step{Binomial{c.coins, c.sensitivity}, c.coordinates})
		if err != nil {
			t.Fatal(err)
		}
		for _, eps := range []float64{0, 0.1, 0.5, 1, 2, 4} {
			got, err := run.Delta(eps)
			want := exact.delta(eps)
			if err != nil || want < got.Lower*(1-1e-11) || want > got.Upper*(1+1e-11) {
				t.Errorf("%+v, ε = %g: %+v (%v), enumerated %g", c, eps, got, err, want)
			}
			if got.Width() > 1e-9+0.01*want+alone {
				t.Errorf("%+v, ε = %g: %+v is wide", c, eps, got)
			}
		}
	}
}

// Cut tails change nothing, and many coins are a Gaussian of their variance.
func TestBinomialOfManyCoins(t *testing.T) {
	for _, n := range []int{4000, 4001, 1 << 20} {
		b := mustEpsilon(t, 1e-6, Step{Binomial{n, 1}, 100})
		g := mustEpsilon(t, 1e-6, Step{Gaussian{math.Sqrt(float64(n) / 4)}, 100})
		if math.Abs(b.Upper/g.Upper-1) > 2/math.Sqrt(float64(n)) || b.Width() > 0.01*b.Upper {
			t.Errorf("%d coins: %+v, a Gaussian %+v", n, b, g)
		}
	}
}

func TestBinomialRefuses(t *testing.T) {
	for _, c := range []struct {
		m    Binomial
		want error
	}{
		{Binomial{0, 1}, ErrConfig}, {Binomial{-1, 1}, ErrConfig}, {Binomial{1, 0}, ErrConfig},
		{Binomial{1, 1<<30 + 1}, ErrConfig}, {Binomial{1 << 30, 1 << 30}, ErrTooLarge},
	} {
		if _, err := Compose(Step{c.m, 1}); !errors.Is(err, c.want) {
			t.Errorf("%+v: %v, want %v", c.m, err, c.want)
		}
	}
	if all := mustEpsilon(t, 1e-6, Step{Binomial{3, 4}, 1}); !math.IsInf(all.Upper, 1) {
		t.Errorf("laws without a common outcome: %+v", all)
	}
}
