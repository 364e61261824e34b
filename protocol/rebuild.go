package protocol

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/hushsum/hushsum/shamir"
)

// errFewShares: fewer shares than the threshold are left.
var errFewShares = fmt.Errorf("%w: of shares", ErrTooFew)

// rebuilder rebuilds the secrets of many parties from the shares of one set of holders, which
// includes each party's own holders. It keeps the Lagrange coefficients from party to party where
// the holders are the same but for the owner itself, as they are in the complete graph, and finds
// out who is at fault when shares are wrong.
type rebuilder struct {
	threshold int
	most      int              // how many parties may be at fault
	holders   []uint32         // ascending share indices of those that need not be at fault
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

// distrust leaves holders out that must be at fault: their shares are used no more, but
// where others do not suffice.
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

// secret rebuilds the secret of owner from shares, which are in ascending order, and checks it
// with accept. Invalid shares are corrected if they are few enough: first among the shares whose
// holders need not be at fault; if that fails, among those whose holders would not even be if the
// owner were honest; and last among all. Any secret that accept takes is right, no matter whose
// shares it came from. It fails with errFewShares or [ErrMaterial].
func (r *rebuilder) secret(
	owner int, shares []shamir.Share, accept func(shamir.Secret) bool,
) (shamir.Secret, error) {
	if len(shares) < r.threshold {
		return shamir.Secret{}, errFewShares
	}
	var failed error
	refuted := false
	for _, used := range r.attempts(owner, shares) {
		combiner, err := r.combinerFor(owner, used)
		if err != nil {
			return shamir.Secret{}, fmt.Errorf("%w: %w", ErrMaterial, err)
		}
		secret, wrong, err := combiner.CorrectVarTime(used, accept)
		if err == nil && len(wrong) == 0 {
			return secret, nil
		}
		// How many of those whose shares are used can be at fault if the owner is not.
		spoilers := r.doubts.spoilers(owner, r.most,
			func(party int) bool { return hasShare(used, party) })
		if err != nil {
			failed = err
			refuted = refuted || (len(used)-r.threshold)/2 >= spoilers
			continue
		}
		// The secret is right, but a commitment binds no polynomial: spoilers can move their
		// shares to another with the same secret, which the dealt one meets in threshold − 2
		// shares at the most. Only if more agree than these and the spoilers' are the others
		// wrong for sure.
		if agree := len(used) - len(wrong); agree > spoilers+r.threshold-2 {
			for _, x := range wrong {
				r.doubts.add(owner, int(x)-1)
			}
			r.distrust()
		}
		return secret, nil
	}
	if refuted {
		r.atFault = append(r.atFault, owner)
	}
	return shamir.Secret{}, fmt.Errorf("%w: %w", ErrMaterial, failed)
}

// clean rebuilds the secret of owner as long as all shares of holders that need not be at fault
// are right, and changes nothing: many may be rebuilt at a time. It returns nil where secret is
// to look closer.
func (r *rebuilder) clean(
	owner int, shares []shamir.Share, accept func(shamir.Secret) bool,
) *shamir.Secret {
	attempts := r.attempts(owner, shares)
	if len(attempts) == 0 {
		return nil
	}
	combiner, err := r.combinerFor(owner, attempts[0])
	if err != nil {
		return nil
	}
	secret, wrong, err := combiner.CorrectVarTime(attempts[0], accept)
	if err != nil || len(wrong) > 0 {
		return nil
	}
	return &secret
}

// attempts returns the shares to rebuild a secret of owner from, one set after the other:
// those of holders that need not be at fault, of these those of holders that would not be
// if the owner were honest, and all; no set twice, and none that is too small.
func (r *rebuilder) attempts(owner int, shares []shamir.Share) [][]shamir.Share {
	trusted := slices.DeleteFunc(slices.Clone(shares), func(s shamir.Share) bool {
		_, found := slices.BinarySearch(r.holders, s.Index)
		return !found
	})
	undoubted := slices.DeleteFunc(slices.Clone(trusted), func(s shamir.Share) bool {
		return r.doubts[owner][int(s.Index)-1]
	})
	sets := [][]shamir.Share{trusted, undoubted, shares}
	if len(undoubted) == len(trusted) {
		sets = slices.Delete(sets, 1, 2)
	}
	if len(trusted) == len(shares) {
		sets = sets[:len(sets)-1]
	}
	return slices.DeleteFunc(sets, func(set []shamir.Share) bool { return len(set) < r.threshold })
}

// hasShare reports whether a party is the holder of one of some shares, which are in
// ascending order.
func hasShare(shares []shamir.Share, party int) bool {
	_, found := slices.BinarySearchFunc(shares, shareIndex(party),
		func(s shamir.Share, x uint32) int { return cmp.Compare(s.Index, x) })
	return found
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
