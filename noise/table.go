package noise

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/big"

	"github.com/hushsum/hushsum/internal/entropy"
)

// Table is a law prepared for fast sampling with a fixed amount of work. It is
// immutable and safe for concurrent use; build it once per law, since that
// takes milliseconds, and share it.
type Table struct {
	law     Law
	cascade *cascade
}

// NewTable builds the tables of a law with exact and interval arithmetic. Discrete
// Laplace, geometric (Pólya with r = 1) and discrete Gaussian laws may be as wide
// as the [Law] itself: their tables are composed of narrow ones. The other
// laws are scanned whole, in a time that grows with their width, and are [ErrTooLarge]
// beyond 131,072 outcomes, which is about σ = 10,000 for Skellam, 5,000 for Poisson, t = 1350
// for a Pólya law; use [NewExact] for those.
func NewTable(l Law) (*Table, error) {
	if l.family == 0 {
		return nil, fmt.Errorf("%w (the zero Law)", ErrConfig)
	}
	p, err := newCascade(l)
	if err != nil {
		return nil, fmt.Errorf("%w (%v)", err, l.family)
	}
	if p.distance.Cmp(distanceGoal) > 0 {
		return nil, fmt.Errorf("%w (no table within 2^-100 of this %v law)", ErrTooLarge, l.family)
	}
	return &Table{l, p}, nil
}

// MaxTableDistance is what [Table.Distance] of every table is at most.
const MaxTableDistance = 0x1p-100

var distanceGoal = new(big.Rat).SetFloat64(MaxTableDistance)

// Law returns the law that the table samples.
func (t *Table) Law() Law {
	if t == nil {
		return Law{}
	}
	return t.law
}

// Distance is an upper bound on the statistical (total variation) distance per
// sample between the table's law and the law itself, computed from the table:
// N samples together are within N·Distance of N independent samples of the law.
// It is at most [MaxTableDistance]. It covers the tables' finite precision, the tails that
// they lack, the convolution of narrow discrete Gaussians and the sharing of
// second-table draws; not what [Expand] or another generator adds. A Table that
// NewTable did not make is at distance 1.
func (t *Table) Distance() float64 {
	if t == nil || t.cascade == nil {
		return 1
	}
	f, exact := t.cascade.distance.Float64()
	if !exact {
		f = math.Nextafter(f, 1)
	}
	return f
}

// Bound is a number that no sample's absolute value exceeds.
func (t *Table) Bound() int64 {
	if t == nil || t.cascade == nil {
		return 0
	}
	return t.cascade.reach
}

// Work returns how many thresholds one sample is compared with in a full block,
// on average, and how many bytes of randomness it takes: both are the same for
// every sample.
func (t *Table) Work() (thresholds, bytes float64) {
	if t == nil || t.cascade == nil {
		return 0, 0
	}
	for _, s := range t.cascade.stages {
		n, b := s.work()
		thresholds += n
		bytes += b
	}
	return thresholds, bytes
}

// NewSampler returns a sampler that draws from random; nil means Expand(nil). From an
// explicit reader it takes exactly the bytes that it uses, in the order
// that the samples are made: one reader state gives one sequence of samples for
// one sequence of Fill lengths, on every machine.
func (t *Table) NewSampler(random io.Reader) *Sampler {
	if random == nil {
		random = Expand(nil)
	}
	return &Sampler{table: t, random: random}
}

// Sampler draws from a [Table]. It is not safe for concurrent use: give each
// goroutine its own.
type Sampler struct {
	table  *Table
	random io.Reader
	// Scratch space, erased at the end of each Fill.
	raw    [8 * (block + 2*maxSlots*columns)]byte
	words  [block]uint64
	idx    [block]uint64
	second [maxSlots * columns]uint64
	third  [maxSlots * columns]uint64
	used   [columns]uint64
	last   [block]int64
}

