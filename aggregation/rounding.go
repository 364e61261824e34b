package aggregation

import (
	"fmt"
	"io"
	"math"
	"math/bits"

	"github.com/hushsum/hushsum/internal/entropy"
)

// defaultBeta is the Beta of an [Encoder] that leaves it at 0: e^(−1/2), the
// choice of (Kairouz, Liu, Steinke 2021).
const defaultBeta = 0.6065306597126334

// maxBeta keeps the expected number of tries at 100 or fewer.
const maxBeta = 0.99

// squaredNormBound is the square of
//
//	min{ c + √d, √(c² + d/4 + √(2·ln(1/β))·(c + √d/2)) },
//
// which bounds the norm of a vector of d coordinates and of norm at most c after
// stochastic rounding: the first always, since no coordinate moves by 1 or more;
// the second with probability 1 − β at least (Kairouz, Liu, Steinke 2021).
//
// kappa is √(2·ln(1/β)). Products are converted to float64 one by one so that no
// machine fuses them with a sum: all must find the same bound.
func squaredNormBound(c float64, d int, kappa float64) float64 {
	root := math.Sqrt(float64(d))
	always := (c + root) * (c + root)
	likely := float64(c*c) + float64(d)/4 + float64(kappa*(c+root/2))
	return min(always, likely)
}

// kappaOf is √(2·ln(1/β)), rounded up to a multiple of 2^-20, since the last
// place of a logarithm differs between machines. It is 1 for defaultBeta.
func kappaOf(beta float64) float64 {
	if beta == defaultBeta {
		return 1
	}
	return math.Ceil(math.Sqrt(-2*math.Log(beta))*0x1p20) * 0x1p-20
}

// integerNormBound is the largest squared norm that a rounded vector may have.
// That is an integer, so nothing is lost by rounding the bound down; the factor
// makes up for the few roundings in it, so that a vector accepted in exact
// arithmetic is accepted here.
func integerNormBound(c float64, d int, beta float64) uint64 {
	return uint64(squaredNormBound(c, d, kappaOf(beta)) * (1 + 0x1p-48))
}

// overlong is the probability with which a dither may let one vector move a sum by more than
// unitSquare.
const overlong = 0x1p-60

// unitSquare bounds the square of by how much a vector of norm at most c in a sum of up to n moves
// the sum once that is rounded without a condition: see [Encoder]. In exact arithmetic it is
// squaredNormBound, with β = overlong; rare then says that it is the second of the two bounds. A
// sum of n float64 vectors is off by at most n·2^-53 of the sum of their norms, n·c, in either of
// two neighbours, the rotation and the clipping to n·c by a few times 2^-48 of n·c; the margin is
// at least four times all that.
func unitSquare(c float64, n, d int) (square float64, rare bool) {
	many := float64(n)
	c = float64(c * (1 + float64(many*many*0x1p-50) + float64(many*0x1p-42) + 0x1p-40))
	square = squaredNormBound(c, d, kappaOf(overlong))
	always := c + math.Sqrt(float64(d))
	return square, square < float64(always*always)
}

// productRoot returns ⌊√(a·b)⌋ for a·b < 2^100.
func productRoot(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	above := func(r uint64) bool {
		rhi, rlo := bits.Mul64(r, r)
		return rhi > hi || rhi == hi && rlo > lo
	}
	r := uint64(math.Sqrt(float64(a) * float64(b)))
	for above(r) {
		r--
	}
	for !above(r + 1) {
		r++
	}
	return r
}

// roundConditionally calls round, which rounds a whole vector stochastically and
// returns the sum of the squares, again and again until that is at most limit. With a
// norm before rounding of at most the c that limit was made from, a try succeeds with
// probability 1 − beta at least, so that 1/(1 − beta) tries are expected. The test is
// on integers: no output exceeds the limit, by however little.
//
// It gives up after as many tries as a working source of randomness needs with
// probability below 2^-100.
func roundConditionally(
	limit uint64, beta float64, random io.Reader, round func(*byteSource) (uint64, error),
) error {
	source := byteSource{random: random}
	tries := max(1, int(math.Ceil(100*math.Ln2/-math.Log(beta))))
	for range tries {
		sum, err := round(&source)
		if err != nil {
			return err
		}
		if sum <= limit {
			return nil
		}
	}
	return fmt.Errorf("aggregation: %w: %d roundings in a row were too long", ErrRandom, tries)
}

// roundOnce rounds each coordinate of factor·v, a float64, up or down in
// magnitude, up with a probability of exactly its fraction, and returns the sum
// of the squares. With a norm of at most 2^30 and at most 2^28 coordinates that
// is below 2^61.
func roundOnce(
	dst []uint64, v []float64, factor float64, source *byteSource,
) (sum uint64, err error) {
	for len(v) > 0 {
		n := min(len(source.block), len(v))
		block := source.block[:n]
		if err := source.fill(block); err != nil {
			return 0, err
		}
		part, out := v[:n], dst[:n]
		for i, r := range block {
			raw := math.Float64bits(part[i] * factor)
			a := math.Float64frombits(raw &^ (1 << 63))
			whole := int64(a)
			// A fraction of a float64 is a float64, and 256 times that is, too:
			// nothing is rounded here. Compare it byte by byte with a uniform
			// number; all but one coordinate in 256 are decided by the first.
			t := (a - float64(whole)) * 256
			first := int64(t)
			if int64(r) == first {
				up, err := source.below(t - float64(first))
				if err != nil {
					return 0, err
				}
				whole += up
			} else {
				whole += int64(uint64(int64(r)-first) >> 63)
			}
			sum += uint64(whole) * uint64(whole)
			negative := -int64(raw >> 63)
			out[i] = uint64((whole ^ negative) - negative)
		}
		v, dst = v[n:], dst[n:]
	}
	return sum, nil
}

// byteSource reads random bytes: blocks for the caller, and single ones through
// a small buffer for the comparisons that go on.
type byteSource struct {
	random io.Reader
	block  [4096]byte
	buffer [64]byte
	left   []byte // the part of buffer that is unused
}

func (s *byteSource) fill(b []byte) error {
	return entropy.Read("aggregation", s.random, b)
}

// below returns 1 with probability exactly fraction, which is in [0, 1), and 0
// otherwise.
func (s *byteSource) below(fraction float64) (int64, error) {
	for fraction > 0 {
		if len(s.left) == 0 {
			if err := s.fill(s.buffer[:]); err != nil {
				return 0, err
			}
			s.left = s.buffer[:]
		}
		r := float64(s.left[0])
		s.left = s.left[1:]
		t := fraction * 256
		first := math.Floor(t)
		if r != first {
			if r < first {
				return 1, nil
			}
			return 0, nil
		}
		fraction = t - first
	}
	return 0, nil
}
