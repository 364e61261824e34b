package protocol

import (
	"fmt"
	"slices"

	"github.com/hushsum/hushsum/shamir"
)

// rebuilder rebuilds the secrets of many parties from the shares of one set of
// holders, of which each party's own holders are a part. It keeps the Lagrange
// coefficients from party to party where the holders are the same but for the
// owner itself, as they are in the complete graph.
type rebuilder struct {
	threshold int
	holders   []uint32         // ascending share indices
	combiner  *shamir.Combiner // for all holders, nil if they are too few
}

func newRebuilder(threshold int, parties []int) *rebuilder {
	r := &rebuilder{threshold: threshold}
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

// distrust stops using the shares of a holder that sent a wrong one.
func (r *rebuilder) distrust(holder int) {
	r.holders = slices.DeleteFunc(r.holders, func(x uint32) bool { return x == shareIndex(holder) })
	r.prepare()
}

// secret rebuilds the secret of owner from shares, which are in ascending order,
// and checks it with accept. Wrong shares are corrected if they are few enough,
// and their holders returned. It fails with [ErrTooFew] or [ErrMaterial].
func (r *rebuilder) secret(owner int, shares []shamir.Share, accept func(shamir.Secret) bool) (secret shamir.Secret, wrong []int, err error) {
	shares = slices.DeleteFunc(slices.Clone(shares), func(s shamir.Share) bool {
		_, trusted := slices.BinarySearch(r.holders, s.Index)
		return !trusted
	})
	if len(shares) < r.threshold {
		return secret, nil, fmt.Errorf("%w: %d shares, the session needs %d", ErrTooFew, len(shares), r.threshold)
	}
	combiner, err := r.combinerFor(owner, shares)
	if err != nil {
		return secret, nil, fmt.Errorf("%w: %w", ErrMaterial, err)
	}
	secret, indices, err := combiner.CorrectVarTime(shares, accept)
	if err != nil {
		return shamir.Secret{}, nil, fmt.Errorf("%w: %w", ErrMaterial, err)
	}
	for _, x := range indices {
		wrong = append(wrong, int(x)-1)
	}
	return secret, wrong, nil
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
