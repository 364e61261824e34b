package query

import (
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
)

// quantiles reads a tree of counts. A quantile q is where the rows below are q of all. At each edge
// of a bin the noise of both together has a deviation of its own, and the interval holds the bins
// between edges at which they differ by more than some deviations: see reaches.
func (s *sum) quantiles(a *ask, nodes []float64, deviation float64) (cells []Cell) {
	leaves := nodes[a.column.bins-1:]
	if !a.exact {
		leaves = fitted(nodes)
	}
	below := belowEdges(leaves)
	total := below[len(leaves)]
	below = ascending(below)
	reaches := make([]float64, len(a.At))
	if deviation > 0 {
		reaches = a.reaches(below, deviation)
	}
	for i, q := range a.At {
		deviations := a.deviations(q, deviation)
		low, high := len(leaves)-1, 0
		at := low
		for bin := len(leaves) - 1; bin >= 0; bin-- {
			if below[bin+1]-q*total >= -reaches[i]*deviations[bin+1]-(1-q)*s.absent {
				low = bin
			}
			if below[bin+1] >= q*total {
				at = bin
			}
			if high == 0 && below[bin]-q*total < reaches[i]*deviations[bin]+q*s.absent {
				high = bin
			}
		}
		c := Cell{Label: strconv.FormatFloat(q, 'g', -1, 64)}
		c.Low, c.High = a.column.least(low), a.column.most(max(low, high))
		c.Value = a.inside(at, q*total-below[at], below[at+1]-below[at])
		cells = append(cells, c.within(a.column.Range[0], a.column.Range[1]))
	}
	for i := 1; i < len(cells); i++ { // equal but for the last places of a sum
		cells[i].Value = max(cells[i].Value, cells[i-1].Value)
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

// deviations returns, for each edge, that of the rows below less q of all.
func (a *ask) deviations(q, deviation float64) []float64 {
	out := make([]float64, a.column.bins+1)
	for edge := range out {
		out[edge] = deviation * math.Sqrt(spread(edge, a.column.bins, q))
	}
	return out
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
func (a *ask) reaches(below []float64, deviation float64) []float64 {
	bins := a.column.bins
	random := rand.New(rand.NewPCG(1, 1))
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
		targets = append(targets, target{edge, q, a.deviations(q, deviation), nil})
	}
	exact := make([]float64, 2*bins-1)
	for i := range bins {
		exact[bins-1+i] = below[i+1] - below[i]
	}
	for node := bins - 1; node > 0; node-- {
		exact[node-1] = exact[2*node-1] + exact[2*node]
	}
	noisy := make([]float64, len(exact))
	for range replicas {
		for i, x := range exact {
			noisy[i] = x + deviation*random.NormFloat64()
		}
		drawn := belowEdges(fitted(noisy))
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

// inside returns where in a bin so many of its rows are below.
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
