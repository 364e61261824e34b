package session

import (
	"crypto"
	"errors"

	"github.com/hushsum/hushsum/attacks/internal/textbook"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/protocol"
)

// attackKeySubstitution has the server stand in for everybody towards a victim:
// it gives the victim keys of its own in the places of all others, signed as
// forge says, and so shares all of the victim's chains. It returns the victim's
// refusal, if that is what comes of it.
func (c *cheater) attackKeySubstitution(victim int, input [][]uint64, forge func(party int, key keyexchange.PublicKey) (wire.Announce, error)) error {
	c.nextRound()
	keys, err := c.announced()
	if err != nil {
		return err
	}
	announced := keys[victim]
	private := make([]*keyexchange.PrivateKey, len(keys))
	for _, i := range c.terms.Others(victim) {
		if private[i], err = keyexchange.GenerateKey(nil); err != nil {
			return err
		}
		public, err := private[i].Public()
		if err != nil {
			return err
		}
		if keys[i], err = forge(i, public); err != nil {
			return err
		}
	}
	if err := c.sendKeys(victim, keys); err != nil {
		return err
	}
	if err := c.enter(victim, upTo(len(keys)), input); err != nil {
		return err
	}
	for _, i := range c.terms.Others(victim) {
		chain, err := private[i].NewChain(c.session, c.terms.Roster, i, victim, keyexchange.PublicKey(announced.Key))
		if err != nil {
			return err
		}
		channels, secret, err := chain.Ahead(c.round)
		if err != nil {
			return err
		}
		c.pairs[pairOf(i, victim)] = secret
		if !c.terms.Recovery {
			continue
		}
		sealed := c.sealedFor(victim, i)
		data := textbook.ShareData(keyexchange.SelfMaskShare, c.session, c.round, victim, i, c.views[victim].context)
		share, err := keyexchange.Open(channels.Key(keyexchange.SelfMaskShare, victim, i), sealed[:], data)
		if err != nil {
			return err
		}
		c.learn(keyexchange.SelfMaskShare, victim, i, [32]byte(share))
	}
	return nil
}

// A server that swaps keys recovers an input exactly if parties do not verify
// the signatures on them, self masks or not. Otherwise they refuse, whatever
// signature the swapped key comes with.
func keySubstitution(r *runner) {
	const n, victim = 5, 1
	in := randomInputs(r.o.Seed, attackLayout, n)
	for _, session := range []struct {
		name     string
		recovery *protocol.Recovery
	}{{"no recovery", nil}, {"with recovery", &protocol.Recovery{}}} {
		signers, config := attackConfig(n, session.recovery, 0)
		for _, forged := range []struct {
			name string
			sign func(c *cheater, party int, key keyexchange.PublicKey) ([64]byte, error)
		}{
			{"no signature", func(*cheater, int, keyexchange.PublicKey) ([64]byte, error) { return [64]byte{}, nil }},
			{"the genuine key's signature", func(c *cheater, party int, _ keyexchange.PublicKey) ([64]byte, error) {
				genuine := c.parties[party].Announce()
				return [64]byte(genuine[len(genuine)-64:]), nil
			}},
			{"a colluder's signature", func(c *cheater, party int, key keyexchange.PublicKey) ([64]byte, error) {
				return keyexchange.SignKey(signers[n-1], c.terms.Digest, party, key, nil)
			}},
		} {
			r.compare(session.name+", "+forged.name, textbook.KeySignatures, func(t target) (figures, error) {
				c, err := newCheater(t, config, signers)
				if err != nil {
					return figures{}, err
				}
				c.refused(c.attackKeySubstitution(victim, in[victim], func(party int, key keyexchange.PublicKey) (wire.Announce, error) {
					signature, err := forged.sign(c, party, key)
					return wire.Announce{Key: key, Signature: signature}, err
				}))
				return counts(1, c.recovers(in, victim), c.refusedWith(protocol.ErrSignature)), nil
			}, metric{"inputs recovered exactly", is(1), is(0)}, metric{"documented refusals", is(0), is(1)})
		}

		// The victim's own key is the other half of the swap: the list that it is
		// shown must have the key that it announced.
		r.compare(session.name+", the own key", textbook.OwnKey, func(t target) (figures, error) {
			c, err := newCheater(t, config, signers)
			if err != nil {
				return figures{}, err
			}
			keys, err := c.announced()
			if err != nil {
				return figures{}, err
			}
			keys[victim].Key[0] ^= 1
			err = c.sendKeys(victim, keys)
			c.refused(err)
			return counts(1, one(err == nil), c.refusedWith(protocol.ErrOwnKey)), nil
		}, metric{"lists accepted", is(1), is(0)}, metric{"documented refusals", is(0), is(1)})
	}
}

