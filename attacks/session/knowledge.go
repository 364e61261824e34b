package session

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/hushsum/hushsum/attacks/internal/textbook"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/shamir"
)

// errUnknown is an attacker's own: it lacks what it needs.
var errUnknown = errors.New("session: not known to server and colluders")

// shareOf names a shared secret of the round.
type shareOf struct {
	purpose keyexchange.Purpose
	owner   int
}

// learn keeps a share of an owner's secret.
func (c *cheater) learn(purpose keyexchange.Purpose, owner, holder int, share [32]byte) {
	secret := shareOf{purpose, owner}
	if c.shares[secret] == nil {
		c.shares[secret] = make(map[int][32]byte)
	}
	c.shares[secret][holder] = share
}

// poolSecrets takes from a colluder what it shares with others in the round. It
// is called between the colluder's begin and its submit.
func (c *cheater) poolSecrets(colluder int) error {
	for peer, chain := range c.parties[colluder].(*textbook.Client).Chains {
		_, secret, err := chain.Ahead(c.round)
		if err != nil {
			return err
		}
		c.pairs[pairOf(colluder, peer)] = secret
	}
	return nil
}

// poolShares takes from a colluder all shares that it holds: of self masks and
// of recovery keys alike, whatever the honest would give.
func (c *cheater) poolShares(colluder int) {
	inside := c.parties[colluder].(*textbook.Client)
	if inside.Open == nil {
		return
	}
	for k, owner := range inside.Open.Near {
		if share := inside.Open.Recovery[k]; share != nil {
			c.learn(keyexchange.RecoveryShare, owner, colluder, *share)
		}
		if v := c.views[owner]; v != nil {
			share := inside.OpenShare(c.sealedFor(owner, colluder), owner,
				inside.Open.Channels[k], keyexchange.SelfMaskShare, v.context)
			if share != nil {
				c.learn(keyexchange.SelfMaskShare, owner, colluder, *share)
			}
		}
	}
}

// pairOf names two parties, in any order.
func pairOf(a, b int) [2]int { return [2]int{min(a, b), max(a, b)} }

// rebuild makes a secret from the shares that are known, if they are enough.
func (c *cheater) rebuild(purpose keyexchange.Purpose, owner int) (shamir.Secret, error) {
	known := c.shares[shareOf{purpose, owner}]
	var shares []shamir.Share
	for _, holder := range slices.Sorted(maps.Keys(known)) {
		shares = append(shares, shamir.Share{
			Index: textbook.Index(holder),
			Value: known[holder],
		})
	}
	threshold := c.terms.Threshold
	if len(shares) < threshold {
		return shamir.Secret{}, fmt.Errorf("%w: secret %d of party %d, %d shares of %d",
			errUnknown, purpose, owner, len(shares), threshold)
	}
	return shamir.Combine(threshold, shares[:threshold])
}

// pair returns what two parties share: from a colluder, or from the recovery
// blob of either.
func (c *cheater) pair(i, j int) (keyexchange.PairSecret, error) {
	if secret, known := c.pairs[pairOf(i, j)]; known {
		return secret, nil
	}
	last := errUnknown
	for _, owner := range []int{i, j} {
		if c.uploads[owner] == nil {
			continue
		}
		pairs, err := c.openBlob(owner)
		if err == nil {
			return pairs[slices.Index(c.terms.Others(owner), i+j-owner)], nil
		}
		last = err
	}
	return keyexchange.PairSecret{}, last
}

// openBlob opens a party's recovery blob, if its recovery key can be rebuilt.
func (c *cheater) openBlob(owner int) ([]keyexchange.PairSecret, error) {
	secret, err := c.rebuild(keyexchange.RecoveryShare, owner)
	if err != nil {
		return nil, err
	}
	return textbook.OpenBlob(secret, c.uploads[owner].Blob, c.session, c.round, owner)
}

// unmask takes the masks off what the targets submitted: self masks that can be
// rebuilt, and pair masks with parties that are not targets. Pair masks among the
// targets should cancel. It fails with errUnknown.
func (c *cheater) unmask(targets []int) (segments, error) {
	sum, err := masking.NewVector(c.terms.Layout)
	if err != nil {
		return nil, err
	}
	for _, i := range targets {
		v := c.views[i]
		if v == nil || v.masked == nil {
			return nil, fmt.Errorf("%w: party %d submitted nothing", errUnknown, i)
		}
		if err := sum.AddPacked(v.masked.Packed); err != nil {
			return nil, err
		}
		if c.terms.Recovery && !c.singleMasked {
			secret, err := c.rebuild(keyexchange.SelfMaskShare, i)
			if err != nil {
				return nil, err
			}
			seed := textbook.SelfMaskSeed(secret)
			sum.SubMask(&seed)
		}
		for _, j := range except(v.near, targets...) {
			secret, err := c.pair(i, j)
			if err != nil {
				return nil, err
			}
			seed := masking.Seed(secret.MaskSeed(v.context))
			sum.MaskPair(&seed, j, i) // what j would have added takes away what i added
		}
	}
	return sum.Values(), nil
}

// recovers is 1 if the sum of the targets' inputs comes out, bit for bit.
func (c *cheater) recovers(inputs []segments, targets ...int) int {
	sum, err := c.unmask(targets)
	return indicator(err == nil && equal(sum, sumOf(c.terms.Layout, inputs, targets)))
}
