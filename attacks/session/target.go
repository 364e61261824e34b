package session

import (
	"crypto"
	"slices"

	"github.com/hushsum/hushsum/attacks/internal/textbook"
	"github.com/hushsum/hushsum/protocol"
)

// target says what an attack is run against.
type target struct {
	without textbook.Defence // what textbook lacks
	real    bool             // package protocol
}

// lacks reports whether the target lacks any of the given defences.
func (t target) lacks(d textbook.Defence) bool { return t.without&d != 0 }

// client makes one honest party of the target.
func (t target) client(config *protocol.Config, signer crypto.Signer) (textbook.Party, error) {
	if t.real {
		return protocol.NewClient(config, signer, nil)
	}
	return textbook.NewClient(config, signer, nil, t.without)
}

// parties makes all parties of a session; colluders run textbook.
func (t target) parties(
	config *protocol.Config, signers []crypto.Signer, colluders ...int,
) ([]textbook.Party, error) {
	parties := make([]textbook.Party, len(signers))
	for i, signer := range signers {
		own := t
		if slices.Contains(colluders, i) {
			own.real = false
		}
		var err error
		if parties[i], err = own.client(config, signer); err != nil {
			return nil, err
		}
	}
	return parties, nil
}

// server makes a server of the target.
func (t target) server(config *protocol.Config) (textbook.Summer, error) {
	if t.real {
		return protocol.NewServer(config)
	}
	return textbook.NewServer(config, t.without)
}

// session makes a session of the target, before set-up.
func (t target) session(
	config *protocol.Config, signers []crypto.Signer,
) (*textbook.Session, error) {
	server, err := t.server(config)
	if err != nil {
		return nil, err
	}
	parties, err := t.parties(config, signers)
	if err != nil {
		return nil, err
	}
	return textbook.NewSession(config, server, parties), nil
}

// carry sees a message on its way and returns what arrives in its place, nil for nothing.
// The server is party -1.
type carry func(from, to int, message []byte) []byte

// ready makes a session of the target that is set up, as far as the carrier lets it.
func (t target) ready(
	config *protocol.Config, signers []crypto.Signer, carrier carry,
) (*textbook.Session, error) {
	s, err := t.session(config, signers)
	if err != nil {
		return nil, err
	}
	s.Carry = carrier
	return s, s.SetUp()
}
