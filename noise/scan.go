package noise

// scanGeneric sets idx[i] to the number of thresholds that u[i] reaches
// (threshold ≤ u). Words and thresholds are below 2^63, the length of u and idx
// is a multiple of 16, and every threshold is compared with every word: no
// branch and no address depends on u.
func scanGeneric(idx, u, table []uint64) {
	n := uint64(len(table))
	idx = idx[:len(u)]
	for ; len(u) >= 4; u, idx = u[4:], idx[4:] {
		x0, x1, x2, x3 := u[0], u[1], u[2], u[3]
		c0, c1, c2, c3 := n, n, n, n
		for _, t := range table {
			// The top bit of u − t is the borrow: set if u < t.
			c0 -= (x0 - t) >> 63
			c1 -= (x1 - t) >> 63
			c2 -= (x2 - t) >> 63
			c3 -= (x3 - t) >> 63
		}
		idx[0], idx[1], idx[2], idx[3] = c0, c1, c2, c3
	}
}
