package protocol

import (
	"bytes"
	"crypto"
	"errors"
	"slices"
	"testing"

	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/masking"
)

// Keys made one by one are those that Keys makes all at once.
func TestEndAnnouncements(t *testing.T) {
	for _, classical := range []bool{false, true} {
		signers, roster := parties(t, 5)
		config := &Config{Roster: roster, Layout: masking.Layout{{Length: 2, Bits: 16}},
			MinMembers: 4, Classical: classical}
		clients := make([]*Client, len(signers))
		server, err := NewServer(config)
		if err != nil {
			t.Fatal(err)
		}
		for i, signer := range signers {
			if clients[i], err = NewClient(config, signer, nil); err != nil {
				t.Fatal(err)
			}
			if i == 3 {
				if err := server.endAnnouncements(); !errors.Is(err, ErrTooFew) {
					t.Fatalf("with three of four: got %v, want ErrTooFew", err)
				}
			}
			if i == 4 {
				continue // it stays out
			}
			if err := server.Receive(i, clients[i].Announce()); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			if err := server.endAnnouncements(); err != nil {
				t.Fatal(err)
			}
		}
		envelopes, err := server.Keys()
		if err != nil || len(envelopes) != 4 {
			t.Fatalf("classical %v: %d envelopes, %v", classical, len(envelopes), err)
		}
		for _, e := range envelopes {
			pending := server.Pending(e.To)
			if len(pending) != 1 || !bytes.Equal(pending[0], e.Message) {
				t.Errorf("classical %v: party %d is sent something else", classical, e.To)
			}
			answer, err := clients[e.To].Receive(e.Message)
			if err != nil {
				t.Fatal(err)
			}
			if answer == nil {
				continue
			}
			if err := server.Receive(e.To, answer); err != nil {
				t.Fatal(err)
			}
		}
		if got := server.Pending(4); got != nil {
			t.Errorf("classical %v: who did not announce is sent %d messages", classical, len(got))
		}
		if classical {
			continue
		}
		if _, err := server.Members(); err != nil {
			t.Fatal(err)
		}
		if err := server.endAnnouncements(); !errors.Is(err, ErrPhase) {
			t.Errorf("after Members: got %v, want ErrPhase", err)
		}
	}
}

// keysOut is a server that all parties have announced their keys to, and that has ended that.
func keysOut(t *testing.T, config *Config, signers []crypto.Signer) *Server {
	t.Helper()
	server, err := NewServer(config)
	if err != nil {
		t.Fatal(err)
	}
	for i, signer := range signers {
		if pending := server.Pending(i); pending != nil {
			t.Errorf("party %d is sent %d messages before keys are out", i, len(pending))
		}
		client, err := NewClient(config, signer, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := server.Receive(i, client.Announce()); err != nil {
			t.Fatal(err)
		}
	}
	if err := server.EndStep(); err != nil {
		t.Fatal(err)
	}
	return server
}

// What hybrid keys begin with is in memory once, and is followed by what makes the message
// that Pending returns.
func TestPendingParts(t *testing.T) {
	signers, roster := parties(t, 6)
	config := testConfig(roster)
	server := keysOut(t, config, signers)
	var first []byte
	for i := range signers {
		for shared, own := range server.PendingParts(i) {
			if i == 0 {
				first = shared
			}
			if len(shared) < 6*128 || &shared[0] != &first[0] {
				t.Errorf("party %d is sent %d bytes of its own memory", i, len(shared))
			}
			if len(own) != (5-i)*keyexchange.EncapsulationKeySize {
				t.Errorf("party %d has %d bytes of its own", i, len(own))
			}
			whole := server.Pending(i)
			if len(whole) != 1 || !bytes.Equal(whole[0], slices.Concat(shared, own)) {
				t.Errorf("party %d: the parts are not the message", i)
			}
		}
	}
	if first == nil {
		t.Error("nothing is pending")
	}
	for _, i := range []int{-1, 6} {
		if server.Awaits(i) || len(server.Pending(i)) > 0 {
			t.Errorf("there is no party %d, and it is waited for", i)
		}
	}
}

// A round number is given up between rounds only: not during set-up, nor with a round open.
func TestSkipIsBetweenRounds(t *testing.T) {
	signers, roster := parties(t, 4)
	config := testConfig(roster)
	config.Recovery = &Recovery{}
	server, err := NewServer(config)
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Skip(); !errors.Is(err, ErrPhase) || server.Round() != 0 {
		t.Errorf("during set-up: %v, round %d", err, server.Round())
	}
	l, err := NewLocal(config, signers, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Server.Skip(); err != nil || l.Server.Round() != 1 {
		t.Fatalf("between rounds: %v, round %d", err, l.Server.Round())
	}
	if err := l.Step(l.Server.Invite); err != nil {
		t.Fatal(err)
	}
	if err := l.Begin(nil); err != nil {
		t.Fatal(err)
	}
	if err := l.Server.Skip(); !errors.Is(err, ErrPhase) || l.Server.Round() != 2 {
		t.Errorf("in a round: %v, round %d", err, l.Server.Round())
	}
}
