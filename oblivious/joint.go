package oblivious

import (
	"encoding/binary"
	"errors"
	"math"
	"math/big"
	"math/bits"
	"slices"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/internal/labels"
	"github.com/hushsum/hushsum/keyexchange"
)

// Limits of a [JointConfig].
const (
	maxJointParties = 64
	maxJointLevels  = 32
	maxJointTurn    = 1 << 22 // ciphertexts of one message
	maxJointSum     = 1 << 32 // the largest possible coordinate of a sum
)

// JointConfig holds all that parties of a [Joint] agree on. docs/joint-noise.md describes the
// protocol.
type JointConfig struct {
	// Label names the session, at most 255 bytes. Use it once among the same parties.
	Label string
	// Roster has the n parties' identities, from 2 to 64, in the order of their turns. All of them
	// must stay until the end.
	Roster *keyexchange.Roster
	// Length is d, the number of coordinates.
	Length int
	// Bound is the largest value of a coordinate of an input, from 1; inputs are from 0 to
	// Bound, which each party proves of its own.
	Bound uint64
	// Coins holds the noise of each coordinate: Coins[j] fair coins that count 2^j each. With {m}
	// the noise is binomial of variance m/4, however many parties there are; see
	// [JointConfig.Epsilon] for the use of higher levels. At most 32 levels; the last one has a
	// coin.
	Coins []int
}

// Validate returns [ErrConfig], naming the broken rule.
func (c *JointConfig) Validate() error {
	switch {
	case c == nil:
		return configError("there is none")
	case len(c.Label) > 255:
		return configError("the label has %d bytes, at most 255 are allowed", len(c.Label))
	case c.Roster == nil || c.Roster.Len() < 2 || c.Roster.Len() > maxJointParties:
		return configError("a roster of 2 to %d parties is needed", maxJointParties)
	case c.Bound < 1 || c.Bound >= maxJointSum:
		return configError("Bound is %d, want 1 to 2^32 − 1", c.Bound)
	}
	if err := c.checkCoins(); err != nil {
		return err
	}
	most := max(c.coins(), len(c.inputWeights()))
	if c.Length < 1 || c.Length > maxJointTurn/most {
		return configError("Length is %d, want 1 to %d", c.Length, maxJointTurn/most)
	}
	if sum := c.inputs() + c.noiseMax(); sum >= maxJointSum {
		return configError("a coordinate of the sum may be %d, at most 2^32 − 1 is allowed", sum)
	}
	return nil
}

// checkCoins checks the noise alone.
func (c *JointConfig) checkCoins() error {
	if len(c.Coins) < 1 || len(c.Coins) > maxJointLevels || c.Coins[len(c.Coins)-1] < 1 {
		return configError("Coins has %d levels, want 1 to %d, with a coin in the last one",
			len(c.Coins), maxJointLevels)
	}
	for j, m := range c.Coins {
		if m < 0 || m > maxJointTurn>>j {
			return configError("Coins[%d] is %d, want 0 to %d", j, m, maxJointTurn>>j)
		}
	}
	return nil
}

// coins is the number of coins of a coordinate.
func (c *JointConfig) coins() (m int) {
	for _, level := range c.Coins {
		m += level
	}
	return m
}

// coinWeights returns what each coin of a coordinate counts, in order.
func (c *JointConfig) coinWeights() []uint64 {
	weights := make([]uint64, 0, c.coins())
	for j, level := range c.Coins {
		for range level {
			weights = append(weights, 1<<j)
		}
	}
	return weights
}

// inputWeights returns weights whose subsets add up to every number from 0 to Bound and to no
// other: powers of two, and last the difference of Bound and their sum.
func (c *JointConfig) inputWeights() (weights []uint64) {
	left := c.Bound
	for w := uint64(1); left > 0; w *= 2 {
		w = min(w, left)
		weights = append(weights, w)
		left -= w
	}
	return weights
}

// inputBits returns bits by which the weights add up to x, in a time that depends on
// Bound alone. 0 ≤ x ≤ Bound.
func (c *JointConfig) inputBits(x uint64) []byte {
	weights := c.inputWeights()
	last := len(weights) - 1
	taken := make([]byte, len(weights))
	_, below := bits.Sub64(x, 1<<last, 0) // 1 if the powers of two alone hold x
	taken[last] = byte(1 - below)
	x -= weights[last] & -(1 - below)
	for k := range last {
		taken[k] = byte(x >> k & 1)
	}
	return taken
}

// inputs is the largest sum of inputs.
func (c *JointConfig) inputs() uint64 { return uint64(c.Roster.Len()) * c.Bound }

