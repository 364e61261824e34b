package session

import (
	"encoding/binary"
	"slices"

	"github.com/hushsum/hushsum/attacks"
	"github.com/hushsum/hushsum/attacks/internal/textbook"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/protocol"
)

var flood = compared(attacks.Attack{
	Name:      "Flood",
	Adversary: anyone,
	About:     "sends many copies, and rounds far ahead",
	Defence:   "one message a party and step; MaxSkip",
}, floodVariants)

// The session of Flood, and how many copies are sent of each message.
const floodParties, floodCopies = 5, 50

// floodVariants have many copies of everything that parties send, and rounds far ahead,
// which cost a derivation each.
func floodVariants(seed uint64) []variant {
	return []variant{
		copiesVariant(randomInputs(seed, attackLayout, floodParties)),
		farAhead("a Begin far ahead", wire.TypeBegin, nil),
		farAhead("an Invite far ahead", wire.TypeInvite, &protocol.Recovery{}),
	}
}

// copiesVariant sends the server copies of party 0's messages.
func copiesVariant(inputs []segments) variant {
	return variant{
		name:  "copies to the server",
		lacks: textbook.Once,
		run: func(t target) (outcome, error) {
			signers, config := attackConfig(floodParties, &protocol.Recovery{}, 0)
			s, err := t.session(config, signers)
			if err != nil {
				return outcome{}, err
			}
			p := newProbe([32]byte(s.Clients[0].Announce()[2:34]))
			s.Carry = func(from, _ int, message []byte) []byte {
				if from != 0 {
					return message
				}
				if s.Server.Receive(from, message) != nil {
					return nil // the copies of earlier messages have done it
				}
				p.deliver(s, -1, slices.Repeat([][]byte{message}, floodCopies), false)
				return nil
			}
			if err := s.SetUp(); err != nil {
				return outcome{}, err
			}
			sum, err := s.Round(nil, inputs)
			want := sumOf(attackLayout, inputs, upTo(floodParties))
			garbled := err != nil || !equal(sum, want)
			return counts(p.delivered, len(p.taken), p.takenAll(), indicator(garbled), p.faults()), p.err
		},
		metrics: []metric{
			{"types of messages taken twice", exactly(5), exactly(0)},
			{"copies taken, of 250", exactly(5 * floodCopies), exactly(0)},
			{"sums garbled", exactly(1), exactly(0)},
			{faultyRefusals, unmeasured, exactly(0)},
		},
	}
}

// farAhead tells a party of a round far beyond MaxSkip.
func farAhead(name string, kind wire.Type, recovery *protocol.Recovery) variant {
	const limit, far = 10, 1000
	return variant{
		name:  name,
		lacks: textbook.SkipLimit,
		run: func(t target) (outcome, error) {
			signers, config := attackConfig(floodParties, recovery, 0)
			config.MaxSkip = limit
			c, err := newSession(t, config, signers)
			if err != nil {
				return outcome{}, err
			}
			c.round = far
			message := append(c.header(wire.TypeInvite), c.terms.Members.Bytes()...)
			if kind == wire.TypeBegin {
				message = c.beginMessage(0, upTo(floodParties), nil)
			}
			_, err = c.parties[0].Receive(message)
			c.refused(err)
			state, err := steal(c.parties[0], c.terms.Digest)
			if err != nil {
				return outcome{}, err
			}
			// A chain's first eight bytes are its round, which began as 1.
			chain := state.chains[1]
			moved := int(binary.BigEndian.Uint64(chain[:])) - 1
			return counts(1, moved, c.refusedWith(protocol.ErrSkip)), nil
		},
		metrics: []metric{
			{"derivations for one message", atLeast(far - 1), bounds{0, limit}},
			{documentedRefusals, exactly(0), exactly(1)},
		},
	}
}
