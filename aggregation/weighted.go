package aggregation

import "math"

// DefaultCountShare is the norm of a full weight over the clip. It costs the updates 3 % more
// noise; a greater share makes the sum of weights less noisy, and the sum of updates noisier.
const DefaultCountShare = 0.25

// WeightedClip returns the factor by which a count lane of the given share of the norm raises
// a clipping norm: 1 + share²/2, a little more than √(1 + share²) and the same on all
// machines.
func WeightedClip(share float64) float64 { return 1 + float64(share*share)/2 }

// WeightedNorm returns the norm of the longest vector of [WeightedVector] over the clip: a little
// less than [WeightedClip].
func WeightedNorm(share float64) float64 {
	return math.Sqrt(1+float64(share*share)) * (1 - 0x1p-40)
}

// WeightedVector returns what a party submits for a weighted mean, its weighted update and its
// weight, so that the mean is the quotient of two sums, Σω·Δ / Σω, and nobody's number of samples
// is seen: (ω·Δ, s·ω), where
//
//	ω = min(samples, maxSamples)/maxSamples
//
// and s is countNorm, above 0; samples and maxSamples are at least 1. For a clipped update and
// s = share·clip, its norm is at most clip·[WeightedClip](share), whatever the number of samples:
// a party with more than maxSamples counts as if it had maxSamples. Without noise, [FedAvg] does
// the same exactly.
func WeightedVector(update []float64, samples, maxSamples int, countNorm float64) []float64 {
	weight := float64(min(samples, maxSamples)) / float64(maxSamples)
	joint := make([]float64, len(update)+1)
	for i, x := range update {
		joint[i] = weight * x
	}
	joint[len(update)] = weight * countNorm
	return joint
}

// WeightedMean returns the weighted mean from the mean of the given number of vectors of
// [WeightedVector], and the sum of their weights. With noise either may be off; a sum of weights
// below 1 counts as 1 in the mean, so that noise is never amplified more than if a single party
// with a full weight had taken part.
func WeightedMean(
	joint []float64, vectors int, countNorm float64,
) (mean []float64, weight float64) {
	d := len(joint) - 1
	weight = joint[d] * float64(vectors) / countNorm
	mean = make([]float64, d)
	for i := range mean {
		mean[i] = joint[i] * float64(vectors) / max(weight, 1)
	}
	return mean, weight
}
