package session

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/gob"
	"errors"
	"fmt"
	"slices"

	"github.com/hushsum/hushsum/attacks/internal/textbook"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/protocol"
)

// stolenState is what a thief finds in the state of one party.
type stolenState struct {
	party    int
	private  *[32]byte // the X25519 key of the session, if it is still there
	chains   map[int][40]byte
	round    uint64 // that is open or was last
	channels []*keyexchange.Channels
	recovery map[int][32]byte // shares of recovery keys of the open round, by owner
}

// savedClient is the part of a saved client that a thief reads: saving is
// package protocol's own affair, and this the names that it has there.
type savedClient struct {
	Key    [32]byte
	Chains []struct {
		Peer  int
		Chain [40]byte
	}
	Last uint64
	Open *struct {
		Near []struct {
			Peer     int
			Channels [128]byte
			Recovery [32]byte
			Held     bool
		}
	}
}

// opened is what [protocol.Client.Save] or [protocol.Server.Save] saves, without
// the seal: the thief has the key too.
func opened(saver interface {
	Save(*keyexchange.SealKey) ([]byte, error)
}, config [32]byte, party uint32) ([]byte, error) {
	key, err := keyexchange.GenerateSealKey(nil)
	if err != nil {
		return nil, err
	}
	sealed, err := saver.Save(key)
	if err != nil {
		return nil, err
	}
	b := append([]byte("hushsum/2 state"), config[:]...)
	data := sha256.Sum256(binary.BigEndian.AppendUint32(b, party))
	return keyexchange.Open(key, sealed, data[:])
}

// snapshot describes all that a message could change in a client or server.
func snapshot(receiver any, config [32]byte) (string, error) {
	switch x := receiver.(type) {
	case *protocol.Client:
		b, err := opened(x, config, uint32(x.Party()))
		return string(b), err
	case *protocol.Server:
		b, err := opened(x, config, wire.ServerIndex)
		return string(b), err
	case interface{ Snapshot() string }:
		return x.Snapshot(), nil
	}
	return "", fmt.Errorf("%T has no state that can be looked at", receiver)
}

// steal takes the state of a party.
func steal(p textbook.Party, config [32]byte) (*stolenState, error) {
	out := &stolenState{chains: make(map[int][40]byte), recovery: make(map[int][32]byte)}
	switch x := p.(type) {
	case *textbook.Client:
		out.party, out.round = x.Self, x.Last
		if key, err := x.Private.AppendBinary(nil); err == nil {
			out.private = (*[32]byte)(key)
		}
		for peer, chain := range x.Chains {
			key, err := chain.AppendBinary(nil)
			if err != nil {
				return nil, err
			}
			out.chains[peer] = [40]byte(key)
		}
		if x.Open != nil {
			out.channels = x.Open.Channels
			for i, share := range x.Open.Recovery {
				if share != nil {
					out.recovery[x.Open.Near[i]] = *share
				}
			}
		}
	case *protocol.Client:
		b, err := opened(x, config, uint32(x.Party()))
		if err != nil {
			return nil, err
		}
		var s savedClient
		if err := gob.NewDecoder(bytes.NewReader(b)).Decode(&s); err != nil {
			return nil, err
		}
		if len(s.Chains) == 0 {
			return nil, errors.New("saved states are not what this thief reads")
		}
		out.party, out.round = x.Party(), s.Last
		if s.Key != ([32]byte{}) {
			out.private = &s.Key
		}
		for _, chain := range s.Chains {
			out.chains[chain.Peer] = chain.Chain
		}
		if s.Open != nil {
			for _, near := range s.Open.Near {
				channels, err := keyexchange.ParseChannels(near.Channels[:])
				if err != nil {
					return nil, err
				}
				out.channels = append(out.channels, channels)
				if near.Held {
					out.recovery[near.Peer] = near.Recovery
				}
			}
		}
	default:
		return nil, fmt.Errorf("%T has no state that can be stolen", p)
	}
	return out, nil
}

// thief opens a recorded round of which it has the whole transcript, the shares
// that were revealed in it included, with what it has stolen.
type thief struct {
	*cheater
	keys   []wire.Announce // of the session
	opened map[[3]int]bool
}

// tryPair tries keys that two parties may have shared in the round on everything
// that they sealed for each other, and reports whether any of it opens.
func (t *thief) tryPair(i, j int, channels *keyexchange.Channels) bool {
	any := false
	for _, pair := range [][2]int{{i, j}, {j, i}} {
		owner, holder := pair[0], pair[1]
		v := t.views[owner]
		boxes := map[keyexchange.Purpose]wire.SealedShare{
			keyexchange.SelfMaskShare: t.sealedFor(owner, holder),
			keyexchange.RecoveryShare: t.uploads[owner].Shares[slices.Index(t.terms.Others(owner), holder)],
		}
		for purpose, sealed := range boxes {
			context := v.context
			if purpose == keyexchange.RecoveryShare {
				context = textbook.HoldersDigest(t.terms.Members)
			}
			data := textbook.ShareData(purpose, t.session, t.round, owner, holder, context)
			if share, err := keyexchange.Open(channels.Key(purpose, owner, holder), sealed[:], data); err == nil {
				t.opened[[3]int{int(purpose), owner, holder}] = true
				t.learn(purpose, owner, holder, [32]byte(share))
				any = true
			}
		}
	}
	return any
}