// noiseMax is the largest value of the noise. It is the sum of at most 32 numbers up to 2^22.
func (c *JointConfig) noiseMax() (sum uint64) {
	for j, m := range c.Coins {
		sum += uint64(m) << j
	}
	return sum
}

// Centre returns the mean of the noise, half the largest value, to subtract from each
// coordinate of the sum. 0 if the configuration is not valid.
func (c *JointConfig) Centre() float64 {
	if c.Validate() != nil {
		return 0
	}
	return float64(c.noiseMax()) / 2
}

// Variance returns the variance of the noise in a coordinate of the sum, Σ_j Coins[j]·4^j/4. It
// is the same whether everybody is honest or all but one collude. 0 if the configuration is not
// valid.
func (c *JointConfig) Variance() float64 {
	if c.Validate() != nil {
		return 0
	}
	return c.variance()
}

func (c *JointConfig) variance() (sum float64) {
	for j, m := range c.Coins {
		sum += math.Ldexp(float64(m), 2*j-2)
	}
	return sum
}

// Epsilon returns a certified interval of ε at delta of one session against n − 1 parties that
// cheat and pool all they know, for inputs of the remaining one that differ by at most
// sensitivity in at most the given number of coordinates at once: 1 and 1 for a count, 1 and 2
// for a histogram in which somebody moves, 1 and Length for unrelated bits. It holds against
// adversaries that cannot break the encryption (computational differential privacy).
//
// Coins of one level are a binomial for any sensitivity. With more levels let k be the least
// number with sensitivity ≤ 2^k. One coin of each level below k is then a uniform number
// below 2^k: the sum's remainder modulo 2^k is uniform whatever the input, and the rest
// changes by 0 or 1, so that levels from k on count as for sensitivity 1. Each of the k
// levels must have a coin; else, and if no level is left, [ErrNoBound]. Other errors are
// [ErrConfig] and those of package accounting.
func (c *JointConfig) Epsilon(
	sensitivity, coordinates int, delta float64,
) (accounting.Bound, error) {
	if err := c.checkCoins(); err != nil {
		return accounting.Bound{}, err
	}
	if sensitivity < 1 || coordinates < 1 {
		return accounting.Bound{}, configError("sensitivity is %d in %d coordinates, want 1 or more",
			sensitivity, coordinates)
	}
	step := accounting.Step{Count: coordinates}
	if k := bits.Len(uint(sensitivity - 1)); len(c.Coins) == 1 {
		step.Mechanism = accounting.Binomial{Coins: c.Coins[0], Sensitivity: sensitivity}
	} else {
		for j := range min(k, len(c.Coins)) {
			if c.Coins[j] == 0 {
				return accounting.Bound{}, noBound("level %d has no coin, below a sensitivity of %d",
					j, sensitivity)
			}
		}
		if k >= len(c.Coins) {
			return accounting.Bound{}, noBound("no level counts as much as the sensitivity, %d",
				sensitivity)
		}
		var err error
		if step.Mechanism, err = mechanismOf(c.Coins[k:]); err != nil {
			return accounting.Bound{}, err
		}
	}
	run, err := accounting.Compose(step)
	if err != nil {
		return accounting.Bound{}, err
	}
	return run.Epsilon(delta)
}

// maxOutcomes bounds the support of a law of several levels, which is computed exactly.
const maxOutcomes = 1 << 16

// mechanismOf returns the mechanism of levels of coins at sensitivity 1.
func mechanismOf(levels []int) (accounting.Mechanism, error) {
	if len(levels) == 1 {
		return accounting.Binomial{Coins: levels[0], Sensitivity: 1}, nil
	}
	size, coins := 1, 0
	for j, m := range levels {
		size, coins = size+m<<j, coins+m
		if size > maxOutcomes {
			return nil, noBound("the noise takes more than %d values", maxOutcomes)
		}
	}
	// The ways to throw each value, of 2^coins, as integers: the level of most coins by the
	// binomial theorem, and the others a coin at a time.
	most := slices.Index(levels, slices.Max(levels))
	ways := make([]*big.Int, levels[most]<<most+1, size)
	for k := range ways {
		ways[k] = new(big.Int)
	}
	n, row := int64(levels[most]), big.NewInt(1)
	for k := range n + 1 {
		ways[k<<most].Set(row)
		row.Quo(row.Mul(row, big.NewInt(n-k)), big.NewInt(k+1))
	}
	for j, m := range levels {
		if j == most {
			continue
		}
		for range m {
			old := len(ways)
			for range 1 << j {
				ways = append(ways, new(big.Int))
			}
			for k := old - 1; k >= 0; k-- { // from above: ways[k] is still the old one
				ways[k+1<<j].Add(ways[k+1<<j], ways[k])
			}
		}
	}
	pair := accounting.Pair{P: make([]float64, len(ways)+1), Q: make([]float64, len(ways)+1)}
	for k, w := range ways {
		f := new(big.Float).SetInt(w)
		p, _ := f.SetMantExp(f, -coins).Float64()
		pair.P[k], pair.Q[k+1] = p, p
	}
	return pair, nil
}

