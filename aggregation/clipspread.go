package aggregation

import "fmt"

// ClipSpread says what clipping to c does to updates of the given L2 norms. With α_i = c/max(c,
// ‖Δ_i‖) the share that is left of update i, it returns ᾱ, the mean of α_i, and the mean of |α_i −
// ᾱ|: the spread, which bounds the bias of clipping ("Understanding Clipping for Federated
// Learning", Theorem 3.1). When all norms are equal, clipping is a smaller step in the same
// direction and no bias. The norms are secret: AdaptiveClip hides them.
//
// It fails with [ErrLength] if there are no norms, [ErrNotFinite] if one is negative
// or not finite, and [ErrConfig] if c is not between 2^-500 and 2^500.
func ClipSpread(norms []float64, c float64) (left, spread float64, err error) {
	if err := checkClip(c); err != nil {
		return 0, 0, err
	}
	if err := checkNorms(norms); err != nil {
		return 0, 0, err
	}
	shares := make([]float64, len(norms))
	for i, x := range norms {
		shares[i] = c / max(c, x)
		left += shares[i] / float64(len(norms))
	}
	for _, a := range shares {
		spread += max(a-left, left-a) / float64(len(norms))
	}
	return left, spread, nil
}

// checkNorms fails with ErrLength if there are no norms, and with ErrNotFinite.
func checkNorms(norms []float64) error {
	if err := checkVectors(norms); err != nil {
		return err
	}
	for i, x := range norms {
		if x < 0 {
			return fmt.Errorf("%w: norm %d is negative", ErrNotFinite, i)
		}
	}
	return nil
}
