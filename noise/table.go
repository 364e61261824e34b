package noise

import (
	"fmt"
	"io"
	"math"
	"math/big"

	"github.com/hushsum/hushsum/internal/entropy"
	"github.com/hushsum/hushsum/internal/recent"
)

// Table is a law prepared for fast sampling with a fixed amount of work. It is
// immutable and safe for concurrent use; build it once per law, since that
// takes milliseconds, or tenths of a second for wide shares of discrete Laplace noise,
// and share it. NewTable keeps the last tables of laws that jobs draw noise from.
type Table struct {
	law     Law
	cascade *cascade
}

// NewTable builds the tables of a law with exact and interval arithmetic. Discrete
// Laplace, discrete Gaussian and Skellam laws, the shares of all three, and geometric
// laws (Pólya with r = 1) may be as wide as the [Law] itself: where one table would be
// too wide they are composed of narrow ones and of fair coins. The other laws, Poisson, Pólya and
// Pólya differences with r > 1 (or just below), are scanned whole, in a time that grows
// with their width, and are [ErrTooLarge] beyond 131,072 outcomes, which is about σ =
// 5,000 for Poisson and t = 1350 for a Pólya law; use [NewExact] for those.
func NewTable(l Law) (*Table, error) {
	if l.family == 0 {
		return nil, fmt.Errorf("%w (the zero Law)", ErrConfig)
	}
	switch l.family {
	case FamilyDiscreteLaplace, FamilyDiscreteGaussian, FamilySkellam, FamilyPolyaDifference:
		return tables.Get(l.key(), func() (*Table, error) { return newTable(l) })
	}
	return newTable(l) // which may be large
}

// tables keeps the tables of the laws that were asked for last: a job is settled by all its
// parties, and again by what prints or checks it.
var tables = recent.New[string, *Table](32)

// key is a text that laws share only if they are equal.
func (l Law) key() string { return fmt.Sprint(l.family, l.scale, l.shape) }

func newTable(l Law) (*Table, error) {
	p, err := newCascade(l)
	if err != nil {
		return nil, fmt.Errorf("%w (%v)", err, l.family)
	}
	if p.distance.Cmp(distanceGoal) > 0 {
		return nil, fmt.Errorf("%w (no table within 2^-100 of this %v law)", ErrTooLarge, l.family)
	}
	return &Table{l, p}, nil
}

// MaxTableDistance bounds [Table.Distance] of every table.
const MaxTableDistance = 0x1p-100

var distanceGoal = new(big.Rat).SetFloat64(MaxTableDistance)

// Law returns the law that the table samples.
func (t *Table) Law() Law {
	if t == nil {
		return Law{}
	}
	return t.law
}

// Distance returns an upper bound on the statistical (total variation) distance per sample
// between the table's law and the law itself, computed from the table: N samples together are
// within N·Distance of N independent samples of the law. It is at most [MaxTableDistance]. It
// covers the tables' finite precision, the tails that they lack, the composition of wide laws and
// the sharing of second-table draws, but not what [Expand] or another generator adds. A Table
// that NewTable did not make is at distance 1.
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

// Bound returns a number that no sample's absolute value exceeds.
func (t *Table) Bound() int64 {
	if t == nil || t.cascade == nil {
		return 0
	}
	return t.cascade.reach
}

// Work returns how many thresholds are scanned for one sample of a full block, on
// average, and how many bytes of randomness it takes: both are the same for every
// sample.
func (t *Table) Work() (thresholds, bytes float64) {
	if t == nil || t.cascade == nil {
		return 0, 0
	}
	for _, s := range t.cascade.stages {
		n, b := s.work()
		thresholds += n
		bytes += b
	}
	return thresholds, bytes + coins/8*float64(t.cascade.planes)
}

// NewSampler returns a sampler that draws from random; nil means Expand(nil). From an explicit
// reader it takes exactly the bytes that it uses, in the order in which the samples are made: one
// reader state gives one sequence of samples for one sequence of Fill lengths, on every machine.
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
	raw   [max(4*(block+(maxLevels-1)*shared), coins/8*block)]byte
	idx   [block]uint32
	slots [rows / fewRows][maxSlots * columns]uint32
	rarer [shared]uint32
	found [shared]uint32
	last  [block]int64
}

// shared is how many words of a rarer table a block takes at most.
const shared = rows / fewRows * maxSlots * columns

