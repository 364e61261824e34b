package protocol

import (
	"fmt"
	"slices"

	"github.com/hushsum/hushsum/shamir"
)

// errFewShares: fewer shares than the threshold are left.
var errFewShares = fmt.Errorf("%w: of shares", ErrTooFew)

// rebuilder rebuilds the secrets of many parties from the shares of one set of
// holders, of which each party's own holders are a part. It keeps the Lagrange
// coefficients from party to party where the holders are the same but for the
// owner itself, as they are in the complete graph, and finds out who is at fault
// when shares are wrong.
type rebuilder struct {
	threshold int
	most      int              // how many parties may be at fault
	holders   []uint32         // ascending share indices
	combiner  *shamir.Combiner // for all holders, nil if they are too few
	doubts    doubts           // the session's
	atFault   []int            // owners whose secrets do not rebuild
}

func newRebuilder(threshold, most int, parties []int, doubts doubts) *rebuilder {
	r := &rebuilder{threshold: threshold, most: most, doubts: doubts}
	for _, i := range parties {
		r.holders = append(r.holders, shareIndex(i))
	}
	r.distrust()
	return r
}

// distrust leaves holders out that must be at fault: they are not asked again.
func (r *rebuilder) distrust() {
	named, _ := r.doubts.named(r.most)
	r.holders = slices.DeleteFunc(r.holders, func(x uint32) bool {
		_, found := slices.BinarySearch(named, int(x)-1)
		return found
	})
	r.prepare()
}

func (r *rebuilder) prepare() {
	r.combiner = nil
	if c, err := shamir.NewCombiner(r.threshold, r.holders); err == nil {
		r.combiner = c
	}
}

// secret rebuilds the secret of owner from shares, which are in ascending order,
// and checks it with accept. Wrong shares are corrected if they are few enough. It
// fails with errFewShares or [ErrMaterial].
func (r *rebuilder) secret(
	owner int, shares []shamir.Share, accept func(shamir.Secret) bool,
) (shamir.Secret, error) {
	shares = slices.DeleteFunc(slices.Clone(shares), func(s shamir.Share) bool {
		_, trusted := slices.BinarySearch(r.holders, s.Index)
		return !trusted
	})
	if len(shares) < r.threshold {
		return shamir.Secret{}, errFewShares
	}
	combiner, err := r.combinerFor(owner, shares)
	if err != nil {
		return shamir.Secret{}, fmt.Errorf("%w: %w", ErrMaterial, err)
	}
	secret, indices, err := combiner.CorrectVarTime(shares, accept)
	if err != nil {
		if r.doubts.refutes(owner, (len(shares)-r.threshold)/2, r.most) {
			r.atFault = append(r.atFault, owner)
		}
		return shamir.Secret{}, fmt.Errorf("%w: %w", ErrMaterial, err)
	}
	for _, x := range indices {
		r.doubts.add(owner, int(x)-1)
	}
	if len(indices) > 0 {
		r.distrust()
	}
	return secret, nil
}

// culprits returns who must be at fault, in ascending order.
func (r *rebuilder) culprits() []int {
	out, _ := r.doubts.named(r.most)
	out = append(out, r.atFault...)
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
