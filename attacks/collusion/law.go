package collusion

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"sort"

	"github.com/hushsum/hushsum/attacks"
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
		// The Fourier transform leaves errors of about 1e-17 of either sign.
		if excess := p - factor*max(0, l[((i-shift)%n+n)%n]); excess > 1e-15 {
			delta += excess
		}
	}
	return delta
}

// variance is that of the law.
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

// protocolLaw draws what is left of the noise in the released sum of the published
// protocol against colluders who pool everything, given what they see. It is not
// safe for concurrent use.
//
// What they see of a term that they sent to an honest party are both candidates:
// one of two values is left, with probability ½ each. Of a term that they received
// they see the difference d of the candidates and which of them they chose: what is
// left is the law of g⁰ given g⁰ − g¹ = d. Terms among honest parties are left whole.
type protocolLaw struct {
	honest, pairs int
	term          []float64 // probabilities of a term, from −reach to reach
	cumulative    []float64
	reach, size   int
	fft           *fourier.FFT
	whole         []complex128         // transform of the honest parties' terms
	given         map[int][]complex128 // transforms of g⁰ given d ≥ 0
}

// newProtocolLaw prepares n parties, of whom some collude, and terms whose n-fold
// sum is discrete Laplace of the given scale, in lattice units. size is the lattice's
// length, a power of two that holds the law with all its tails.
func newProtocolLaw(n, colluders, scale, size int) (*protocolLaw, error) {
	if n < 2 || colluders < 0 || colluders >= n || scale < 1 || size < 64*scale || size&(size-1) != 0 {
		return nil, fmt.Errorf("attacks: no law for %d parties, %d colluders, scale %d on %d points; give a larger lattice", n, colluders, scale, size)
	}
	honest := n - colluders
	p := &protocolLaw{
		honest: honest, pairs: honest * colluders, reach: size/2 - 1, size: size,
		fft: fourier.NewFFT(size), given: map[int][]complex128{},
	}
	t := big.NewRat(int64(scale), 1)
	law, err := noise.PolyaDifference(big.NewRat(1, int64(n)), t)
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
	all, err := latticeLaw(big.NewRat(int64(honest*honest), int64(n)), t, size)
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
func (p *protocolLaw) draw(r *rand.Rand) int {
	u := r.Float64() * p.cumulative[len(p.cumulative)-1]
	return sort.SearchFloat64s(p.cumulative, u) - p.reach
}

// difference samples g⁰ − g¹.
func (p *protocolLaw) difference(r *rand.Rand) int {
	first, second := p.draw(r), p.draw(r)
	return first - second
}

// fromHonest returns the transform of g⁰ given g⁰ − g¹ = d ≥ 0. That of d < 0 is its
// conjugate, as the law is mirrored.
func (p *protocolLaw) fromHonest(d int) []complex128 {
	if c, ok := p.given[d]; ok {
		return c
	}
	l, sum := make([]float64, p.size), 0.0
	for k := d - p.reach; k <= p.reach; k++ {
		q := p.term[k+p.reach] * p.term[k-d+p.reach]
		l[(k+p.size)%p.size] = q
		sum += q
	}
	for i := range l {
		l[i] /= sum
	}
	p.given[d] = p.fft.Coefficients(nil, l)
	return p.given[d]
}

// view draws what the colluders see, and returns the law of the noise that is left
// given that. Its centre is of no meaning.
func (p *protocolLaw) view(r *rand.Rand) noiseLaw {
	spectrum := append([]complex128(nil), p.whole...)
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

// protection is what a scheme's noise is worth against colluders.
type protection struct {
	scheme    string
	colluders int
	// left is the variance left to the honest parties' sum, as a share of that in
	// the released sum, and leftError its standard error, 0 if it was computed.
	left, leftError float64
	// pure is the ε of pure differential privacy, +Inf if there is none, and epsilon
	// that at delta, +Inf above 15. Both are for a change of one input by λ.
	pure, epsilon, delta float64
}

// equalNoise compares schemes at the same variance in the released sum, 2nλ², which
// is that of the published protocol: the published one, oblivious transfer against
// malicious senders, noise shares with slack for just so many colluders (package
// noise), and a Laplace variable from each party. Of the published one views are
// drawn, and their mean δ is taken.
//
// With k honest parties each leaves k/n of the variance, so that none is better by
// that measure: under transfer n·k terms of 2λ²/n are left, which add to k Laplace
// variables, exactly as with local noise. Slack noise of m = k shares can afford
// the scale λ√k and leaves one Laplace variable of that, a pure ε of Δ/(λ√k).
func equalNoise(n int, colluders []int, views int, delta float64, r *rand.Rand) ([]protection, error) {
	const scale = 16
	size := 1 << 10
	for float64(size) < 64*scale*math.Sqrt(float64(n)) {
		size *= 2
	}
	total := 2 * float64(n) * scale * scale
	var all []protection
	for _, c := range colluders {
		k := n - c
		published, err := newProtocolLaw(n, c, scale, size)
		if err != nil {
			return nil, err
		}
		laws := make([]noiseLaw, max(views, 1))
		if c == 0 {
			laws = laws[:1] // nothing is seen
		}
		for i := range laws {
			laws[i] = published.view(r)
		}
		transfer, err := latticeLaw(big.NewRat(int64(k), 1), big.NewRat(scale, 1), size)
		if err != nil {
			return nil, err
		}
		wide, err := noise.Rational(scale * math.Sqrt(float64(k)))
		if err != nil {
			return nil, err
		}
		laplace, err := noise.DiscreteLaplace(wide)
		if err != nil {
			return nil, err
		}
		left, err := noise.Shares{Parties: n, MinHonest: k, Law: laplace}.Sum(k)
		if err != nil {
			return nil, err
		}
		slack, err := tabulate(left.Law, size)
		if err != nil {
			return nil, err
		}
		none := math.Inf(1)
		if c == 0 {
			none = 1
		}
		for _, s := range []struct {
			name string
			laws []noiseLaw
			pure float64
		}{
			{"published", laws, none},
			{"transfer", []noiseLaw{transfer}, 1},
			{"slack noise", []noiseLaw{slack}, 1 / math.Sqrt(float64(k))},
			{"local noise", []noiseLaw{transfer}, 1},
		} {
			p := protection{scheme: s.name, colluders: c, pure: s.pure, delta: delta, epsilon: epsilonOf(s.laws, scale, delta)}
			left := make([]float64, len(s.laws))
			for i, l := range s.laws {
				left[i] = l.variance() / total
			}
			if p.left = left[0]; len(left) > 1 {
				p.left, p.leftError = attacks.MeanAndError(left)
			}
			all = append(all, p)
		}
	}
	return all, nil
}

// epsilonOf returns the ε at which the mean δ of the laws is delta, or +Inf.
func epsilonOf(laws []noiseLaw, shift int, delta float64) float64 {
	mean := func(epsilon float64) float64 {
		d := 0.0
		for _, l := range laws {
			d += l.hockeyStick(epsilon, shift) / float64(len(laws))
		}
		return d
	}
	low, high := 0.0, 15.0
	if mean(high) > delta {
		return math.Inf(1)
	}
	for range 20 {
		if mid := (low + high) / 2; mean(mid) > delta {
			low = mid
		} else {
			high = mid
		}
	}
	return high
}