// Fill sets every element of dst to an independent sample. The instructions
// executed and the addresses touched depend on the law and on len(dst) only. It
// works in blocks of 512, the last one rounded up to a multiple of 8: short
// slices cost more per sample. If the randomness fails dst is cleared and the error
// is [ErrRandom].
func (s *Sampler) Fill(dst []int64) error {
	if s == nil || s.table == nil || s.table.cascade == nil || s.random == nil {
		clear(dst)
		return fmt.Errorf("%w (a Sampler comes from Table.NewSampler)", ErrConfig)
	}
	defer s.erase()
	for rest := dst; len(rest) > 0; {
		out := rest[:min(block, len(rest))]
		if len(out)%columns != 0 {
			out = s.last[:(len(out)+columns-1)/columns*columns]
		}
		if err := s.fillBlock(out); err != nil {
			clear(dst)
			return err
		}
		if n := len(out); n <= len(rest) {
			rest = rest[n:] // in place
			continue
		}
		copy(rest, out)
		break
	}
	return nil
}

// Distance returns [Table.Distance].
func (s *Sampler) Distance() float64 { return s.table.Distance() }

// Law returns [Table.Law].
func (s *Sampler) Law() Law { return s.table.Law() }

func (s *Sampler) erase() {
	clear(s.raw[:])
	clear(s.idx[:])
	clear(s.slots[:])
	clear(s.rarer[:])
	clear(s.found[:])
	clear(s.last[:])
}

// fillBlock makes len(out) samples, a multiple of 8 up to 512.
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
		idx, raw, w := s.idx[:len(out)], s.raw[:4*len(out)], p.weights[i]
		switch {
		case p.how == signedDigits && i == 0:
			for j, x := range idx {
				sign := -int64(raw[4*j] & 1)
				nonzero := -int64(x) >> 63
				m := int64(x) + (out[j] & nonzero)
				out[j] = (m ^ sign) - sign
			}
		case p.how == smoothed:
			return s.smooth(p, out)
		default:
			for j, x := range idx {
				out[j] += w * int64(x)
			}
		}
	}
	return nil
}

// smooth makes samples of the outcomes in s.idx: see smoothed.
func (s *Sampler) smooth(p *cascade, out []int64) error {
	idx, raw := s.idx[:len(out)], s.raw[:4*len(out)]
	for j, x := range idx {
		shift, coarser := p.finest, ^uint32(0)
		for _, g := range p.grids {
			coarser &= beyond(x, g.outcomes)
			x -= g.outcomes & coarser
			shift += g.step & coarser
		}
		sign := -int64(raw[4*j] & 1)
		out[j] = ((int64(x) ^ sign) - sign) << (shift & 63)
		idx[j] = shift
	}
	for plane := range p.planes {
		raw := s.raw[:coins/8*len(out)]
		if err := entropy.Read("noise", s.random, raw); err != nil {
			return err
		}
		toss(out, idx, raw, plane)
	}
	return nil
}

// draw puts n outcomes of the stage into s.idx. The lowest bit of each word's
// first byte in s.raw is left for the sign.
func (s *Sampler) draw(st *stage, n int) error {
	// Fewer samples in a column than slots need no more slots than they are.
	slots := min(st.slots, n/columns)
	groups := (n + columns*st.share - 1) / (columns * st.share)
	shared := groups * slots * columns
	raw := s.raw[:4*(n+shared*(len(st.levels)-1))]
	if err := entropy.Read("noise", s.random, raw); err != nil {
		return err
	}
	idx := s.idx[:n]
	scan(idx, raw, st.levels[0])
	// The rarer tables, for all columns and slots at once. From the last one, in which
	// every word finds an outcome, to the first.
	rarer, found := s.rarer[:shared], s.found[:shared]
	for d := len(st.levels) - 1; d > 0; d-- {
		l := st.levels[d]
		scan(found, raw[4*(n+(d-1)*shared):], l)
		full := uint32(len(l.sums))
		if d == len(st.levels)-1 {
			full++
		}
		for i, x := range found {
			rarer[i] = x ^ (x^rarer[i])&beyond(x, full)
		}
	}
	full := uint32(len(st.levels[0].sums))
	for g := range groups {
		queue := &s.slots[g]
		n := copy(queue[:], rarer[:slots*columns])
		rarer = rarer[n:]
		for ; n < len(queue); n += columns { // the last slot is there to stay
			copy(queue[n:], queue[n-columns:n])
		}
		part := idx[columns*st.share*g:]
		resolve(part[:min(len(part), columns*st.share)], queue, full)
	}
	return nil
}
