package protocol

import (
	"context"
	"fmt"
	"slices"

	"github.com/hushsum/hushsum/internal/cores"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/shamir"
)

// This file contains how the server takes the masks off a sum.

// unmask takes the masks off the sum: the self masks of survivors, and the masks that other
// participants share with survivors. If a party's secrets do not rebuild there is no sum, but
// those of the others are still checked, to find the parties to leave out of the rounds that
// follow.
func (s *Server) unmask(open *serverRound) (failed error) {
	shares := s.sharesByOwner(open)
	s.doubtUnopened(open)

	rebuild := newRebuilder(s.terms.threshold, s.config.spoilers(),
		slices.Collect(open.revealed.All()), s.doubts)
	accept := func(owner int) func(shamir.Secret) bool {
		purpose, committed := keyexchange.RecoveryShare, open.material[owner].Commitment
		if open.survivors.Has(owner) {
			purpose, committed = keyexchange.SelfMaskShare, open.commitments[owner]
		}
		return func(candidate shamir.Secret) bool {
			return commitment(purpose, s.session, s.round, owner, candidate) == committed
		}
	}
	owners := slices.Collect(open.participants.All())
	clean := make([]*shamir.Secret, len(owners)) // on all cores; what is nil is looked at in turn
	_ = cores.Each(context.Background(), len(owners), func(k int) error {
		clean[k] = rebuild.clean(owners[k], shares[owners[k]], accept(owners[k]))
		return nil
	}, nil)
	masks := masking.NewMasks(open.sum)
	for k, owner := range owners {
		near := open.survivors.Of(open.near[owner])
		survived := open.survivors.Has(owner)
		if !survived && len(near) == 0 {
			continue // it shares no mask with anybody in the sum
		}
		var secret shamir.Secret
		var err error
		if clean[k] != nil {
			secret = *clean[k]
		} else {
			secret, err = rebuild.secret(owner, shares[owner], accept(owner))
		}
		switch {
		case err == errFewShares:
			err = s.tooFewShares(open, owner, near, len(shares[owner]))
		case err != nil:
			err = partyError(s.config.Roster, owner, err)
		case !survived:
			err = s.unmaskDropped(open, masks, owner, near, secret)
		case failed == nil:
			seed := selfMask(secret)
			masks.Sub(&seed)
		}
		if failed == nil {
			failed = err
		}
	}
	masks.Apply()
	for _, party := range rebuild.culprits() {
		s.Exclude(party)
	}
	return failed
}

// doubtUnopened notes who left a share out of what it revealed, which an honest
// holder does only if the share did not open.
func (s *Server) doubtUnopened(open *serverRound) {
	for holder := range open.revealed.All() {
		revealed := open.revelations[holder]
		if len(revealed) == len(open.near[holder]) {
			continue
		}
		for _, owner := range open.near[holder] {
			if len(revealed) > 0 && revealed[0].Owner == owner {
				revealed = revealed[1:]
				continue
			}
			s.doubts.add(owner, holder)
		}
	}
}

// tooFewShares says why there are too few shares of an owner: too few holders
// revealed, or they could not open what it dealt.
func (s *Server) tooFewShares(open *serverRound, owner int, near []int, have int) error {
	silent := slices.DeleteFunc(slices.Clone(near), open.revealed.Has)
	if asked := len(near) - len(silent); asked >= s.terms.threshold {
		return partyError(s.config.Roster, owner,
			fmt.Errorf("%w: of %d holders %d have a share that serves, the session needs %d",
				ErrMaterial, asked, have, s.terms.threshold))
	}
	did := fmt.Sprintf("revealed shares of %s (party %d) in", s.config.Roster.Name(owner), owner)
	return tooFewError(s.config.Roster, s.round, did, have, s.terms.threshold, silent)
}

// unmaskDropped takes off the masks that survivors share with a participant that
// dropped out, with the pair secrets of its recovery blob.
func (s *Server) unmaskDropped(
	open *serverRound, masks *masking.Masks, owner int, near []int, secret shamir.Secret,
) error {
	key := blobKey(secret)
	secrets, err := keyexchange.Open(&key, open.material[owner].Blob,
		blobData(s.session, s.round, owner))
	if err != nil {
		// The key is the one that the owner committed to: nobody else is at fault.
		s.Exclude(owner)
		return partyError(s.config.Roster, owner,
			fmt.Errorf("%w: the recovery blob does not open", ErrMaterial))
	}
	for _, peer := range near {
		at, _ := slices.BinarySearch(open.neighbours[owner], peer)
		pair := keyexchange.PairSecret(secrets[32*at:])
		seed := masking.Seed(pair.MaskSeed(open.context))
		// What the dropped party would have added takes away what peer added.
		masks.Pair(&seed, owner, peer)
	}
	return nil
}

// sharesByOwner turns what holders revealed into what is known of each owner,
// by ascending holder.
func (s *Server) sharesByOwner(open *serverRound) [][]shamir.Share {
	shares := make([][]shamir.Share, s.config.parties)
	for holder := range open.revealed.All() {
		for _, r := range open.revelations[holder] {
			if shares[r.Owner] == nil {
				shares[r.Owner] = make([]shamir.Share, 0, len(open.near[r.Owner]))
			}
			shares[r.Owner] = append(shares[r.Owner],
				shamir.Share{Index: shareIndex(holder), Value: r.Share})
		}
	}
	return shares
}
