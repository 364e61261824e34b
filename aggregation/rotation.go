package aggregation

import (
	"crypto/sha256"
	"encoding/binary"
	"iter"
	"math"
	"math/bits"

	"github.com/hushsum/hushsum/internal/labels"
)

// maxBlock is the longest block that a rotation mixes, and what an Encoder works on
// at a time: 8 MB in float64. With a rotation the last two may overlap, and are
// worked on together.
const maxBlock = 1 << 20

// rotation is the random orthogonal matrix that [Encoder] describes; without a seed,
// the unit matrix.
type rotation struct {
	seed      *[32]byte
	dimension int
	block     int // L, a power of two
}

func newRotation(seed *[32]byte, dimension int) rotation {
	return rotation{seed, dimension, min(1<<(bits.Len(uint(dimension))-1), maxBlock)}
}

// spans yields the parts of a vector that are worked on one after another, by where
// they begin and end: blocks, and at the end one and what is left of the vector.
func (r rotation) spans() iter.Seq2[int, int] {
	return func(yield func(int, int) bool) {
		for from := 0; from < r.dimension; {
			to := from + r.block
			if r.dimension-to < r.block {
				to = r.dimension
			}
			if !yield(from, to) {
				return
			}
			from = to
		}
	}
}

// longest is the length of the longest span.
func (r rotation) longest() int {
	return r.block + r.dimension%r.block
}

// forward multiplies the span v, which begins at the given coordinate, by the matrix
// times √L.
func (r rotation) forward(v []float64, from int) {
	if r.seed == nil {
		return
	}
	first, last, both := r.parts(v)
	flipSigns(first, r.seed, from)
	hadamard(first)
	if last != nil {
		r.normalize(both)
		flipSigns(last, r.seed, r.dimension)
		hadamard(last)
	}
}

// inverse multiplies it by the inverse of the matrix, times √L.
func (r rotation) inverse(v []float64, from int) {
	if r.seed == nil {
		return
	}
	first, last, both := r.parts(v)
	if last != nil {
		hadamard(last)
		flipSigns(last, r.seed, r.dimension)
		r.normalize(both)
	}
	hadamard(first)
	flipSigns(first, r.seed, from)
}

// parts returns the first L coordinates of a span and, if it has more, the last L and
// those that are in both.
func (r rotation) parts(v []float64) (first, last, both []float64) {
	if len(v) == r.block {
		return v, nil, nil
	}
	return v[:r.block], v[len(v)-r.block:], v[len(v)-r.block : r.block]
}

func (r rotation) normalize(v []float64) {
	factor := 1 / math.Sqrt(float64(r.block))
	for i := range v {
		v[i] *= factor
	}
}

// hashBits is how many signs one hash gives.
const hashBits = 8 * sha256.Size

// flipSigns multiplies the coordinates of v by the signs of the seed's stream, from
// the given one on, rounded up to the first of a hash: by −1 where a bit is 1. The
// stream is the concatenation of SHA-256(label ‖ seed ‖ i) for i = 0, 1, …, as 32-bit
// big-endian numbers; its bit k is bit k mod 8, counted from the lowest, of byte
// ⌊k/8⌋.
func flipSigns(v []float64, seed *[32]byte, from int) {
	var message [len(labels.RotationSigns) + len(seed) + 4]byte
	copy(message[:], labels.RotationSigns)
	copy(message[len(labels.RotationSigns):], seed[:])
	for i := uint32((from + hashBits - 1) / hashBits); len(v) > 0; i++ {
		binary.BigEndian.PutUint32(message[len(message)-4:], i)
		block := sha256.Sum256(message[:])
		part := v[:min(hashBits, len(v))]
		v = v[len(part):]
		for k, x := range part {
			sign := uint64(block[k/8]) >> (k % 8) << 63
			part[k] = math.Float64frombits(math.Float64bits(x) ^ sign)
		}
	}
}
