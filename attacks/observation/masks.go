package observation

import (
	"errors"
	"math"
	"math/rand/v2"

	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/attacks"
	"github.com/hushsum/hushsum/attacks/internal/draw"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/noise"
	"gonum.org/v1/gonum/stat"
)

// Snooped is what a server learns from one masked vector whose input it has come to
// know: how the masks relate to the input.
type snooped struct {
	Correlation float64 // of masked values and inputs, coordinate by coordinate
	// Differences is the share of coordinates for which the difference to the first
	// one, in the ring, is that of the inputs.
	Differences float64
	// Excess is how many standard deviations χ² of the packed bytes is above its
	// mean: 255 degrees of freedom have mean 255 and variance 510.
	Excess float64
	Bytes  int // of the packed vector
}

// Snoop compares a masked vector with the input under the mask, both of one segment
// of the given bits.
func snoop(input, masked []uint64, bits int) (snooped, error) {
	layout := masking.Layout{{Length: len(input), Bits: bits}}
	vector, err := masking.FromValues(layout, masked)
	if err != nil {
		return snooped{}, err
	}
	var s snooped
	x, y := make([]float64, len(input)), make([]float64, len(input))
	low, same := ^uint64(0)>>(64-bits), 0
	for i := range input {
		x[i], y[i] = float64(input[i]), float64(masked[i])
		if i > 0 && (masked[i]-masked[0])&low == (input[i]-input[0])&low {
			same++
		}
	}
	s.Correlation = attacks.Correlation(x, y)
	s.Differences = float64(same) / float64(len(input)-1)
	packed := vector.AppendPacked(nil)
	s.Bytes = len(packed)
	observed, expected := make([]float64, 256), make([]float64, 256)
	for _, b := range packed {
		observed[b]++
	}
	for i := range expected {
		expected[i] = float64(len(packed)) / 256
	}
	s.Excess = (stat.ChiSquare(observed, expected) - 255) / math.Sqrt(510)
	return s, nil
}

// snooping masks inputs of up to 16 bits in a ring of 32, by one scalar or by the
// masks of package masking.
func snooping(length int, scalar bool, r *rand.Rand) (snooped, error) {
	const bits = 32
	input, masked := make([]uint64, length), make([]uint64, length)
	mask := r.Uint64N(1 << 31) // the top bit unset: the regression is not disturbed by a wrap
	for i := range input {
		input[i] = r.Uint64N(1 << 16)
		masked[i] = (input[i] + mask) & (1<<bits - 1)
	}
	if !scalar {
		vector, err := masking.FromValues(masking.Layout{{Length: length, Bits: bits}}, input)
		if err != nil {
			return snooped{}, err
		}
		var seed masking.Seed
		draw.Bytes(seed[:], r)
		vector.AddMask(&seed)
		masked = vector.Values()[0]
	}
	return snoop(input, masked, bits)
}

// Difference subtracts the sums of two cohorts that differ by one party: its input,
// plus the noise of both sums.
func difference(with, without []int64) []int64 {
	out := make([]int64, len(with))
	for i := range with {
		out[i] = with[i] - without[i]
	}
	return out
}

// SignGuesses takes the colluders' signs and all but their own noise off a sum of
// signs, and returns the guessed sign of the one party left: +1, −1, or 0 if the two
// are equally likely.
func signGuesses(sums, colluders []int64) []int64 {
	out := make([]int64, len(sums))
	for i, s := range difference(sums, colluders) {
		switch {
		case s > 0:
			out[i] = 1
		case s < 0:
			out[i] = -1
		}
	}
	return out
}

// signLane draws fair signs of parties in a number of coordinates: their sums and,
// apart, the signs of the last party.
func signLane(parties, length int, r *rand.Rand) (sums, last []int64) {
	sums, last = make([]int64, length), make([]int64, length)
	for i := range sums {
		for range parties {
			last[i] = 2*int64(r.Uint64()&1) - 1
			sums[i] += last[i]
		}
	}
	return sums, last
}

// signAccuracy is how often the best guess of a sign under discrete Laplace noise of
// scale t is right. With p = e^(−1/t) it is P(X ≥ 0) + P(X = −1)/2, the half for sums
// that come out 0: 1/(1+p) + p(1−p)/(2(1+p)), less than e^ε/(1+e^ε) for ε = 2/t.
func signAccuracy(t float64) float64 {
	p := math.Exp(-1 / t)
	return (1 + p*(1-p)/2) / (1 + p)
}

// unanimous counts coordinates whose sum, with noise, looks unanimous: at least
// parties in absolute value; and those of them that are so, with that sign.
func unanimous(sums, noisy []int64, parties int) (looks, is int) {
	n := int64(parties)
	for i, s := range noisy {
		if max(s, -s) < n {
			continue
		}
		looks++
		if sums[i] == n && s > 0 || sums[i] == -n && s < 0 {
			is++
		}
	}
	return looks, is
}

// unanimousShare is what share of those that look so are so, with fair signs: by
// Bayes over the binomial sum.
func unanimousShare(parties int, law noise.Law) (float64, error) {
	n := int64(parties)
	reach := 64 * n
	probabilities, err := law.Probabilities(-reach, reach)
	if err != nil {
		return 0, err
	}
	tail := func(k int64) (sum float64) { // P(X ≥ k)
		for ; k <= reach; k++ {
			sum += probabilities[k+reach]
		}
		return sum
	}
	looks, weight := 0.0, math.Pow(0.5, float64(parties))
	is := 2 * weight * tail(0)
	for k := range n + 1 {
		s := 2*k - n
		looks += weight * (tail(n-s) + tail(n+s))
		weight *= float64(n-k) / float64(k+1)
	}
	return is / looks, nil
}

// Wrapped is what a client gets into a sum by adding to its submission in the ring,
// past its own encoder.
type wrapped struct {
	Tried, Refused int
	// Shift is the largest change of the decoded sum that was not refused, in clipping
	// norms.
	Shift float64
}

// WrapAround has one party add each of the shifts to the first coordinate of its
// encoded update, all updates being zero, and decodes the sum.
func wrapAround(e aggregation.Encoder, shifts []uint64) (wrapped, error) {
	var w wrapped
	layout, err := e.Layout()
	if err != nil {
		return w, err
	}
	low := ^uint64(0) >> (64 - layout[0].Bits)
	for _, shift := range shifts {
		sum := make([]uint64, layout[0].Length)
		sum[0] = shift & low
		w.Tried++
		decoded, err := e.Decode([][]uint64{sum}, 1)
		switch {
		case errors.Is(err, aggregation.ErrSum):
			w.Refused++
		case err != nil:
			return w, err
		default:
			w.Shift = max(w.Shift, math.Abs(decoded[0])/e.Clip)
		}
	}
	return w, nil
}
