package protocol

import (
	"math"
	"testing"

	"github.com/hushsum/hushsum/masking"
)

// A session promises what the fewest members have, less all colluders, and on a sparse graph what
// the graph makes of that.
func TestPromise(t *testing.T) {
	_, roster := parties(t, 100)
	of := func(r *Recovery, least, colluders, perRound int) *Config {
		return &Config{Roster: roster, Layout: masking.Layout{{Length: 1, Bits: 8}}, MinMembers: least,
			Colluders: colluders, PerRound: perRound, Recovery: r}
	}
	for name, c := range map[string]struct {
		config *Config
		want   Promise
	}{
		"no recovery":  {of(nil, 90, 3, 0), Promise{CheatingServer, 3, 100, 87, 0, false}},
		"some a round": {of(nil, 90, 3, 20), Promise{CheatingServer, 3, 20, 17, 0, false}},
		"given survivors": {of(&Recovery{CuriousServer, 5, 70, 0, 0}, 80, 4, 0),
			Promise{CuriousServer, 4, 100, 66, 0, false}},
		"default survivors of the fewest": {of(&Recovery{}, 80, 4, 0),
			Promise{CheatingServer, 4, 100, 50, 0, false}},
		"sparse": {of(&Recovery{CuriousServer, 2, 80, 18, 1}, 80, 1, 0),
			Promise{CuriousServer, 1, 100, 79, math.Exp2(-42.37), true}},
		"sparse, too few neighbours": {of(&Recovery{CuriousServer, 2, 80, 4, 1}, 80, 1, 0),
			Promise{CuriousServer, 1, 100, 79, 1, true}},
		"sparse, more around one": {of(&Recovery{CuriousServer, 3, 80, 40, 2}, 80, 3, 0),
			Promise{CuriousServer, 3, 100, 77, 1, true}},
		"sparse, honest set-up": {of(&Recovery{SemiMaliciousServer, 12, 80, 20, 3}, 80, 3, 0),
			Promise{SemiMaliciousServer, 3, 100, 10, 0, true}},
	} {
		got, err := c.config.Promise()
		off := math.Abs(got.Failure-c.want.Failure) > 0.15*c.want.Failure
		if got.Failure = c.want.Failure; err != nil || got != c.want || off {
			again, _ := c.config.Promise()
			t.Errorf("%s: %+v, %v, want %+v", name, again, err, c.want)
		}
	}
	if _, err := of(&Recovery{CuriousServer, 2, 80, 100, 1}, 80, 1, 0).Promise(); err == nil {
		t.Error("a configuration that is not valid promises something")
	}
}
