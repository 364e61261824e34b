package workload

// Spread returns the variance, over that of a node's noise, of the rows below an edge of the leaves
// less q of all rows, as least squares finds them from a binary tree of counts with equal noise.
// The fitted count of a node's left child is half of the node's and half of a difference of both
// children, which is independent of all that is above; so the rows below an edge are a part of the
// root and parts of the differences along one path.
func Spread(edge, bins int, q float64) (variance float64) {
	weights := []float64{1} // of a fit to what is at a node and below, by height
	for size := 2; size <= bins; size *= 2 {
		weights = append(weights, 1+weights[len(weights)-1]/2)
	}
	height := len(weights) - 1
	part := float64(edge)/float64(bins) - q
	variance = float64(part*part) / weights[height]
	for size := bins; size > 1; size /= 2 {
		height--
		half := float64(size / 2)
		part := float64(edge) / half / 2 // of the difference
		if edge > size/2 {
			edge -= size / 2
			part = (1 - float64(edge)/half) / 2
		}
		variance += float64(part*part) * 2 / weights[height]
	}
	return variance
}
