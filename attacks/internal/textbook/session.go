package textbook

import (
	"github.com/hushsum/hushsum/protocol"
)

// Party is a client of either implementation.
type Party = protocol.Party

// Summer is a server of either implementation, which says what round it is in.
type Summer interface {
	protocol.Summer
	Round() uint64
}

// Session is a session of parties and a server of any implementation. A message that
// its receiver refuses is lost, and noted.
type Session struct {
	protocol.Carrier[Summer, Party]
	Refusals []error
}

// NewSession makes a session, before its set-up; server may be nil for parties that
// answer to nobody.
func NewSession(config *protocol.Config, server Summer, parties []Party) *Session {
	s := &Session{Carrier: protocol.Carrier[Summer, Party]{
		Config:  config,
		Server:  server,
		Clients: parties,
	}}
	s.Refused = func(_, _ int, err error) error {
		s.Refusals = append(s.Refusals, err)
		return nil
	}
	return s
}

// Given returns the function that [protocol.Carrier.Submit] asks for, of inputs by party.
func Given(inputs [][][]uint64) func(party int) ([][]uint64, error) {
	return func(party int) ([][]uint64, error) { return inputs[party], nil }
}
