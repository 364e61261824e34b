package noise

import (
	"fmt"
	"math/big"

	"github.com/hushsum/hushsum/noise/internal/interval"
)

const (
	wordBits  = 31  // thresholds are below 2^31: comparisons of signed words
	proofBits = 256 // fixed point of the proofs
	columns   = 8   // samples that a register of the kernel takes
	rows      = 64  // rows of columns in a full block
	block     = columns * rows
	tableBits = 112 // what a table's enclosure leaves outside: 2^-112
	maxLevels = 9   // tables of a stage
	maxSlots  = 8   // slots of a column
	fewRows   = 16  // rows that share slots in wide tables
)

// maxOutcomes bounds the outcomes of one stage; every sample scans them all.
const maxOutcomes = 1 << 17

// stage samples one finite law on 0, 1, 2, … as a mixture of tables:
//
//	P(k) = a_k/2^31 + (R/2^31)·b_k/2^31,   Σ a_k = 2^31 − R,   Σ b_k = 2^31,
//
// where a_k is the probability cut off after 31 bits and b_k spreads what was
// cut off, which is less than one unit per outcome, so that R is at most the number
// of outcomes. A uniform 31-bit word below 2^31 − R is looked up in the first
// table by counting the cumulative sums that it reaches; the others, of
// probability R/2^31, take their outcome from the second table. That gives 62
// bits of precision for one-word comparisons. Then b is cut off the same way and a
// third table holds the rest, and so on: five tables are usual.
//
// The second table is so rarely needed that up to 64 samples share its draws: each
// column of a block has `slots` of them, and the i-th sample that needs one
// takes the i-th. Only if more samples than slots need one in the same column does
// the joint law differ from the product law; the probability of that is part of
// the distance. In wide tables, of which more is cut off, 16 samples share slots.
type stage struct {
	levels []*level // two or more
	slots  int      // of a column, for as many samples as share says
	share  int      // rows or fewRows
	n      int      // outcomes

	distance *big.Rat // upper bound on the statistical distance per sample
}

// level is one table: mass holds a_k, sums their cumulative sums without the
// zeros at the end (and, in the last level, without the final 2^31), and
// residual is R, zero in the last level.
type level struct {
	sums     []uint32
	mass     []uint32
	residual uint64
	binned   []int32 // sums, for the kernel
}

// newStage builds the tables for the law with the given certified probabilities
// and at most tail outside.
func newStage(p []interval.Interval, tail *big.Float) (*stage, error) {
	if len(p) > maxOutcomes {
		return nil, fmt.Errorf("%w (a table of %d outcomes, at most %d)", ErrTooLarge, len(p),
			maxOutcomes)
	}
	lo, hi := make([]*big.Int, len(p)), make([]*big.Int, len(p))
	for i, x := range p {
		lo[i], hi[i] = x.Fixed(proofBits)
	}
	out := interval.Ceil(tail, proofBits)
	s := &stage{n: len(p)}
	rest, scale := lo, new(big.Int).Lsh(big.NewInt(1), proofBits)
	// As many tables as it takes until half a unit for every outcome, in the last, is
	// little enough.
	for left := float64(len(p)) / (1 << (wordBits + 2)); ; {
		var l *level
		l, rest, scale = cutOff(rest, scale)
		s.levels = append(s.levels, l)
		left *= float64(l.residual) / (1 << wordBits)
		if left < depthGoal || len(s.levels) == maxLevels-1 {
			break
		}
	}
	s.levels = append(s.levels, roundOff(rest, scale))
	s.certify(lo, hi, out)
	return s, nil
}

// depthGoal is the most that the precision of tables may add to the distance.
const depthGoal = 0x1p-106

// cutOff makes the level of ⌊2^31·p_k/scale⌋ and returns what is left of each p_k
// and the sum of that.
func cutOff(p []*big.Int, scale *big.Int) (*level, []*big.Int, *big.Int) {
	l := &level{mass: make([]uint32, len(p)), residual: 1 << wordBits}
	top := 0
	for i, x := range p {
		q := new(big.Int).Lsh(x, wordBits)
		l.mass[i] = uint32(min(q.Quo(q, scale).Uint64(), 1<<wordBits-1))
		l.residual -= uint64(l.mass[i])
		if l.mass[i] > l.mass[top] {
			top = i
		}
	}
	if l.residual == 0 { // the sums must stay below 2^31
		l.mass[top]--
		l.residual++
	}
	// What is left, in units of 2^-31 of those of p so that it is exact.
	rest, sum := make([]*big.Int, len(p)), new(big.Int)
	for i, x := range p {
		rest[i] = new(big.Int).Lsh(x, wordBits)
		rest[i].Sub(rest[i], new(big.Int).Mul(scale, new(big.Int).SetUint64(uint64(l.mass[i]))))
		sum.Add(sum, rest[i])
	}
	l.sums = cumulate(l.mass)
	l.binned = binned(l.sums)
	return l, rest, sum
}

