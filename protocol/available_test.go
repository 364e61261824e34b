package protocol

import (
	"crypto"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hushsum/hushsum/internal/suite"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/masking"
)

// online is how many of the roster are there in each round, colluding how many of them
// collude with a cheating server.
const online, colluding = 30, 3

func onlineConfig(roster *keyexchange.Roster) *Config {
	return &Config{Label: "available", Roster: roster, MinMembers: online, Colluders: colluding,
		Layout: masking.Layout{{Length: 20, Bits: 24}}, Recovery: &Recovery{}}
}

// leaves draws when each party leaves a round of those who are there, at most this many
// that the round can do without.
func leaves(rng *rand.Rand, n int, there []int, most int) []drop {
	pattern := make([]drop, n)
	for _, i := range rng.Perm(len(there))[:rng.IntN(most+1)] {
		pattern[there[i]] = 1 + drop(rng.IntN(int(drops)-1))
	}
	return pattern
}

// Of 50 on the roster (with -long of 100) a random 30 are there in each round, some of
// whom drop out of it, against a cheating server with 3 colluders: every round gives the
// exact sum of those who stayed, by sessions of one round, and by rounds among those who
// are there in one session of all. With -longest both are held 200 times.
func TestAvailable(t *testing.T) {
	n := suite.Size(50, 50, 100, 100)
	rounds := suite.Size(4, 4, 12, 200)
	signers, roster := parties(t, n)
	t.Run("one-round sessions", func(t *testing.T) {
		rng := rand.New(rand.NewPCG(1, 0))
		config := onlineConfig(roster)
		for round := range rounds {
			config.Number = uint64(round)
			there := rng.Perm(n)[:online]
			slices.Sort(there)
			c, err := sessionAmong(config, signers, there)
			if err != nil {
				t.Fatal(err)
			}
			availableRound(t, rng, c, there)
		}
		t.Logf("%d of %d rounds gave the exact sum of those who stayed", rounds, rounds)
	})
	t.Run("Gather", func(t *testing.T) {
		rng := rand.New(rand.NewPCG(2, 0))
		config := onlineConfig(roster)
		c, err := sessionAmong(config, signers, rng.Perm(n))
		if err != nil {
			t.Fatal(err)
		}
		for range rounds {
			there := rng.Perm(n)[:online]
			slices.Sort(there)
			// Who is not there gets nothing.
			if err := c.Step(func() ([]Envelope, error) { return c.Server.Gather(there) }); err != nil {
				t.Fatal(err)
			}
			availableRound(t, rng, c, there)
		}
		t.Logf("%d of %d rounds gave the exact sum of those who stayed", rounds, rounds)
	})
}

// sessionAmong sets a session up among those of the roster that are there.
func sessionAmong(
	config *Config, signers []crypto.Signer, there []int,
) (*Carrier[*Server, *Client], error) {
	server, err := NewServer(config)
	if err != nil {
		return nil, err
	}
	c := &Carrier[*Server, *Client]{Config: config, Server: server,
		Clients: make([]*Client, len(signers))}
	for _, i := range there {
		if c.Clients[i], err = NewClient(config, signers[i], nil); err != nil {
			return nil, err
		}
		if err := c.ToServer(i, c.Clients[i].Announce()); err != nil {
			return nil, err
		}
	}
	if err := c.Step(server.Keys); err != nil {
		return nil, err
	}
	return c, c.Step(server.Members)
}

