package oblivious

import (
	"fmt"
	"io"
	"math"
	"math/big"
	"math/rand/v2"

	"github.com/hushsum/hushsum/internal/continuous"
	"github.com/hushsum/hushsum/noise"
)

// Sampling says how noise terms are drawn.
type Sampling int

// The ways of sampling.
const (
	// Exact draws differences of two Pólya variables of shape 1/n with statistical
	// distance zero (noise.Exact). It takes longer for larger values: not where
	// somebody who must not learn the noise can time it.
	Exact Sampling = iota
	// Table draws the same with a fixed amount of work, within 2^-100 of the law (noise.Table), for
	// which δ is charged. λ is then limited to about 1,000.
	Table
	// ReferenceContinuous draws the thesis's law, differences of two Gamma(1/n, λ)
	// variables, in floating point, and rounds to the nearest unit of the ring. NOT
	// for releases: the possible outputs of a float sampler tell what they were
	// added to (Mironov 2012). No bound is given for it.
	ReferenceContinuous
)

// Noise is the law of the noise terms: n of them add up to a Laplace variable.
type Noise struct {
	// Scale is λ in units of the ring, P(k) ∝ exp(−|k|/λ) for n terms together. The discrete laws
	// allow λ up to several thousand: choose the fixed-point unit accordingly (see package noise for
	// the exact limits).
	Scale *big.Rat
	// Sampling says how terms are drawn.
	Sampling Sampling
}

func (n Noise) check() error {
	if n.Sampling < Exact || n.Sampling > ReferenceContinuous {
		return configError("there is no such Sampling")
	}
	if n.Scale == nil {
		return configError("there is no Noise.Scale")
	}
	if _, err := noise.DiscreteLaplace(n.Scale); err != nil {
		return configError("Noise.Scale: %w", err)
	}
	return nil
}

// filler draws terms.
type filler interface{ Fill([]int64) error }

// sampler prepares drawing one of n shares.
func (n Noise) sampler(parties int, random io.Reader) (filler, error) {
	if n.Sampling == ReferenceContinuous {
		seed, err := draw(random, 32)
		if err != nil {
			return nil, err
		}
		scale, _ := n.Scale.Float64()
		law := continuous.GammaDifference{Shape: 1 / float64(parties), Scale: scale}
		return reference{law, rand.NewChaCha8([32]byte(seed))}, nil
	}
	share, err := n.share(parties)
	if err != nil {
		return nil, err
	}
	if n.Sampling == Exact {
		e, err := noise.NewExact(share, random)
		if err != nil {
			return nil, configError("Noise: %w", err)
		}
		return e, nil
	}
	table, err := noise.NewTable(share)
	if err != nil {
		return nil, configError("Noise: %w", err)
	}
	return table.NewSampler(random), nil
}

// share is the discrete law of one term.
func (n Noise) share(parties int) (noise.Law, error) {
	sum, err := noise.DiscreteLaplace(n.Scale)
	if err != nil {
		return noise.Law{}, configError("Noise.Scale: %w", err)
	}
	share, err := noise.Shares{Parties: parties, MinHonest: parties, Law: sum}.Party()
	if err != nil {
		return noise.Law{}, configError("Noise: %w", err)
	}
	return share, nil
}

// reference draws the continuous law.
type reference struct {
	law continuous.GammaDifference
	src rand.Source
}

func (r reference) Fill(dst []int64) error {
	for k := range dst {
		x, err := r.law.Sample(r.src)
		if err != nil {
			return err
		}
		dst[k] = int64(math.RoundToEven(x))
	}
	return nil
}

// drawTerms draws n terms into the ring.
func drawTerms(f filler, n, bits int) ([]uint64, error) {
	terms := make([]int64, n)
	defer clear(terms)
	if err := f.Fill(terms); err != nil {
		return nil, fmt.Errorf("oblivious: %w", err)
	}
	out := make([]uint64, n)
	for k, x := range terms {
		out[k] = uint64(x) & mask(bits)
	}
	return out, nil
}

// Claim is a privacy claim for one round under zero-out adjacency: a party takes
// part with its input, or with the zero vector.
type Claim struct{ Epsilon, Delta float64 }

// claim is that of [Transfer.Claim].
func (c *Config) claim(delta1 *big.Rat) (Claim, error) {
	if c.Coins > 0 {
		return Claim{}, fmt.Errorf("%w: coins have none in ε alone; use the methods of Coins", ErrNoBound)
	}
	if c.Noise.Sampling == ReferenceContinuous {
		return Claim{}, fmt.Errorf(
			"%w: the continuous law is sampled in floating point; use Exact or Table", ErrNoBound)
	}
	if delta1 == nil || delta1.Sign() < 0 {
		return Claim{}, fmt.Errorf("%w: the sensitivity is in L1, in units of the ring, and not negative",
			ErrConfig)
	}
	epsilon, exact := new(big.Rat).Quo(delta1, c.Noise.Scale).Float64()
	if !exact {
		epsilon = math.Nextafter(epsilon, math.Inf(1))
	}
	claim := Claim{Epsilon: epsilon}
	if c.Noise.Sampling == Table {
		// All that the honest party draws: both candidates for every peer, and its own.
		samples := float64(2*c.Parties-1) * float64(c.Length)
		claim.Delta = min(1, (1+math.Exp(epsilon))*samples*noise.MaxTableDistance*(1+1e-12))
	}
	return claim, nil
}
