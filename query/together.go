package query

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/hushsum/hushsum/internal/workload"
	"github.com/hushsum/hushsum/job"
)

// together has queries that are answered from one measurement: weighted counts of cells, of which
// least squares makes all answers. See [job.Job.Together].
type together struct {
	*workload.Strategy
	asks  []int // places in the plan
	along bool  // cells lie along a column of numbers
	from  int   // first coordinate
	scale float64
	adds  [][]added // by cell
	bins  [][][]int32
	// covariance of cells, over the variance of a coordinate in rows; of a few cells, all.
	covariance [][]float64
}

// added says how much a row adds to a coordinate.
type added struct {
	at int
	by float64
}

// newTogether compiles queries that are answered together.
func (p *Plan) newTogether(g *job.Together, asks []ask) *together {
	t := &together{Strategy: g.Strategy, asks: g.Queries, from: p.length,
		scale: math.Sqrt(g.Strategy.Share)}
	if !p.job.PerRecord() {
		t.scale /= float64(p.job.Parties.Rows)
	}
	n := t.Cells.Len()
	t.adds = make([][]added, n)
	for i, count := range t.Counts {
		for _, j := range count.Cells {
			t.adds[j] = append(t.adds[j], added{i, t.scale * math.Sqrt(count.Square)})
		}
	}
	for j := range n {
		w := make([]float64, n)
		w[j] = 1
		t.covariance = append(t.covariance, t.Solve(w))
	}
	columns := map[string]bool{}
	for _, i := range t.asks {
		for _, name := range p.job.ColumnsOf(asks[i].Query) {
			columns[name] = true
		}
	}
	for i := range p.job.Column {
		c := &p.job.Column[i]
		t.along = t.along || len(columns) == 1 && columns[c.Name] && c.Numeric()
	}
	for k, i := range t.asks {
		bins := make([][]int32, asks[i].bins())
		for j, of := range t.Cells.Bins {
			if of[k] >= 0 {
				bins[of[k]] = append(bins[of[k]], int32(j))
			}
		}
		t.bins = append(t.bins, bins)
	}
	return t
}

// bins returns how many bins a query that counts rows has.
func (a *ask) bins() int {
	switch a.Kind {
	case "histogram", "quantiles":
		return a.column.bins
	case "crosstab":
		return a.column.bins * a.by.bins
	}
	return 1
}

// bin returns the bin in which a query that counts rows has a row, −1: it does not count.
func (a *ask) bin(row []float64) int {
	for i := range a.conditions {
		if c := &a.conditions[i]; !c.Holds(row[c.at]) {
			return -1
		}
	}
	if a.column == nil {
		return 0
	}
	x := row[a.column.at]
	if math.IsNaN(x) {
		return -1
	}
	bin := a.column.bin(x)
	if a.Kind == "crosstab" {
		other := row[a.by.at]
		if math.IsNaN(other) {
			return -1
		}
		bin = bin*a.by.bins + a.by.bin(other)
	}
	return bin
}

// add adds a row to the coordinates; bins are room.
func (t *together) add(v, row []float64, asks []ask, bins []int32) {
	bins = bins[:0]
	for _, i := range t.asks {
		bins = append(bins, int32(asks[i].bin(row)))
	}
	if cell := t.Cells.Of(bins); cell >= 0 {
		for _, a := range t.adds[cell] {
			v[a.at] += a.by
		}
	}
}

// back returns Aᵀy: of coordinates, in the unit of the vector, what cells have of them.
func (t *together) back(y []float64) []float64 {
	w := make([]float64, t.Cells.Len())
	for j := range w {
		for _, a := range t.adds[j] {
			w[j] += a.by / t.scale * y[a.at]
		}
	}
	return w
}

// covary returns the covariance of two sums of cells, over the variance of a coordinate in rows.
func (t *together) covary(cells, others []int32) (sum float64) {
	for _, j := range cells {
		for _, k := range others {
			sum += t.covariance[j][k]
		}
	}
	return sum
}

// found holds the cells that a sum gives: those of least squares, and the nearest that are
// consistent, both in rows.
type found struct {
	*together
	deviation         float64 // of a coordinate, in rows
	noisy, consistent []float64
	random            *rand.Rand // from a seed: all readers draw the same
	drawn             [][]float64
}

