package protocol

import (
	"crypto"
	"fmt"
	"io"

	"github.com/hushsum/hushsum/masking"
)

// Local runs the server and all parties of a session in one process, carrying
// the messages itself: for tests, simulations and to learn the order of calls.
type Local struct {
	Server  *Server
	Clients []*Client

	// Carry, if not nil, sees every message on its way and returns what arrives
	// in its place, nil for nothing. The server is party -1.
	Carry func(from, to int, message []byte) []byte
	// Work, if not nil, is called before a party (the server is -1) works, and
	// what it returns when it has done: a place to measure from.
	Work func(party int) (done func())
}

// NewLocal makes a session of the given identities, in roster order, and runs
// its set-up. It fails as [NewClient] and [NewServer] do.
func NewLocal(config *Config, identities []crypto.Signer, random io.Reader) (*Local, error) {
	server, err := NewServer(config)
	if err != nil {
		return nil, err
	}
	if n := server.config.parties; len(identities) != n {
		return nil, fmt.Errorf("%w: got %d identities, the roster has %d", ErrIdentity, len(identities), n)
	}
	l := &Local{Server: server, Clients: make([]*Client, len(identities))}
	for i, identity := range identities {
		if l.Clients[i], err = NewClient(config, identity, random); err != nil {
			return nil, err
		}
		if l.Clients[i].Party() != i {
			return nil, fmt.Errorf("%w: identity %d is not party %d of the roster", ErrIdentity, i, i)
		}
		if err := server.Receive(l.Clients[i].Announce()); err != nil {
			return nil, err
		}
	}
	return l, l.step(server.Keys)
}

// Round runs one round on the given inputs, one per party, each with one slice
// per segment; a nil input is a party that does not submit. It returns the sum
// as [Server.Sum] does; with recovery, [Server.Included] says of whom, and parties
// that dropped out earlier are invited first. A message
// that its receiver refuses ends the round with the refusal, unless Carry was
// set: then refusals are as lost messages are.
func (l *Local) Round(broadcast []byte, inputs [][][]uint64) ([][]uint64, error) {
	if len(inputs) != len(l.Clients) {
		return nil, fmt.Errorf("%w: inputs of %d parties, want %d", ErrLength, len(inputs), len(l.Clients))
	}
	// A round that ends halfway costs some parties the next one too, so what cannot
	// be submitted is found first.
	room, err := masking.NewVector(l.Server.config.Layout)
	if err != nil {
		return nil, err
	}
	defer room.Erase()
	for i, input := range inputs {
		if input == nil {
			continue
		}
		if err := room.Set(input...); err != nil {
			return nil, fmt.Errorf("party %d: %w", i, err)
		}
	}
	if l.Server.open == nil {
		if err := l.step(l.Server.Invite); err != nil {
			return nil, err
		}
	}
	if err := l.step(func() ([]Envelope, error) { return l.Server.Begin(broadcast) }); err != nil {
		return nil, err
	}
	for i, client := range l.Clients {
		if _, due := client.Due(); !due || inputs[i] == nil {
			continue
		}
		done := l.work(i)
		message, err := client.Submit(broadcast, inputs[i]...)
		done()
		if err != nil {
			return nil, err
		}
		if err := l.toServer(i, message); err != nil {
			return nil, err
		}
	}
	if l.Server.config.recovery {
		for _, next := range []func() ([]Envelope, error){l.Server.Survivors, l.Server.Certificate} {
			if err := l.step(next); err != nil {
				return nil, err
			}
		}
	}
	defer l.work(-1)()
	return l.Server.Sum()
}

// step has the server make messages, and delivers them.
func (l *Local) step(next func() ([]Envelope, error)) error {
	done := l.work(-1)
	envelopes, err := next()
	done()
	if err != nil {
		return err
	}
	return l.deliver(envelopes)
}

// deliver carries messages to the parties and their answers back.
func (l *Local) deliver(envelopes []Envelope) error {
	for _, e := range envelopes {
		message := l.carry(-1, e.To, e.Message)
		if message == nil {
			continue
		}
		done := l.work(e.To)
		answer, err := l.Clients[e.To].Receive(message)
		done()
		if err != nil && l.Carry == nil {
			return fmt.Errorf("party %d: %w", e.To, err)
		}
		if answer != nil {
			if err := l.toServer(e.To, answer); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *Local) toServer(from int, message []byte) error {
	message = l.carry(from, -1, message)
	if message == nil {
		return nil
	}
	defer l.work(-1)()
	if err := l.Server.Receive(message); err != nil && l.Carry == nil {
		return err
	}
	return nil
}

func (l *Local) carry(from, to int, message []byte) []byte {
	if l.Carry == nil {
		return message
	}
	return l.Carry(from, to, message)
}

func (l *Local) work(party int) func() {
	if l.Work == nil {
		return func() {}
	}
	return l.Work(party)
}
