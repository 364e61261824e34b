package fuzz

import (
	"bytes"
	"crypto"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"

	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/protocol"
)

// session returns the configuration of a session of three, and its identities.
func session(testing.TB) (*protocol.Config, []crypto.Signer) {
	roster, signers := identities("ana", "ben", "eva")
	return &protocol.Config{Label: "fuzz", Roster: roster,
		Layout: masking.Layout{{Length: 3, Bits: 7}}}, signers
}

// stream is a source of randomness that is the same in every run.
func stream(name string) io.Reader { return endless(name, 0) }

// sender is the party that a message names, as an honest transport would; 0 if
// that cannot be read.
func sender(message []byte) int {
	h, _, err := wire.ParseHeader(message)
	if err != nil {
		return 0
	}
	return int(int32(h.Sender))
}

// moment is a session of three at a step, saved.
type moment struct {
	config   *protocol.Config
	signers  []crypto.Signer
	server   []byte
	clients  [][]byte
	messages [][]byte // of the whole session
}

// moments returns a session at every step: without recovery, and with it through
// a round in which nobody, and one in which the last party drops out.
var moments = sync.OnceValue(func() []*moment {
	var all []*moment
	for _, recovery := range []*protocol.Recovery{nil,
		{Adversary: protocol.CuriousServer, Threshold: 1}} {
		config, signers := session(nil)
		config.Recovery = recovery
		var here []*moment
		var messages [][]byte
		must := func(err error) {
			if err != nil {
				panic(err)
			}
		}
		server, err := protocol.NewServer(config)
		must(err)
		var clients []*protocol.Client
		for i, signer := range signers {
			c, err := protocol.NewClient(config, signer, endless("moments", i))
			must(err)
			clients = append(clients, c)
		}
		absent := -1
		toServer := func(m []byte) {
			messages = append(messages, m)
			must(server.Receive(sender(m), m))
		}
		step := func(envelopes []protocol.Envelope, err error) {
			must(err)
			for _, e := range envelopes {
				messages = append(messages, e.Message)
				if e.To == absent {
					continue
				}
				answer, err := clients[e.To].Receive(e.Message)
				must(err)
				if answer != nil {
					toServer(answer)
				}
			}
		}
		save := func() {
			m := &moment{config: config, signers: signers}
			var err error
			m.server, err = server.Save(&key)
			must(err)
			for _, c := range clients {
				state, err := c.Save(&key)
				must(err)
				m.clients = append(m.clients, state)
			}
			here = append(here, m)
		}
		save()
		for _, c := range clients {
			toServer(c.Announce())
		}
		save()
		step(server.Keys())
		save()
		step(server.Members())
		save()
		for round := range 2 {
			if recovery != nil && round == 1 {
				step(server.Invite())
				absent = 2
			}
			step(server.Begin(nil))
			save()
			for i, c := range clients {
				if i != absent {
					m, err := c.Submit(nil, []uint64{1, 2, uint64(i)})
					must(err)
					toServer(m)
				}
			}
			save()
			if recovery != nil {
				step(server.Survivors())
				save()
				step(server.Certificate())
				save()
			}
			_, err := server.Sum()
			must(err)
			save()
		}
		if recovery != nil {
			absent = -1
			step(server.Invite())
			save()
		}
		for _, m := range here {
			m.messages = messages
		}
		all = append(all, here...)
	}
	return all
})

// FuzzReceive gives one message to every party and the server in each of the
// states that a session goes through. All honest messages of that session are
// seeds, so that the fuzzer starts from what is accepted.
func FuzzReceive(f *testing.F) {
	for i, m := range moments() {
		for _, message := range m.messages {
			f.Add(message, uint8(i))
		}
	}
	f.Fuzz(func(t *testing.T, message []byte, state uint8) {
		m := moments()[int(state)%len(moments())]
		check := func(name, before, after string, err error) {
			if err != nil && !isOneOf(err, documented) {
				t.Errorf("%s answers with an undocumented error: %v", name, err)
			}
			if err != nil && before != after {
				t.Errorf("%s refuses with %v, and its state has changed", name, err)
			}
		}
		server, err := protocol.LoadServer(m.config, &key, m.server)
		if err != nil {
			t.Fatal(err)
		}
		before := fingerprint(server)
		err = server.Receive(sender(message), bytes.Clone(message))
		check("the server", before, fingerprint(server), err)
		for i := range m.clients {
			c, err := protocol.LoadClient(m.config, m.signers[i], endless("received", i), &key, m.clients[i])
			if err != nil {
				t.Fatal(err)
			}
			before := fingerprint(c)
			_, err = c.Receive(bytes.Clone(message))
			check(fmt.Sprintf("party %d", i), before, fingerprint(c), err)
		}
	})
}

// FuzzLoad loads states that were saved and then changed: byte at is altered by
// flip or, if there is a tail, it and all that follows are replaced. Nothing loads but
// what was saved, and for nobody but the party that it was saved for.
func FuzzLoad(f *testing.F) {
	for i := range moments() {
		for owner := range uint8(4) {
			f.Add(uint8(i), owner, uint16(0), uint8(0), []byte(nil))
			f.Add(uint8(i), owner, uint16(0xffff), uint8(1), []byte(nil))
			f.Add(uint8(i), owner, uint16(24), uint8(0), []byte("tail"))
		}
	}
	f.Fuzz(func(t *testing.T, moment, owner uint8, at uint16, flip uint8, tail []byte) {
		m := moments()[int(moment)%len(moments())]
		saved := append(slices.Clone(m.clients), m.server)[int(owner)%(len(m.clients)+1)]
		state := bytes.Clone(saved)
		k := min(int(at), len(state)-1)
		state[k] ^= flip
		if len(tail) > 0 {
			state = append(state[:k], tail...)
		}
		check := func(loader int, err error) {
			own := loader == int(owner)%(len(m.clients)+1) && bytes.Equal(state, saved)
			if own && err != nil {
				t.Fatalf("a saved state is refused with %v", err)
			}
			if !own && !isOneOf(err, []error{protocol.ErrState}) {
				t.Fatalf("%d loads what was not saved for it, or refuses with another error than ErrState: %v",
					loader, err)
			}
		}
		for i, signer := range m.signers {
			client, err := protocol.LoadClient(m.config, signer, nil, &key, state)
			check(i, err)
			if err != nil && client != nil {
				t.Fatal("a client comes with an error")
			}
		}
		server, err := protocol.LoadServer(m.config, &key, state)
		check(len(m.signers), err)
		if err != nil && server != nil {
			t.Fatal("a server comes with an error")
		}
		if _, err := protocol.LoadServer(m.config, &keyexchange.SealKey{9}, state); !isOneOf(err,
			[]error{protocol.ErrState}) {
			t.Fatalf("a state opens under another key: %v", err)
		}
	})
}