// find reads the cells of a sum.
func (s *sum) find(t *together) *found {
	f := &found{together: t, deviation: s.deviation / t.scale, random: rand.New(rand.NewPCG(1, 1))}
	y := slices.Clone(s.values[t.from : t.from+len(t.Counts)])
	for i := range y {
		y[i] /= t.scale
	}
	f.noisy = t.Solve(t.back(y))
	f.consistent = t.consistent(f.noisy, s.most())
	return f
}

// consistent returns cells near to noisy ones that are not negative, and whose total is the same or
// the nearest from 0 to most: along a column of numbers the cells for which the numbers of rows
// below ascend, and else the nearest by the covariance of their noise.
func (t *together) consistent(noisy []float64, most float64) []float64 {
	if !t.along {
		return t.nearest(noisy, most)
	}
	out, last := make([]float64, len(noisy)), 0.0
	for j, x := range ascending(belowEdges(noisy)[1:]) {
		x = min(max(0, x), most)
		out[j], last = x-last, x
	}
	return out
}

// rounds bounds how often all cells are moved to be consistent.
const rounds = 200

// nearest returns the cells that are nearest by the covariance of their noise, of those that are
// not negative and add up to the same total, or to the nearest from 0 to most (Hildreth 1957).
func (t *together) nearest(noisy []float64, most float64) []float64 {
	x := slices.Clone(noisy)
	total, spread, least := 0.0, 0.0, math.Inf(1)
	sums := make([]float64, len(x)) // of lines of the covariance
	for j := range x {
		total += x[j]
		for _, c := range t.covariance[j] {
			sums[j] += c
		}
		spread += sums[j]
		least = min(least, t.covariance[j][j])
	}
	target := min(total, most)
	if target <= 0 {
		clear(x)
		return x
	}
	push := make([]float64, len(x)) // of a cell away from below 0
	sum := total
	small := 1e-6 * math.Sqrt(least)
	for range rounds {
		by := (target - sum) / spread
		moved := math.Abs(target - sum)
		for j := range x {
			x[j] += by * sums[j]
		}
		for j := range x {
			more := max(-push[j], -x[j]/t.covariance[j][j])
			if more == 0 {
				continue
			}
			push[j] += more
			moved = max(moved, math.Abs(more)*t.covariance[j][j])
			for k, c := range t.covariance[j] {
				x[k] += more * c
			}
		}
		if moved < small {
			break
		}
		sum = 0
		for _, value := range x {
			sum += value
		}
	}
	sum = 0
	for j := range x {
		x[j] = max(0, x[j])
		sum += x[j]
	}
	for j := range x { // what is left to the last places
		x[j] *= min(1, target/sum)
	}
	return x
}

// counted is a number of rows that queries answer together.
type counted struct{ noisy, consistent, reach float64 }

// count adds cells up.
func (f *found) count(cells []int32) (c counted) {
	for _, j := range cells {
		c.noisy += f.noisy[j]
		c.consistent += f.consistent[j]
	}
	c.reach = z95 * f.deviation * math.Sqrt(max(0, f.covary(cells, cells)))
	return c
}

// answer answers a query.
func (s *sum) together(a *ask, f *found) Answer {
	bins := f.bins[a.member]
	cell := func(cells []int32) Cell {
		c := f.count(cells)
		return s.count(c.noisy, c.consistent, c.reach)
	}
	var out Answer
	switch a.Kind {
	case "histogram":
		for i, cells := range bins {
			c := cell(cells)
			c.Label = a.column.label(i)
			out.Cells = append(out.Cells, c)
		}
	case "crosstab":
		width := a.by.bins
		lines, columns := make([][]int32, a.column.bins), make([][]int32, width)
		for i, cells := range bins {
			c := cell(cells)
			c.Label, c.By = a.column.label(i/width), a.by.label(i%width)
			out.Cells = append(out.Cells, c)
			lines[i/width] = append(lines[i/width], cells...)
			columns[i%width] = append(columns[i%width], cells...)
		}
		for side, of := range [][][]int32{lines, columns} {
			for i, cells := range of {
				c := cell(cells)
				c.Label = []*axis{a.column, a.by}[side].label(i)
				out.Margins[side] = append(out.Margins[side], c)
			}
		}
	case "quantiles":
		out.Cells = s.quantiles(a, f.tree(a))
	default:
		out.Cells = []Cell{cell(bins[0])}
	}
	return out
}

