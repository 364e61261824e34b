package session

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/hushsum/hushsum/attacks"
	"github.com/hushsum/hushsum/attacks/internal/textbook"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/protocol"
)

var stolenState = compared(attacks.Attack{
	Name:      "StolenState",
	Adversary: "later thief",
	About:     "opens a recorded round with the states of any number of parties",
	Defence:   "ratcheted chains; keys and shares are erased",
}, theftVariants)

// thief opens a recorded round of which it has the whole transcript, the shares
// that were revealed in it included, with what it has stolen.
type thief struct {
	*cheater
	keys   []wire.Announce // of the session
	opened map[sealedBox]bool
}

// sealedBox names a share that one party sealed for another.
type sealedBox struct {
	purpose       keyexchange.Purpose
	owner, holder int
}

// tryPair tries keys that two parties may have shared in the round on everything
// that they sealed for each other, and reports whether any of it opens.
func (t *thief) tryPair(i, j int, channels *keyexchange.Channels) bool {
	opens := false
	for _, box := range []sealedBox{
		{keyexchange.SelfMaskShare, i, j},
		{keyexchange.RecoveryShare, i, j},
		{keyexchange.SelfMaskShare, j, i},
		{keyexchange.RecoveryShare, j, i},
	} {
		if t.tryBox(box, channels) {
			opens = true
		}
	}
	return opens
}

// tryBox tries to open a sealed share.
func (t *thief) tryBox(box sealedBox, channels *keyexchange.Channels) bool {
	sealed := t.sealedFor(box.owner, box.holder)
	binding := t.views[box.owner].context
	if box.purpose == keyexchange.RecoveryShare {
		at := slices.Index(t.terms.Others(box.owner), box.holder)
		sealed = t.uploads[box.owner].Shares[at]
		binding = textbook.HoldersDigest(t.terms.Members)
	}
	key := channels.Key(box.purpose, box.owner, box.holder)
	data := textbook.ShareData(
		box.purpose, t.session, t.round, box.owner, box.holder, binding)
	share, err := keyexchange.Open(key, sealed[:], data)
	if err != nil {
		return false
	}
	t.opened[box] = true
	t.learn(box.purpose, box.owner, box.holder, [32]byte(share))
	return true
}

// use takes from a state what it can: chain keys, whatever round they say that
// they are of; the X25519 key; channel keys and shares of an open round.
func (t *thief) use(s *stolen) error {
	if s.round == t.round {
		for owner, share := range s.recovery {
			t.learn(keyexchange.RecoveryShare, owner, s.party, share)
		}
	}
	for _, peer := range t.terms.Others(s.party) {
		for _, channels := range s.channels {
			t.tryPair(s.party, peer, channels)
		}
		chains, err := t.chains(s, peer)
		if err != nil {
			return err
		}
		for _, chain := range chains {
			channels, secret, err := chain.Ahead(t.round)
			if err == nil && t.tryPair(s.party, peer, channels) {
				t.pairs[pairOf(s.party, peer)] = secret
			}
		}
	}
	return nil
}

// chains returns what may be the chain of a party and a peer.
func (t *thief) chains(s *stolen, peer int) ([]*keyexchange.Chain, error) {
	saved := s.chains[peer]
	// As it is, and as if it had not moved; without one for this peer, it is zero.
	rounds := []uint64{max(1, binary.BigEndian.Uint64(saved[:]))}
	for from := range t.round {
		rounds = append(rounds, from+1)
	}
	var chains []*keyexchange.Chain
	for _, from := range rounds {
		binary.BigEndian.PutUint64(saved[:], from)
		chain, err := keyexchange.ParseChain(saved[:])
		if err != nil {
			return nil, err
		}
		chains = append(chains, chain)
	}
	if s.private == nil {
		return chains, nil
	}
	key, err := keyexchange.ParseKey(s.private[:])
	if err != nil {
		return nil, err
	}
	public := keyexchange.PublicKey(t.keys[peer].Key)
	chain, err := key.NewChain(t.session, t.terms.Roster, s.party, peer, public)
	return append(chains, chain), err
}

// The sessions that are recorded have theftParties and the threshold theftThreshold.
// In the round one party is declared dropped out although it submitted, and one never
// gets its certificate.
const theftParties, theftThreshold, theftLate, theftUncertified = 6, 3, 0, 3

// theft is a recorded round, with the states of all parties after it.
type theft struct {
	*cheater
	inputs []segments
	states []*stolen
	keys   []wire.Announce
}