// A server that has parties take t = 1 recovers inputs exactly, from the shares
// of a single colluder, which nobody has to help. It cannot do so to parties that
// look at the configuration, and a configuration that differs in anything is
// another session.
func thresholdDowngrade(r *runner) {
	const n, victim, colluder = 5, 0, 4
	in := randomInputs(r.o.Seed, attackLayout, n)
	plan := splitPlan{colluders: []int{colluder}}
	recovered := "inputs recovered exactly"
	run := func(recovery *protocol.Recovery) func(target) (figures, error) {
		return func(t target) (figures, error) {
			c, err := split(t, recovery, 1, n, plan, in)
			if errors.Is(err, protocol.ErrConfig) {
				return counts(1, 0), nil // nobody takes part
			}
			if err != nil {
				return figures{}, err
			}
			return counts(1, c.recovers(in, victim)), nil
		}
	}
	r.compare("t = 1 from the server", textbook.ValidConfig, run(&protocol.Recovery{Threshold: 1}), metric{recovered, is(1), is(0)})
	r.compare("the session's own t", 0, run(&protocol.Recovery{}), metric{recovered, none, is(0)})

	// t ≤ c for every adversary, and for those that cheat whatever does not exceed
	// half of holders and colluders.
	low := []protocol.Recovery{{Adversary: protocol.CuriousServer, Threshold: 1}, {Adversary: protocol.SemiMaliciousServer, Threshold: 1},
		{Threshold: 1}, {Threshold: 2}, {MinSurvivors: 3}}
	r.compare("low thresholds", textbook.ValidConfig, func(t target) (figures, error) {
		taken := 0
		for i := range low {
			signers, config := attackConfig(n, &low[i], 1)
			_, err := t.client(config, signers[victim])
			taken += one(err == nil)
			if err != nil && !errors.Is(err, protocol.ErrConfig) {
				return figures{}, err
			}
		}
		return counts(len(low), taken), nil
	}, metric{"configurations taken", is(float64(len(low))), is(0)})

	// A valid but weaker configuration, a smaller quorum, and a roster of the
	// server's making: each is a session that the party is not in.
	signers, config := attackConfig(n, &protocol.Recovery{}, 1)
	weaker, quorum := *config, *config
	weaker.Recovery = &protocol.Recovery{Adversary: protocol.CuriousServer, Threshold: 2}
	quorum.Colluders = 0 // the same t
	for _, other := range []struct {
		name   string
		config *protocol.Config
	}{{"a weaker configuration", &weaker}, {"a smaller quorum", &quorum}, {"the server's roster", nil}} {
		theirs, signing := other.config, signers
		r.compare(other.name, textbook.Current|textbook.KeySignatures, func(t target) (figures, error) {
			if theirs == nil {
				var err error
				if signing, theirs, err = sybilConfig(signers[victim], n); err != nil {
					return figures{}, err
				}
			}
			taken, err := takenOver(t, config, theirs, signing)
			return counts(2, taken), err
		}, metric{"sides that go along", is(2), is(0)})
	}
}

