package protocol

import (
	"fmt"
	"slices"

	"github.com/hushsum/hushsum/shamir"
)

// rebuilder rebuilds the secrets of many parties from the shares of one set of
// holders, of which each party's own holders are a part. It keeps the Lagrange
// coefficients from party to party where the holders are the same but for the
// owner itself, as they are in the complete graph, and finds out who is at fault
// when shares are wrong.
type rebuilder struct {
	threshold int
	most      int              // how many parties may be at fault: c, at least 1
	holders   []uint32         // ascending share indices
	combiner  *shamir.Combiner // for all holders, nil if they are too few
	wrong     map[int]int      // by party: the wrong shares that it owned or held
	atFault   []int            // owners whose secrets do not rebuild
}

func newRebuilder(t *terms, parties []int) *rebuilder {
	r := &rebuilder{threshold: t.threshold, most: max(t.colluders, 1), wrong: make(map[int]int)}
	for _, i := range parties {
		r.holders = append(r.holders, shareIndex(i))
	}
	r.prepare()
	return r
}

func (r *rebuilder) prepare() {
	r.combiner = nil
	if c, err := shamir.NewCombiner(r.threshold, r.holders); err == nil {
		r.combiner = c
	}
}

// secret rebuilds the secret of owner from shares, which are in ascending order,
// and checks it with accept. Wrong shares are corrected if they are few enough. It
// fails with [ErrTooFew] or [ErrMaterial].
func (r *rebuilder) secret(owner int, shares []shamir.Share, accept func(shamir.Secret) bool) (shamir.Secret, error) {
	shares = slices.DeleteFunc(slices.Clone(shares), func(s shamir.Share) bool {
		_, trusted := slices.BinarySearch(r.holders, s.Index)
		return !trusted
	})
	if len(shares) < r.threshold {
		return shamir.Secret{}, fmt.Errorf("%w: %d shares, the session needs %d", ErrTooFew, len(shares), r.threshold)
	}
	combiner, err := r.combinerFor(owner, shares)
	if err != nil {
		return shamir.Secret{}, fmt.Errorf("%w: %w", ErrMaterial, err)
	}
	secret, indices, err := combiner.CorrectVarTime(shares, accept)
	if err != nil {
		if (len(shares)-r.threshold)/2 >= r.most {
			r.atFault = append(r.atFault, owner) // so many holders cannot have done it
		}
		return shamir.Secret{}, fmt.Errorf("%w: %w", ErrMaterial, err)
	}
	for _, x := range indices {
		r.suspect(owner, int(x)-1)
	}
	return secret, nil
}

// suspect notes that the share of owner that holder revealed is wrong: one of the
// two is at fault. A holder that must be is not asked again.
func (r *rebuilder) suspect(owner, holder int) {
	r.wrong[owner]++
	r.wrong[holder]++
	if r.wrong[holder] > r.most {
		r.holders = slices.DeleteFunc(r.holders, func(x uint32) bool { return x == shareIndex(holder) })
		r.prepare()
	}
}

// culprits returns who must be at fault if no more than most parties are: the
// other side of each of its wrong shares is another party.
func (r *rebuilder) culprits() []int {
	out := slices.Clone(r.atFault)
	for party, wrong := range r.wrong {
		if wrong > r.most {
			out = append(out, party)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (r *rebuilder) combinerFor(owner int, shares []shamir.Share) (*shamir.Combiner, error) {
	indices := make([]uint32, len(shares))
	for i := range shares {
		indices[i] = shares[i].Index
	}
	if r.combiner != nil {
		if slices.Equal(indices, r.holders) {
			return r.combiner, nil
		}
		own := shareIndex(owner)
		if at, found := slices.BinarySearch(r.holders, own); found && len(indices) == len(r.holders)-1 &&
			slices.Equal(indices[:at], r.holders[:at]) && slices.Equal(indices[at:], r.holders[at+1:]) {
			return r.combiner.Without(own)
		}
	}
	return shamir.NewCombiner(r.threshold, indices)
}
