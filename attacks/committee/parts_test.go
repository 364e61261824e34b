package committee

import (
	"math/big"
	"testing"
)

func TestRank(t *testing.T) {
	for _, c := range []struct {
		rows [][]int64
		want int
	}{
		{[][]int64{{0, 0}, {0, 0}}, 0},
		{[][]int64{{0, 2}, {0, 5}}, 1},
		{[][]int64{{1, 2}, {2, 4}, {0, 0}}, 1},
		{[][]int64{{0, 0, 3}, {0, 2, 1}, {1, 1, 1}}, 3},
		{[][]int64{{1, 1, 0}, {0, 1, 1}, {1, 2, 1}, {2, 3, 1}}, 2},
	} {
		rows := make([][]*big.Int, len(c.rows))
		for i, row := range c.rows {
			for _, x := range row {
				rows[i] = append(rows[i], big.NewInt(x))
			}
		}
		if got := rank(rows); got != c.want {
			t.Errorf("%v: rank %d, want %d", c.rows, got, c.want)
		}
	}
}
