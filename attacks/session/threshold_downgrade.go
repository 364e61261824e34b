package session

import (
	"crypto"
	"errors"

	"github.com/hushsum/hushsum/attacks"
	"github.com/hushsum/hushsum/attacks/internal/textbook"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/protocol"
)

var thresholdDowngrade = compared(attacks.Attack{
	Name:      "ThresholdDowngrade",
	Adversary: cheatingServer,
	About:     "hands out a configuration with a low threshold, or another one to each",
	Defence:   "configurations are validated, and part of what is signed",
}, downgradeVariants)

// The session of ThresholdDowngrade: the victim, and who colludes.
const downgradeParties, downgradeVictim, downgradeColluder = 5, 0, 4

// downgradeVariants have a server that makes parties take t = 1. It recovers inputs
// exactly, from the shares of a single colluder, which nobody has to help. It cannot do so
// to parties that look at the configuration, and a configuration that differs in anything
// is another session.
func downgradeVariants(seed uint64) []variant {
	inputs := randomInputs(seed, attackLayout, downgradeParties)
	low, own := &protocol.Recovery{Threshold: 1}, &protocol.Recovery{}
	variants := []variant{{
		name:    "t = 1 from the server",
		lacks:   textbook.ValidConfig,
		run:     downgraded(low, inputs),
		metrics: []metric{{inputsRecovered, exactly(1), exactly(0)}},
	}, {
		name:    "the session's own t",
		run:     downgraded(own, inputs),
		metrics: []metric{{inputsRecovered, unmeasured, exactly(0)}},
	}, lowThresholds()}
	return append(variants, otherConfigs()...)
}

// downgraded runs a round of an honest server, with the colluder's shares.
func downgraded(recovery *protocol.Recovery, inputs []segments) func(target) (outcome, error) {
	plan := splitPlan{colluders: []int{downgradeColluder}}
	return func(t target) (outcome, error) {
		c, err := split(t, recovery, 1, plan, inputs)
		if errors.Is(err, protocol.ErrConfig) {
			return counts(1, 0), nil // nobody takes part
		}
		if err != nil {
			return outcome{}, err
		}
		return counts(1, c.recovers(inputs, downgradeVictim)), nil
	}
}

// lowThresholds has configurations with t ≤ c for every adversary, and for those that
// cheat whatever does not exceed half of holders and colluders.
func lowThresholds() variant {
	low := []protocol.Recovery{
		{Adversary: protocol.CuriousServer, Threshold: 1},
		{Adversary: protocol.SemiMaliciousServer, Threshold: 1},
		{Threshold: 1},
		{Threshold: 2},
		{MinSurvivors: 3},
	}
	return variant{
		name:  "low thresholds",
		lacks: textbook.ValidConfig,
		run: func(t target) (outcome, error) {
			taken := 0
			for i := range low {
				signers, config := attackConfig(downgradeParties, &low[i], 1)
				_, err := t.client(config, signers[downgradeVictim])
				taken += indicator(err == nil)
				if err != nil && !errors.Is(err, protocol.ErrConfig) {
					return outcome{}, err
				}
			}
			return counts(len(low), taken), nil
		},
		metrics: []metric{{"configurations taken", exactly(float64(len(low))), exactly(0)}},
	}
}

// otherConfigs have a valid but weaker configuration, a smaller quorum, and a roster of
// the server's making: each is a session that the party is not in.
func otherConfigs() []variant {
	signers, config := attackConfig(downgradeParties, &protocol.Recovery{}, 1)
	weaker, quorum := *config, *config
	weaker.Recovery = &protocol.Recovery{Adversary: protocol.CuriousServer, Threshold: 2}
	quorum.Colluders = 0 // the same t
	given := func(other *protocol.Config) func() ([]crypto.Signer, *protocol.Config, error) {
		return func() ([]crypto.Signer, *protocol.Config, error) { return signers, other, nil }
	}
	var variants []variant
	for _, other := range []struct {
		name   string
		config func() ([]crypto.Signer, *protocol.Config, error)
	}{{
		name:   "a weaker configuration",
		config: given(&weaker),
	}, {
		name:   "a smaller quorum",
		config: given(&quorum),
	}, {
		name: "the server's roster",
		config: func() ([]crypto.Signer, *protocol.Config, error) {
			return sybilConfig(signers[downgradeVictim], downgradeParties)
		},
	}} {
		variants = append(variants, variant{
			name:  other.name,
			lacks: textbook.Current | textbook.KeySignatures,
			run: func(t target) (outcome, error) {
				signing, theirs, err := other.config()
				if err != nil {
					return outcome{}, err
				}
				sides, err := takenOver(t, config, theirs, signing)
				return counts(2, sides), err
			},
			metrics: []metric{{"sides that go along", exactly(2), exactly(0)}},
		})
	}
	return variants
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
	sides := indicator(server.Receive(0, client.Announce()) == nil)
	keys, err := keysUnder(other, client.Announce(), signers)
	if err != nil {
		return 0, err
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
	return sides + indicator(taken || before != after), err
}

// keysUnder returns the key that party 0 announces, and keys for the others that their
// identities sign under the given terms.
func keysUnder(
	terms *textbook.Terms, message []byte, signers []crypto.Signer,
) ([]wire.Announce, error) {
	_, body, err := wire.ParseHeader(message)
	if err != nil {
		return nil, err
	}
	announced, err := wire.ParseAnnounce(body, false)
	if err != nil {
		return nil, err
	}
	keys := []wire.Announce{*announced}
	for i, signer := range signers[1:] {
		key, err := keyexchange.GenerateKey(nil)
		if err != nil {
			return nil, err
		}
		public, err := key.Public()
		if err != nil {
			return nil, err
		}
		signature, err := keyexchange.SignKey(signer, terms.Digest, i+1, public, nil)
		if err != nil {
			return nil, err
		}
		keys = append(keys, wire.Announce{Key: public, Signature: signature})
	}
	return keys, nil
}