// Fill sets every element of dst to an independent sample. The instructions
// executed and the addresses touched depend on the law and on len(dst) only. It
// works in blocks of 256, the last one rounded up to a multiple of 16: short
// slices cost more per sample. If the randomness fails dst is cleared and the error
// is [ErrRandom].
func (s *Sampler) Fill(dst []int64) error {
	if s == nil || s.table == nil || s.table.cascade == nil || s.random == nil {
		clear(dst)
		return fmt.Errorf("%w (a Sampler comes from Table.NewSampler)", ErrConfig)
	}
	defer s.erase()
	for rest := dst; len(rest) > 0; {
		out := s.last[:min(block, (len(rest)+columns-1)/columns*columns)]
		if err := s.fillBlock(out); err != nil {
			clear(dst)
			return err
		}
		rest = rest[copy(rest, out):]
	}
	return nil
}

// Distance is [Table.Distance].
func (s *Sampler) Distance() float64 { return s.table.Distance() }

// Law is [Table.Law].
func (s *Sampler) Law() Law { return s.table.Law() }

func (s *Sampler) erase() {
	clear(s.raw[:])
	clear(s.words[:])
	clear(s.idx[:])
	clear(s.second[:])
	clear(s.third[:])
	clear(s.used[:])
	clear(s.last[:])
}

// fillBlock makes len(out) samples, a multiple of 16 up to 256.
func (s *Sampler) fillBlock(out []int64) error {
	p := s.table.cascade
	for i := range out {
		out[i] = p.offset
	}
	// The lowest stage comes last: under signedDigits it decides about the others.
	for i := len(p.stages) - 1; i >= 0; i-- {
		if err := s.draw(p.stages[i], len(out)); err != nil {
			return err
		}
		idx, w := s.idx[:len(out)], p.weights[i]
		switch {
		case p.how == signedSum:
			for j, x := range idx {
				sign := -int64(s.raw[8*j] & 1)
				out[j] += w * ((int64(x) ^ sign) - sign)
			}
		case p.how == signedDigits && i == 0:
			for j, x := range idx {
				sign := -int64(s.raw[8*j] & 1)
				nonzero := int64(-x) >> 63
				m := int64(x) + (out[j] & nonzero)
				out[j] = (m ^ sign) - sign
			}
		default:
			for j, x := range idx {
				out[j] += w * int64(x)
			}
		}
	}
	return nil
}

// draw puts n outcomes of the stage into s.idx. The lowest bit of each word's
// first byte in s.raw is left for the sign.
func (s *Sampler) draw(st *stage, n int) error {
	shared := columns * st.slots
	raw := s.raw[:8*(n+shared*(len(st.levels)-1))]
	if err := entropy.Read("noise", s.random, raw); err != nil {
		return err
	}
	words, idx := s.words[:n], s.idx[:n]
	lookUp(idx, words, raw, st.levels[0].sums)
	raw = raw[8*n:]

	// The rarer tables, for all columns and slots at once.
	second := s.second[:shared]
	lookUp(second, s.words[:shared], raw, st.levels[1].sums)
	if len(st.levels) == 3 {
		third := s.third[:shared]
		lookUp(third, s.words[:shared], raw[8*shared:], st.levels[2].sums)
		full := uint64(len(st.levels[1].sums))
		for i, x := range third {
			second[i] ^= (second[i] ^ x) & beyond(second[i], full)
		}
	}
	if st.slots == 1 {
		copy(s.second[columns:], s.second[:columns])
	}
	clear(s.used[:])
	full := uint64(len(st.levels[0].sums))
	b0, b1 := (*[columns]uint64)(s.second[:columns]), (*[columns]uint64)(s.second[columns:])
	for ; len(idx) >= columns; idx = idx[columns:] {
		row := (*[columns]uint64)(idx)
		for l, x := range row {
			// A word beyond the last sum takes its outcome from its column's next slot.
			need := beyond(x, full)
			b := b0[l] ^ ((b0[l] ^ b1[l]) & s.used[l])
			row[l] = x ^ ((x ^ b) & need)
			s.used[l] |= need
		}
	}
	return nil
}

// lookUp turns random bytes into outcomes of one table, through words.
func lookUp(idx, words []uint64, raw []byte, sums []uint64) {
	for i := range words {
		words[i] = binary.LittleEndian.Uint64(raw[8*i:]) >> 1
	}
	scan(idx, words, sums)
}

// beyond is all ones if x ≥ full and zero otherwise, for small x and full.
func beyond(x, full uint64) uint64 { return ^uint64(int64(x-full) >> 63) }
