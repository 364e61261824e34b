package oblivious

import (
	"fmt"
	"math"
	"math/big"

	"github.com/hushsum/hushsum/accounting"
)

// maxCoins bounds the number of coins that the accounting takes.
const maxCoins = 1 << 20

// Coins is the noise of pairwise XOR coins, for a scalar statistic in integers. In each ordered
// pair, per coin, the sender has a secret bit π and a mask s and offers (s+π, s+1−π); the
// receiver picks by a secret bit b. The coin π ⊕ b enters the sum and neither of them knows it
// alone. A session with Config.Coins = PerPair makes them; the sum then contains a binomial
// variable, and [Config.Centre] recentres it.
//
// Coins take the values 0 and 1. With ±1 every sum of N coins has the
// parity of N, and the released number that of the input.
type Coins struct {
	Parties   int // n, 2 to 2^12
	Colluders int // t, 0 to n − 1, which pool what they know, together with the server
	// Malicious colluders may offer two equal candidates, which settles the coin
	// whatever b is. Then only the coins that honest parties sent count.
	Malicious bool
	PerPair   int // coins per ordered pair, 1 to 2^20
}

func (c Coins) check() error {
	if c.Parties < 2 || c.Parties > maxParties || c.Colluders < 0 || c.Colluders >= c.Parties {
		return fmt.Errorf("%w: need 2 ≤ Parties ≤ %d and 0 ≤ Colluders < Parties", ErrConfig, maxParties)
	}
	if c.PerPair < 1 || c.PerPair > maxCoins {
		return fmt.Errorf("%w: PerPair is %d, want 1 to %d", ErrConfig, c.PerPair, maxCoins)
	}
	return nil
}

// unknownPairs is how many ordered pairs have coins that colluders do not know.
func (c Coins) unknownPairs() int {
	n, t := c.Parties, c.Colluders
	if c.Malicious {
		return (n - t) * (n - 1)
	}
	return n*(n-1) - t*(t-1)
}

// unknown returns how many coins of the sum are uniform for the colluders: all but
// those between two of them, or with Malicious those that honest parties sent. It
// fails with [ErrConfig].
func (c Coins) unknown() (int, error) {
	if err := c.check(); err != nil {
		return 0, err
	}
	return c.unknownPairs() * c.PerPair, nil
}

// UnknownShare returns the fraction of the coins that is unknown: 1 −
// t(t−1)/(n(n−1)), or 1 − t/n with Malicious. PerPair is not used. It fails with
// [ErrConfig].
func (c Coins) UnknownShare() (float64, error) {
	c.PerPair = 1
	if err := c.check(); err != nil {
		return 0, err
	}
	return float64(c.unknownPairs()) / float64(c.Parties*(c.Parties-1)), nil
}

// For returns c with the least PerPair that leaves the given number of coins unknown, such as a
// number from [LeastCoins]. It fails with [ErrConfig].
func (c Coins) For(unknown int) (Coins, error) {
	c.PerPair = 1
	if err := c.check(); err != nil {
		return Coins{}, err
	}
	if unknown < 1 || unknown > maxCoins {
		return Coins{}, fmt.Errorf("%w: unknown coins are %d, want 1 to %d", ErrConfig, unknown, maxCoins)
	}
	pairs := c.unknownPairs()
	c.PerPair = (unknown + pairs - 1) / pairs
	return c, nil
}

// Delta returns an upper bound on the δ at epsilon of a sum whose input changes by
// at most sensitivity, counting unknown coins only; at most 2^20 of them are
// counted.
func (c Coins) Delta(sensitivity int, epsilon float64) (float64, error) {
	unknown, err := c.unknown()
	if err != nil {
		return 0, err
	}
	return coinsDelta(min(unknown, maxCoins), sensitivity, epsilon)
}

// Epsilon returns certified bounds of the ε at delta of a vector of the given number of
// coordinates, each with unknown coins of its own and each changed by at most sensitivity:
// coordinates compose as rounds do. Unknown coins are counted as in [Coins.Delta]. It fails with
// [ErrConfig] if c is invalid, and with the errors of package accounting if another argument is.
func (c Coins) Epsilon(sensitivity, coordinates int, delta float64) (accounting.Bound, error) {
	unknown, err := c.unknown()
	if err != nil {
		return accounting.Bound{}, err
	}
	run, err := accounting.Compose(accounting.Step{
		Mechanism: accounting.Binomial{Coins: min(unknown, maxCoins), Sensitivity: sensitivity},
		Count:     coordinates,
	})
	if err != nil {
		return accounting.Bound{}, err
	}
	return run.Epsilon(delta)
}

