package protocol

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/masking"
)

// Looking at the sizes at both ends and their neighbours is enough: wherever settle
// takes a configuration all sizes between hold, and wherever one does not it refuses.
func TestSizesBetween(t *testing.T) {
	const n = 17
	_, roster := parties(t, n)
	taken := 0
	for _, adversary := range []Adversary{CheatingServer, SemiMaliciousServer, CuriousServer} {
		for least := 2; least <= n; least++ {
			for c := range 9 {
				for _, perRound := range []int{0, 4, 9} {
					for _, degree := range []int{0, 3, 4, 6} {
						for _, threshold := range []int{0, 2, 5, 9} {
							config := &Config{Roster: roster, Layout: masking.Layout{{Length: 1, Bits: 1}},
								MinMembers: least, Colluders: c,
								PerRound: perRound, Recovery: &Recovery{Adversary: adversary, Degree: degree,
									Threshold: threshold}}
							own, err := config.settle()
							if err != nil {
								continue
							}
							taken++
							for size := least; size <= n; size++ {
								if _, err := own.termsOf(size); err != nil {
									t.Fatalf(
										"%v, MinMembers %d, c = %d, PerRound %d, degree %d, t = %d: taken, and of %d parties %v",
										adversary, least, c, perRound, degree, threshold, size, err)
								}
							}
						}
					}
				}
			}
		}
	}
	if taken < 500 {
		t.Errorf("only %d configurations were taken", taken)
	}
}

