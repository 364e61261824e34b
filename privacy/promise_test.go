package privacy

import (
	"crypto/ed25519"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/oneshot"
	"github.com/hushsum/hushsum/protocol"
)

// listOf makes a list of n identities. Lists of other lengths have none of them.
func listOf(t *testing.T, n int) *keyexchange.Roster {
	t.Helper()
	members := make([]keyexchange.Entry, n)
	for i := range members {
		seed := make([]byte, ed25519.SeedSize)
		binary.BigEndian.PutUint64(seed, uint64(i))
		binary.BigEndian.PutUint64(seed[8:], uint64(n))
		key, _ := ed25519.NewKeyFromSeed(seed).Public().(ed25519.PublicKey)
		members[i] = keyexchange.Entry{Name: fmt.Sprint(i), Key: key}
	}
	roster, err := keyexchange.NewRoster(members)
	if err != nil {
		t.Fatal(err)
	}
	return roster
}

// A promise has the numbers that its session runs with, and a session that promises too little has
// none.
func TestOfSession(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*protocol.Config)
		want   Promise
		field  string
	}{
		"all":     {func(*protocol.Config) {}, Promise{parties: 100, shares: 100, honest: 80}, ""},
		"a round": {func(c *protocol.Config) { c.PerRound = 20 }, Promise{parties: 20, shares: 20, honest: 20}, ""},
		"survivors": {func(c *protocol.Config) {
			c.Colluders, c.Recovery = 3, &protocol.Recovery{MinSurvivors: 70}
		}, Promise{parties: 100, shares: 100, honest: 67, colluders: 3}, ""},
		"sparse": {func(c *protocol.Config) {
			c.Recovery = &protocol.Recovery{Adversary: protocol.CuriousServer, Degree: 18, Threshold: 2,
				MinSurvivors: 80}
		}, Promise{parties: 100, shares: 100, honest: 80}, ""},
		"too sparse": {func(c *protocol.Config) {
			c.Recovery = &protocol.Recovery{Adversary: protocol.CuriousServer, Degree: 16, Threshold: 2,
				MinSurvivors: 80}
		}, Promise{}, "Promise.Failure"},
		"sparse and semi-malicious": {func(c *protocol.Config) {
			c.Recovery = &protocol.Recovery{Adversary: protocol.SemiMaliciousServer, Degree: 60,
				MinSurvivors: 80}
		}, Promise{}, "Promise.Adversary"},
		"not valid": {func(c *protocol.Config) { c.Colluders = 99 }, Promise{}, "Promise"},
	} {
		config := &protocol.Config{Roster: listOf(t, 100), MinMembers: 80,
			Layout: masking.Layout{{Length: 1, Bits: 1}}}
		c.change(config)
		got, err := OfSession(config)
		if runs, _ := config.Promise(); c.field == "" {
			c.want.failure, c.want.server = runs.Failure, accounting.CheatingServer
			if name == "sparse" {
				c.want.server, c.want.sparse = accounting.CuriousServer, true
			}
			if (c.want.failure > 0) != (name == "sparse") {
				t.Errorf("%s fails with probability %v", name, c.want.failure)
			}
		}
		var wrong *ConfigError
		if got != c.want || (err == nil) != (c.field == "") ||
			err != nil && (!errors.As(err, &wrong) || wrong.Field != c.field) {
			t.Errorf("%s: %+v, %v, want %+v", name, got, err, c.want)
		}
	}
}

// One-message sums have the noise of their parties or, if members deal it, of all members but twice
// those that may be faulty.
func TestOfOneshot(t *testing.T) {
	list := accounting.Committee{List: listOf(t, 13).Digest(), Members: 13, InLeague: 3}
	for name, c := range map[string]struct {
		terms oneshot.Terms
		want  Promise
	}{
		"parties": {oneshot.Terms{MinSurvivors: 15, Colluders: 2, Faults: 3},
			Promise{parties: 20, shares: 20, honest: 13, colluders: 2, server: accounting.CheatingServer,
				committee: list}},
		"members": {oneshot.Terms{MinSurvivors: 15, Colluders: 2, Faults: 3, CommitteeNoise: true},
			Promise{parties: 20, shares: 13, honest: 7, colluders: 3, members: true,
				server: accounting.CheatingServer, committee: list}},
		"too many faults":   {oneshot.Terms{MinSurvivors: 15, Faults: 5}, Promise{}},
		"no faults":         {oneshot.Terms{MinSurvivors: 15}, Promise{}},
		"too few survive":   {oneshot.Terms{MinSurvivors: 15, Colluders: 14, Faults: 3}, Promise{}},
		"more than parties": {oneshot.Terms{MinSurvivors: 21, Faults: 3}, Promise{}},
	} {
		got, err := OfOneshot(&oneshot.Config{Roster: listOf(t, 20), Committee: listOf(t, 13),
			Terms: c.terms})
		if got != c.want || (err == nil) != (c.want != Promise{}) || err != nil &&
			(!errors.Is(err, oneshot.ErrConfig) || !errors.Is(err, ErrConfig)) {
			t.Errorf("%s: %+v, %v, want %+v", name, got, err, c.want)
		}
	}
}

// An ε is about what the sums promise: whoever may cheat in them, and whom they rest on.
func TestPromiseStates(t *testing.T) {
	list := accounting.Committee{List: [32]byte{0x3f, 0xc1}, Members: 13, InLeague: 3}
	for want, p := range map[string]Promise{
		"each party, against a server that cheats with any 2 parties": {
			server: accounting.CheatingServer, colluders: 2},
		"each party, against a server that is curious with any 1 party; assumes graph": {
			server: accounting.CuriousServer, colluders: 1, sparse: true},
		"each party, against a server that cheats with any 2 parties and up to 3 of the 13 members of " +
			"committee 3fc1…": {server: accounting.CheatingServer, colluders: 2, committee: list},
		"each party, against a server that cheats with any number of parties and up to 3 of the 13 " +
			"members of committee 3fc1…": {server: accounting.CheatingServer, committee: list,
			members: true},
		accounting.Calculated(accounting.PartyUnit).String(): Assumed(3, 2),
	} {
		if got := p.Statement(accounting.PartyUnit).String(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	other := Promise{committee: list}
	other.committee.List[0]++
	if p := (Promise{committee: list}); !p.Serves(other) || p.Serves(Promise{}) {
		t.Error("noise serves other sums, or not those of another list")
	}
}
