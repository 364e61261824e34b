package accounting

import (
	"fmt"
	"math"
	"testing"
)

// laplaceRound is a round of discrete Laplace noise of scale t over vectors with the L2
// bound alone.
func laplaceRound(t, l2 float64, dim int) Round {
	return Round{Family: FamilyDiscreteLaplace, Shares: 20, MinSurvivors: 20, Rate: 1,
		Update: Lane{SumScale: t, Sensitivity: Sensitivity{L2: l2, Dimension: dim}}}
}

// zcdpLaplace is a sound upper bound that owes nothing to the code under test: one
// coordinate that differs by k is k/t-differentially private, so (k/t)²/2-zCDP (Bun,
// Steinke 2016 Proposition 1.4), and squares add over coordinates and rounds.
func zcdpLaplace(t *testing.T, scale, l2 float64, rounds int, delta float64) float64 {
	t.Helper()
	e, err := ZCDP(float64(rounds) * l2 * l2 / (2 * scale * scale)).Epsilon(delta)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// The L2 bound counts: a vector within it has not an L1 norm of √d times it and, at the
// same time, all of it in one coordinate. The lower bound is below every sound upper
// bound, the upper one is at most the simplest of them.
func TestLaplaceLowerBoundIsBelowSoundUpperBounds(t *testing.T) {
	const scale, l2 = 3126.8, 791.1 // simulate's 20 parties, 5 rounds, ε = 8 by L1 alone
	for _, rounds := range []int{1, 5, 20} {
		sound := zcdpLaplace(t, scale, l2, rounds, 1e-5)
		s, err := laplaceRound(scale, l2, 40).Spent(ServerView, rounds, 1e-5)
		if err != nil {
			t.Fatal(err)
		}
		if s.Lower > sound {
			t.Errorf("%d rounds: at least %v is printed, and no neighbour is above %v", rounds, s.Lower,
				sound)
		}
		if s.Upper > sound {
			t.Errorf("%d rounds: at most %v is printed, zCDP proves %v", rounds, s.Upper, sound)
		}
		t.Log(fmt.Sprint(rounds), " rounds: ", s.Lower, " to ", s.Upper, ", zCDP ", sound)
	}
	// The multiplier for 20 rounds at ε = 8 over 40 coordinates; the L1 norm alone asks for
	// one of 20.1.
	z, err := CalibrateRound(Target{8, 1e-5}, ServerView, 20, func(z float64) Round {
		return laplaceRound(z*l2/math.Sqrt2, l2, 40)
	})
	if err != nil || z > 4.03 {
		t.Errorf("multiplier %v (%v), want 4.03 at most", z, err)
	}
}
