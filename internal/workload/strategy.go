package workload

import (
	"math/bits"
	"slices"
)

// Strategy measures weighted counts of cells, and answers queries from their least-squares
// solution.
type Strategy struct {
	*Cells
	Share  float64 // of the budget, of all queries together
	Counts []Count // that are measured
	// Ratio holds, for each query, the mean variance of its answers over that by itself.
	Ratio  []float64
	system *system
}

// Count is a count of rows in some cells, which is measured with a weight.
type Count struct {
	Cells  []int32 // in ascending order
	Square float64 // of the weight: of all counts with a cell they add up to 1 at most
}

// Solve returns (AᵀA)⁻¹w, where A holds the weighted counts and w a number for each cell.
func (s *Strategy) Solve(w []float64) []float64 {
	z := make([]float64, len(w))
	s.system.solve(w, z)
	return z
}

// A strategy must gain: its variance of a query's answers over the variance without a strategy is
// at most this on average over queries, and for no query is the largest variance larger.
const (
	gains = 0.9
	near  = 0.97 // of a largest variance over the one by itself: from there on a query weighs more
)

const (
	mostWork = 1 << 21 // multiplications of a step: where it takes more, none is chosen
	steps    = 50
	trims    = 20   // steps of those, after counts of little weight are left out
	little   = 0.01 // of a weight's square
	free     = 10   // steps before any query weighs more than others
)

// Work bounds the multiplications of a step of all strategies that are chosen with it.
type Work int

// NewWork returns as much as four strategies of the most work may take.
func NewWork() *Work { return new(Work(4 * mostWork)) }

// Choose returns a strategy for queries of rows whose columns each have one of the given values;
// nil: there is none that gains, or left does not suffice to look for one.
func Choose(values [][]float64, queries []Query, left *Work) *Strategy {
	cells := newCells(values, queries)
	if len(queries) < 2 || cells == nil || cells.Len() == 0 {
		return nil
	}
	d := newDesign(cells, queries)
	if d == nil || d.work > int(*left) {
		return nil
	}
	*left -= Work(d.work)
	for step := range steps {
		if step == steps-trims {
			d.trim()
		}
		d.evaluate(true)
		for i, r := range d.top {
			if r /= near; r > 1 && step >= free {
				d.press[i] = float64(d.press[i] * r * r)
			}
		}
		d.step()
	}
	d.evaluate(false)
	sum := 0.0
	for i, r := range d.ratio {
		if d.top[i] > 1 {
			return nil
		}
		sum += r
	}
	if sum > gains*float64(len(queries)) {
		return nil
	}
	return d.strategy(cells)
}

// design looks for the weights of counts with which the variances of answers are least: the problem
// is convex in the squares of weights.
type design struct {
	*system
	work     int // multiplications of a step
	share    float64
	asked    [][]functional // by query
	alone    []float64      // mean variance of a query's, by itself
	worst    []float64      // largest
	ratio    []float64      // over the mean
	top      []float64      // of the largest over it
	press    []float64      // of a query: more where its top is above 1
	price    []float64      // of a cell's norm
	gain     []float64      // of the weight of a node
	gainSets []float64
}

// functional is a sum of parts of cells.
type functional []float64

