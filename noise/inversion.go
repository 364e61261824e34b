package noise

import (
	"fmt"
	"math/big"
	"sort"

	"github.com/hushsum/hushsum/noise/internal/interval"
)

// guardBits is how much finer than the random number the bounds are kept.
const guardBits = 32

// inversion samples a law by comparing a uniform number U in [0, 1), known by its
// first bits, with enclosures of the distribution function F: the sample is
// the k with F(k−1) ≤ U < F(k). Symmetric laws are sampled as |k| and a sign.
type inversion struct {
	law    Law
	bits   int // a multiple of 64
	offset int64
	below  *big.Int   // at least the mass below offset
	lo, hi []*big.Int // bounds of F(offset+i), in units of 2^-(bits+32)
}

func newInversion(l Law, bits int) (*inversion, error) {
	e, err := l.enclose(bits, 0)
	if err != nil {
		return nil, err
	}
	v := &inversion{law: l, bits: bits, offset: e.offset, below: new(big.Int)}
	if e.offset > 0 {
		v.below = interval.Ceil(e.tail, bits+guardBits)
	}
	lo, hi := new(big.Int), v.below
	for i, p := range e.p {
		a, b := p.Fixed(bits + guardBits)
		if i > 0 && l.symmetric() {
			a.Lsh(a, 1)
			b.Lsh(b, 1)
		}
		lo, hi = new(big.Int).Add(lo, a), new(big.Int).Add(hi, b)
		v.lo, v.hi = append(v.lo, lo), append(v.hi, hi)
	}
	return v, nil
}

// find returns the sample if u, the first v.bits bits of U, settles it.
func (v *inversion) find(u *big.Int) (int64, bool) {
	from := new(big.Int).Lsh(u, guardBits)
	to := new(big.Int).Lsh(new(big.Int).Add(u, big.NewInt(1)), guardBits)
	i := sort.Search(len(v.lo), func(i int) bool { return v.lo[i].Cmp(to) >= 0 })
	if i == len(v.lo) {
		return 0, false // perhaps beyond the list
	}
	floor := v.below
	if i > 0 {
		floor = v.hi[i-1]
	}
	return v.offset + int64(i), floor.Cmp(from) <= 0
}

// draw reads bits and, as long as they do not settle the sample, more bits and
// a tighter enclosure.
func (v *inversion) draw(s *Source) (int64, error) {
	u := new(big.Int)
	for have := 0; have < v.bits; have += 64 {
		w, err := s.uint64()
		if err != nil {
			return 0, err
		}
		u.Or(u.Lsh(u, 64), new(big.Int).SetUint64(w))
	}
	x, ok := v.find(u)
	for at, rounds := v, 0; !ok; rounds++ {
		if rounds == 16 {
			return 0, fmt.Errorf("noise: %w: its bits repeat", ErrRandom)
		}
		var err error
		if at, err = newInversion(v.law, at.bits+64); err != nil {
			return 0, err
		}
		w, err := s.uint64()
		if err != nil {
			return 0, err
		}
		u.Or(u.Lsh(u, 64), new(big.Int).SetUint64(w))
		x, ok = at.find(u)
	}
	if !v.law.symmetric() {
		return x, nil
	}
	w, err := s.uint64()
	if err != nil {
		return 0, err
	}
	sign := -int64(w & 1)
	return (x ^ sign) - sign, nil
}
