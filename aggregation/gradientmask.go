package aggregation

import (
	"fmt"
	"math"
)

// MaskKind says how agreement between clients becomes a factor per coordinate.
type MaskKind int

const (
	NoMask   MaskKind = iota // 1 everywhere
	SoftMask                 // 1 from the threshold on, below it the agreement itself
	HardMask                 // 1 from the threshold on, below it 0
	// RescaledMask and FlatMask are controls for SoftMask, which makes steps shorter: they separate
	// its other effects from that one. RescaledMask is the soft mask divided by its mean over
	// coordinates, so that steps are as long as without a mask.
	RescaledMask
	// FlatMask has the mean of the soft mask at every coordinate: plain averaging with a step as
	// short as the mask's.
	FlatMask
)

// DefaultThreshold is the usual τ of "Gradient Masked Averaging".
const DefaultThreshold = 0.4

// GradientMask weighs each coordinate of the mean update by how far the clients
// agree on its sign. With N clients and their updates Δ_n, the agreement is
//
//	A_j = |Σ_n sign(Δ_n,j)| / N,   sign(0) = 0
//
// which counts clients and not their samples. SoftMask is that of "Gradient Masked Averaging" (A_j
// ≥ τ → 1, else A_j), HardMask the AND mask of "Learning explanations that are hard to vary"
// (Parascandolo 2021: A_j ≥ τ → 1, else 0). Some public code then scales an update up by the share
// of coordinates that a hard mask left; GradientMask does not.
//
// An [Optimizer] applies the mask, so that it combines with every rule. The mask needs no more than
// Σ sign(Δ_n): see [Signs] for that sum under masks.
type GradientMask struct {
	Kind      MaskKind
	Threshold float64 // τ, 0 to 1. 0 is plain averaging; see DefaultThreshold
}

// Validate returns [ErrConfig] if a field is outside its range.
func (g GradientMask) Validate() error {
	if g.Kind < NoMask || g.Kind > FlatMask {
		return fmt.Errorf("%w: Kind is %d, want one of the constants", ErrConfig, g.Kind)
	}
	if !(g.Threshold >= 0 && g.Threshold <= 1) {
		return fmt.Errorf("%w: Threshold is %v, want 0 to 1", ErrConfig, g.Threshold)
	}
	return nil
}

// Weights returns the factors, in [0, 1] but for RescaledMask, for a sum of signs over the given
// number of clients, as [SumSigns] or [Signs.Decode] gives it. Noise can bring a sum above the
// number of clients, which counts as agreement 1. It fails with [ErrConfig] if a field is outside
// its range or clients is not above 0.
func (g GradientMask) Weights(signs []int64, clients int) ([]float64, error) {
	if err := g.Validate(); err != nil {
		return nil, err
	}
	if clients < 1 {
		return nil, fmt.Errorf("%w: %d clients, want at least 1", ErrConfig, clients)
	}
	out := make([]float64, len(signs))
	var mean float64
	for i, s := range signs {
		agreement := min(math.Abs(float64(s))/float64(clients), 1)
		switch {
		case g.Kind == NoMask || agreement >= g.Threshold:
			out[i] = 1
		case g.Kind != HardMask:
			out[i] = agreement
		}
		mean += out[i] / float64(len(signs))
	}
	for i := range out {
		switch {
		case g.Kind == FlatMask:
			out[i] = mean
		case g.Kind == RescaledMask && mean > 0: // else all are 0
			out[i] /= mean
		}
	}
	return out, nil
}

// SumSigns returns Σ sign(Δ_n) in the clear. It fails with [ErrLength] if there are no
// updates or their lengths differ, and with [ErrNotFinite].
func SumSigns(updates ...[]float64) ([]int64, error) {
	if len(updates) == 0 {
		return nil, fmt.Errorf("%w: no updates", ErrLength)
	}
	if err := checkVectors(updates...); err != nil {
		return nil, err
	}
	sum := make([]int64, len(updates[0]))
	for _, u := range updates {
		for i, x := range u {
			sum[i] += sign(x)
		}
	}
	return sum, nil
}

func sign(x float64) int64 {
	switch {
	case x > 0:
		return 1
	case x < 0:
		return -1
	}
	return 0
}