// coinsDelta returns an upper bound, tight to 1e-12 relative, on the hockey-stick
// divergence
//
//	δ = Σ_k max(0, P(k) − e^ε·P(k − Δ))
//
// of Bin(coins, 1/2) and itself shifted by Δ = sensitivity; the other direction is
// the same by symmetry, and smaller shifts have a smaller δ. 1 ≤ coins ≤ 2^20, 1 ≤
// sensitivity ≤ 2^20, 0 ≤ epsilon ≤ 100; else [ErrConfig]. All additions are
// rounded up and all subtractions down, in 96-bit floating point.
func coinsDelta(coins, sensitivity int, epsilon float64) (float64, error) {
	if coins < 1 || coins > maxCoins || sensitivity < 1 || sensitivity > maxCoins ||
		!(epsilon >= 0 && epsilon <= 100) {
		return 0, fmt.Errorf("%w: need 1 ≤ coins, sensitivity ≤ %d and 0 ≤ epsilon ≤ 100", ErrConfig,
			maxCoins)
	}
	if sensitivity > coins {
		return 1, nil // the two laws have no outcome in common
	}
	const precision = 96
	number := func(x float64, mode big.RoundingMode) *big.Float {
		return new(big.Float).SetPrec(precision).SetMode(mode).SetFloat64(x)
	}
	// e^ε from below: math.Exp is within an ulp.
	factor := number(math.Nextafter(math.Exp(epsilon), 0), big.ToNegativeInf)
	if epsilon == 0 {
		factor.SetInt64(1)
	}
	n := coins
	above, below := number(1, big.ToPositiveInf), number(1, big.ToNegativeInf) // C(n, k), C(n, k−Δ)
	delta, shifted := number(0, big.ToPositiveInf), number(0, big.ToNegativeInf)
	i, difference := new(big.Float), number(0, big.ToPositiveInf)
	step := func(c *big.Float, k int) { // C(n, k) to C(n, k+1)
		c.Mul(c, i.SetInt64(int64(n-k)))
		c.Quo(c, i.SetInt64(int64(k+1)))
	}
	for k := 0; k <= n; k++ {
		if k >= sensitivity {
			shifted.Mul(below, factor)
			step(below, k-sensitivity)
		}
		// The ratio of the two falls in k, so the first difference that is not
		// positive ends the sum. Numbers too far apart to matter are rounded up
		// without looking at them: package big would shift by the whole distance.
		if apart(above, shifted) {
			difference.Set(above)
		} else if difference.Sub(above, shifted).Sign() <= 0 {
			break
		}
		if 2*k > n && apart(delta, above) {
			delta.Add(delta, difference.Mul(difference, i.SetInt64(int64(n-k+1)))) // terms fall from here
			break
		}
		delta.Add(delta, difference)
		step(above, k)
	}
	delta.SetMantExp(delta, -n)
	d, accuracy := delta.Float64()
	if accuracy == big.Below {
		d = math.Nextafter(d, 1)
	}
	return min(d, 1), nil
}

// apart reports whether y is below 2^-128·x, and both are positive.
func apart(x, y *big.Float) bool {
	return x.Sign() > 0 && y.Sign() > 0 && x.MantExp(nil)-y.MantExp(nil) > 130
}

// LeastCoins returns the smallest number of unknown coins whose δ at epsilon is at most delta; it
// rounds such that the number is never too small. More coins never hurt: they only add noise. 0 <
// delta < 1; otherwise, and if 2^20 coins do not suffice, it fails with [ErrConfig].
func LeastCoins(sensitivity int, epsilon, delta float64) (int, error) {
	if !(delta > 0 && delta < 1) {
		return 0, fmt.Errorf("%w: need 0 < delta < 1", ErrConfig)
	}
	enough := func(n int) (bool, error) {
		d, err := coinsDelta(n, sensitivity, epsilon)
		return d <= delta, err
	}
	high := 1
	for { // powers of two up to maxCoins
		ok, err := enough(high)
		if err != nil {
			return 0, err
		}
		if ok {
			break
		}
		if high == maxCoins {
			return 0, fmt.Errorf("%w: %d coins do not suffice", ErrConfig, maxCoins)
		}
		high *= 2
	}
	low := high / 2 // not enough, or 0
	for high-low > 1 {
		middle := (low + high) / 2
		ok, err := enough(middle)
		if err != nil {
			return 0, err
		}
		if ok {
			high = middle
		} else {
			low = middle
		}
	}
	return high, nil
}