// Colluders count without recovery too, and MaxSkip is bounded by the work that it
// allows.
func TestBounds(t *testing.T) {
	_, roster := parties(t, 4)
	for name, c := range map[string]struct {
		change func(*Config)
		valid  bool
	}{
		"a colluder and the server against the other of two": {func(c *Config) { c.Colluders, c.PerRound = 1, 2 }, false},
		"nobody colludes":            {func(c *Config) { c.PerRound = 2 }, true},
		"c = N − 2":                  {func(c *Config) { c.Colluders = 2 }, true},
		"c = N − 1":                  {func(c *Config) { c.Colluders = 3 }, false},
		"c = MinMembers − 1":         {func(c *Config) { c.Colluders, c.MinMembers = 2, 3 }, false},
		"MinMembers of one":          {func(c *Config) { c.MinMembers = 1 }, false},
		"MinMembers beyond the list": {func(c *Config) { c.MinMembers = 5 }, false},
		"MaxSkip of all rounds":      {func(c *Config) { c.MaxSkip = 1<<64 - 1 }, false},
		"MaxSkip beyond the work":    {func(c *Config) { c.MaxSkip = 1<<27/3 + 1 }, false},
		"MaxSkip of the work":        {func(c *Config) { c.MaxSkip = 1 << 27 / 3 }, true},
		"a graph that is sparse for some sizes only": {func(c *Config) {
			c.MinMembers, c.Recovery = 3, &Recovery{Adversary: CuriousServer, Degree: 2}
		}, false},
		"colluders that are neighbours": {func(c *Config) {
			c.Colluders, c.Recovery = 1, &Recovery{Adversary: CuriousServer, Degree: 2, Threshold: 2,
				CorruptNeighbours: 1}
		}, true},
		"more than there are": {func(c *Config) {
			c.Recovery = &Recovery{Adversary: CuriousServer, Degree: 2, CorruptNeighbours: 1}
		}, false},
		"neighbours of a complete graph": {func(c *Config) {
			c.Colluders, c.Recovery = 1, &Recovery{Adversary: CuriousServer, CorruptNeighbours: 1}
		}, false},
		"a label that is not UTF-8": {func(c *Config) { c.Label = "\xff" }, false},
	} {
		config := testConfig(roster)
		c.change(config)
		if err := config.Validate(); (err == nil) != c.valid || err != nil && !errors.Is(err, ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// With a schedule, MaxSkip is so much that less than one draw in a million leaves a party
// out for good; a default that is not becomes so, as far as the work allows.
func TestMaxSkipWithSchedule(t *testing.T) {
	type numbers struct {
		n, perRound int
		skip        uint64
	}
	for c, want := range map[numbers]struct {
		least uint64 // 0: accepted
		skip  uint64 // then
	}{
		{6, 2, 1}:      {least: 42},
		{6, 2, 41}:     {least: 42},
		{6, 2, 42}:     {skip: 42},
		{6, 2, 0}:      {skip: 1000},
		{6, 6, 1}:      {skip: 1},
		{6, 0, 1}:      {skip: 1},
		{8, 7, 15}:     {least: 16},
		{8, 7, 16}:     {skip: 16},
		{200, 2, 0}:    {skip: 1400},
		{200, 2, 1399}: {least: 1400},
		{143, 2, 0}:    {skip: 1001},
		{142, 2, 0}:    {skip: 1000},
	} {
		_, roster := parties(t, c.n)
		config := testConfig(roster)
		config.PerRound, config.MaxSkip = c.perRound, c.skip
		own, err := config.settle()
		switch {
		case want.least == 0 && (err != nil || own.maxSkip != want.skip):
			t.Errorf("%v: %v, want MaxSkip %d", c, err, want.skip)
		case want.least > 0 && (!errors.Is(err, ErrConfig) ||
			!strings.Contains(err.Error(), fmt.Sprintf("at least %d,", want.least))):
			t.Errorf("%v: %v, want at least %d", c, err, want.least)
		}
	}
	// By chance alone, exactly.
	for n := 3; n < 60; n++ {
		for perRound := 2; perRound < n; perRound++ {
			missed := big.NewRat(int64(n-perRound), int64(n))
			chance := big.NewRat(1, 1)
			for range leastSkip(n, perRound) {
				chance.Mul(chance, missed)
			}
			if chance.Cmp(big.NewRat(1, 1_000_000)) > 0 {
				t.Fatalf("n = %d, PerRound %d: MaxSkip %d leaves out one of %v", n, perRound,
					leastSkip(n, perRound), chance.Inv(chance).FloatString(0))
			}
		}
	}
}

// Where the work that MaxSkip bounds is too much for a schedule, more parties a round are
// needed, and the error tells how many.
func TestScheduleBeyondMaxSkip(t *testing.T) {
	members := make([]keyexchange.Entry, 1<<14)
	for i := range members {
		seed := sha256.Sum256(fmt.Appendf(nil, "identity %d", i))
		members[i] = keyexchange.Entry{Name: fmt.Sprint("party-", i),
			Key: ed25519.NewKeyFromSeed(seed[:]).Public().(ed25519.PublicKey)}
	}
	roster, err := keyexchange.NewRoster(members)
	if err != nil {
		t.Fatal(err)
	}
	config := testConfig(roster) // MaxSkip is at most 8,192
	config.PerRound = 27
	if err := config.Validate(); !errors.Is(err, ErrConfig) ||
		!strings.Contains(err.Error(), "PerRound to at least 28") {
		t.Errorf("27 a round: %v", err)
	}
	config.PerRound = 28
	if err := config.Validate(); err != nil {
		t.Errorf("28 a round: %v", err)
	}
}

// Without recovery one party that is out for good costs all rounds that it is drawn for.
// With the least MaxSkip for the schedule, none is lost.
func TestScheduleLosesNoRounds(t *testing.T) {
	signers, roster := parties(t, 6)
	config := &Config{Label: "schedule", Roster: roster, Layout: masking.Layout{{Length: 1, Bits: 8}},
		PerRound: 2, MaxSkip: 1, Classical: true, Seed: [32]byte{1}}
	if config.Validate() == nil {
		t.Error("MaxSkip 1 with 2 of 6 parties a round is accepted")
	}
	config.MaxSkip = leastSkip(6, 2)
	l, err := NewLocal(config, signers, nil)
	if err != nil {
		t.Fatal(err)
	}
	in := make([][][]uint64, 6)
	for i := range in {
		in[i] = [][]uint64{{1}}
	}
	for range 300 {
		if sum, err := l.Round(nil, in); err != nil || sum[0][0] != 2 {
			t.Fatalf("round %d: %v, %v", l.Server.Round(), sum, err)
		}
	}
}

// A configuration comes back from its JSON form with the same digest, and each of its
// values is in the digest.
func TestConfigJSON(t *testing.T) {
	_, roster := parties(t, 9)
	base := Config{Label: "Zählung", Number: 1 << 60, Roster: roster, MinMembers: 7,
		Layout:    masking.Layout{{Length: 5, Bits: 7}, {Length: 1, Bits: 64}},
		Colluders: 1, Recovery: &Recovery{Adversary: CuriousServer, Threshold: 4,
			MinSurvivors: 6}, PerRound: 7, Seed: [32]byte{1}, MaxSkip: 29}
	digest, err := base.Digest()
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(base)
	if err != nil {
		t.Fatal(err)
	}
	var again Config
	if err := json.Unmarshal(b, &again); err != nil {
		t.Fatal(err)
	}
	if got, err := again.Digest(); err != nil || got != digest {
		t.Errorf("it comes back otherwise: %v", err)
	}
	_, other := parties(t, 10)
	seen := map[[32]byte]string{digest: "none"}
	for name, change := range map[string]func(*Config){
		"Label": func(c *Config) { c.Label = "x" }, "Number": func(c *Config) { c.Number = 2 },
		"Roster":     func(c *Config) { c.Roster = other },
		"MinMembers": func(c *Config) { c.MinMembers = 8 },
		"Layout":     func(c *Config) { c.Layout = c.Layout[:1] },
		"Colluders":  func(c *Config) { c.Colluders = 0 }, "PerRound": func(c *Config) { c.PerRound = 8 },
		"Seed":        func(c *Config) { c.Seed[9] = 1 },
		"MaxSkip":     func(c *Config) { c.MaxSkip = 30 },
		"Classical":   func(c *Config) { c.Classical = true },
		"no recovery": func(c *Config) { c.Recovery = nil },
		"Adversary": func(c *Config) {
			c.Recovery = &Recovery{Adversary: SemiMaliciousServer,
				Threshold: 4, MinSurvivors: 6}
		},
		"Threshold": func(c *Config) {
			c.Recovery = &Recovery{Adversary: CuriousServer, Threshold: 3,
				MinSurvivors: 6}
		},
		"MinSurvivors": func(c *Config) {
			c.Recovery = &Recovery{Adversary: CuriousServer, Threshold: 4,
				MinSurvivors: 7}
		},
	} {
		changed := base
		change(&changed)
		got, err := changed.Digest()
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if before, found := seen[got]; found {
			t.Errorf("%s and %s: the same digest", name, before)
		}
		seen[got] = name
	}
	// Any field that has a default can be left out, and is then that (SPEC.md §3.3).
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(b, &fields); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Config){
		"label":       func(c *Config) { c.Label = "" },
		"number":      func(c *Config) { c.Number = 0 },
		"min_members": func(c *Config) { c.MinMembers = 0 },
		"colluders":   func(c *Config) { c.Colluders = 0 },
		"recovery":    func(c *Config) { c.Recovery = nil },
		"per_round":   func(c *Config) { c.PerRound = 0 },
		"seed":        func(c *Config) { c.Seed = [32]byte{} },
		"max_skip":    func(c *Config) { c.MaxSkip = 0 },
		"classical":   func(c *Config) { c.Classical = false },
	} {
		want := base
		change(&want)
		wanted, err := want.Digest()
		if err != nil {
			t.Fatal(err)
		}
		short := maps.Clone(fields)
		delete(short, name)
		written, err := json.Marshal(short)
		if err != nil {
			t.Fatal(err)
		}
		got := Config{Label: "what was there before", Seed: [32]byte{7}}
		if err := json.Unmarshal(written, &got); err != nil {
			t.Errorf("without %s: %v", name, err)
		} else if digest, err := got.Digest(); err != nil || digest != wanted {
			t.Errorf("without %s: not its default, %v", name, err)
		}
	}
	for name, bad := range map[string]string{
		"an empty seed":    strings.Replace(string(b), fmt.Sprintf("%x", base.Seed), "", 1),
		"no roster":        `{"layout":[{"length":1,"bits":8}]}`,
		"no layout":        strings.Replace(string(b), `"layout":[`, `"layout":[],"x":[`, 1),
		"an unknown field": strings.Replace(string(b), `"number"`, `"nummer"`, 1),
		"something after":  string(b) + "{}",
		"a bad seed":       strings.Replace(string(b), `"seed":"01`, `"seed":"1`, 1),
		"a bad key":        strings.Replace(string(b), `"key":"`, `"key":"zz`, 1),
		"a bad roster":     strings.Replace(string(b), `"name":"party-1"`, `"name":"party-0"`, 1),
		"a bad number":     strings.Replace(string(b), `"min_members":7`, `"min_members":70`, 1),
		"nothing":          "",
	} {
		kept := base
		if err := kept.UnmarshalJSON([]byte(bad)); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: got %v, want ErrConfig", name, err)
		} else if got, err := kept.Digest(); err != nil || got != digest {
			t.Errorf("%s: the configuration has changed", name)
		}
	}
	if _, err := json.Marshal(Config{}); !errors.Is(err, ErrConfig) {
		t.Errorf("a configuration that is not valid: %v", err)
	}
	if s := fmt.Sprint(CheatingServer); s != "cheating server" {
		t.Error(s)
	}
}
