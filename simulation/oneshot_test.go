package simulation

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/oneshot"
	"github.com/hushsum/hushsum/privacy"
	"github.com/hushsum/hushsum/protocol"
)

// TestOneshot: with a committee and exact sums a run is the pairwise run weight for
// weight, covered or not, and drop-outs are those who do not submit.
func TestOneshot(t *testing.T) {
	options := small(t)
	pairwise, err := Run(context.Background(), options, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, covered := range []bool{false, true} {
		options.Oneshot = &Oneshot{Members: 7, Covered: covered, KEM: oneshot.KEMX25519}
		got, err := Run(context.Background(), options, nil)
		if err != nil {
			t.Fatal(err)
		}
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
	n := DefaultNoise()
	n.Multiplier = 2
	options := noisy(t, n)
	noise := options.Noise
	pairwise, err := Run(context.Background(), options, nil)
	if err != nil {
		t.Fatal(err)
	}
	options.Oneshot = &Oneshot{Members: 4, KEM: oneshot.KEMX25519}
	got, err := Run(context.Background(), options, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got.Server.Bare().Upper != pairwise.Server.Bare().Upper ||
		math.IsInf(got.Server.Bare().Upper, 1) {
		t.Errorf("ε is %v, pairwise %v", got.Server.Bare().Upper, pairwise.Server.Bare().Upper)
	}
	if got.Rounds[0].MaxAbsDiff == 0 {
		t.Error("there is no noise")
	}
	options.Oneshot.Bounded, options.Colluders = true, 1
	got, err = Run(context.Background(), options, nil)
	if err != nil || got.Rounds[0].MaxAbsDiff == 0 {
		t.Errorf("with a bound: %v", err)
	}
	options.Oneshot.Bounded, options.Colluders = false, 0
	noise.Family = accounting.FamilySkellam
	if _, err := Run(context.Background(), options, nil); !errors.Is(err, job.ErrConfig) {
		t.Error(err)
	}
	noise.Family, noise.Bits = accounting.FamilyDiscreteGaussian, 8
	if _, err := Run(context.Background(), options, nil); !errors.Is(err, job.ErrConfig) {
		t.Errorf("noise too narrow to hide keys: %v", err)
	}
}

// TestOneshotCommitteeNoise: the noise of members is accounted, with C − 2f of them, and sums have
// it, covered or not.
func TestOneshotCommitteeNoise(t *testing.T) {
	n := DefaultNoise()
	n.Multiplier = 2
	options := noisy(t, n)
	options.Noise.Family = accounting.FamilyDiscreteGaussian
	for _, covered := range []bool{false, true} {
		options.Oneshot = &Oneshot{Members: 7, Faults: 2, Covered: covered, CommitteeNoise: true,
			KEM: oneshot.KEMX25519}
		got, err := Run(context.Background(), options, nil)
		if err != nil {
			t.Fatal(err)
		}
		release, err := options.Release()
		if err != nil {
			t.Fatal(err)
		}
		round, err := release.Round()
		if err != nil {
			t.Fatal(err)
		}
		if round.Shares != 3 || got.Rounds[0].MaxAbsDiff == 0 {
			t.Errorf("%d shares, off by %v", round.Shares, got.Rounds[0].MaxAbsDiff)
		}
		spent, err := round.Spent(accounting.ServerView, options.Rounds, privacy.DefaultDelta)
		if err != nil || spent.Bare().Upper != got.Server.Bare().Upper {
			t.Errorf("ε is %v, want %v (%v)", got.Server.Bare().Upper, spent.Bare().Upper, err)
		}
	}
	options.Noise = nil
	if err := options.Validate(); !errors.Is(err, job.ErrConfig) {
		t.Errorf("no noise to add: %v", err)
	}
}

// TestMalicious: without a bound a cheat is in each sum, and with one it is refused in each round,
// and the sum is of the others.
func TestMalicious(t *testing.T) {
	options := noisy(t, DefaultNoise())
	options.Noise.Multiplier = 2
	options.Recovery = &protocol.Recovery{MinSurvivors: len(options.Parties) - 1}
	options.Colluders, options.Malicious = 1, 0.01
	honest := len(options.Parties) - 1
	for _, how := range []Oneshot{{}, {Bounded: true}, {Bounded: true, Covered: true}} {
		bounded := how.Bounded
		how.Members, how.KEM = 4, oneshot.KEMX25519
		options.Oneshot = &how
		got, err := Run(context.Background(), options, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range got.Rounds {
			if refused := map[bool]int{true: 1}[bounded]; r.Lost != nil || r.Refused != refused ||
				r.Parties != honest+1-refused || bounded && slices.Contains(r.Included, honest) {
				t.Errorf("%+v: %d of %v refused, %v", how, r.Refused, r.Included, r.Lost)
			}
		}
	}
	options.Oneshot.Covered, options.Oneshot.Bounded = true, false
	if _, err := Run(context.Background(), options, nil); !errors.Is(err, job.ErrConfig) {
		t.Error(err)
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
