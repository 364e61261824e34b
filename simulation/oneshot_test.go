package simulation

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/oneshot"
	"github.com/hushsum/hushsum/privacy"
)

// oneshot has a committee of so many members take the sums.
func (x *trial) oneshot(members int) {
	x.Sum.Protocol, x.Sum.Members, x.Sum.Classical = "oneshot", members, true
}

// TestOneshot: with a committee and exact sums a run is the pairwise run weight for
// weight, covered or not, and drop-outs are those who do not submit.
func TestOneshot(t *testing.T) {
	x := small(t)
	pairwise := train(t, x)
	for _, covered := range []bool{false, true} {
		x.oneshot(7)
		x.Sum.Covered = covered
		got := train(t, x)
		for j, w := range pairwise.Model {
			if got.Model[j] != w {
				t.Fatalf("covered %v: weight %d is %v, pairwise %v", covered, j, got.Model[j], w)
			}
		}
		if got.Committee.Members != 7 || got.Committee.BytesDown == 0 {
			t.Errorf("%+v", got.Committee)
		}
	}
}

// TestOneshotNoise: the noise of the masks is accounted, and the sum has it.
func TestOneshotNoise(t *testing.T) {
	x := noisy(t, someNoise)
	x.Privacy.Multiplier = 2
	pairwise := train(t, x)
	x.oneshot(4)
	got := train(t, x)
	if got.Server.Bare().Upper != pairwise.Server.Bare().Upper ||
		math.IsInf(got.Server.Bare().Upper, 1) {
		t.Errorf("ε is %v, pairwise %v", got.Server.Bare().Upper, pairwise.Server.Bare().Upper)
	}
	if got.Rounds[0].MaxAbsDiff == 0 {
		t.Error("there is no noise")
	}
	x.Sum.Bounded, x.Parties.Colluders = true, 1
	if got := train(t, x); got.Rounds[0].MaxAbsDiff == 0 {
		t.Error("with a bound there is no noise")
	}
	x.Sum.Bounded, x.Parties.Colluders, x.Privacy.Bits = false, 0, 8
	if _, err := x.run(t.Context(), nil); !errors.Is(err, job.ErrConfig) {
		t.Errorf("noise too narrow to hide keys: %v", err)
	}
}

// TestOneshotCommitteeNoise: the noise of members is accounted, with C − 2f of them, and sums have
// it, covered or not.
func TestOneshotCommitteeNoise(t *testing.T) {
	x := noisy(t, someNoise)
	x.Privacy.Multiplier, x.Privacy.NoiseBy = 2, "committee"
	x.oneshot(7)
	x.Sum.Faults = 2
	for _, covered := range []bool{false, true} {
		x.Sum.Covered = covered
		got, round := train(t, x), mechanism(t, x).Round()
		if round.Shares != 3 || got.Rounds[0].MaxAbsDiff == 0 {
			t.Errorf("%d shares, off by %v", round.Shares, got.Rounds[0].MaxAbsDiff)
		}
		spent, err := round.Spent(accounting.ServerView, x.Rounds, privacy.DefaultDelta)
		if err != nil || spent.Bare().Upper != got.Server.Bare().Upper {
			t.Errorf("ε is %v, want %v (%v)", got.Server.Bare().Upper, spent.Bare().Upper, err)
		}
	}
}

// TestOneshotWeights: parties count as often as is declared, with drop-outs, under proofs of bounds
// of their own and with no noise but what hides keys: the model is near that in the clear, which
// counts them alike, and not that of equal weights. A cheat is refused.
func TestOneshotWeights(t *testing.T) {
	x := small(t)
	x.oneshot(7)
	x.Training.Submit, x.Sum.MaxWeight = "updates", 0
	x.Sum.Bounded, x.Privacy.Noise, x.Privacy.Clip = true, "key", 1
	x.Parties.DropOut, x.Parties.Colluders, x.World.Drop = 0.4, 1, 0.1
	equal := train(t, x)
	x.Parties.Weights = make([]int, len(x.rows))
	for i := range x.Parties.Weights {
		x.Parties.Weights[i] = 1 + 7*(i%3)
	}
	x.World.Malicious = 0.01
	weighed := train(t, x)
	apart := 0.0
	for j, w := range weighed.Model {
		apart = max(apart, math.Abs(w-equal.Model[j]))
	}
	for _, r := range weighed.Rounds {
		// Noise deviates by 6.4·√n of 2^14 units and more, in each round and coordinate.
		if r.Lost != nil || r.MaxAbsDiff == 0 || r.MaxAbsDiff > 0.02*float64(r.Round) || r.Refused != 1 {
			t.Errorf("round %d is off by %v, %d refused, %v", r.Round, r.MaxAbsDiff, r.Refused, r.Lost)
		}
	}
	if off := weighed.Final().MaxAbsDiff; apart < 3*off {
		t.Errorf("%v from equal weights, and off by %v", apart, off)
	}
}

// TestMalicious: without a bound a cheat is in each sum, and with one it is refused in each round,
// and the sum is of the others.
func TestMalicious(t *testing.T) {
	x := noisy(t, someNoise)
	x.Privacy.Multiplier = 2
	x.oneshot(4)
	x.Parties.DropOut, x.Parties.Colluders, x.World.Malicious = 0.2, 1, 0.01
	honest := len(x.rows) - 1
	for _, how := range []job.Sum{{}, {Bounded: true}, {Bounded: true, Covered: true}} {
		bounded := how.Bounded
		x.Sum.Bounded, x.Sum.Covered = bounded, how.Covered
		for _, r := range train(t, x).Rounds {
			if refused := map[bool]int{true: 1}[bounded]; r.Lost != nil || r.Refused != refused ||
				r.Parties != honest+1-refused || bounded && slices.Contains(r.Included, honest) {
				t.Errorf("%+v: %d of %v refused, %v", how, r.Refused, r.Included, r.Lost)
			}
		}
	}
}

// TestOneshotBits: with this many bits the noise of a party hides its key, for as little
// noise as is promised, and three bits less would not do.
func TestOneshotBits(t *testing.T) {
	share := func(n, bits int) error {
		release := privacy.Release{
			Promise: privacy.Assumed(n, n),
			Noise: privacy.Noise{Family: accounting.FamilyDiscreteGaussian, Multiplier: 1. / 8, Clip: 1,
				Bits: bits},
			Dimension: 100,
		}
		mechanism, err := release.Mechanism()
		if err != nil {
			return err
		}
		_, err = oneshot.Parameters(n, 13, oneshot.Terms{Length: 128, Bits: 20, MinSurvivors: n,
			Faults: 3, Noise: mechanism.Vector.Shares.Law})
		return err
	}
	for _, n := range []int{2, 30, 1000, 20_000, 1_000_000} {
		if err := share(n, OneshotBits(n)); err != nil {
			t.Errorf("%d parties with %d bits: %v", n, OneshotBits(n), err)
		}
		if share(n, OneshotBits(n)-3) == nil {
			t.Errorf("%d parties would do with 3 bits less", n)
		}
	}
}
