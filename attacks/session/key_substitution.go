package session

import (
	"crypto"

	"github.com/hushsum/hushsum/attacks"
	"github.com/hushsum/hushsum/attacks/internal/textbook"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/protocol"
)

var keySubstitution = compared(attacks.Attack{
	Name:      "KeySubstitution",
	Adversary: cheatingServer,
	About:     "replaces others' keys with its own",
	Defence:   "keys are signed by the identities of the roster",
}, keyVariants)

// keyForgery makes a signature for a key that the server puts in the place of a party's.
type keyForgery func(c *cheater, party int, key keyexchange.PublicKey) ([64]byte, error)

// attackKeySubstitution has the server stand in for everybody towards a victim:
// it gives the victim keys of its own in the places of all others, signed as
// forge says, and so shares all of the victim's chains. It returns the victim's
// refusal, if the victim refuses.
func (c *cheater) attackKeySubstitution(victim int, input segments, forge keyForgery) error {
	c.nextRound()
	keys, err := c.announced()
	if err != nil {
		return err
	}
	announced := keyexchange.PublicKey(keys[victim].Key)
	private := make([]*keyexchange.PrivateKey, len(keys))
	for _, i := range c.terms.Others(victim) {
		if private[i], err = keyexchange.GenerateKey(nil); err != nil {
			return err
		}
		public, err := private[i].Public()
		if err != nil {
			return err
		}
		signature, err := forge(c, i, public)
		if err != nil {
			return err
		}
		keys[i] = wire.Announce{Key: public, Signature: signature}
	}
	if err := c.sendKeys(victim, keys); err != nil {
		return err
	}
	if err := c.enter(victim, upTo(len(keys)), input); err != nil {
		return err
	}
	for _, i := range c.terms.Others(victim) {
		if err := c.shareChain(private[i], i, victim, announced); err != nil {
			return err
		}
	}
	return nil
}

// shareChain learns what the victim shares with a party whose key is the server's.
func (c *cheater) shareChain(
	private *keyexchange.PrivateKey, party, victim int, announced keyexchange.PublicKey,
) error {
	chain, err := private.NewChain(c.session, c.terms.Roster, party, victim, announced)
	if err != nil {
		return err
	}
	channels, secret, err := chain.Ahead(c.round)
	if err != nil {
		return err
	}
	c.pairs[pairOf(party, victim)] = secret
	if !c.terms.Recovery {
		return nil
	}
	const purpose = keyexchange.SelfMaskShare
	sealed := c.sealedFor(victim, party)
	data := textbook.ShareData(
		purpose, c.session, c.round, victim, party, c.views[victim].context)
	share, err := keyexchange.Open(channels.Key(purpose, victim, party), sealed[:], data)
	if err != nil {
		return err
	}
	c.learn(purpose, victim, party, [32]byte(share))
	return nil
}

// The session of KeySubstitution, and who is shown other keys.
const keyParties, keyVictim = 5, 1

// keyVariants have a server that swaps keys. It recovers an input exactly if parties do
// not verify the signatures on them, self masks or not. Otherwise they refuse, whatever
// signature the swapped key comes with.
func keyVariants(seed uint64) []variant {
	inputs := randomInputs(seed, attackLayout, keyParties)
	var variants []variant
	for _, session := range []struct {
		name     string
		recovery *protocol.Recovery
	}{{"no recovery", nil}, {"with recovery", &protocol.Recovery{}}} {
		signers, config := attackConfig(keyParties, session.recovery, 0)
		for _, forged := range []struct {
			name  string
			forge keyForgery
		}{
			{"no signature", noSignature},
			{"the genuine key's signature", genuineSignature},
			{"a colluder's signature", colluderSignature},
		} {
			variants = append(variants, variant{
				name:  session.name + ", " + forged.name,
				lacks: textbook.KeySignatures,
				run: func(t target) (outcome, error) {
					c, err := newCheater(t, config, signers)
					if err != nil {
						return outcome{}, err
					}
					c.refused(c.attackKeySubstitution(keyVictim, inputs[keyVictim], forged.forge))
					return counts(1, c.recovers(inputs, keyVictim), c.refusedWith(protocol.ErrSignature)), nil
				},
				metrics: []metric{
					{inputsRecovered, exactly(1), exactly(0)},
					{documentedRefusals, exactly(0), exactly(1)},
				},
			})
		}
		variants = append(variants, ownKeyVariant(session.name, config, signers))
	}
	return variants
}

func noSignature(*cheater, int, keyexchange.PublicKey) ([64]byte, error) {
	return [64]byte{}, nil
}

// genuineSignature is the party's own, on its own key.
func genuineSignature(c *cheater, party int, _ keyexchange.PublicKey) ([64]byte, error) {
	message := c.parties[party].Announce()
	return [64]byte(message[len(message)-64:]), nil
}

// colluderSignature signs the right key with the wrong identity.
func colluderSignature(c *cheater, party int, key keyexchange.PublicKey) ([64]byte, error) {
	return keyexchange.SignKey(c.signers[keyParties-1], c.terms.Digest, party, key, nil)
}

// ownKeyVariant changes the victim's own key, which is the other half of the swap: the
// list that it is shown must have the key that it announced.
func ownKeyVariant(session string, config *protocol.Config, signers []crypto.Signer) variant {
	return variant{
		name:  session + ", the own key",
		lacks: textbook.OwnKey,
		run: func(t target) (outcome, error) {
			c, err := newCheater(t, config, signers)
			if err != nil {
				return outcome{}, err
			}
			keys, err := c.announced()
			if err != nil {
				return outcome{}, err
			}
			keys[keyVictim].Key[0] ^= 1
			err = c.sendKeys(keyVictim, keys)
			c.refused(err)
			return counts(1, indicator(err == nil), c.refusedWith(protocol.ErrOwnKey)), nil
		},
		metrics: []metric{
			{"lists accepted", exactly(1), exactly(0)},
			{documentedRefusals, exactly(0), exactly(1)},
		},
	}
}
