package protocol

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

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
		"a label that is not UTF-8": {func(c *Config) { c.Label = "\xff" }, false},
	} {
		config := testConfig(roster)
		c.change(config)
		if err := config.Validate(); (err == nil) != c.valid || err != nil && !errors.Is(err, ErrConfig) {
			t.Errorf("%s: %v", name, err)
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
			MinSurvivors: 6}, PerRound: 7, Seed: [32]byte{1}, MaxSkip: 9}
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
		"MaxSkip":     func(c *Config) { c.MaxSkip = 10 },
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
	for name, bad := range map[string]string{
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