// roundOff makes the last level, of total 2^31: nearest integers, whose sum is off
// by at most half a unit per outcome; the largest takes the difference.
func roundOff(p []*big.Int, scale *big.Int) *level {
	l := &level{mass: make([]uint32, len(p))}
	left := uint32(1) << wordBits // modulo 2^32; what is owed may be negative
	top := 0
	for i, x := range p {
		q := new(big.Int).Lsh(x, wordBits+1)
		q.Quo(q, scale)
		l.mass[i] = uint32((q.Uint64() + 1) / 2)
		left -= l.mass[i]
		if l.mass[i] > l.mass[top] {
			top = i
		}
	}
	l.mass[top] += left
	l.sums = cumulate(l.mass)
	l.sums = l.sums[:len(l.sums)-1]
	l.binned = binned(l.sums)
	return l
}

// cumulate returns the running sums, without the zeros at the end of p.
func cumulate(p []uint32) []uint32 {
	n := len(p)
	for n > 1 && p[n-1] == 0 {
		n--
	}
	sums := make([]uint32, n)
	sum := uint32(0)
	for i := range sums {
		sum += p[i]
		sums[i] = sum
	}
	return sums
}

// mass is the exact probability of outcome k under the tables, in units of
// 2^-(31·levels).
func (s *stage) mass(k int) *big.Int {
	m, weight := new(big.Int), big.NewInt(1)
	for _, l := range s.levels {
		m.Lsh(m, wordBits)
		m.Add(m, new(big.Int).Mul(weight, new(big.Int).SetUint64(uint64(l.mass[k]))))
		weight.Mul(weight, new(big.Int).SetUint64(l.residual))
	}
	return m
}

// certify sets slots, share and distance. lo, hi and tail enclose the exact law in
// units of 2^-256.
func (s *stage) certify(lo, hi []*big.Int, tail *big.Int) {
	sum := new(big.Int).Set(tail)
	for k := range s.n {
		q := s.mass(k)
		q.Lsh(q, uint(proofBits-wordBits*len(s.levels)))
		below, above := new(big.Int).Sub(q, lo[k]), new(big.Int).Sub(hi[k], q)
		if below.Cmp(above) < 0 {
			below = above
		}
		sum.Add(sum, below) // |q − p| ≤ max(q − lo, hi − q)
	}
	s.distance = new(big.Rat).SetFrac(sum, new(big.Int).Lsh(big.NewInt(1), proofBits+1))
	s.distance.Add(s.distance, s.chooseSlots())
}

// chooseSlots sets share and slots, and returns a bound on the probability, per sample,
// that the slots are too few:
//
//	P(more than j of n samples need the second table) ≤ C(n, j+1)·w^{j+1},
//
// which the n samples share. Fewer samples in a column have less each.
func (s *stage) chooseSlots() *big.Rat {
	w := new(big.Rat).SetFrac(new(big.Int).SetUint64(s.levels[0].residual),
		new(big.Int).Lsh(big.NewInt(1), wordBits))
	for s.share = rows; ; s.share = fewRows {
		for s.slots = 1; s.slots <= maxSlots; s.slots++ {
			j := int64(s.slots + 1)
			each := new(big.Rat).
				SetFrac(new(big.Int).Binomial(int64(s.share), j), big.NewInt(int64(s.share)))
			for range j {
				each.Mul(each, w)
			}
			if each.Cmp(collisionGoal) <= 0 || s.share == fewRows && s.slots == maxSlots {
				return each
			}
		}
	}
}

// collisionGoal decides how many slots there are.
var collisionGoal = new(big.Rat).SetFrac(big.NewInt(1), new(big.Int).Lsh(big.NewInt(1), 106))

// work counts the thresholds that a full block scans and the bytes of randomness
// that it reads, per sample.
func (s *stage) work() (thresholds, bytes float64) {
	thresholds, bytes = float64(len(s.levels[0].sums)), 4
	for _, l := range s.levels[1:] {
		thresholds += float64(s.slots*len(l.sums)) / float64(s.share)
		bytes += 4 * float64(s.slots) / float64(s.share)
	}
	return thresholds, bytes
}
