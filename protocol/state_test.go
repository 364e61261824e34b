package protocol

import (
	"bytes"
	"errors"
	"testing"

	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/masking"
)

// crashing runs rounds with a crash after every step: each client and the server
// is saved, thrown away and loaded whenever it has done anything, and all of them after
// every round.
type crashing struct {
	t      *testing.T
	config *Config
	l      *Local
	key    keyexchange.SealKey
}

// crashAll has everybody crash.
func (c *crashing) crashAll() {
	c.t.Helper()
	for party := -1; party < len(c.l.Clients); party++ {
		c.crash(party)
	}
}

// crash has one party crash, the server if it is -1.
func (c *crashing) crash(party int) {
	c.t.Helper()
	if party == -1 {
		c.crashServer()
		return
	}
	client := c.l.Clients[party]
	state, err := client.Save(&c.key)
	if err != nil {
		c.t.Fatal(err)
	}
	loaded, err := LoadClient(c.config, client.identity, nil, &c.key, state)
	if err != nil {
		c.t.Fatal(err)
	}
	if before, after := snapshot(client), snapshot(loaded); before != after {
		c.t.Fatalf("client %d comes back otherwise:\n%s\n%s", party, before, after)
	}
	if !bytes.Equal(loaded.Output(), client.Output()) {
		c.t.Fatalf("client %d does not send the same again", party)
	}
	client.Erase()
	*client = *loaded
}

func (c *crashing) crashServer() {
	c.t.Helper()
	state, err := c.l.Server.Save(&c.key)
	if err != nil {
		c.t.Fatal(err)
	}
	loaded, err := LoadServer(c.config, &c.key, state)
	if err != nil {
		c.t.Fatal(err)
	}
	if before, after := snapshot(c.l.Server), snapshot(loaded); before != after {
		c.t.Fatalf("the server comes back otherwise:\n%s\n%s", before, after)
	}
	*c.l.Server = *loaded
}

// A crash of everybody at every step changes nothing, in every kind of session,
// with parties that drop out.
func TestCrashAtEveryStep(t *testing.T) {
	const n = 6
	signers, roster := parties(t, n)
	for name, config := range map[string]*Config{
		"no recovery": {},
		"complete":    {Recovery: &Recovery{Threshold: 3}},
		"sparse":      {Recovery: &Recovery{Adversary: CuriousServer, Degree: 4, Threshold: 2}},
		"scheduled":   {Recovery: &Recovery{Adversary: CuriousServer, Threshold: 2}, PerRound: 5},
	} {
		t.Run(name, func(t *testing.T) {
			config.Roster, config.Layout = roster,
				masking.Layout{{Length: 3, Bits: 20}, {Length: 1, Bits: 64}}
			server, err := NewServer(config)
			if err != nil {
				t.Fatal(err)
			}
			l := &Local{Carrier[*Server, *Client]{Config: config, Server: server}}
			c := &crashing{t: t, config: config, l: l, key: keyexchange.SealKey{1}}
			for _, signer := range signers {
				client, err := NewClient(config, signer, nil)
				if err != nil {
					t.Fatal(err)
				}
				c.l.Clients = append(c.l.Clients, client)
			}
			c.crashAll()
			for _, client := range c.l.Clients {
				if err := deliver(server, client.Announce()); err != nil {
					t.Fatal(err)
				}
			}
			in, _ := inputs(1, config.Layout, n)
			absent := -2
			c.l.Carry = func(from, to int, message []byte) []byte {
				if from == absent || to == absent {
					return nil
				}
				return message
			}
			// Local calls Work around every step of every party.
			c.l.Work = func(party int) func() { return func() { c.crash(party) } }
			for _, next := range []func() ([]Envelope, error){server.Keys, server.Members} {
				if err := c.l.Step(next); err != nil {
					t.Fatal(err)
				}
			}
			for round := range 4 {
				absent = -2
				if config.Recovery != nil && round == 1 {
					absent = 2
				}
				sum, err := c.l.Round([]byte{byte(round)}, in)
				if err != nil {
					t.Fatal(err)
				}
				if !equal(sum, sumOf(config.Layout, in, server.Included())) {
					t.Fatalf("round %d: wrong sum of %v", round, server.Included())
				}
				c.crashAll()
			}
		})
	}
}

