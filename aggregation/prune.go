package aggregation

import (
	"fmt"
	"math"
	"sort"
)

// Prune returns which weights are kept after it prunes a given number of the kept weights, those of
// smallest magnitude, the first of equal weights first. fixed marks weights that are never pruned
// (nil: none), and kept the weights that were kept before (nil: all); a pruned weight stays pruned.
// Pruning by magnitude is (Han 2015, "Learning both Weights and Connections"); see [PruneCount] for
// how many.
//
// It fails with [ErrLength] if lengths differ, [ErrNotFinite], and [ErrConfig] if there
// are fewer weights to prune.
func Prune(weights []float64, kept, fixed []bool, count int) ([]bool, error) {
	if err := checkVectors(weights); err != nil {
		return nil, err
	}
	if kept != nil && len(kept) != len(weights) || fixed != nil && len(fixed) != len(weights) {
		return nil, fmt.Errorf("%w: %d weights, %d marks of what is kept and %d of what is fixed",
			ErrLength, len(weights), len(kept), len(fixed))
	}
	next := make([]bool, len(weights))
	var order []int
	for i := range weights {
		next[i] = kept == nil || kept[i]
		if next[i] && (fixed == nil || !fixed[i]) {
			order = append(order, i)
		}
	}
	if count < 0 || count > len(order) {
		return nil, fmt.Errorf("%w: %d weights to prune, of %d", ErrConfig, count, len(order))
	}
	sort.SliceStable(order, func(a, b int) bool {
		return math.Abs(weights[order[a]]) < math.Abs(weights[order[b]])
	})
	for _, i := range order[:count] {
		next[i] = false
	}
	return next, nil
}

// PruneCount returns how many of the kept weights a pruning removes: the share step of the
// remaining weights, or with ofAll of all weights that can be pruned, but no more than brings the
// pruned share to target. All numbers are rounded to the nearest. The thesis has a step of 0.1 and
// does not say of which weights: after t prunings either 1 − 0.9^t or t/10 of them are gone.
func PruneCount(prunable, kept int, step, target float64, ofAll bool) int {
	of := kept
	if ofAll {
		of = prunable
	}
	most := int(math.Round(target*float64(prunable))) - (prunable - kept)
	return max(0, min(int(math.Round(step*float64(of))), most))
}
