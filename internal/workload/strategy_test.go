package workload

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"
	"math/rand/v2"
	"testing"
)

// whole returns this many whole numbers from 0.
func whole(n int) (list []float64) {
	for i := range n {
		list = append(list, float64(i))
	}
	return list
}

// between counts rows with a first value from low to below high.
func between(low, high, share float64) Query {
	return Query{Bins: 1, Share: share, Bin: func(row []float64) int {
		if row[0] >= low && row[0] < high {
			return 0
		}
		return -1
	}}
}

// each has a bin for each value of a column.
func each(column, bins int, share float64) Query {
	return Query{Bins: bins, Share: share, Bin: func(row []float64) int { return int(row[column]) }}
}

// problem is one that has a strategy.
type problem struct {
	values  [][]float64
	queries []Query
	ratio   float64 // mean variance over that by themselves, at most
}

func problems() map[string]problem {
	random := rand.New(rand.NewPCG(1, 1))
	ranges, parts := problem{values: [][]float64{whole(101)}, ratio: 0.21}, problem{
		values: [][]float64{whole(100)}, ratio: 0.0501}
	for i := range 20 {
		low, high := float64(random.IntN(101)), float64(random.IntN(101))
		ranges.queries = append(ranges.queries, between(min(low, high), max(low, high)+1, 0.05))
		parts.queries = append(parts.queries, between(float64(5*i), float64(5*i+5), 0.05))
	}
	cells := each(0, 50, 0.2)
	cells.Bin = func(row []float64) int { return int(row[0])*5 + int(row[1]) }
	quantiles := each(0, 64, 0.3)
	quantiles.Quantiles = []float64{0.25, 0.5}
	return map[string]problem{
		"ranges":    ranges,
		"parts":     parts,
		"margins":   {[][]float64{whole(10), whole(5)}, []Query{cells, each(0, 10, 0.4), each(1, 5, 0.4)}, 0.85},
		"quantiles": {[][]float64{whole(60)}, []Query{quantiles, between(30, 64, 0.1)}, 0.7},
	}
}

// A row adds a norm of 1 at most to all counts of a strategy, whatever its cell; Solve inverts
// AᵀA; and Ratio has the variances of least squares over those by themselves.
func TestStrategy(t *testing.T) {
	for name, p := range problems() {
		s := Choose(p.values, p.queries, NewWork())
		if s == nil {
			t.Errorf("%s: there is no strategy", name)
			continue
		}
		n := s.Len()
		matrix := make([][]float64, n)
		for j := range matrix {
			matrix[j] = make([]float64, n)
		}
		for _, count := range s.Counts {
			for _, j := range count.Cells {
				for _, k := range count.Cells {
					matrix[j][k] += count.Square
				}
			}
		}
		inverse := make([][]float64, n)
		for j := range n {
			if matrix[j][j] > 1+1e-12 || matrix[j][j] < 1-1e-3 {
				t.Errorf("%s: a row of cell %d adds %v", name, j, matrix[j][j])
			}
			w := make([]float64, n)
			w[j] = 1
			inverse[j] = s.Solve(w)
			for k, line := range matrix {
				sum := 0.0
				for i, x := range line {
					sum += x * inverse[j][i]
				}
				if math.Abs(sum-w[k]) > 1e-8 {
					t.Fatalf("%s: X·X⁻¹ is %v at %d, %d", name, sum, k, j)
				}
			}
		}
		mean := 0.0
		for i, q := range p.queries {
			mean += s.Ratio[i] / float64(len(p.queries))
			if q.Quantiles != nil {
				continue
			}
			variance := 0.0
			for j := range n {
				for k := range n {
					if s.Bins[j][i] >= 0 && s.Bins[j][i] == s.Bins[k][i] {
						variance += inverse[j][k] / float64(q.Bins)
					}
				}
			}
			if want := variance / s.Share * q.Share; math.Abs(s.Ratio[i]-want) > 1e-8*want {
				t.Errorf("%s: query %d has ratio %v, want %v", name, i, s.Ratio[i], want)
			}
		}
		if mean > p.ratio {
			t.Errorf("%s: %.4f of the variance by themselves", name, mean)
		}
		t.Logf("%-9s %d counts of %d cells, %.4f of the variance", name, len(s.Counts), n, mean)
	}
}

// All parties must come to the same weights, to the bit, whatever their processor is: a change of
// this sum is a change of what they send.
func TestSameEverywhere(t *testing.T) {
	sum := sha256.New()
	all := problems()
	for _, name := range []string{"ranges", "parts", "margins", "quantiles"} {
		s := Choose(all[name].values, all[name].queries, NewWork())
		for _, count := range s.Counts {
			var b []byte
			for _, j := range count.Cells {
				b = binary.LittleEndian.AppendUint32(b, uint32(j))
			}
			sum.Write(binary.LittleEndian.AppendUint64(b, math.Float64bits(count.Square)))
		}
	}
	const want = "65d54fc722c11a2a1761920d09b8a53aa70082399b95d6247dc0839271941718"
	if got := hex.EncodeToString(sum.Sum(nil)); got != want {
		t.Errorf("strategies have the sum %s", got)
	}
}

// What gains nothing, or too little, and what would take long has no strategy.
func TestNone(t *testing.T) {
	var subsets []Query // 240 sets of 8 cells that are no nodes of the tree
	for set := 1; set < 255; set++ {
		subsets = append(subsets, Query{Bins: 1, Share: 1.0 / 254, Bin: func(row []float64) int {
			return set>>int(row[0])&1 - 1
		}})
	}
	for name, p := range map[string]problem{
		"one query": {[][]float64{whole(10)}, []Query{each(0, 10, 1)}, 0},
		"a histogram and its total": {[][]float64{whole(10)}, []Query{each(0, 10, 0.5),
			between(0, 10, 0.5)}, 0},
		"many values": {[][]float64{whole(40), whole(40)}, []Query{each(0, 40, 0.5),
			each(1, 40, 0.5)}, 0},
		"many sets of few cells": {[][]float64{whole(8)}, subsets, 0},
		"nothing":                {[][]float64{whole(10)}, []Query{between(20, 30, 0.5), between(30, 40, 0.5)}, 0},
	} {
		if s := Choose(p.values, p.queries, NewWork()); s != nil {
			t.Errorf("%s: %v", name, s.Ratio)
		}
	}
}

// A row whose bins no combination of values has is in no cell.
func TestOf(t *testing.T) {
	c := newCells([][]float64{whole(6)}, []Query{between(1, 4, 0.5), between(3, 5, 0.5)})
	if c.Len() != 3 {
		t.Fatal(c.Bins)
	}
	for _, want := range []struct {
		bins []int32
		cell int
	}{{[]int32{0, -1}, 0}, {[]int32{0, 0}, 1}, {[]int32{-1, 0}, 2}, {[]int32{-1, -1}, -1}} {
		if got := c.Of(want.bins); got != want.cell {
			t.Errorf("%v: cell %d", want.bins, got)
		}
	}
}