// use takes from a state what it can: chain keys, whatever round they say that
// they are of; the X25519 key; channel keys and shares of an open round.
func (t *thief) use(s *stolenState) error {
	if s.round == t.round {
		for owner, share := range s.recovery {
			t.learn(keyexchange.RecoveryShare, owner, s.party, share)
		}
	}
	for _, peer := range t.terms.Others(s.party) {
		for _, channels := range s.channels {
			t.tryPair(s.party, peer, channels)
		}
		stolen := s.chains[peer]
		var candidates []*keyexchange.Chain
		// As it is, and as if it had not moved; without one for this peer, it is zero.
		rounds := []uint64{max(1, binary.BigEndian.Uint64(stolen[:]))}
		for from := range t.round {
			rounds = append(rounds, from+1)
		}
		for _, from := range rounds {
			binary.BigEndian.PutUint64(stolen[:], from)
			chain, err := keyexchange.ParseChain(stolen[:])
			if err != nil {
				return err
			}
			candidates = append(candidates, chain)
		}
		if s.private != nil {
			key, err := keyexchange.ParseKey(s.private[:])
			if err != nil {
				return err
			}
			chain, err := key.NewChain(t.session, t.terms.Roster, s.party, peer, keyexchange.PublicKey(t.keys[peer].Key))
			if err != nil {
				return err
			}
			candidates = append(candidates, chain)
		}
		for _, chain := range candidates {
			channels, secret, err := chain.Ahead(t.round)
			if err == nil && t.tryPair(s.party, peer, channels) {
				t.pairs[pairOf(s.party, peer)] = secret
			}
		}
	}
	return nil
}

// The sessions that are recorded have theftParties and the threshold theftThreshold.
// In the round one party is declared dropped out although it submitted, and one never
// gets its certificate.
const theftParties, theftThreshold, theftLate, theftUncertified = 6, 3, 0, 3

// theft is a recorded round, with the states of all parties after it.
type theft struct {
	*cheater
	in     [][][]uint64
	states []*stolenState
	keys   []wire.Announce
}

// record runs the round, and the beginning of the next one if that is wanted, and
// takes the states.
func record(t target, in [][][]uint64, next bool) (*theft, error) {
	signers, config := attackConfig(theftParties, &protocol.Recovery{Threshold: theftThreshold}, 0)
	c, err := newSession(t, config, signers)
	if err != nil {
		return nil, err
	}
	out := &theft{in: in}
	if out.keys, err = c.announced(); err != nil {
		return nil, err
	}
	survivors := except(upTo(theftParties), theftLate)
	plan := splitPlan{survivors: make(map[int][]int), uncertified: []int{theftUncertified},
		input: func(i int, _ []byte) [][]uint64 { return in[i] }}
	for _, i := range survivors {
		plan.survivors[i] = survivors
	}
	c.attackSplit(plan)
	if err := errors.Join(c.refusals...); err != nil || c.recovers(in, survivors...) != 1 {
		return nil, fmt.Errorf("the round itself fails: %w", err)
	}
	recorded := *c // the next round gets maps of its own
	out.cheater = &recorded
	if next {
		c.nextRound()
		for i := range theftParties {
			if err := c.begin(i, upTo(theftParties), nil); err != nil {
				return nil, err
			}
		}
	}
	for _, p := range c.parties {
		state, err := steal(p, c.terms.Digest)
		if err != nil {
			return nil, err
		}
		out.states = append(out.states, state)
	}
	return out, nil
}

// loot opens what the states of some parties open: whole inputs, and sealed shares.
func (l *theft) loot(of []int) (exact, boxes int, err error) {
	own := *l.cheater
	own.pairs = make(map[[2]int]keyexchange.PairSecret)
	own.shares = make(map[shareOf]map[int][32]byte)
	for of, known := range l.shares {
		for holder, share := range known {
			own.learn(of.purpose, of.owner, holder, share)
		}
	}
	t := &thief{cheater: &own, keys: l.keys, opened: make(map[[3]int]bool)}
	for _, i := range of {
		if err := t.use(l.states[i]); err != nil {
			return 0, 0, err
		}
	}
	for i := range theftParties {
		exact += t.recovers(l.in, i)
	}
	return exact, len(t.opened), nil
}

// A thief of the states of any number of parties opens a recorded round if keys
// are kept; it opens nothing of a round that the parties have advanced past.
func stolenStates(r *runner) {
	const n = theftParties
	in := randomInputs(r.o.Seed, attackLayout, n)
	survivors := except(upTo(n), theftLate)
	revealed := except(survivors, theftUncertified)
	inputs, boxes := "inputs recovered exactly", "sealed shares opened"
	allBoxes := 2 * n * (n - 1)

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
	order := append(slices.Clone(survivors), theftLate)
	r.compare("1, 2, … 6 states, next round", textbook.Ratchet, func(t target) (figures, error) {
		l, err := record(t, in, true)
		if err != nil {
			return figures{}, err
		}
		sum, most := 0, 0
		for k := 1; k <= n; k++ {
			exact, open, err := l.loot(order[:k])
			if err != nil {
				return figures{}, err
			}
			sum, most = sum+exact, open
		}
		return counts(n*n, sum, most), nil
	}, metric{inputs, is(float64(expected)), is(0)}, metric{boxes, is(float64(allBoxes)), is(0)})

	for _, c := range []struct {
		name  string
		lacks textbook.Defence
		next  bool
		of    []int
	}{
		{"after the reveal, chains", textbook.Ratchet, false, revealed},
		{"after the reveal, shares", textbook.RoundErased, false, revealed},
		{"the X25519 key", textbook.KeyErased, true, upTo(n)},
	} {
		r.compare(c.name, c.lacks, func(t target) (figures, error) {
			l, err := record(t, in, c.next)
			if err != nil {
				return figures{}, err
			}
			exact, open, err := l.loot(c.of)
			return counts(n, exact, open), err
		}, metric{inputs, is(n), is(0)}, metric{boxes, atLeast(1), is(0)})
	}
}