// sybilConfig is a session of which the server has made up all parties but one.
func sybilConfig(victim crypto.Signer, n int) ([]crypto.Signer, *protocol.Config, error) {
	signers := []crypto.Signer{victim}
	for range n - 1 {
		identity, err := keyexchange.GenerateIdentity(nil)
		if err != nil {
			return nil, nil, err
		}
		signers = append(signers, identity)
	}
	return signers, &protocol.Config{Label: "attack", Layout: attackLayout, Recovery: &protocol.Recovery{}, Colluders: 1, Classical: true, Roster: textbook.RosterOf("sybil", signers)}, nil
}

// takenOver counts who goes along when a party of ours meets a server of theirs:
// the server with the party's key, and the party with keys that were signed under
// the other configuration, also if they are passed off as of its own. A party that
// refuses and changes all the same goes along.
func takenOver(t target, ours, theirs *protocol.Config, signers []crypto.Signer) (int, error) {
	client, err := t.client(ours, signers[0])
	if err != nil {
		return 0, err
	}
	server, err := t.server(theirs)
	if err != nil {
		return 0, err
	}
	own, err := textbook.NewTerms(ours, textbook.ValidConfig)
	if err != nil {
		return 0, err
	}
	other, err := textbook.NewTerms(theirs, textbook.ValidConfig)
	if err != nil {
		return 0, err
	}
	along := one(server.Receive(0, client.Announce()) == nil)
	_, body, err := wire.ParseHeader(client.Announce())
	if err != nil {
		return 0, err
	}
	announced, err := wire.ParseAnnounce(body, false)
	if err != nil {
		return 0, err
	}
	keys := []wire.Announce{*announced}
	for i, signer := range signers[1:] {
		key, err := keyexchange.GenerateKey(nil)
		if err != nil {
			return 0, err
		}
		public, err := key.Public()
		if err != nil {
			return 0, err
		}
		signature, err := keyexchange.SignKey(signer, other.Digest, i+1, public, nil)
		if err != nil {
			return 0, err
		}
		keys = append(keys, wire.Announce{Key: public, Signature: signature})
	}
	before, err := snapshot(client, own.Digest)
	if err != nil {
		return 0, err
	}
	taken := false
	for _, session := range [][32]byte{other.Digest, own.Digest} {
		h := wire.Header{Type: wire.TypeKeys, Session: session, Sender: wire.ServerIndex}
		_, err := client.Receive(keysOf(keys).Append(h.Append(nil)))
		taken = taken || err == nil
	}
	after, err := snapshot(client, own.Digest)
	return along + one(taken || before != after), err
}

// A server that runs all clients but one reads that one's input from the sum.
// Against that stands the roster, which must not be the server's; where n − 1
// parties of a genuine roster collude, nothing but noise helps.
func sybil(r *runner) {
	const n, victim = 5, 0
	in := randomInputs(r.o.Seed, attackLayout, n)
	subtract := func(t target, signers []crypto.Signer, config *protocol.Config) (figures, error) {
		s, err := t.ready(config, signers, nil)
		if err != nil {
			return figures{}, err
		}
		sum, err := s.Round(nil, in)
		if err != nil {
			return figures{}, err
		}
		own := sumOf(attackLayout, in, except(upTo(n), victim))
		return counts(1, one(equal(minus(sum, own), in[victim]))), nil
	}
	recovered := "inputs recovered exactly"
	r.compare("the server's roster", textbook.Current|textbook.KeySignatures, func(t target) (figures, error) {
		signers, theirs, err := sybilConfig(textbook.Signers(n)[victim], n)
		if err != nil {
			return figures{}, err
		}
		if t.without == 0 { // the party has a roster of its own
			_, ours := attackConfig(n, theirs.Recovery, theirs.Colluders)
			taken, err := takenOver(t, ours, theirs, signers)
			return counts(1, taken), err
		}
		return subtract(target{}, signers, theirs)
	}, metric{recovered, is(1), is(0)})
	r.compare("n − 1 of the roster", 0, func(t target) (figures, error) {
		signers, config := attackConfig(n, &protocol.Recovery{}, 0)
		return subtract(t, signers, config)
	}, metric{recovered, is(1), is(1)})
	r.limit(1, "the sum is what the protocol gives out; noise is what is left of protection")
}
