package aggregation

import (
	"fmt"
	"math"
)

// Values of an [AdaptiveClip] that leaves the field at 0, those recommended by
// (Andrew 2021).
const (
	defaultQuantile = 0.5
	defaultClipRate = 0.2
)

// AdaptiveClip is a clipping norm that follows a quantile of the update norms ("Differentially
// Private Learning with Adaptive Clipping", Andrew 2021): each party tells whether its update is
// within the norm C, and with b̄, the share of parties whose update is,
//
//	C ← C·exp(−η_C·(b̄ − γ))
//
// This bit is one more lane of the submission, a [Signs] of one coordinate: a party encodes
// [AdaptiveClip.Vote], 1 or −1, and [AdaptiveClip.Update] takes the sum. A vote changes the sum by
// 1 at most when a party is added, removed or replaced by zeros, as in the paper, where it is a bit
// less 1/2; noise of standard deviation σ_b on the paper's sum is 2·σ_b on this one.
//
// All parties of a round must clip to the same Norm and vote on it.
type AdaptiveClip struct {
	Norm     float64 // C, 2^-500 to 2^500
	Quantile float64 // γ, above 0 and below 1: the share that is not clipped; 0: 0.5
	Rate     float64 // η_C, above 0; 0: 0.2
}

func (a AdaptiveClip) settings() (quantile, rate float64, err error) {
	quantile, rate = a.Quantile, a.Rate
	if quantile == 0 {
		quantile = defaultQuantile
	}
	if rate == 0 {
		rate = defaultClipRate
	}
	switch {
	case !(quantile > 0 && quantile < 1):
		err = fmt.Errorf("%w: Quantile is %v, want above 0 and below 1", ErrConfig, a.Quantile)
	case !(rate > 0 && finite(rate)):
		err = fmt.Errorf("%w: Rate is %v, want a finite number above 0", ErrConfig, a.Rate)
	default:
		err = checkClip(a.Norm)
	}
	return quantile, rate, err
}

// Validate returns [ErrConfig] if a field is outside its range.
func (a AdaptiveClip) Validate() error {
	_, _, err := a.settings()
	return err
}

// Vote returns the one coordinate of the lane: 1 if an update of the given L2 norm, as
// [Clip] returns it, is within C, and −1 if not or if the norm is NaN.
func (a AdaptiveClip) Vote(norm float64) []float64 {
	if norm <= a.Norm {
		return []float64{1}
	}
	return []float64{-1}
}

// Update moves Norm by the sum of the votes of the given number of parties, and
// its noise, as [Signs.Decode] gives it: b̄ = (1 + votes/parties)/2. With noise b̄
// may be outside [0, 1]. Norm stays between 2^-500 and 2^500. It fails with
// [ErrConfig] if a field is outside its range or parties is not above 0; Norm is
// then as before.
func (a *AdaptiveClip) Update(votes int64, parties int) error {
	quantile, rate, err := a.settings()
	if err != nil {
		return err
	}
	if parties < 1 {
		return fmt.Errorf("%w: %d parties, want at least 1", ErrConfig, parties)
	}
	share := (1 + float64(votes)/float64(parties)) / 2
	a.Norm = min(max(a.Norm*math.Exp(-rate*(share-quantile)), minClip), maxClip)
	return nil
}

// MeanNormClip returns a clipping norm relative to the updates: factor times the mean of their L2
// norms. "Understanding Clipping for Federated Learning" takes half the mean over all clients and
// all rounds of a run without clipping, and clips to that in a second run of the same settings. The
// norms are secret, and the result says something about them: use MeanNormClip in experiments, or
// if the norms are public already; [AdaptiveClip] is the private way. It fails with [ErrLength] if
// there are no norms, [ErrNotFinite] if one is negative or not finite, and [ErrConfig] if the
// result is not between 2^-500 and 2^500.
func MeanNormClip(factor float64, norms []float64) (float64, error) {
	if err := checkNorms(norms); err != nil {
		return 0, err
	}
	var mean float64
	for _, x := range norms {
		mean += x / float64(len(norms))
	}
	c := factor * mean
	if err := checkClip(c); err != nil {
		return 0, err
	}
	return c, nil
}