func TestStateErrors(t *testing.T) {
	l, config := local(t, 3)
	key, other := keyexchange.SealKey{1}, keyexchange.SealKey{2}
	client, err := l.Clients[0].Save(&key)
	if err != nil {
		t.Fatal(err)
	}
	server, err := l.Server.Save(&key)
	if err != nil {
		t.Fatal(err)
	}
	changed := *config
	changed.Label = "other"
	identity := l.Clients[0].identity
	for name, load := range map[string]func() error{
		"other key": func() error {
			_, err := LoadClient(config, identity, nil, &other, client)
			return err
		},
		"other config": func() error {
			_, err := LoadClient(&changed, identity, nil, &key, client)
			return err
		},
		"other party": func() error {
			_, err := LoadClient(config, l.Clients[1].identity, nil, &key, client)
			return err
		},
		"server as one": func() error {
			_, err := LoadClient(config, identity, nil, &key, server)
			return err
		},
		"cut short": func() error {
			_, err := LoadClient(config, identity, nil, &key, client[:len(client)-1])
			return err
		},
		"nothing": func() error {
			_, err := LoadClient(config, identity, nil, &key, nil)
			return err
		},
		"client as one": func() error { _, err := LoadServer(config, &key, client); return err },
		"server's key":  func() error { _, err := LoadServer(config, &other, server); return err },
		"its config":    func() error { _, err := LoadServer(&changed, &key, server); return err },
		"flipped bit": func() error {
			_, err := LoadServer(config, &key,
				append(bytes.Clone(server[:len(server)-1]), server[len(server)-1]^1))
			return err
		},
	} {
		if err := load(); !errors.Is(err, ErrState) {
			t.Errorf("%s: got %v, want ErrState", name, err)
		}
	}
	// A state of another shape, such as another version's, opens if it is sealed
	// alike, and is refused all the same.
	for name, shape := range map[string]any{"empty": &struct{ Stage uint8 }{2},
		"other types": &struct{ Session int }{1},
		"no parties":  &struct{ Announcements [][]byte }{[][]byte{{7}, nil, nil}}} {
		sealed, err := sealGob(nil, &key, stateData(l.Clients[0].config, wire.ServerIndex), shape)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := LoadServer(config, &key, sealed); !errors.Is(err, ErrState) {
			t.Errorf("server state of another shape (%s): got %v, want ErrState", name, err)
		}
		if sealed, err = sealGob(nil, &key, stateData(l.Clients[0].config, 0), shape); err != nil {
			t.Fatal(err)
		}
		if _, err := LoadClient(config, identity, nil, &key, sealed); !errors.Is(err, ErrState) {
			t.Errorf("client state of another shape (%s): got %v, want ErrState", name, err)
		}
	}
	// What is saved does not show the keys.
	for _, chain := range l.Clients[0].chains {
		secret, err := chain.AppendBinary(nil)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(client, secret[8:]) {
			t.Error("a chain key stands in the saved state")
		}
	}
}

// The keys that end a classical set-up are one message for all, and one in the state.
func TestStateHasKeysOnce(t *testing.T) {
	signers, roster := parties(t, 60)
	config := testConfig(roster)
	config.Classical = true
	server := keysOut(t, config, signers)
	key := keyexchange.SealKey{7}
	state, err := server.Save(&key)
	if err != nil {
		t.Fatal(err)
	}
	message := server.Pending(7)[0]
	if most := 5 * len(message); len(state) > most {
		t.Errorf("a state of %d bytes, want at most %d", len(state), most)
	}
	loaded, err := LoadServer(config, &key, state)
	if err != nil {
		t.Fatal(err)
	}
	for i := range signers {
		if p := loaded.Pending(i); len(p) != 1 || !bytes.Equal(p[0], message) {
			t.Errorf("party %d would not be sent the keys", i)
		}
	}
}
