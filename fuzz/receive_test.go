package fuzz

import (
	"bytes"
	"crypto"
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"testing"

	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/protocol"
)

// session returns the configuration of a session of three, and its identities.
func session(f testing.TB) (*protocol.Config, []crypto.Signer) {
	f.Helper()
	var members []keyexchange.Member
	var signers []crypto.Signer
	for _, name := range []string{"ana", "ben", "eva"} {
		seed := sha256.Sum256([]byte(name))
		key := ed25519.NewKeyFromSeed(seed[:])
		signers = append(signers, key)
		members = append(members, keyexchange.Member{Name: name, Key: key.Public().(ed25519.PublicKey)})
	}
	roster, err := keyexchange.NewRoster(members)
	if err != nil {
		f.Fatal(err)
	}
	return &protocol.Config{Label: "fuzz", Roster: roster, Layout: masking.Layout{{Length: 3, Bits: 7}}}, signers
}

// documented lists the errors that Receive may answer with.
var documented = []error{
	protocol.ErrTruncated, protocol.ErrTrailing, protocol.ErrOversized, protocol.ErrVersion, protocol.ErrType,
	protocol.ErrEncoding, protocol.ErrSession, protocol.ErrSender, protocol.ErrDuplicate, protocol.ErrSignature,
	protocol.ErrPublicKey, protocol.ErrOwnKey, protocol.ErrReplay, protocol.ErrStale, protocol.ErrSkip,
	protocol.ErrParticipants, protocol.ErrPhase,
}

func isDocumented(err error) bool {
	for _, target := range documented {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}

// stream is a deterministic source of randomness, so that a session is the same
// in every run and a message found by fuzzing stays what it was.
func stream(name string) *bytes.Reader {
	var b []byte
	for i := range 64 {
		h := sha256.Sum256(append([]byte(name), byte(i)))
		b = append(b, h[:]...)
	}
	return bytes.NewReader(b)
}

// FuzzReceive gives one message to a client and a server in each of the states
// that a session of one round goes through. All honest messages of that session
// are seeds, so that the fuzzer starts from what is accepted.
func FuzzReceive(f *testing.F) {
	config, signers := session(f)
	// replay runs the session up to a step, and reports each message.
	replay := func(tb testing.TB, steps int, message func([]byte)) (*protocol.Server, *protocol.Client) {
		server, err := protocol.NewServer(config)
		if err != nil {
			tb.Fatal(err)
		}
		var clients []*protocol.Client
		must := func(err error) {
			if err != nil {
				tb.Fatal(err)
			}
		}
		for _, s := range signers {
			c, err := protocol.NewClient(config, s, stream("client"))
			must(err)
			clients = append(clients, c)
		}
		for step := range steps {
			switch step {
			case 0:
				for _, c := range clients {
					message(c.Announce())
					must(server.Receive(c.Announce()))
				}
			case 1, 2:
				next := func() ([]protocol.Envelope, error) { return server.Begin(nil) }
				if step == 1 {
					next = server.Keys
				}
				envelopes, err := next()
				must(err)
				for _, e := range envelopes {
					message(e.Message)
					_, err := clients[e.To].Receive(e.Message)
					must(err)
				}
			case 3:
				for i, c := range clients[:2] {
					m, err := c.Submit(nil, []uint64{1, 2, uint64(i)})
					must(err)
					message(m)
					must(server.Receive(m))
				}
			}
		}
		return server, clients[0]
	}
	for state := range uint8(5) {
		replay(f, 4, func(m []byte) { f.Add(bytes.Clone(m), state) })
	}
	f.Fuzz(func(t *testing.T, message []byte, state uint8) {
		server, client := replay(t, int(state)%5, func([]byte) {})
		if err := server.Receive(message); err != nil && !isDocumented(err) {
			t.Errorf("the server answers with an undocumented error: %v", err)
		}
		if _, err := client.Receive(message); err != nil && !isDocumented(err) {
			t.Errorf("the client answers with an undocumented error: %v", err)
		}
	})
}
