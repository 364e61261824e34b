package textbook

import (
	"github.com/hushsum/hushsum/protocol"
)

// Party is a client of either implementation.
type Party interface {
	Announce() []byte
	Receive(message []byte) ([]byte, error)
	Due() (round uint64, due bool)
	Submit(broadcast []byte, values ...[]uint64) ([]byte, error)
}

// Summer is a server of either implementation.
type Summer interface {
	Receive(message []byte) error
	Keys() ([]protocol.Envelope, error)
	Invite() ([]protocol.Envelope, error)
	Begin(broadcast []byte) ([]protocol.Envelope, error)
	Survivors() ([]protocol.Envelope, error)
	Certificate() ([]protocol.Envelope, error)
	Sum() ([][]uint64, error)
	Round() uint64
}

// Session carries the messages of parties and a server of any implementation. A
// message that its receiver refuses is lost, and noted.
type Session struct {
	Server   Summer
	Parties  []Party
	Recovery bool
	// Carry, if not nil, sees every message and returns what arrives in its place,
	// nil for nothing. The server is party -1.
	Carry    func(from, to int, message []byte) []byte
	Refusals []error
}

// SetUp exchanges keys.
func (s *Session) SetUp() error {
	for i, p := range s.Parties {
		s.ToServer(i, p.Announce())
	}
	return s.Step(s.Server.Keys)
}

// Step has the server make messages, and delivers them and the answers.
func (s *Session) Step(next func() ([]protocol.Envelope, error)) error {
	envelopes, err := next()
	if err != nil {
		return err
	}
	for _, e := range envelopes {
		message := s.carry(-1, e.To, e.Message)
		if message == nil {
			continue
		}
		answer, err := s.Parties[e.To].Receive(message)
		s.note(err)
		if answer != nil {
			s.ToServer(e.To, answer)
		}
	}
	return nil
}

// ToServer delivers a party's message.
func (s *Session) ToServer(from int, message []byte) {
	if message = s.carry(from, -1, message); message != nil {
		s.note(s.Server.Receive(message))
	}
}

// Begin invites who is missing and begins a round.
func (s *Session) Begin(broadcast []byte) error {
	if s.Recovery {
		if err := s.Step(s.Server.Invite); err != nil {
			return err
		}
	}
	return s.Step(func() ([]protocol.Envelope, error) { return s.Server.Begin(broadcast) })
}

// Submit has all parties that are due submit, but those without input.
func (s *Session) Submit(broadcast []byte, inputs [][][]uint64) error {
	for i, p := range s.Parties {
		if _, due := p.Due(); !due || inputs[i] == nil {
			continue
		}
		message, err := p.Submit(broadcast, inputs[i]...)
		if err != nil {
			return err
		}
		s.ToServer(i, message)
	}
	return nil
}

// Certify goes on from the submissions to the shares, with recovery.
func (s *Session) Certify() error {
	if !s.Recovery {
		return nil
	}
	if err := s.Step(s.Server.Survivors); err != nil {
		return err
	}
	return s.Step(s.Server.Certificate)
}

// Round runs a round and returns the sum.
func (s *Session) Round(broadcast []byte, inputs [][][]uint64) ([][]uint64, error) {
	if err := s.Begin(broadcast); err != nil {
		return nil, err
	}
	if err := s.Submit(broadcast, inputs); err != nil {
		return nil, err
	}
	if err := s.Certify(); err != nil {
		return nil, err
	}
	return s.Server.Sum()
}

func (s *Session) carry(from, to int, message []byte) []byte {
	if s.Carry == nil {
		return message
	}
	return s.Carry(from, to, message)
}

func (s *Session) note(err error) {
	if err != nil {
		s.Refusals = append(s.Refusals, err)
	}
}
