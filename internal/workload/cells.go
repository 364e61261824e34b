package workload

import "encoding/binary"

// MostCells is the most combinations of values that are tried: if there are more, queries are
// answered by themselves.
const MostCells = 512

// Query is a count of rows by bins.
type Query struct {
	Bins  int
	Share float64 // of the budget
	// Quantiles are read from the bins, by the counts below the edges of bins. By itself such a query
	// measures a binary tree of its bins, whose number is a power of two. None: bins are counts.
	Quantiles []float64
	// Bin returns the bin of a row, −1: it is in none.
	Bin func(row []float64) int
}

// Cells are the parts of all rows that queries tell apart.
type Cells struct {
	Bins  [][]int32 // by cell and query
	place map[string]int
}

// newCells tries all combinations of values, which stand for all that there are: a list for each
// column. It returns nil if there are too many, and has no cell for rows that no query counts.
func newCells(values [][]float64, queries []Query) *Cells {
	parts := 1
	for _, list := range values {
		if parts *= len(list); parts > MostCells {
			return nil
		}
	}
	c := &Cells{place: map[string]int{}}
	row, bins := make([]float64, len(values)), make([]int32, len(queries))
	for part := range parts {
		rest := part
		for k := len(values) - 1; k >= 0; k-- { // the last column changes first
			row[k] = values[k][rest%len(values[k])]
			rest /= len(values[k])
		}
		counts := false
		for i := range queries {
			bins[i] = int32(queries[i].Bin(row))
			counts = counts || bins[i] >= 0
		}
		key := appendKey(nil, bins)
		if _, found := c.place[string(key)]; found || !counts {
			continue
		}
		c.place[string(key)] = len(c.Bins)
		c.Bins = append(c.Bins, append([]int32(nil), bins...))
	}
	return c
}

func appendKey(b []byte, bins []int32) []byte {
	for _, bin := range bins {
		b = binary.LittleEndian.AppendUint32(b, uint32(bin))
	}
	return b
}

// alike reports whether two queries have the same bins of all cells.
func (c *Cells) alike(i, k int) bool {
	for _, bins := range c.Bins {
		if bins[i] != bins[k] {
			return false
		}
	}
	return true
}

// Len returns how many cells there are.
func (c *Cells) Len() int { return len(c.Bins) }

// Of returns the cell of a row by its bins, −1: no query counts it.
func (c *Cells) Of(bins []int32) int {
	var room [128]byte
	if k, found := c.place[string(appendKey(room[:0], bins))]; found {
		return k
	}
	return -1
}
