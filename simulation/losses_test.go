package simulation

import (
	"math"
	"slices"
	"testing"

	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/privacy"
)

// Of the messages of a round some are lost on their way: parties are charged as if none were, noise
// of those that arrive is enough, and the mean is of these.
func TestMessagesLost(t *testing.T) {
	for _, sum := range []string{Ring, Clear} {
		x := noisyBrief()
		x.World.Fidelity, x.Rounds, x.World.Drop = sum, 12, 0.34
		x.Parties.DropOut, x.Sum.Adversary, x.World.SkipClear = 0.34, "curious", false
		if x.Privacy.Multiplier, x.Privacy.Bits = 1e-6, 54; sum == Clear {
			x.Privacy = job.Privacy{}
		}
		out := train(t, x)
		lost := make(map[int]bool)
		for i, r := range out.Rounds {
			if len(r.Included) != 4 || r.Dropped != 2 || r.Lost != nil || r.MaxAbsDiff > 1e-4 {
				t.Errorf("%v, round %d: %v of %d included, %v, off by %v", sum, r.Round, r.Included,
					len(x.rows), r.Lost, r.MaxAbsDiff)
			}
			for i := range x.rows {
				lost[i] = lost[i] || !slices.Contains(r.Included, i)
			}
			if sum == Ring {
				want, _, err := mechanism(t, x).Round().Views(i+1, privacy.DefaultDelta)
				if err != nil || r.Server.Bare() != want.Bare() {
					t.Errorf("round %d: %+v, want %+v (%v)", r.Round, r.Server, want, err)
				}
			}
		}
		for i := range x.rows {
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
		x := noisyBrief()
		x.Rounds, x.World.LostRounds, x.Privacy.Factorise = 12, 4, factorise
		x.Privacy.Multiplier, x.Privacy.Bits, x.World.SkipClear = 1e-6, 54, false
		var models [][]float64
		out, err := x.run(t.Context(), func(r RoundResult) { models = append(models, r.Model) })
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
