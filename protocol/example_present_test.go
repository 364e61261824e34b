package protocol_test

import (
	"crypto"
	"fmt"

	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/protocol"
)

// oneRound is a session of one round among those of the roster that are there: the
// others do not hear of it. A real server waits for messages where this one calls.
func oneRound(
	config *protocol.Config, identities []crypto.Signer, inputs map[int]uint64,
) ([][]uint64, []int, error) {
	server, err := protocol.NewServer(config)
	if err != nil {
		return nil, nil, err
	}
	clients := make([]*protocol.Client, len(identities))
	session := protocol.Carrier[*protocol.Server, *protocol.Client]{Config: config, Server: server,
		Clients: clients}
	for i := range identities {
		if _, there := inputs[i]; !there {
			continue
		}
		if clients[i], err = protocol.NewClient(config, identities[i], nil); err != nil {
			return nil, nil, err
		}
		if err := server.Receive(i, clients[i].Announce()); err != nil {
			return nil, nil, err
		}
	}
	begin := func() ([]protocol.Envelope, error) { return server.Begin(nil) }
	for _, next := range []func() ([]protocol.Envelope, error){server.Keys, server.Members, begin} {
		if err := session.Step(next); err != nil {
			return nil, nil, err
		}
	}
	for _, i := range server.Enrolled() {
		message, err := clients[i].Submit(nil, []uint64{inputs[i]})
		if err != nil {
			return nil, nil, err
		}
		if err := server.Receive(i, message); err != nil {
			return nil, nil, err
		}
	}
	for _, next := range []func() ([]protocol.Envelope, error){server.Survivors, server.Certificate} {
		if err := session.Step(next); err != nil {
			return nil, nil, err
		}
	}
	sum, err := server.Sum()
	return sum, server.Included(), err
}

// Seven are on the roster, and who is online when a sum is wanted changes. Each sum is a
// session of its own among those who are there, five or more, against a cheating server
// with one of them. docs/rounds-among-those-present.md has what it costs.
func Example_present() {
	identities, roster := roster("ana", "ben", "eva", "ida", "leo", "tom", "zoe")
	config := &protocol.Config{
		Label:      "survey",
		Roster:     roster,
		MinMembers: 5,
		Colluders:  1,
		Layout:     masking.Layout{{Length: 1, Bits: 16}},
		Recovery:   &protocol.Recovery{},
	}
	for number, inputs := range []map[int]uint64{
		{0: 10, 2: 20, 3: 30, 5: 40, 6: 50},
		{1: 1, 2: 2, 3: 3, 4: 4, 5: 5, 6: 6},
		{0: 10, 1: 10, 2: 10},
	} {
		config.Number = uint64(number)
		sum, included, err := oneRound(config, identities, inputs)
		fmt.Println(sum, included, err)
	}
	// Output:
	// [[150]] [0 2 3 5 6] <nil>
	// [[21]] [1 2 3 4 5 6] <nil>
	// [] [] protocol: too few parties: 3 parties announced keys, a session needs 5; missing: ida, leo, tom, zoe
}

// In one session of all, rounds are held among whoever is there: one round trip more
// than a round of all, and no exchange of keys.
func ExampleServer_Gather() {
	identities, roster := roster("ana", "ben", "eva", "ida", "leo", "tom", "zoe")
	session, err := protocol.NewLocal(&protocol.Config{
		Roster:     roster,
		MinMembers: 4,
		Layout:     masking.Layout{{Length: 1, Bits: 16}},
		Recovery:   &protocol.Recovery{},
	}, identities, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, present := range [][]int{{0, 2, 4, 6}, {1, 2, 3, 5, 6}} {
		gather := func() ([]protocol.Envelope, error) { return session.Server.Gather(present) }
		if err := session.Step(gather); err != nil {
			fmt.Println(err)
			return
		}
		inputs := make([][][]uint64, roster.Len())
		for _, i := range present {
			inputs[i] = [][]uint64{{uint64(100 + i)}}
		}
		sum, err := session.Round(nil, inputs)
		fmt.Println(sum, session.Server.Included(), err)
	}
	// Output:
	// [[412]] [0 2 4 6] <nil>
	// [[517]] [1 2 3 5 6] <nil>
}
