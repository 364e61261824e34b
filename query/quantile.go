package query

import (
	"math"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/hushsum/hushsum/internal/workload"
)

// tree holds counts of bins from which quantiles are read.
type tree struct {
	leaves     []float64 // as least squares gives them
	consistent []float64 // nil: they are not
	// deviations returns, for each edge, that of the rows below less q of all; nil: there is none.
	deviations func(q float64) []float64
	noise      func(k int) []float64 // draw k of that of leaves
}

// tree reads nodes whose noise is alike.
func (a *ask) tree(nodes []float64, deviation float64) *tree {
	if a.exact {
		return &tree{leaves: nodes[a.column.bins-1:]}
	}
	random := rand.New(rand.NewPCG(1, 1))
	return &tree{
		leaves: fitted(nodes),
		deviations: func(q float64) []float64 {
			out := make([]float64, a.column.bins+1)
			for edge := range out {
				out[edge] = deviation * math.Sqrt(workload.Spread(edge, a.column.bins, q))
			}
			return out
		},
		noise: func(int) []float64 {
			noisy := make([]float64, 2*a.column.bins-1)
			for i := range noisy {
				noisy[i] = deviation * random.NormFloat64()
			}
			return fitted(noisy)
		},
	}
}

// quantiles reads a tree of counts. A quantile q is where the rows below are q of all. At each edge
// of a bin the noise of both together has a deviation of its own, and the interval holds the bins
// between edges at which they differ by more than some deviations: see reaches.
func (s *sum) quantiles(a *ask, t *tree) (cells []Cell) {
	leaves := t.leaves
	below := belowEdges(leaves)
	total := below[len(leaves)]
	below = ascending(below)
	shown, all := below, total // where values are read
	if t.consistent != nil {
		shown = belowEdges(t.consistent)
		all = shown[len(leaves)]
	}
	reaches := make([]float64, len(a.At))
	if t.deviations != nil {
		reaches = a.reaches(below, t)
	}
	for i, q := range a.At {
		deviations := make([]float64, len(below))
		if t.deviations != nil {
			deviations = t.deviations(q)
		}
		low, high := len(leaves)-1, 0
		at := low
		for bin := len(leaves) - 1; bin >= 0; bin-- {
			if below[bin+1]-q*total >= -reaches[i]*deviations[bin+1]-(1-q)*s.absent {
				low = bin
			}
			if shown[bin+1] >= q*all {
				at = bin
			}
			if high == 0 && below[bin]-q*total < reaches[i]*deviations[bin]+q*s.absent {
				high = bin
			}
		}
		c := Cell{Label: strconv.FormatFloat(q, 'g', -1, 64)}
		c.Low, c.High = a.column.least(low), a.column.most(max(low, high))
		c.Value = a.inside(at, q*all-shown[at], shown[at+1]-shown[at])
		cells = append(cells, c.within(a.column.Range[0], a.column.Range[1]))
	}
	for i := 1; i < len(cells); i++ { // equal but for the last places of a sum
		cells[i].Value = max(cells[i].Value, cells[i-1].Value)
		cells[i].High = max(cells[i].High, cells[i].Value)
	}
	for i, c := range cells {
		cells[i] = c.unlessAll(a.column.least(0), a.column.most(a.column.bins-1), s.deviation)
	}
	return cells
}

// belowEdges returns the rows below each edge of bins.
func belowEdges(leaves []float64) []float64 {
	below := make([]float64, len(leaves)+1)
	for i, x := range leaves {
		below[i+1] = below[i] + x
	}
	return below
}

// replicas is how many times noise is drawn to find out how far intervals of quantiles reach.
const replicas = 200

// reaches returns, for each quantile, how many deviations away from it the ends of its interval
// are. With bins of many rows that is the test's 1.96 at one end or 1.64 at both; where there are
// few in a bin, the counts below many edges are near, ascending counts err less than each by
// itself, and an interval that reached as far would hold the truth too often. So noise is drawn
// anew over the counts that were found, as if the truth were at the nearest edge, which is the
// worst place in a bin, and the reach holds it in 95 % of the draws. Nothing of the rows
// but the noisy counts goes in. The draws follow from a seed: all readers find the same.
func (a *ask) reaches(below []float64, t *tree) []float64 {
	bins := a.column.bins
	type target struct {
		edge       int
		q          float64
		deviations []float64
		needed     []float64
	}
	var targets []target
	span := below[bins] - below[0]
	for _, q := range a.At {
		want := below[0] + q*span
		edge, _ := slices.BinarySearch(below, want)
		edge = min(max(edge, 1), bins-1)
		if want-below[edge-1] < below[edge]-want && edge > 1 {
			edge--
		}
		if span > 0 {
			q = min(max((below[edge]-below[0])/span, 1e-9), 1-1e-9)
		}
		targets = append(targets, target{edge, q, t.deviations(q), nil})
	}
	for k := range replicas {
		drawn := belowEdges(t.noise(k))
		for edge := range drawn {
			drawn[edge] += below[edge] - below[0]
		}
		total := drawn[bins]
		drawn = ascending(drawn)
		for k := range targets {
			targets[k].needed = append(targets[k].needed, needed(drawn, total, targets[k].edge,
				targets[k].q, targets[k].deviations))
		}
	}
	out := make([]float64, len(targets))
	for k := range targets {
		slices.Sort(targets[k].needed)
		out[k] = targets[k].needed[int(math.Ceil(0.95*replicas))-1]
	}
	return out
}

// needed returns the least reach with which an interval holds what is just below an edge.
func needed(below []float64, total float64, edge int, q float64, deviations []float64) float64 {
	low, high := math.Inf(1), math.Inf(1)
	for e := 1; e <= edge; e++ { // some bin up to this one is not below
		low = min(low, (q*total-below[e])/deviations[e])
	}
	for e := edge - 1; e < len(below)-1; e++ { // and some from it on not above
		high = min(high, (below[e]-q*total)/deviations[e])
	}
	return max(0, low, high)
}

// inside returns the place in a bin below which the given part of its rows lies.
func (a *ask) inside(bin int, part, rows float64) float64 {
	share := 0.5
	if rows > 0 {
		share = min(max(part/rows, 0), 1)
	}
	x := a.column.edge(bin) + share*a.column.width()
	if a.column.Type == "whole" {
		return min(max(math.Floor(x), a.column.least(bin)), a.column.most(bin))
	}
	return x
}