// record runs the round, and the beginning of the next one if that is wanted, and
// takes the states.
func record(t target, inputs []segments, next bool) (*theft, error) {
	signers, config := attackConfig(theftParties, &protocol.Recovery{
		Threshold: theftThreshold,
	}, 0)
	c, err := newSession(t, config, signers)
	if err != nil {
		return nil, err
	}
	h := &theft{inputs: inputs}
	if h.keys, err = c.announced(); err != nil {
		return nil, err
	}
	survivors := except(upTo(theftParties), theftLate)
	c.attackSplit(splitPlan{
		survivors:   everyone(survivors, survivors),
		uncertified: []int{theftUncertified},
		input:       func(i int, _ []byte) segments { return inputs[i] },
	})
	if err := errors.Join(c.refusals...); err != nil || c.recovers(inputs, survivors...) != 1 {
		return nil, fmt.Errorf("the round itself fails: %w", err)
	}
	recorded := *c // the next round gets maps of its own
	h.cheater = &recorded
	if next {
		c.nextRound()
		for i := range theftParties {
			if err := c.begin(i, upTo(theftParties), nil); err != nil {
				return nil, err
			}
		}
	}
	for _, party := range c.parties {
		state, err := steal(party, c.terms.Digest)
		if err != nil {
			return nil, err
		}
		h.states = append(h.states, state)
	}
	return h, nil
}

// loot counts what the states of some parties open: whole inputs, and sealed shares.
func (h *theft) loot(parties []int) (exact, boxes int, err error) {
	own := *h.cheater
	own.pairs = make(map[[2]int]keyexchange.PairSecret)
	own.shares = make(map[shareOf]map[int][32]byte)
	for secret, known := range h.shares {
		for holder, share := range known {
			own.learn(secret.purpose, secret.owner, holder, share)
		}
	}
	t := &thief{cheater: &own, keys: h.keys, opened: make(map[sealedBox]bool)}
	for _, i := range parties {
		if err := t.use(h.states[i]); err != nil {
			return 0, 0, err
		}
	}
	for i := range theftParties {
		exact += t.recovers(h.inputs, i)
	}
	return exact, len(t.opened), nil
}

// theftVariants have a thief of the states of any number of parties. It opens a recorded
// round if keys are kept, and nothing of a round that the parties have advanced past.
func theftVariants(seed uint64) []variant {
	inputs := randomInputs(seed, attackLayout, theftParties)
	survivors := except(upTo(theftParties), theftLate)
	revealed := except(survivors, theftUncertified)
	variants := []variant{manyStates(inputs, slices.Concat(survivors, []int{theftLate}))}
	for _, kept := range []struct {
		name  string
		lacks textbook.Defence
		next  bool
		of    []int
	}{
		{"after the reveal, chains", textbook.Ratchet, false, revealed},
		{"after the reveal, shares", textbook.RoundErased, false, revealed},
		{"the X25519 key", textbook.KeyErased, true, upTo(theftParties)},
	} {
		variants = append(variants, variant{
			name:  kept.name,
			lacks: kept.lacks,
			run: func(t target) (outcome, error) {
				h, err := record(t, inputs, kept.next)
				if err != nil {
					return outcome{}, err
				}
				exact, boxes, err := h.loot(kept.of)
				return counts(theftParties, exact, boxes), err
			},
			metrics: []metric{
				{inputsRecovered, exactly(theftParties), exactly(0)},
				{sharesOpened, atLeast(1), exactly(0)},
			},
		})
	}
	return variants
}

// sharesOpened is the metric of sealed shares.
const sharesOpened = "sealed shares opened"

// manyStates steals the states of 1 to 6 parties in the given order.
func manyStates(inputs []segments, order []int) variant {
	const n = theftParties
	// Of k survivors the thief has all pair secrets, and so their inputs; of t
	// parties the shares that open every recovery blob and every self mask.
	expected := 0
	for k := 1; k <= n; k++ {
		if k < theftThreshold {
			expected += k
		} else {
			expected += n
		}
	}
	return variant{
		name:  "1, 2, … 6 states, next round",
		lacks: textbook.Ratchet,
		run: func(t target) (outcome, error) {
			h, err := record(t, inputs, true)
			if err != nil {
				return outcome{}, err
			}
			sum, most := 0, 0
			for k := 1; k <= n; k++ {
				exact, boxes, err := h.loot(order[:k])
				if err != nil {
					return outcome{}, err
				}
				sum, most = sum+exact, boxes
			}
			return counts(n*n, sum, most), nil
		},
		metrics: []metric{
			{inputsRecovered, exactly(float64(expected)), exactly(0)},
			{sharesOpened, exactly(2 * n * (n - 1)), exactly(0)},
		},
	}
}
