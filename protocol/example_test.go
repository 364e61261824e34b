package protocol_test

import (
	"crypto"
	"crypto/ed25519"
	"fmt"

	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/protocol"
)

// takePart is all that a party does. send and receive are any transport's, which
// authenticates the parties to the server; send passes over nil.
func takePart(
	client *protocol.Client, input []uint64, send func([]byte), receive func() []byte,
) error {
	answer, err := client.Announce(), error(nil)
	for err == nil {
		send(answer)
		answer, err = client.Receive(receive())
		if _, due := client.Due(); due && err == nil {
			answer, err = client.Submit(nil, input)
		}
	}
	return err
}

// serve is all that the server does for one round. What Receive refuses changes
// nothing; a deadline may end any of the waits.
func serve(
	server *protocol.Server,
	send func(to int, message []byte), receive func() (from int, message []byte),
) ([][]uint64, error) {
	begin := func() ([]protocol.Envelope, error) { return server.Begin(nil) }
	steps := []func() ([]protocol.Envelope, error){
		server.Keys, server.Members, begin, server.Survivors, server.Certificate,
	}
	for _, next := range steps {
		for len(server.Missing()) > 0 {
			server.Receive(receive())
		}
		envelopes, err := next()
		if err != nil {
			return nil, err
		}
		for _, e := range envelopes {
			send(e.To, e.Message)
		}
	}
	for len(server.Missing()) > 0 {
		server.Receive(receive())
	}
	return server.Sum()
}

// roster returns identities for the given names, and their roster. In earnest
// each party makes its own identity, and the roster reaches all of them over a channel
// that the server does not control.
func roster(names ...string) ([]crypto.Signer, *keyexchange.Roster) {
	var identities []crypto.Signer
	var members []keyexchange.Entry
	for _, name := range names {
		key, _ := keyexchange.GenerateIdentity(nil)
		identities = append(identities, key)
		public := key.Public().(ed25519.PublicKey)
		members = append(members, keyexchange.Entry{Name: name, Key: public})
	}
	roster, err := keyexchange.NewRoster(members)
	if err != nil {
		panic(err)
	}
	return identities, roster
}

// Five parties and a server, each in a goroutine of its own, learn a sum over
// channels.
func Example() {
	identities, roster := roster("ana", "ben", "eva", "tom", "zoe")
	config := &protocol.Config{
		Label:    "census 2026-11-20",
		Roster:   roster,
		Layout:   masking.Layout{{Length: 2, Bits: 16}},
		Recovery: &protocol.Recovery{},
	}
	server, err := protocol.NewServer(config)
	if err != nil {
		fmt.Println(err)
		return
	}
	type post struct {
		from    int
		message []byte
	}
	up := make(chan post)
	down := make([]chan []byte, roster.Len())
	for i, input := range [][]uint64{{1, 10}, {2, 20}, {3, 30}, {4, 40}, {5, 50}} {
		down[i] = make(chan []byte)
		client, err := protocol.NewClient(config, identities[i], nil)
		if err != nil {
			fmt.Println(err)
			return
		}
		send := func(m []byte) {
			if m != nil {
				up <- post{i, m}
			}
		}
		go takePart(client, input, send, func() []byte { return <-down[i] })
	}
	receive := func() (int, []byte) {
		p := <-up
		return p.from, p.message
	}
	sum, err := serve(server, func(to int, m []byte) { down[to] <- m }, receive)
	fmt.Println(sum, err)
	// Output: [[15 150]] <nil>
}

// A Local session carries its own messages: the shortest way to a sum. Here one
// of four parties drops out, and comes back for the next round.
func ExampleLocal() {
	identities, roster := roster("ana", "ben", "eva", "tom")
	session, err := protocol.NewLocal(&protocol.Config{
		Roster:   roster,
		Layout:   masking.Layout{{Length: 1, Bits: 8}},
		Recovery: &protocol.Recovery{Threshold: 2},
	}, identities, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	inputs := [][][]uint64{{{1}}, {{2}}, {{3}}, nil}
	sum, err := session.Round(nil, inputs)
	fmt.Println(sum, err, session.Server.Included())
	inputs[3] = [][]uint64{{4}}
	sum, err = session.Round(nil, inputs)
	fmt.Println(sum, err, session.Server.Included())
	// Output:
	// [[6]] <nil> [0 1 2]
	// [[10]] <nil> [0 1 2 3]
}

// Without Recovery a session is the thesis's: a party that does not submit costs
// the round.
func ExampleServer_Sum() {
	identities, roster := roster("ana", "ben")
	config := &protocol.Config{Roster: roster, Layout: masking.Layout{{Length: 1, Bits: 8}}}
	session, err := protocol.NewLocal(config, identities, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(session.Round(nil, [][][]uint64{{{40}}, {{2}}}))
	fmt.Println(session.Round(nil, [][][]uint64{{{40}}, nil}))
	// Output:
	// [[42]] <nil>
	// [] protocol: messages are missing: round 2 is lost without ben
}
