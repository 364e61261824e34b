package learning

import "math"

// Confusion counts the outcomes of a binary classifier: true and false
// positives, true and false negatives. Class 1 is the positive one.
type Confusion struct {
	TP, FP, TN, FN int
}

// Total returns the number of rows counted.
func (c Confusion) Total() int { return c.TP + c.FP + c.TN + c.FN }

// Accuracy returns the share of rows classified correctly, in [0, 1]; 0 when no row
// was counted.
func (c Confusion) Accuracy() float64 {
	if c.Total() == 0 {
		return 0
	}
	return float64(c.TP+c.TN) / float64(c.Total())
}

// MCC returns Matthews' correlation coefficient (Matthews 1975), in [-1, 1]: the
// correlation between label and prediction. It is 0 when it is undefined, that
// is when all labels or all predictions are of one class, so a model that
// always answers with the majority class scores 0.
func (c Confusion) MCC() float64 {
	// Square roots first: the product of four counts would overflow integers.
	den := math.Sqrt(float64(c.TP+c.FP)) * math.Sqrt(float64(c.TP+c.FN)) *
		math.Sqrt(float64(c.TN+c.FP)) * math.Sqrt(float64(c.TN+c.FN))
	if den == 0 {
		return 0
	}
	r := (float64(c.TP)*float64(c.TN) - float64(c.FP)*float64(c.FN)) / den
	// Rounding in den can push a perfect score past 1 by an ulp.
	return max(-1, min(1, r))
}
