package graph

import (
	"errors"
	"math"
	"testing"
)

func TestDefaultThreshold(t *testing.T) {
	for _, c := range []struct {
		a           Adversary
		holders     int
		colluders   int
		want        int
		wantFailure error
	}{
		{Curious, 1, 0, 1, nil},
		{Curious, 2, 1, 2, nil},
		{Curious, 9, 4, 5, nil},
		{Curious, 9, 5, 0, ErrThresholdTooLow},
		{Curious, 10, 5, 6, nil},
		{Curious, 99, 0, 50, nil},
		{SemiMalicious, 9, 4, 7, nil},
		{Cheating, 1, 0, 1, nil},
		{Cheating, 2, 1, 2, nil},
		{Cheating, 2, 2, 0, ErrThresholdTooLow},
		{Cheating, 9, 4, 7, nil},
		{Cheating, 9, 5, 0, ErrThresholdTooLow},
		{Cheating, 10, 3, 7, nil},
		{Cheating, 10, 4, 0, ErrThresholdTooLow},
		{Cheating, 99, 34, 67, nil},
		{Cheating, 99, 35, 0, ErrThresholdTooLow},
		{Curious, math.MaxInt, 0, math.MaxInt/2 + 1, nil},
		{Cheating, math.MaxInt, math.MaxInt, 0, ErrThresholdTooLow},
		{Curious, 0, 0, 0, ErrHolders},
		{Curious, -5, 0, 0, ErrHolders},
		{Curious, 5, -1, 0, ErrColluders},
		{0, 5, 1, 0, ErrAdversary},
		{99, 5, 1, 0, ErrAdversary},
	} {
		got, err := DefaultThreshold(c.a, c.holders, c.colluders)
		if got != c.want || !errors.Is(err, c.wantFailure) {
			t.Errorf("%v, h = %d, c = %d: got %d, %v, want %d, %v", c.a, c.holders, c.colluders, got, err,
				c.want, c.wantFailure)
		}
	}
}

func TestDefaultThresholdFormula(t *testing.T) {
	for h := 1; h < 2000; h++ {
		if got, err := DefaultThreshold(Curious, h, 0); err != nil || got != h/2+1 {
			t.Errorf("curious, h = %d: %d, %v", h, got, err)
		}
		if got, err := DefaultThreshold(Cheating, h, 0); err != nil || got != 2*h/3+1 {
			t.Errorf("cheating, h = %d: %d, %v", h, got, err)
		}
	}
}

func TestCheckThreshold(t *testing.T) {
	for _, c := range []struct {
		a       Adversary
		t, h, c int
		want    error
	}{
		{Curious, 3, 5, 2, nil},
		{Curious, 3, 5, 3, ErrThresholdTooLow},
		{Cheating, 4, 5, 2, nil},
		{Cheating, 4, 5, 3, ErrThresholdTooLow},
		{SemiMalicious, 4, 5, 3, ErrThresholdTooLow},
		{Curious, 0, 5, 0, ErrThresholdRange},
		{Curious, 6, 5, 0, ErrThresholdRange},
		{Cheating, 5, 5, -1, ErrColluders},
		{Cheating, 1, 0, 0, ErrHolders},
		{-1, 3, 5, 0, ErrAdversary},
	} {
		if err := CheckThreshold(c.a, c.t, c.h, c.c); !errors.Is(err, c.want) {
			t.Errorf("%+v: got %v", c, err)
		}
	}
}

// TestCheckThresholdIsTheAttack plays the game that the rule is about: split the
// honest holders any way, ask each for one of two secrets, and see whether the
// server can rebuild what it should not.
func TestCheckThresholdIsTheAttack(t *testing.T) {
	for h := 1; h <= 12; h++ {
		for c := 0; c <= h; c++ {
			for threshold := 1; threshold <= h; threshold++ {
				both := false
				for first := 0; first <= h-c; first++ {
					second := h - c - first
					both = both || first+c >= threshold && second+c >= threshold
				}
				if safe := CheckThreshold(Cheating, threshold, h, c) == nil; safe && both {
					t.Errorf("cheating, t = %d, h = %d, c = %d: accepted, but both secrets fall", threshold, h, c)
				} else if !safe && !both && (h+c)%2 == 0 {
					t.Errorf("cheating, t = %d, h = %d, c = %d: refused without an attack", threshold, h, c)
				}
				if safe := CheckThreshold(Curious, threshold, h, c) == nil; safe == (c >= threshold) {
					t.Errorf("curious, t = %d, h = %d, c = %d: safe = %v", threshold, h, c, safe)
				}
			}
		}
	}
}

func TestAdversaryString(t *testing.T) {
	for a, want := range map[Adversary]string{Curious: "curious", SemiMalicious: "semi-malicious",
		Cheating: "cheating", 0: "adversary(0)"} {
		if got := a.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
