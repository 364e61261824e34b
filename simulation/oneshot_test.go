package simulation

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/oneshot"
	"github.com/hushsum/hushsum/privacy"
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
	if got.Server.Upper != pairwise.Server.Upper || math.IsInf(got.Server.Upper, 1) {
		t.Errorf("ε is %v, pairwise %v", got.Server.Upper, pairwise.Server.Upper)
	}
	if got.Rounds[0].MaxAbsDiff == 0 {
		t.Error("there is no noise")
	}
	noise.Family = accounting.FamilySkellam
	if _, err := Run(context.Background(), options, nil); !errors.Is(err, job.ErrConfig) {
		t.Error(err)
	}
	noise.Family, noise.Bits = accounting.FamilyDiscreteGaussian, 8
	if _, err := Run(context.Background(), options, nil); !errors.Is(err, job.ErrConfig) {
		t.Errorf("noise too narrow to hide keys: %v", err)
	}
}

// TestOneshotBits: with so many bits the noise of a party hides its key, for as little
// noise as is promised, and three bits less would not do.
func TestOneshotBits(t *testing.T) {
	share := func(n, bits int) error {
		release := privacy.Release{
			Contributors: privacy.Contributors{Parties: n},
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
