package protocol_test

import (
	"crypto"
	"crypto/ed25519"
	"fmt"

	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/protocol"
)

// Conn is whatever carries messages: a WebSocket, gRPC, a queue. Here, channels.
type Conn struct{ up, down chan []byte }

// takePart is all that a party does.
func takePart(client *protocol.Client, conn Conn, input []uint64) error {
	conn.up <- client.Announce()
	for message := range conn.down {
		answer, err := client.Receive(message)
		if err != nil {
			return err
		}
		if _, due := client.Due(); due {
			if answer, err = client.Submit(nil, input); err != nil {
				return err
			}
		}
		if answer != nil {
			conn.up <- answer
		}
	}
	return nil
}

// serve is all that the server does, for one round.
func serve(server *protocol.Server, conns []Conn) ([][]uint64, error) {
	for _, step := range []func() ([]protocol.Envelope, error){
		server.Keys,
		func() ([]protocol.Envelope, error) { return server.Begin(nil) },
	} {
		for len(server.Missing()) > 0 { // or until a deadline
			for _, conn := range conns {
				if err := server.Receive(<-conn.up); err != nil {
					return nil, err
				}
			}
		}
		envelopes, err := step()
		if err != nil {
			return nil, err
		}
		for _, e := range envelopes {
			conns[e.To].down <- e.Message
		}
	}
	for _, conn := range conns {
		if err := server.Receive(<-conn.up); err != nil {
			return nil, err
		}
	}
	return server.Sum()
}

// Three parties and a server, each in a goroutine of its own, learn a sum.
func Example() {
	// Long-term identities; the roster is known to all before the session.
	var members []keyexchange.Member
	var identities []crypto.Signer
	for _, name := range []string{"ana", "ben", "eva"} {
		key, _ := keyexchange.GenerateIdentity(nil)
		identities = append(identities, key)
		members = append(members, keyexchange.Member{Name: name, Key: key.Public().(ed25519.PublicKey)})
	}
	roster, err := keyexchange.NewRoster(members)
	if err != nil {
		fmt.Println(err)
		return
	}
	config := &protocol.Config{Label: "example", Roster: roster, Layout: masking.Layout{{Length: 2, Bits: 16}}}

	server, _ := protocol.NewServer(config)
	conns := make([]Conn, roster.Len())
	for i, input := range [][]uint64{{1, 10}, {2, 20}, {3, 30}} {
		conns[i] = Conn{make(chan []byte), make(chan []byte)}
		client, _ := protocol.NewClient(config, identities[i], nil)
		go takePart(client, conns[i], input)
	}
	sum, err := serve(server, conns)
	fmt.Println(sum, err)
	// Output: [[6 60]] <nil>
}

// A Local session carries its own messages: the shortest way to a sum.
func ExampleLocal() {
	var members []keyexchange.Member
	var identities []crypto.Signer
	for _, name := range []string{"ana", "ben"} {
		key, _ := keyexchange.GenerateIdentity(nil)
		identities = append(identities, key)
		members = append(members, keyexchange.Member{Name: name, Key: key.Public().(ed25519.PublicKey)})
	}
	roster, _ := keyexchange.NewRoster(members)
	config := &protocol.Config{Roster: roster, Layout: masking.Layout{{Length: 1, Bits: 8}}}
	session, _ := protocol.NewLocal(config, identities, nil)
	fmt.Println(session.Round(nil, [][][]uint64{{{40}}, {{2}}}))
	_, err := session.Round(nil, [][][]uint64{{{40}}, nil})
	fmt.Println(err)
	// Output:
	// [[42]] <nil>
	// protocol: messages are missing: round 2 is lost without ben
}
