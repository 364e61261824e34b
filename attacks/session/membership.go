package session

import (
	"context"
	"errors"
	"fmt"

	"github.com/hushsum/hushsum/attacks"
	"github.com/hushsum/hushsum/attacks/internal/textbook"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/protocol"
)

var chosenMembers = compared(attacks.Attack{
	Name:      "ChosenMembers",
	Adversary: cheatingServer,
	About:     "forms a session of its choice, from colluders and few others",
	Defence:   "MinMembers, which each party checks",
}, chosenMembersVariants)

// chosenMembersVariants have a server that forms a session among three of seven, one of
// which colludes. With five or more, as the parties' configuration demands, no sum has
// fewer than three honest inputs; this one has two.
func chosenMembersVariants(seed uint64) []variant {
	const parties, colluder = 7, 6
	chosen := []int{0, 1, colluder}
	inputs := randomInputs(seed, attackLayout, parties)
	honest := sumOf(attackLayout, inputs, except(chosen, colluder))
	return []variant{{
		lacks: textbook.Members,
		run: func(t target) (outcome, error) {
			signers, config := attackConfig(parties, &protocol.Recovery{}, 1)
			config.MinMembers = 5
			clients, err := t.parties(config, signers, colluder)
			if err != nil {
				return outcome{}, err
			}
			server, err := textbook.NewServer(config, textbook.Members)
			if err != nil {
				return outcome{}, err
			}
			s := textbook.NewSession(config, server, clients)
			s.Carry = func(from, to int, message []byte) []byte {
				for _, i := range chosen {
					if from == i || to == i {
						return message
					}
				}
				return nil // the server does not listen to the others
			}
			if err := s.SetUp(); err != nil {
				return outcome{}, err
			}
			sum, err := s.Round(nil, inputs)
			if err != nil && !errors.Is(err, protocol.ErrTooFew) {
				return outcome{}, err
			}
			read := sum != nil && equal(minus(sum, inputs[colluder]), honest)
			return counts(1, indicator(read), len(s.Refusals)), nil
		},
		metrics: []metric{
			{"sums of 2 honest inputs read", exactly(1), exactly(0)},
			// Each of the three refuses the keys and what follows: what refuses later is for other promises.
			{"refusals", unmeasured, exactly(6)},
		},
	}}
}

// oldKeys replays keys of an earlier session of the same configuration. Both sides of the
// row are package protocol: what is missing is a number.
var oldKeys = attacks.Attack{
	Name:      "OldKeys",
	Adversary: cheatingServer,
	About:     "has others share secrets with a party's keys of an earlier session",
	Defence:   "a separate number for each session of a series, in every signature",
	Run: func(_ context.Context, _ attacks.Options) (*attacks.Report, error) {
		row := attacks.Row{Metric: "parties that take old keys, of 3"}
		for _, side := range []struct {
			measure *attacks.Measure
			number  uint64 // of the second session
			want    float64
		}{{&row.Undefended, 1, 3}, {&row.Defended, 2, 0}} {
			taken, err := takeOldKeys(side.number)
			if err != nil {
				return nil, fmt.Errorf("session: OldKeys: %w", err)
			}
			*side.measure = attacks.Exactly(float64(taken), 3, side.want)
		}
		return &attacks.Report{Rows: []attacks.Row{row}}, nil
	},
}

// takeOldKeys runs a session with number 1, and sets up one with another number in which
// the last party is absent and its announcement of the first session is replayed.
func takeOldKeys(number uint64) (taken int, err error) {
	const parties, absent = 4, 3
	signers, config := attackConfig(parties, nil, 0)
	config.Number = 1
	genuine := target{real: true}
	var old []byte
	_, err = genuine.ready(config, signers, func(from, _ int, message []byte) []byte {
		if from == absent && wire.Type(message[1]) == wire.TypeAnnounce {
			old = message
		}
		return message
	})
	if err != nil {
		return 0, err
	}
	again := *config
	again.Number = number
	s, err := genuine.session(&again, signers)
	if err != nil {
		return 0, err
	}
	// A server that cheats takes what it replays: it is textbook, which checks nothing.
	server, err := textbook.NewServer(&again, textbook.Current|textbook.KeySignatures)
	if err != nil {
		return 0, err
	}
	s.Server = server
	s.Carry = func(from, to int, message []byte) []byte {
		switch {
		case from == absent:
			return old
		case to == absent:
			return nil
		}
		return message
	}
	if err := s.SetUp(); err != nil {
		return 0, err
	}
	for i, party := range s.Clients {
		if i != absent && party.(*protocol.Client).Enrolled() != nil {
			taken++
		}
	}
	return taken, nil
}