// availableRound runs a round among those who are there, with random drop-outs.
func availableRound(t *testing.T, rng *rand.Rand, c *Carrier[*Server, *Client], there []int) {
	t.Helper()
	n := len(c.Clients)
	// 9 may be missing in the sum, 10 as holders of each secret.
	pattern := leaves(rng, n, there, online-c.Server.terms.minSurvivors)
	in, _ := inputs(rng.Uint64(), c.Config.Layout, n)
	c.Carry = dropping(pattern, rng.IntN(2) == 0)
	defer func() { c.Carry = nil }()
	if err := c.Step(func() ([]Envelope, error) { return c.Server.Begin(nil) }); err != nil {
		t.Fatal(err)
	}
	for _, i := range there {
		if _, due := c.Clients[i].Due(); !due {
			continue
		}
		message, err := c.Clients[i].Submit(nil, in[i]...)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.ToServer(i, message); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Certify(); err != nil {
		t.Fatal(err)
	}
	sum, err := c.Server.Sum()
	if err != nil {
		t.Fatal(err)
	}
	var stayed []int
	for _, i := range there {
		if pattern[i] != beforeMasked {
			stayed = append(stayed, i)
		}
	}
	if !slices.Equal(c.Server.Included(), stayed) || !equal(sum, sumOf(c.Config.Layout, in, stayed)) {
		t.Fatalf("the sum is of %v, want the exact sum of %v", c.Server.Included(), stayed)
	}
}

// Set-up takes whoever comes, from MinMembers on, and says who is missing below that.
func TestSetUpAmongSome(t *testing.T) {
	const n = 7
	signers, roster := parties(t, n)
	for _, classical := range []bool{false, true} {
		t.Run(fmt.Sprint("classical=", classical), func(t *testing.T) {
			config := testConfig(roster)
			config.MinMembers, config.Classical, config.Recovery = 4, classical, &Recovery{}
			server, err := NewServer(config)
			if err != nil {
				t.Fatal(err)
			}
			clients := make([]*Client, n)
			for i := range clients {
				if clients[i], err = NewClient(config, signers[i], nil); err != nil {
					t.Fatal(err)
				}
			}
			announce := func(i int) error { return server.Receive(i, clients[i].Announce()) }
			for _, i := range []int{1, 4, 6} {
				if err := announce(i); err != nil {
					t.Fatal(err)
				}
			}
			before := snapshot(server)
			var missing *MissingError
			if _, err := server.Keys(); !errors.Is(err, ErrTooFew) || !errors.As(err, &missing) ||
				!slices.Equal(missing.Parties, []int{0, 2, 3, 5}) || missing.Need != 4 ||
				snapshot(server) != before {
				t.Fatalf("three of seven: %v", err)
			}
			for _, i := range []int{2, 5} {
				if err := announce(i); err != nil {
					t.Fatal(err)
				}
			}
			keys, err := server.Keys()
			if err != nil || len(keys) != 5 {
				t.Fatalf("five of seven: %v", err)
			}
			if err := announce(0); !errors.Is(err, ErrStale) {
				t.Errorf("a late announcement: %v", err)
			}
			want := []int{1, 2, 4, 5, 6}
			if !classical {
				// Party 4 does not answer: the session is among four.
				for _, e := range keys {
					if e.To == 4 {
						continue
					}
					answer, err := clients[e.To].Receive(e.Message)
					if err != nil {
						t.Fatal(err)
					}
					if e.To == 6 {
						before = snapshot(server)
						if _, err := server.Members(); !errors.Is(err, ErrTooFew) || snapshot(server) != before {
							t.Errorf("three ciphertexts: %v", err)
						}
					}
					if err := server.Receive(e.To, answer); err != nil {
						t.Fatal(err)
					}
				}
				want = []int{1, 2, 5, 6}
				if keys, err = server.Members(); err != nil {
					t.Fatal(err)
				}
				again, err := server.Members()
				if err != nil || len(again) != 4 || &again[0].Message[0] != &keys[0].Message[0] {
					t.Errorf("Members again: %v", err)
				}
			}
			for _, e := range keys {
				answer, err := clients[e.To].Receive(e.Message)
				if err != nil {
					t.Fatal(err)
				}
				if err := server.Receive(e.To, answer); err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(clients[e.To].Enrolled(), want) {
					t.Errorf("party %d is in a session among %v, want %v", e.To, clients[e.To].Enrolled(), want)
				}
			}
			if !slices.Equal(server.Enrolled(), want) || len(server.Missing()) != 0 {
				t.Errorf("a session among %v, want %v; missing %v", server.Enrolled(), want, server.Missing())
			}
			if err := server.Receive(3, clients[1].Output()); !errors.Is(err, ErrSender) {
				t.Errorf("an upload in another's name: %v", err)
			}
			m := slices.Clone(clients[1].Output())
			m[45] = 3
			if err := server.Receive(3, m); !errors.Is(err, ErrMembers) {
				t.Errorf("an upload of who is not in the session: %v", err)
			}
			if _, err := server.Begin(nil); err != nil {
				t.Error(err)
			}
		})
	}
}

// What Gather refuses, and that its rounds have the numbers of those who are there.
func TestGather(t *testing.T) {
	const n = 8
	signers, roster := parties(t, n)
	config := testConfig(roster)
	config.MinMembers, config.Recovery = 4, &Recovery{}
	c, err := sessionAmong(config, signers, []int{0, 1, 2, 3, 4, 5, 6})
	if err != nil {
		t.Fatal(err)
	}
	for name, bad := range map[string]struct {
		present []int
		want    error
	}{
		"too few":            {[]int{0, 1, 2}, ErrTooFew},
		"one twice":          {[]int{0, 1, 2, 2}, ErrTooFew},
		"not in the session": {[]int{0, 1, 2, 7}, ErrMembers},
		"not on the roster":  {[]int{0, 1, 2, 8}, ErrMembers},
		"negative":           {[]int{0, 1, 2, -1}, ErrMembers},
	} {
		before := snapshot(c.Server)
		if _, err := c.Server.Gather(bad.present); !errors.Is(err, bad.want) ||
			snapshot(c.Server) != before {
			t.Errorf("%s: %v, want %v", name, err, bad.want)
		}
	}
	in, _ := inputs(1, config.Layout, n)
	for _, present := range [][]int{{0, 2, 4, 6}, {1, 2, 3, 4, 5}, {0, 1, 2, 3, 4, 5, 6},
		{6, 5, 1, 0}} {
		if err := c.Step(func() ([]Envelope, error) { return c.Server.Gather(present) }); err != nil {
			t.Fatal(err)
		}
		slices.Sort(present)
		// Two rounds: material that comes with a submission is for the same holders.
		for range 2 {
			if err := c.Step(func() ([]Envelope, error) { return c.Server.Begin(nil) }); err != nil {
				t.Fatal(err)
			}
			if _, err := c.Server.Gather(present); !errors.Is(err, ErrPhase) {
				t.Errorf("Gather in a round: %v", err)
			}
			for _, i := range present {
				if got := c.Clients[i].open.terms; got != c.Clients[i].config.terms(len(present)) {
					t.Fatalf("a round of %d has the numbers %+v", len(present), got)
				}
				message, err := c.Clients[i].Submit(nil, in[i]...)
				if err != nil {
					t.Fatal(err)
				}
				if err := c.ToServer(i, message); err != nil {
					t.Fatal(err)
				}
			}
			if err := c.Certify(); err != nil {
				t.Fatal(err)
			}
			sum, err := c.Server.Sum()
			if err != nil || !equal(sum, sumOf(config.Layout, in, present)) {
				t.Fatalf("present %v: %v", present, err)
			}
		}
	}
	for name, change := range map[string]func(*Config){
		"no recovery": func(c *Config) { c.Recovery = nil },
		"schedule":    func(c *Config) { c.PerRound = 4; c.Recovery = &Recovery{} },
		"sparse graph": func(c *Config) {
			c.MinMembers = 0
			c.Recovery = &Recovery{Adversary: CuriousServer, Degree: 4}
		},
	} {
		other := *config
		change(&other)
		l, err := NewLocal(&other, signers, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.Server.Gather([]int{0, 1, 2, 3, 4, 5, 6}); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: %v, want ErrConfig", name, err)
		}
	}
}

// A Masked of the wrong length is refused before the schedule is searched for the
// sender's next round, and what was searched is kept.
func TestScheduleIsNotSearched(t *testing.T) {
	const n = 60
	signers, roster := parties(t, n)
	config := testConfig(roster)
	config.PerRound, config.Classical, config.Recovery = 4, true,
		&Recovery{Adversary: CuriousServer, Threshold: 2}
	l, err := NewLocal(config, signers, nil)
	if err != nil {
		t.Fatal(err)
	}
	for l.Server.withMaterial(l.Server.Round()+1, l.Server.topology.scheduled(l.Server.Round()+1)).
		Len() < l.Server.terms.minSurvivors {
		if err := l.Server.Skip(); err != nil {
			t.Fatal(err)
		}
		if err := l.Step(l.Server.Invite); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Step(func() ([]Envelope, error) { return l.Server.Begin(nil) }); err != nil {
		t.Fatal(err)
	}
	clear(l.Server.topology.schedule)
	party := -1
	for i := range l.Server.open.participants.All() {
		party = i
	}
	h := wire.Header{Type: wire.TypeMasked, Session: l.Server.session, Round: l.Server.Round(),
		Sender: uint32(party)}
	if err := l.Server.Receive(party, h.Append(nil)); !errors.Is(err, ErrTruncated) {
		t.Fatal(err)
	}
	if searched := len(l.Server.topology.schedule); searched != 0 {
		t.Errorf("%d rounds were searched for a message that is too short", searched)
	}
	in, _ := inputs(1, config.Layout, 1)
	message, err := l.Clients[party].Submit(nil, in[0]...)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Server.Receive(party, message); err != nil || len(l.Server.topology.schedule) == 0 {
		t.Errorf("what was searched is not kept: %v", err)
	}
}

// Once a session is set up, nothing is left of what its chains were made from.
func TestSetUpIsErased(t *testing.T) {
	signers, roster := parties(t, 4)
	config := testConfig(roster)
	server, err := NewServer(config)
	if err != nil {
		t.Fatal(err)
	}
	c := &Carrier[*Server, *Client]{Config: config, Server: server}
	for _, signer := range signers {
		client, err := NewClient(config, signer, nil)
		if err != nil {
			t.Fatal(err)
		}
		c.Clients = append(c.Clients, client)
		if err := deliver(server, client.Announce()); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Step(server.Keys); err != nil {
		t.Fatal(err)
	}
	var agreed []*keyexchange.Agreement
	for _, client := range c.Clients {
		if _, err := client.key.Public(); !errors.Is(err, keyexchange.ErrErased) {
			t.Errorf("the X25519 key is there after Keys: %v", err)
		}
		for _, a := range client.agreed {
			agreed = append(agreed, a)
		}
	}
	if err := c.Step(server.Members); err != nil {
		t.Fatal(err)
	}
	for i, a := range agreed {
		if *a != (keyexchange.Agreement{}) {
			t.Errorf("agreement %d is not erased", i)
		}
	}
	for _, client := range c.Clients {
		if _, err := client.decapsulation.Public(); !errors.Is(err, keyexchange.ErrErased) ||
			client.agreed != nil {
			t.Errorf("the decapsulation key is there after Members: %v", err)
		}
	}
	if len(agreed) != 12 {
		t.Errorf("%d agreements", len(agreed))
	}
}