// newDesign returns one of even weights, nil if it would take long.
func newDesign(cells *Cells, queries []Query) *design {
	n := cells.Len()
	d := &design{ratio: make([]float64, len(queries)), price: make([]float64, n),
		top: make([]float64, len(queries)), press: make([]float64, len(queries))}
	var sets [][]int32
	work := 0
	for i, q := range queries {
		if work > mostWork/4 { // before others take memory
			return nil
		}
		d.share += q.Share
		bins := make([][]int32, q.Bins)
		for j := range n {
			if bin := cells.Bins[j][i]; bin >= 0 {
				bins[bin] = append(bins[bin], int32(j))
			}
		}
		d.alone, d.worst = append(d.alone, 1/q.Share), append(d.worst, 1/q.Share)
		if q.Quantiles != nil {
			turn, turns := 0, 0
			for k := range queries {
				if queries[k].Quantiles != nil && cells.alike(i, k) {
					if k == i {
						turn = turns
					}
					turns++
				}
			}
			asked, mean, worst := edges(bins, n, q.Quantiles, turn, turns)
			d.asked = append(d.asked, asked)
			levels := float64(bits.Len(uint(q.Bins)))
			d.alone[i] = float64(mean*levels) / q.Share
			d.worst[i] = float64(worst*levels) / q.Share
			work += n * len(asked)
			continue
		}
		var asked []functional
		for _, set := range bins {
			if set == nil {
				continue
			}
			w := make(functional, n)
			for _, j := range set {
				w[j] = 1
			}
			asked = append(asked, w)
			if len(set) > 1 && !isNode(set, n) &&
				!slices.ContainsFunc(sets, func(o []int32) bool { return slices.Equal(o, set) }) {
				sets = append(sets, set)
			}
		}
		d.asked = append(d.asked, asked)
		work += n * len(asked)
	}
	// Each functional is solved for by the tree and by the factor of what sets add, which has as many
	// rows as there are sets: of few cells there may be many more.
	d.work = work*(len(sets)+4) + work/n*len(sets)*len(sets)/2
	if d.work > mostWork || len(sets) > MostCells {
		return nil
	}
	d.system = newSystem(n, sets)
	d.gain, d.gainSets = make([]float64, len(d.node)), make([]float64, len(sets))
	for k := 1; k < len(d.node); k++ {
		if d.own(k) {
			d.node[k] = 1
		}
	}
	for s := range sets {
		d.weight[s] = 1
	}
	d.fit()
	for j := range d.price {
		d.price[j] = 1
	}
	for i := range d.press {
		d.press[i] = 1
	}
	return d
}

// edges returns what the counts below edges are less parts of all rows, and the mean and the
// largest of their variances by a tree of the bins. Nobody knows at which edge a quantile will be:
// they take turns, and so do queries of the same bins.
func edges(
	bins [][]int32, cells int, quantiles []float64, turn, turns int,
) (asked []functional, mean, worst float64) {
	var some []int // bins with cells
	for bin, set := range bins {
		if set != nil {
			some = append(some, bin)
		}
	}
	for k := 1; k < len(some); k++ {
		if k%turns != turn && len(some) > turns {
			continue
		}
		q := quantiles[k/turns%len(quantiles)]
		w := make(functional, cells)
		for at, bin := range some {
			for _, j := range bins[bin] {
				if w[j] = -q; at < k {
					w[j]++
				}
			}
		}
		asked = append(asked, w)
		spread := Spread(some[k], len(bins), q)
		mean += spread
		worst = max(worst, spread)
	}
	return asked, mean / float64(max(1, len(asked))), worst
}

// isNode reports whether a set of cells is all that is below a node.
func isNode(set []int32, cells int) bool {
	from, to := int(set[0]), int(set[len(set)-1])+1
	if to-from != len(set) {
		return false
	}
	size := 1
	for size < len(set) {
		size *= 2
	}
	return from%size == 0 && (to == from+size || to == cells)
}

// own reports whether a node has cells that no child has all of.
func (y *system) own(k int) bool {
	size := y.size >> (bits.Len(uint(k)) - 1)
	from := k*size - y.size
	if size == 1 {
		return from < y.cells
	}
	return from+size/2 < y.cells
}

// evaluate works the ratios of variances out, and by how much more weight of each count would lower
// their sum.
func (d *design) evaluate(slopes bool) {
	d.prepare()
	clear(d.gain)
	clear(d.gainSets)
	z := make([]float64, d.cells)
	for i, asked := range d.asked {
		unit := 1 / float64(d.share*d.alone[i]) / float64(max(1, len(asked)))
		d.ratio[i], d.top[i] = 0, 0
		pressed := float64(unit * d.press[i])
		for _, w := range asked {
			d.solve(w, z)
			sum := 0.0
			for j, x := range w {
				sum += float64(x * z[j])
			}
			d.ratio[i] += float64(sum * unit)
			d.top[i] = max(d.top[i], sum/float64(d.share*d.worst[i]))
			if !slopes {
				continue
			}
			for k, x := range d.sums(z) {
				d.gain[k] += float64(float64(x*x) * pressed)
			}
			for s, set := range d.sets {
				x := 0.0
				for _, j := range set {
					x += z[j]
				}
				d.gainSets[s] += float64(float64(x*x) * pressed)
			}
		}
	}
}