// tree reads the bins of quantiles.
func (f *found) tree(a *ask) *tree {
	bins := f.bins[a.member]
	leaves := func(cells []float64) []float64 {
		out := make([]float64, len(bins))
		for i, of := range bins {
			for _, j := range of {
				out[i] += cells[j]
			}
		}
		return out
	}
	own, below, total := f.edges(a.member)
	last := len(below) - 1
	return &tree{
		leaves:     leaves(f.noisy),
		consistent: leaves(f.consistent),
		deviations: func(q float64) []float64 {
			out := make([]float64, len(below))
			for edge := range out {
				v := own[edge] - 2*q*below[edge] + q*q*total
				out[edge] = f.deviation * math.Sqrt(max(v, 1e-12*own[last]))
			}
			return out
		},
		noise: func(k int) []float64 {
			for len(f.drawn) <= k {
				y := make([]float64, len(f.Counts))
				for i := range y {
					y[i] = f.deviation * f.random.NormFloat64()
				}
				f.drawn = append(f.drawn, f.Solve(f.back(y)))
			}
			return leaves(f.drawn[k])
		},
	}
}

// edges returns, for each edge of a query's bins, the variance of the rows below, and their
// covariance with all; and the variance of all.
func (t *together) edges(member int) (own, all []float64, total float64) {
	bins := t.bins[member]
	line := make([]float64, t.Cells.Len()) // the covariance of the rows below with each cell
	own, all = make([]float64, len(bins)+1), make([]float64, len(bins)+1)
	sum := func(of [][]int32) (s float64) {
		for _, cells := range of {
			for _, j := range cells {
				s += line[j]
			}
		}
		return s
	}
	for edge := 1; edge <= len(bins); edge++ {
		for _, j := range bins[edge-1] {
			for k, c := range t.covariance[j] {
				line[k] += c
			}
		}
		own[edge], all[edge] = max(0, sum(bins[:edge])), sum(bins)
	}
	return own, all, own[len(bins)]
}

// worst returns the largest deviation of what a query counts, over that of a coordinate in rows: of
// a bin, or of quantiles of the rows below an edge, for rows that are spread evenly.
func (t *together) worst(a *ask) (most float64) {
	bins := t.bins[a.member]
	if a.Kind == "quantiles" {
		own, all, total := t.edges(a.member)
		for edge := range bins {
			q := a.column.share(edge)
			most = max(most, own[edge]-2*q*all[edge]+q*q*total)
		}
		return math.Sqrt(most)
	}
	for _, cells := range bins {
		most = max(most, t.covary(cells, cells))
	}
	return math.Sqrt(most)
}

// norm returns the norm of what a row adds to a query's answers, in their noise, over that of all
// that is measured: 1/√w for a count whose variance is w.
func (t *together) norm(member int) float64 {
	var bins [][]int32
	all := true // each has one cell, and all cells have one
	cells := 0
	for _, of := range t.bins[member] {
		if of != nil {
			bins, all, cells = append(bins, of), all && len(of) == 1, cells+1
		}
	}
	if all && cells == t.Cells.Len() {
		return 1
	}
	// The diagonal of the inverse of the covariance, by its Cholesky factor and that one's inverse.
	n := len(bins)
	lower, inverse := make([][]float64, n), make([][]float64, n)
	most := make([]float64, n)
	for a := range n {
		lower[a], inverse[a] = make([]float64, a+1), make([]float64, a+1)
		for b := range a + 1 {
			x := t.covary(bins[a], bins[b])
			for i := range b {
				x -= lower[a][i] * lower[b][i]
			}
			if a == b {
				lower[a][a] = math.Sqrt(max(x, 1e-12))
			} else {
				lower[a][b] = x / lower[b][b]
			}
		}
		for b := range a + 1 {
			x := 0.0
			if a == b {
				x = 1
			}
			for i := b; i < a; i++ {
				x -= lower[a][i] * inverse[i][b]
			}
			inverse[a][b] = x / lower[a][a]
			most[b] += inverse[a][b] * inverse[a][b]
		}
	}
	if n == 0 {
		return 0
	}
	return min(1, math.Sqrt(slices.Max(most)))
}
