package query

import (
	"math"
	"slices"
)

// projected returns the nearest numbers, in squares, that are not negative and add up to the same
// total, or to the nearest from 0 to most.
func projected(noisy []float64, most float64) []float64 {
	sum := 0.0
	for _, x := range noisy {
		sum += x
	}
	total, out := min(sum, most), make([]float64, len(noisy))
	if total <= 0 {
		return out
	}
	// The nearest are max(0, x − t) for one t: found by cutting the smallest off, one by one.
	sorted := slices.Sorted(slices.Values(noisy))
	cut := 0.0
	for i, x := range sorted {
		if cut = (sum - total) / float64(len(sorted)-i); x > cut {
			break
		}
		sum -= x
	}
	for i, x := range noisy {
		out[i] = math.Max(0, x-cut)
	}
	return out
}

// ascending returns the nearest numbers, in squares, that do not descend (Ayer et al. 1955).
func ascending(noisy []float64) []float64 {
	type block struct {
		sum   float64
		count int
	}
	var blocks []block
	for _, x := range noisy {
		blocks = append(blocks, block{x, 1})
		for n := len(blocks); n > 1; n = len(blocks) {
			a, b := blocks[n-2], blocks[n-1]
			if a.sum*float64(b.count) < b.sum*float64(a.count) {
				break
			}
			blocks = append(blocks[:n-2], block{a.sum + b.sum, a.count + b.count})
		}
	}
	out := make([]float64, 0, len(noisy))
	for _, b := range blocks {
		for range b.count {
			out = append(out, b.sum/float64(b.count))
		}
	}
	return out
}
