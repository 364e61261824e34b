package protocol

import (
	"crypto"
	"fmt"
	"io"
)

// Local runs the server and all parties of a session in one process, for tests, for simulations
// and to show the order of calls.
type Local struct {
	Carrier[*Server, *Client]
}

// NewLocal makes a session of the given identities, in roster order, and runs its set-up. It fails
// with the errors of [NewClient] and [NewServer].
func NewLocal(config *Config, identities []crypto.Signer, random io.Reader) (*Local, error) {
	server, err := NewServer(config)
	if err != nil {
		return nil, err
	}
	if n := server.config.parties; len(identities) != n {
		return nil, fmt.Errorf("%w: got %d identities, the roster has %d", ErrIdentity, len(identities),
			n)
	}
	l := &Local{Carrier[*Server, *Client]{
		Config:  config,
		Server:  server,
		Clients: make([]*Client, len(identities)),
	}}
	for i, identity := range identities {
		if l.Clients[i], err = NewClient(config, identity, random); err != nil {
			return nil, err
		}
		if l.Clients[i].Party() != i {
			return nil, fmt.Errorf("%w: identity %d is not party %d of the roster", ErrIdentity, i, i)
		}
	}
	if err := l.SetUp(); err != nil {
		return nil, err
	}
	return l, nil
}
