package accounting

import (
	"errors"
	"testing"
)

// Vector rounds of every law are calibrated: the result meets the target, a
// little less noise does not, and so with rounds and rates.
func TestCalibrateRound(t *testing.T) {
	target := Target{3, 1e-6}
	for _, law := range []Family{FamilyDiscreteGaussian, FamilySkellam, FamilyDiscreteLaplace} {
		roundOf := func(noise float64) Round {
			scale := noise * 100
			if law == FamilySkellam {
				scale *= scale
			}
			return Round{
				Family: law, Shares: 20, Honest: 20,
				Update: stated(law, scale, Sensitivity{L2: 50, Dimension: 400}),
				Rate:   0.02, HiddenSchedule: true,
			}
		}
		for _, v := range []View{ServerView, PublicView} {
			z, err := CalibrateRound(target, v, 10, roundOf)
			if err != nil {
				t.Fatal(law, v, err)
			}
			good, err := roundOf(z).Spent(v, 10, target.Delta)
			if err != nil {
				t.Fatal(err)
			}
			bad, err := roundOf(z*(1-2e-5)).Spent(v, 10, target.Delta)
			if err != nil {
				t.Fatal(err)
			}
			if good.Bare().Upper > target.Epsilon || bad.Bare().Upper <= target.Epsilon {
				t.Errorf("%v %v: noise %v spends %v, a little less %v", law, v, z, good.Bare().Upper,
					bad.Bare().Upper)
			}
			n, err := CalibrateRoundCount(target, v, roundOf(z))
			if err != nil {
				t.Fatal(err)
			}
			if more, err := roundOf(z).Spent(v, n+1, target.Delta); err != nil || n < 10 ||
				more.Bare().Upper <= target.Epsilon {
				t.Errorf("%v %v: %d rounds, one more spends %v (%v)", law, v, n, more.Bare().Upper, err)
			}
			t.Logf("%v %v: noise %.4f by %s", law, v, z, good.Bare().Accountant)
		}
		r := roundOf(1)
		q, err := CalibrateRoundRate(target, 10, r)
		if err != nil {
			t.Fatal(law, err)
		}
		r.Rate = q
		if s, err := r.Spent(PublicView, 10, target.Delta); err != nil ||
			s.Bare().Upper > target.Epsilon {
			t.Errorf("%v: rate %v spends %v (%v)", law, q, s.Bare().Upper, err)
		}
	}
}

func TestCalibrateRoundErrors(t *testing.T) {
	round := func(noise float64) Round { r := exampleRound(); r.Update.ShareSigma = noise; return r }
	// Noise whose table is too rough for the target, whatever its scale.
	rough := func(noise float64) Round {
		r := round(noise)
		r.TableDistance, r.Samples = 1e-3, 1e6
		return r
	}
	if _, err := CalibrateRound(Target{1, 1e-6}, ServerView, 1, rough); !errors.Is(err,
		ErrUnreachable) {
		t.Error(err)
	}
	if _, err := CalibrateRound(Target{1, 1e-6}, 0, 1, round); !errors.Is(err, ErrConfig) {
		t.Error(err)
	}
	if _, err := CalibrateRound(Target{1, 1e-6}, ServerView, -1, round); !errors.Is(err, ErrConfig) {
		t.Error(err)
	}
	if _, err := CalibrateRoundCount(Target{}, ServerView, round(1)); !errors.Is(err, ErrConfig) {
		t.Error(err)
	}
	if _, err := CalibrateRoundRate(Target{}, 1, round(1)); !errors.Is(err, ErrConfig) {
		t.Error(err)
	}
	if n, err := CalibrateRoundCount(Target{1e-3, 1e-6}, ServerView, exampleRound()); n != 0 ||
		err != nil {
		t.Error(n, err)
	}
}
