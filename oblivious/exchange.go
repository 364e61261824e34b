package oblivious

import (
	"fmt"
	"slices"

	"github.com/hushsum/hushsum/protocol"
)

// Exchange carries the messages of one round among all parties of a session within one process,
// after set-up if that is still to be done, and returns their corrections in order: for tests,
// for simulations, and to show the order of calls.
func Exchange(parties []*Transfer, round uint64) ([][]uint64, error) {
	if slices.Contains(parties, nil) || len(parties) == 0 ||
		len(parties) != parties[0].config.Parties {
		return nil, configError("Exchange needs all parties of the session, in order")
	}
	steps := []func(*Transfer) ([]protocol.Envelope, error){
		func(t *Transfer) ([]protocol.Envelope, error) { return t.Begin(round) },
	}
	if parties[0].stage == stageNew {
		steps = append([]func(*Transfer) ([]protocol.Envelope, error){(*Transfer).Setup}, steps...)
	}
	for _, step := range steps {
		var pending []protocol.Envelope
		for i, t := range parties {
			envelopes, err := step(t)
			if err != nil {
				return nil, fmt.Errorf("party %d: %w", i, err)
			}
			pending = append(pending, envelopes...)
		}
		for len(pending) > 0 {
			e := pending[0]
			answer, err := parties[e.To].Receive(e.Message)
			if err != nil {
				return nil, fmt.Errorf("party %d: %w", e.To, err)
			}
			pending = append(pending[1:], answer...)
		}
	}
	corrections := make([][]uint64, len(parties))
	for i, t := range parties {
		var err error
		if corrections[i], err = t.Correction(); err != nil {
			return nil, fmt.Errorf("party %d: %w", i, err)
		}
	}
	return corrections, nil
}
