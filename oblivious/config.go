package oblivious

import (
	"encoding/binary"
	"math"
	"math/big"

	"github.com/hushsum/hushsum/internal/labels"
)

// Limits of a [Config].
const (
	maxParties   = 1 << 12
	maxTransfers = 1 << 22 // per ordered pair and round: Length, or Length × Coins
)

// Config holds all that parties agree on before a session. It describes one segment of a
// submission of package protocol.
type Config struct {
	// Label names the session, at most 255 bytes. All derived values are bound to it.
	Label string
	// Parties is n, from 2. Every one of them must take part in every round.
	Parties int
	// Length is d, the number of coordinates.
	Length int
	// Bits is b of the ring Z_{2^b} of inputs, masks and noise, from 1 to 64. It
	// must hold n times the largest input and [Config.NoiseBound], or the sum wraps.
	Bits int
	// Noise is the law of the noise terms.
	Noise Noise
	// Coins, if not zero, makes the terms pairwise XOR coins, that many for each ordered pair and
	// coordinate, in place of Noise, which must then be zero. See the type [Coins].
	Coins int
}

// Validate returns [ErrConfig], naming the broken rule.
func (c *Config) Validate() error {
	switch {
	case c == nil:
		return configError("there is none")
	case len(c.Label) > 255:
		return configError("the label has %d bytes, at most 255 are allowed", len(c.Label))
	case c.Parties < 2 || c.Parties > maxParties:
		return configError("Parties is %d, want 2 to %d", c.Parties, maxParties)
	case c.Bits < 1 || c.Bits > 64:
		return configError("Bits is %d, want 1 to 64", c.Bits)
	case c.Coins < 0:
		return configError("Coins is negative")
	case c.Length < 1 || c.Length > maxTransfers/max(1, c.Coins):
		return configError("Length is %d, want 1 to %d", c.Length, maxTransfers/max(1, c.Coins))
	case c.Coins > 0 && c.Noise != Noise{}:
		return configError("Noise and Coins exclude each other")
	}
	if c.Coins == 0 {
		if err := c.Noise.check(); err != nil {
			return err
		}
	}
	if bound := c.noiseBound(); bound >= math.Ldexp(1, c.Bits-1) {
		return configError("noise of ±%.3g does not fit %d bits", bound, c.Bits)
	}
	return nil
}

// NoiseBound returns a number that no coordinate's noise in the sum exceeds in
// absolute value but with probability 2^-40, in units of the ring: for Σ|x| ≤ X the
// sum does not wrap if X + NoiseBound < 2^(Bits−1). It is a Chernoff bound on n
// Laplace variables. With Coins it is their number, which is certain: they are
// counted before [Config.Centre] is subtracted.
func (c *Config) NoiseBound() (uint64, error) {
	if err := c.Validate(); err != nil {
		return 0, err
	}
	return uint64(c.noiseBound()), nil
}

func (c *Config) noiseBound() float64 {
	n := float64(c.Parties)
	if c.Coins > 0 {
		return n * (n - 1) * float64(c.Coins)
	}
	// For 0 < θ < 1/λ and the discrete Laplace law with p = e^(−1/λ),
	// E e^(θX) = (1−p)²/((1−p·e^θ)(1−p·e^−θ)), and P(|ΣX| ≥ a) ≤ 2·E^n/e^(θa).
	scale, _ := c.Noise.Scale.Float64()
	best := math.Inf(1)
	for f := 0.005; f < 1; f += 0.005 {
		theta := f / scale
		log := 2*math.Log(-math.Expm1(-1/scale)) -
			math.Log(-math.Expm1(theta-1/scale)) - math.Log(-math.Expm1(-theta-1/scale))
		best = min(best, (41*math.Ln2+n*log)/theta)
	}
	if c.Noise.Sampling == ReferenceContinuous {
		// The law is slightly narrower; each of n² terms is rounded.
		best += n * n / 2
	}
	return math.Ceil(best * (1 + 1e-9))
}

// Centre returns what to subtract from each coordinate of the sum, modulo 2^Bits:
// half the number of coins, or 0 with Noise.
func (c *Config) Centre() uint64 {
	return uint64(c.Parties*(c.Parties-1)/2*c.Coins) & mask(c.Bits)
}

// transfers is the number of transfers per ordered pair and round.
func (c *Config) transfers() int { return c.Length * max(1, c.Coins) }

// digest is over all that parties must agree on.
func (c *Config) digest() [32]byte {
	var b []byte
	for _, v := range []int{c.Parties, c.Length, c.Bits, c.Coins, int(c.Noise.Sampling),
		len(c.Label)} {
		b = binary.BigEndian.AppendUint64(b, uint64(v))
	}
	b = append(b, c.Label...)
	if c.Noise.Scale != nil {
		b = append(b, c.Noise.Scale.RatString()...)
	}
	return digest(labels.ObliviousConfig, b)
}

// copy is a configuration that its owner cannot change any more.
func (c *Config) copy() Config {
	own := *c
	if c.Noise.Scale != nil {
		own.Noise.Scale = new(big.Rat).Set(c.Noise.Scale)
	}
	return own
}

// mask has the lowest bits bits set.
func mask(bits int) uint64 { return math.MaxUint64 >> (64 - bits) }

// Add adds a correction to an input, coordinate by coordinate modulo 2^bits, as a party does
// before protocol.Client.Submit, and the server with [PublishedServer.Correction]. It fails with
// [ErrLength], and then leaves input unchanged, if the lengths differ, a value is 2^bits or more,
// or bits is not 1 to 64.
func Add(input, correction []uint64, bits int) error {
	if len(input) != len(correction) || bits < 1 || bits > 64 {
		return ErrLength
	}
	for k := range input {
		if (input[k]|correction[k])&^mask(bits) != 0 {
			return ErrLength
		}
	}
	for k := range input {
		input[k] = (input[k] + correction[k]) & mask(bits)
	}
	return nil
}
