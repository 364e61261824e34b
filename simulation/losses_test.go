package simulation

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/privacy"
	"github.com/hushsum/hushsum/protocol"
)

// Of the messages of a round some are lost on their way: parties are charged as if none were, noise
// of those that arrive is enough, and the mean is of these.
func TestMessagesLost(t *testing.T) {
	for _, sum := range []Sum{Ring, Clear} {
		var n privacy.Noise
		x := noisyBrief(&n)
		x.Sum, x.Rounds, x.Drop = sum, 12, 0.34
		x.Recovery = &protocol.Recovery{MinSurvivors: 4}
		if n.Multiplier, n.Bits, x.Beside = 1e-6, 54, true; sum == Clear {
			x.Noise = nil
		}
		out := train(t, x)
		lost := make(map[int]bool)
		for i, r := range out.Rounds {
			if len(r.Included) != 4 || r.Dropped != 2 || r.Lost != nil || r.MaxAbsDiff > 1e-4 {
				t.Errorf("%v, round %d: %v of %d included, %v, off by %v", sum, r.Round, r.Included,
					len(x.Parties), r.Lost, r.MaxAbsDiff)
			}
			for i := range x.Parties {
				lost[i] = lost[i] || !slices.Contains(r.Included, i)
			}
			if sum == Ring {
				want, _, err := mechanism(t, x).Round().Views(i+1, privacy.DefaultDelta)
				if err != nil || r.Server.Bare() != want.Bare() {
					t.Errorf("round %d: %+v, want %+v (%v)", r.Round, r.Server, want, err)
				}
			}
		}
		for i := range x.Parties {
			if !lost[i] {
				t.Errorf("%v: party %d never loses a message", sum, i)
			}
		}
		if sum == Ring {
			if got := mechanism(t, x).Vector.Shares.MinHonest; got != 4 {
				t.Errorf("noise of %d is enough, want 4", got)
			}
		}
	}
}

// Rounds that are lost whole have no sum, leave the model as it was, and are charged. Which they
// are follows from the seed. What is correlated over rounds is decoded without error all the same.
func TestRoundsLost(t *testing.T) {
	for _, factorise := range []int{0, 3} {
		var n privacy.Noise
		x := noisyBrief(&n)
		x.Rounds, x.LostRounds, x.Factorise = 12, 4, factorise
		n.Multiplier, n.Bits, x.Beside = 1e-6, 54, true
		var models [][]float64
		out, err := Run(t.Context(), x, func(r RoundResult) { models = append(models, r.Model) })
		if err != nil {
			t.Fatal(err)
		}
		var lost []int
		for i, r := range out.Rounds {
			if r.Lost != nil {
				lost = append(lost, r.Round)
				if i > 0 && !slices.Equal(models[i], models[i-1]) {
					t.Errorf("bands of %d: round %d is lost and moves the model", factorise, r.Round)
				}
			}
			if !(r.MaxAbsDiff < 1e-4) {
				t.Errorf("bands of %d: round %d is off by %v, of which %v are lost", factorise, r.Round,
					r.MaxAbsDiff, lost)
			}
		}
		again := train(t, x)
		for i, r := range again.Rounds {
			if (r.Lost == nil) != (out.Rounds[i].Lost == nil) {
				t.Errorf("round %d is lost once of twice", r.Round)
			}
		}
		if len(lost) != 4 || out.Lost() != 4 {
			t.Errorf("%v are lost", lost)
		}
		charges := x.Rounds
		if factorise > 0 {
			charges /= factorise
		}
		want, _, err := mechanism(t, x).Round().Views(charges, privacy.DefaultDelta)
		if err != nil || math.Abs(out.Server.Bare().Upper/want.Bare().Upper-1) > 1e-12 {
			t.Errorf("%v is spent, want %v (%v)", out.Server.Bare().Upper, want.Bare().Upper, err)
		}
	}
}

func TestLossesOptions(t *testing.T) {
	for name, c := range map[string]struct {
		path   string
		change func(x *Options)
	}{
		"unprepared": {"world.drop", func(x *Options) { x.Recovery = nil }},
		"too many":   {"world.drop", func(x *Options) { x.Drop = 0.51 }},
		"protocol":   {"parties.drop_out", func(x *Options) { x.Recovery.Threshold = 3 }},
		"least":      {"parties.drop_out", func(x *Options) { x.Recovery.MinSurvivors = -1 }},
		"most":       {"parties.drop_out", func(x *Options) { x.Recovery.MinSurvivors = 7 }},
		"negative":   {"world.lost_rounds", func(x *Options) { x.LostRounds = -1 }},
		"all":        {"world.lost_rounds", func(x *Options) { x.LostRounds = x.Rounds }},
		"private": {"world.lost_rounds", func(x *Options) {
			x.Sum, x.LostRounds, x.Recovery, x.Drop = Private, 1, nil, 0
		}},
	} {
		var n privacy.Noise
		x := noisyBrief(&n)
		x.Drop, x.Recovery = 0.3, &protocol.Recovery{MinSurvivors: 4}
		if err := x.Validate(); err != nil {
			t.Fatal(err)
		}
		c.change(&x)
		var wrong *job.ConfigError
		if err := x.Validate(); !errors.As(err, &wrong) || wrong.Path != c.path {
			t.Errorf("%s: %v", name, err)
		}
	}
}
