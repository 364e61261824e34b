package session

import (
	"crypto"

	"github.com/hushsum/hushsum/attacks"
	"github.com/hushsum/hushsum/attacks/internal/textbook"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/protocol"
)

var sybil = compared(attacks.Attack{
	Name:      "Sybil",
	Adversary: "server with n − 1 clients",
	About:     "subtracts its own clients' inputs from the sum",
	Defence:   "a roster that does not come from the server; noise for the rest",
}, sybilVariants)

// sybilConfig is a session in which the server has made up all parties but one.
func sybilConfig(victim crypto.Signer, n int) ([]crypto.Signer, *protocol.Config, error) {
	signers := []crypto.Signer{victim}
	for range n - 1 {
		identity, err := keyexchange.GenerateIdentity(nil)
		if err != nil {
			return nil, nil, err
		}
		signers = append(signers, identity)
	}
	return signers, &protocol.Config{
		Label:     "attack",
		Roster:    textbook.RosterOf("sybil", signers),
		Layout:    attackLayout,
		Recovery:  &protocol.Recovery{},
		Colluders: 1,
		Classical: true,
	}, nil
}

// The session of Sybil, and whose input is read.
const sybilParties, sybilVictim = 5, 0

// subtractOthers plays a round, and tells whether the sum less all inputs but the
// victim's is that one.
func subtractOthers(
	t target, signers []crypto.Signer, config *protocol.Config, inputs []segments,
) (outcome, error) {
	s, err := t.ready(config, signers, nil)
	if err != nil {
		return outcome{}, err
	}
	sum, err := s.Round(nil, inputs)
	if err != nil {
		return outcome{}, err
	}
	others := sumOf(attackLayout, inputs, except(upTo(sybilParties), sybilVictim))
	read := equal(minus(sum, others), inputs[sybilVictim])
	return counts(1, indicator(read)), nil
}

// sybilVariants have a server that runs all clients but one. It reads that one's input
// from the sum. Against that stands the roster, which must not be the server's; where
// n − 1 parties of a genuine roster collude, nothing but noise helps.
func sybilVariants(seed uint64) []variant {
	inputs := randomInputs(seed, attackLayout, sybilParties)
	return []variant{{
		name:  "the server's roster",
		lacks: textbook.Current | textbook.KeySignatures,
		run: func(t target) (outcome, error) {
			victim := textbook.Signers(sybilParties)[sybilVictim]
			signers, theirs, err := sybilConfig(victim, sybilParties)
			if err != nil {
				return outcome{}, err
			}
			if t.without == 0 { // the party has a roster of its own
				_, ours := attackConfig(sybilParties, theirs.Recovery, theirs.Colluders)
				sides, err := takenOver(t, ours, theirs, signers)
				return counts(1, sides), err
			}
			return subtractOthers(target{}, signers, theirs, inputs)
		},
		metrics: []metric{{inputsRecovered, exactly(1), exactly(0)}},
	}, {
		name: "n − 1 of the roster",
		run: func(t target) (outcome, error) {
			signers, config := attackConfig(sybilParties, &protocol.Recovery{}, 0)
			return subtractOthers(t, signers, config, inputs)
		},
		metrics: []metric{{inputsRecovered, exactly(1), exactly(1)}},
		limit:   "the protocol gives out the sum; noise alone still protects",
	}}
}