// LeastJointCoins returns coins of which [JointConfig.Epsilon] is at most epsilon, for the
// same sensitivity, coordinates and delta. One coin for each power of two below the
// sensitivity comes first. What follows is one level, or some levels of four coins each and a
// last one: four are enough to make steps of the next level smooth, so that far fewer coins have
// the same variance. Of those within 5 % of the variance of one level it returns the fewest, of
// the last level as few as epsilon allows. It fails with [ErrConfig] if epsilon is not positive or
// 2^20 coins do not suffice, and as Epsilon does.
func LeastJointCoins(sensitivity, coordinates int, epsilon, delta float64) ([]int, error) {
	if !(epsilon > 0) || sensitivity < 1 || sensitivity > 1<<20 {
		return nil, configError("need a positive epsilon and a sensitivity of 1 to 2^20")
	}
	config := JointConfig{Coins: append(powersBelow(sensitivity), 0)}
	enough := func(m int) (bool, error) { // more coins are noise on top, which lowers ε
		config.Coins[len(config.Coins)-1] = m
		bound, err := config.Epsilon(sensitivity, coordinates, delta)
		return err == nil && bound.Upper <= epsilon, err
	}
	high := 1
	for {
		if ok, err := enough(high); err != nil {
			return nil, err
		} else if ok {
			break
		}
		if high >= maxCoins {
			return nil, configError("%d coins do not suffice", high)
		}
		high *= 2
	}
	one, err := fewest(enough, high/2, high)
	if err != nil {
		return nil, err
	}
	levels := append(powersBelow(sensitivity), one)
	most := 1.05 * (&JointConfig{Coins: levels}).variance()
	// A level more is taken if the most coins that the variance allows it are enough. Where
	// there are too many outcomes to say, the next one has half as many.
	for smooth := 1; ; smooth++ {
		config.Coins = powersBelow(sensitivity)
		for range smooth {
			config.Coins = append(config.Coins, 4)
		}
		last := len(config.Coins)
		allowed := int(math.Ldexp(most-config.variance(), 2-2*last))
		if allowed < 1 {
			break
		}
		config.Coins = append(config.Coins, 0)
		if ok, err := enough(allowed); errors.Is(err, ErrNoBound) {
			continue
		} else if err != nil {
			return nil, err
		} else if !ok {
			break
		}
		levels, high = config.Coins, allowed
	}
	if len(levels) == len(powersBelow(sensitivity))+1 {
		return levels, nil
	}
	config.Coins = levels
	fewer, err := fewest(enough, 0, high)
	if err != nil {
		return nil, err
	}
	levels[len(levels)-1] = fewer
	return levels, nil
}

// powersBelow is one coin of each power of two below a sensitivity.
func powersBelow(sensitivity int) []int {
	return slices.Repeat([]int{1}, bits.Len(uint(sensitivity-1)))
}

// fewest returns the least number above low that is enough, where high is.
func fewest(enough func(int) (bool, error), low, high int) (int, error) {
	for high-low > 1 {
		middle := (low + high) / 2
		if ok, err := enough(middle); err != nil {
			return 0, err
		} else if ok {
			high = middle
		} else {
			low = middle
		}
	}
	return high, nil
}

// digest is over all that parties must agree on.
func (c *JointConfig) digest() [32]byte {
	var b []byte
	b = binary.BigEndian.AppendUint32(b, uint32(c.Length))
	b = binary.BigEndian.AppendUint64(b, c.Bound)
	b = binary.BigEndian.AppendUint32(b, uint32(len(c.Coins)))
	for _, m := range c.Coins {
		b = binary.BigEndian.AppendUint32(b, uint32(m))
	}
	roster := c.Roster.Digest()
	return digest(labels.JointConfig, roster[:], b, []byte(c.Label))
}

// copy is a configuration that its owner cannot change any more. A roster never changes.
func (c *JointConfig) copy() JointConfig {
	own := *c
	own.Coins = append([]int(nil), c.Coins...)
	return own
}
