package query

// This file has trees of counts: node 1 is the root, node k has the children 2k and 2k+1, and the
// last half of all nodes are the leaves. Node k stands at k−1 of a slice.

// fitted returns the leaves of the tree of counts that is nearest to noisy ones, in squares: that
// with the least variance of all unbiased ones, where noise is alike in all nodes (Hay et al. 2010
// §4). The slice has a count for each node.
func fitted(noisy []float64) []float64 {
	bins := (len(noisy) + 1) / 2
	own := make([]float64, 2*bins) // a node's count by what is at it and below it
	weight := make([]float64, 2*bins)
	for k := 2*bins - 1; k > 0; k-- {
		own[k], weight[k] = noisy[k-1], 1
		if k >= bins {
			continue
		}
		below := 1 / (1/weight[2*k] + 1/weight[2*k+1]) // of the sum of both children
		sum := own[2*k] + own[2*k+1]
		own[k], weight[k] = (own[k]+below*sum)/(1+below), 1+below
	}
	for k := 1; k < bins; k++ { // what is above a node divides its error between the children
		spare := (own[k] - own[2*k] - own[2*k+1]) / 2
		own[2*k] += spare
		own[2*k+1] += spare
	}
	return own[bins:]
}
