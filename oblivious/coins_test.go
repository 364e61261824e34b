package oblivious

import (
	"errors"
	"math"
	"math/big"
	"testing"

	"github.com/hushsum/hushsum/accounting"
)

// The numbers of the binomial accounting at δ = 1e-6.
func TestLeastCoins(t *testing.T) {
	for _, c := range []struct {
		sensitivity int
		epsilon     float64
		want        int
	}{
		{1, 0.5, 268}, {1, 1, 80}, {1, 2, 31},
		{4, 0.5, 4164}, {4, 1, 1151}, {4, 2, 329},
		{16, 0.5, 66491}, {16, 1, 18285}, {16, 2, 5105},
	} {
		got, err := LeastCoins(c.sensitivity, c.epsilon, 1e-6)
		if err != nil || got != c.want {
			t.Errorf("Δ = %d, ε = %g: %d coins, %v, want %d", c.sensitivity, c.epsilon, got, err, c.want)
		}
	}
}

// coinsDelta against exact rational arithmetic, with e^ε rational.
func TestCoinsDeltaExact(t *testing.T) {
	for _, n := range []int{1, 2, 3, 7, 30, 61} {
		for _, shift := range []int{1, 2, 5, 100} {
			for _, factor := range []int64{1, 2, 5} {
				sum := new(big.Rat)
				for k := range n + 1 {
					p := new(big.Int).Binomial(int64(n), int64(k))
					q := new(big.Int)
					if k >= shift {
						q.Binomial(int64(n), int64(k-shift))
					}
					if p.Sub(p, q.Mul(q, big.NewInt(factor))); p.Sign() > 0 {
						sum.Add(sum, new(big.Rat).SetFrac(p, new(big.Int).Lsh(big.NewInt(1), uint(n))))
					}
				}
				want, _ := sum.Float64()
				got, err := coinsDelta(n, shift, math.Log(float64(factor)))
				if err != nil || got < want*(1-1e-13) || got > want*(1+1e-12)+1e-300 {
					t.Errorf("n = %d, Δ = %d, e^ε = %d: %g, %v, want %g", n, shift, factor, got, err, want)
				}
			}
		}
	}
}

// The ε of one coordinate, which comes from package accounting, and the δ, which is computed
// here, are of one curve; coordinates spend more together.
func TestCoinsEpsilon(t *testing.T) {
	for _, perPair := range []int{40, 41, 500} {
		for _, sensitivity := range []int{1, 4} {
			c := Coins{Parties: 2, Colluders: 1, PerPair: perPair}
			one, err := c.Epsilon(sensitivity, 1, 1e-6)
			if err != nil {
				t.Fatal(err)
			}
			above, err := c.Delta(sensitivity, one.Lower*(1-1e-9))
			below, err2 := c.Delta(sensitivity, one.Upper*(1+1e-9))
			if err != nil || err2 != nil || above < 1e-6 || below > 1e-6 {
				t.Errorf("%+v, Δ = %d: %+v, δ from %g to %g (%v, %v)", c, sensitivity, one, below, above,
					err, err2)
			}
			if ten, err := c.Epsilon(sensitivity, 10, 1e-6); err != nil || ten.Lower <= one.Upper {
				t.Errorf("%+v, Δ = %d: %+v of ten coordinates, %+v of one (%v)", c, sensitivity, ten, one, err)
			}
		}
	}
	for _, bad := range []Coins{{}, {Parties: 2, Colluders: 2, PerPair: 1}} {
		if _, err := bad.Epsilon(1, 1, 1e-6); !errors.Is(err, ErrConfig) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	if _, err := (Coins{Parties: 2, PerPair: 40}).Epsilon(0, 1, 1e-6); !errors.Is(err,
		accounting.ErrConfig) {
		t.Error(err)
	}
}

func TestCoinsUnknown(t *testing.T) {
	for _, c := range []struct {
		coins   Coins
		unknown int
		share   float64
	}{
		{Coins{Parties: 10, PerPair: 3}, 270, 1},
		{Coins{Parties: 10, Colluders: 9, PerPair: 1}, 18, 0.2},
		{Coins{Parties: 10, Colluders: 9, Malicious: true, PerPair: 1}, 9, 0.1},
		{Coins{Parties: 4, Colluders: 2, PerPair: 2}, 20, 10. / 12},
	} {
		unknown, err := c.coins.unknown()
		share, err2 := c.coins.UnknownShare()
		if err != nil || err2 != nil || unknown != c.unknown || math.Abs(share-c.share) > 1e-15 {
			t.Errorf("%+v: %d, %g, %v, %v", c.coins, unknown, share, err, err2)
		}
		least, err := c.coins.For(unknown)
		if err != nil || least.PerPair != c.coins.PerPair {
			t.Errorf("%+v: For gives %+v, %v", c.coins, least, err)
		}
	}
	c, err := Coins{Parties: 100, Colluders: 99}.For(80)
	if err != nil || c.PerPair != 1 {
		t.Fatal(c, err)
	}
	if delta, err := c.Delta(1, 1); err != nil || delta > 1e-6 {
		t.Fatal(delta, err)
	}
	for _, bad := range []Coins{{}, {Parties: 3, Colluders: 3, PerPair: 1}, {Parties: 3},
		{Parties: maxParties + 1, PerPair: 1}} {
		if _, err := bad.unknown(); !errors.Is(err, ErrConfig) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	for _, bad := range []float64{0, 1, -1, math.NaN()} {
		if _, err := LeastCoins(1, 1, bad); !errors.Is(err, ErrConfig) {
			t.Errorf("δ = %g: %v", bad, err)
		}
	}
	if _, err := LeastCoins(1<<20, 1, 1e-9); !errors.Is(err, ErrConfig) {
		t.Error(err)
	}
}
