package collusion

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"sort"

	"github.com/hushsum/hushsum/noise"
	"gonum.org/v1/gonum/dsp/fourier"
)

// The variance left says little about privacy. What does is the law that is left,
// given all that the colluders see; it is computed here on a lattice, for the
// published protocol with Pólya differences in place of gamma differences, which
// are the same law in whole units.

// noiseLaw is a law on the integers from −len/2 to len/2−1; element i has the
// probability of i, or of i − len from len/2 on.
type noiseLaw []float64

// hockeyStick returns the least δ for which the law is (ε, δ)-differentially private
// for a change of the input by shift units.
func (l noiseLaw) hockeyStick(epsilon float64, shift int) float64 {
	n, factor, delta := len(l), math.Exp(epsilon), 0.0
	for i, p := range l {
		shifted := max(0, l[((i-shift)%n+n)%n])
		// The Fourier transform leaves errors of about 1e-17 of either sign.
		if excess := p - factor*shifted; excess > 1e-15 {
			delta += excess
		}
	}
	return delta
}

// variance returns the variance of the law.
func (l noiseLaw) variance() float64 {
	mean, square := 0.0, 0.0
	for i, p := range l {
		k := i
		if k >= len(l)/2 {
			k -= len(l)
		}
		mean += p * float64(k)
		square += p * float64(k) * float64(k)
	}
	return square - mean*mean
}

// publishedLaw draws what is left of the noise in the released sum of the published
// protocol against colluders who pool everything, given what they see. It is not
// safe for concurrent use.
//
// What they see of a term that they sent to an honest party are both candidates:
// one of two values is left, with probability ½ each. For a term that they received
// they see the difference d of the candidates and which of them they chose: what is
// left is the law of g⁰ given g⁰ − g¹ = d. Terms among honest parties are left whole.
type publishedLaw struct {
	pairs       int       // of an honest party and a colluder
	term        []float64 // probabilities of a term, from −reach to reach
	cumulative  []float64 // sums of them
	reach, size int       // of the lattice
	fft         *fourier.FFT
	whole       []complex128         // transform of the honest parties' terms
	given       map[int][]complex128 // transforms of g⁰ given d ≥ 0
}

// newPublishedLaw prepares n parties, of whom some collude, and terms whose n-fold
// sum is discrete Laplace of the given scale, in lattice units. size is the lattice's
// length, a power of two that holds the law with all its tails.
func newPublishedLaw(n, colluders, scale, size int) (*publishedLaw, error) {
	if n < 2 || colluders < 0 || colluders >= n ||
		scale < 1 || size < 64*scale || size&(size-1) != 0 {
		return nil, fmt.Errorf("collusion: no law for %d parties, %d colluders, scale %d "+
			"on %d points; give a larger lattice", n, colluders, scale, size)
	}
	honest := n - colluders
	p := &publishedLaw{
		pairs: honest * colluders,
		reach: size/2 - 1,
		size:  size,
		fft:   fourier.NewFFT(size),
		given: make(map[int][]complex128),
	}
	lambda := big.NewRat(int64(scale), 1)
	law, err := noise.PolyaDifference(big.NewRat(1, int64(n)), lambda)
	if err != nil {
		return nil, err
	}
	if p.term, err = law.Probabilities(-int64(p.reach), int64(p.reach)); err != nil {
		return nil, err
	}
	p.cumulative = make([]float64, len(p.term))
	sum := 0.0
	for i, q := range p.term {
		sum += q
		p.cumulative[i] = sum
	}
	all, err := latticeLaw(big.NewRat(int64(honest*honest), int64(n)), lambda, size)
	if err != nil {
		return nil, err
	}
	p.whole = p.fft.Coefficients(nil, all)
	return p, nil
}

// latticeLaw returns the Pólya difference of the given shape and scale.
func latticeLaw(shape, scale *big.Rat, size int) (noiseLaw, error) {
	law, err := noise.PolyaDifference(shape, scale)
	if err != nil {
		return nil, err
	}
	return tabulate(law, size)
}

// tabulate lists a law's probabilities.
func tabulate(law noise.Law, size int) (noiseLaw, error) {
	reach := size/2 - 1
	probabilities, err := law.Probabilities(-int64(reach), int64(reach))
	if err != nil {
		return nil, err
	}
	l := make(noiseLaw, size)
	for i, q := range probabilities {
		l[(i-reach+size)%size] = q
	}
	return l, nil
}

// draw samples a term.
func (p *publishedLaw) draw(r *rand.Rand) int {
	u := r.Float64() * p.cumulative[len(p.cumulative)-1]
	return sort.SearchFloat64s(p.cumulative, u) - p.reach
}

// difference samples g⁰ − g¹.
func (p *publishedLaw) difference(r *rand.Rand) int {
	first, second := p.draw(r), p.draw(r)
	return first - second
}

// fromHonest returns the transform of g⁰ given g⁰ − g¹ = d ≥ 0. That of d < 0 is its
// conjugate, as the law is mirrored.
func (p *publishedLaw) fromHonest(d int) []complex128 {
	if transform, ok := p.given[d]; ok {
		return transform
	}
	law, sum := make([]float64, p.size), 0.0
	for k := d - p.reach; k <= p.reach; k++ {
		q := p.term[k+p.reach] * p.term[k-d+p.reach]
		law[(k+p.size)%p.size] = q
		sum += q
	}
	for i := range law {
		law[i] /= sum
	}
	p.given[d] = p.fft.Coefficients(nil, law)
	return p.given[d]
}

// view draws what the colluders see, and returns the law of the noise that is left
// given that. Its centre is of no meaning.
func (p *publishedLaw) view(r *rand.Rand) noiseLaw {
	spectrum := slices.Clone(p.whole)
	for range p.pairs {
		d := p.difference(r)
		given := p.fromHonest(max(d, -d))
		for k, c := range given {
			if d < 0 {
				c = complex(real(c), -imag(c))
			}
			spectrum[k] *= c
		}
	}
	law := noiseLaw(p.fft.Sequence(nil, spectrum))
	for i := range law {
		law[i] /= float64(p.size)
	}
	next := make(noiseLaw, p.size)
	for range p.pairs {
		d := p.difference(r)
		if d == 0 {
			continue
		}
		d = (d + p.size) % p.size
		for i := range d {
			next[i] = (law[i] + law[i-d+p.size]) / 2
		}
		for i := d; i < p.size; i++ {
			next[i] = (law[i] + law[i-d]) / 2
		}
		law, next = next, law
	}
	return law
}
