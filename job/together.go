package job

import (
	"encoding/json"
	"math"
	"slices"
	"sync"

	"github.com/hushsum/hushsum/internal/workload"
)

// Together holds queries of a job that are answered together, by least squares from one measurement
// of counts of rows: that has less error than measuring the answer to each query by itself.
type Together struct {
	Queries []int // places in the job
	// Strategy says which counts are measured; the queries of its cells are in the order of
	// Queries.
	Strategy *workload.Strategy
}

// Together returns the queries of a valid job with its defaults that are answered together. The
// result follows from the declaration alone, and is the same for all parties.
func (j *Job) Together() []Together {
	if !j.Noisy() {
		return nil
	}
	key, err := json.Marshal([]any{j.Column, j.Query})
	if err != nil {
		return nil
	}
	recent.Lock()
	defer recent.Unlock()
	found, known := recent.of[string(key)]
	if !known {
		if len(recent.of) >= mostRecent {
			clear(recent.of)
		}
		found = j.together()
		recent.of[string(key)] = found
	}
	return found
}

// recent has what was worked out for queries: a job's defaults are filled in again and again.
var recent = struct {
	sync.Mutex
	of map[string][]Together
}{of: map[string][]Together{}}

const mostRecent = 32

// together works out what Together returns. Queries that count rows by the same columns, or by some
// of them, may be answered together.
func (j *Job) together() (all []Together) {
	g := &grouping{Job: j, conditions: make([][]Condition, len(j.Query))}
	for i := range j.Query {
		g.conditions[i], _ = j.Conditions(&j.Query[i]) // of a valid job they are right
	}
	return g.together()
}

// grouping is a job whose queries are put into groups. It has their conditions, which each group
// that a query may belong to asks for.
type grouping struct {
	*Job
	conditions [][]Condition
}

// mostGroups bounds the groups that a query is tried in: a party works them out of a text that it
// has not consented to.
const mostGroups = 128

func (j *grouping) together() (all []Together) {
	var order []int
	for i := range j.Query {
		if j.counts(&j.Query[i]) {
			order = append(order, i)
		}
	}
	columns := make([][]string, len(j.Query))
	for _, i := range order {
		columns[i] = j.ColumnsOf(&j.Query[i])
	}
	slices.SortStableFunc(order, func(a, b int) int { return len(columns[b]) - len(columns[a]) })
	var groups []*group
	for _, i := range order {
		own := j.groupOf(i, columns[i])
		if own != nil && !slices.ContainsFunc(groups, func(g *group) bool { return g.take(own) }) &&
			len(groups) < mostGroups {
			groups = append(groups, own)
		}
	}
	left := workload.NewWork()
	for _, g := range groups {
		slices.Sort(g.queries)
		if len(g.queries) < 2 {
			continue
		}
		if s := j.strategy(g, left); s != nil {
			all = append(all, Together{g.queries, s})
		}
	}
	slices.SortFunc(all, func(a, b Together) int { return a.Queries[0] - b.Queries[0] })
	return all
}

// group holds queries of some columns, which tell apart at most [workload.MostCells] combinations
// of parts.
type group struct {
	queries []int
	columns []string
	parts   [][]float64 // by column, the least value of each
	lacks   []int       // by column, 1 if rows may have none
	cells   int
}

// groupOf returns a group of one query; nil: it tells too many parts apart.
func (j *grouping) groupOf(query int, columns []string) *group {
	g := &group{queries: []int{query}, columns: columns, cells: 1}
	for _, name := range columns {
		c, lacks := j.columnNamed(name), 0
		if c.Missing == "drop" || c.Numeric() && c.Outside == "drop" {
			lacks = 1
		}
		list := j.parts(c, query)
		if g.cells *= len(list) + lacks; len(list) == 0 || g.cells > workload.MostCells {
			return nil
		}
		g.parts, g.lacks = append(g.parts, list), append(g.lacks, lacks)
	}
	return g
}

// take adds the query of another group, if this one has its columns and they do not tell too many
// parts apart together.
func (g *group) take(own *group) bool {
	at, parts, cells := make([]int, len(own.columns)), make([][]float64, len(own.columns)), g.cells
	for k, name := range own.columns {
		if at[k] = slices.Index(g.columns, name); at[k] < 0 {
			return false
		}
	}
	for k, i := range at {
		parts[k] = merged(g.parts[i], own.parts[k])
		cells = cells / (len(g.parts[i]) + g.lacks[i]) * (len(parts[k]) + g.lacks[i])
		if cells > workload.MostCells {
			return false
		}
	}
	for k, i := range at {
		g.parts[i] = parts[k]
	}
	g.queries, g.cells = append(g.queries, own.queries...), cells
	return true
}

// merged returns the numbers of two lists in order.
func merged(a, b []float64) []float64 {
	out := make([]float64, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		x := min(a[0], b[0])
		out = append(out, x)
		if a[0] == x {
			a = a[1:]
		}
		if b[0] == x {
			b = b[1:]
		}
	}
	return append(append(out, a...), b...)
}

// values returns those that stand for all that the queries tell apart, by column: NaN is none.
func (g *group) values() (values [][]float64) {
	for i, list := range g.parts {
		if list = slices.Clip(list); g.lacks[i] > 0 {
			list = append(list, math.NaN())
		}
		values = append(values, list)
	}
	return values
}

// counts reports whether a query counts rows, and its part of a job is valid.
func (j *Job) counts(q *Query) bool {
	if _, err := j.Conditions(q); err != nil || !(q.Share > 0) {
		return false
	}
	sound := func(name string, bins int) bool {
		c := j.columnNamed(name)
		return c != nil && (!c.Numeric() || c.Width() > 0 && bins > 1)
	}
	for _, name := range j.ColumnsOf(q) {
		if !sound(name, 2) {
			return false
		}
	}
	switch q.Kind {
	case "count":
		return true
	case "histogram":
		return sound(q.Column, q.Bins)
	case "crosstab":
		return sound(q.Column, q.Bins) && sound(q.By, q.ByBins)
	case "quantiles":
		return sound(q.Column, q.Bins) && j.columnNamed(q.Column).Numeric() &&
			q.Bins&(q.Bins-1) == 0 && len(q.At) > 0
	}
	return false
}

// parts returns the least value of each part of a column that a query tells apart; nil: there are
// too many.
func (j *grouping) parts(c *Column, query int) (list []float64) {
	if !c.Numeric() {
		for i := range c.Words() {
			list = append(list, float64(i))
		}
		return list
	}
	q := &j.Query[query]
	list = append(list, c.Range[0])
	for _, k := range j.conditions[query] {
		if k.Column == c.Name {
			list = append(list, k.cuts()...)
		}
	}
	for side, axis := range []string{q.Column, q.By} {
		if axis != c.Name {
			continue
		}
		bins := []int{q.Bins, q.ByBins}[side]
		for bin := 1; bin < bins; bin++ {
			x := c.begins(bin, bins)
			if x > c.Range[1] {
				break
			}
			if list = append(list, x); !(x > c.Range[0]) || bin > workload.MostCells {
				return nil
			}
		}
	}
	for i, x := range list {
		if c.Type == "whole" {
			list[i] = math.Ceil(x)
		}
	}
	list = slices.DeleteFunc(list, func(x float64) bool {
		return !(x >= c.Range[0] && x <= c.Range[1])
	})
	slices.Sort(list)
	return slices.Compact(list)
}

// cuts returns the least values above those below which a condition holds otherwise.
func (c *Condition) cuts() []float64 {
	above := math.Nextafter(c.Number, math.Inf(1))
	switch c.Op {
	case "<", ">=":
		return []float64{c.Number}
	case "<=", ">":
		return []float64{above}
	}
	return []float64{c.Number, above}
}

// Bin returns the bin of a value inside the range, among a given number of bins of equal width. If
// there are fewer whole numbers than bins, each number has a bin of its own, and the remaining bins
// are empty.
func (c *Column) Bin(x float64, bins int) int {
	if !c.Numeric() {
		return int(x)
	}
	return min(int((x-c.Range[0])/c.BinWidth(bins)), bins-1)
}

// BinWidth returns the width of each of a given number of bins.
func (c *Column) BinWidth(bins int) float64 {
	if c.Type == "whole" && float64(bins) >= c.Width() {
		return 1
	}
	return c.Width() / float64(bins)
}

// begins returns the least number whose bin is so large, or a larger one; NaN: bins are too narrow
// to tell.
func (c *Column) begins(bin, bins int) float64 {
	width := c.BinWidth(bins)
	low := c.Range[0] + (float64(bin)-0.5)*width
	high := low + width
	reached := func(x float64) bool { return int((x-c.Range[0])/width) >= bin }
	if reached(low) || !reached(high) {
		return math.NaN()
	}
	for { // what is between is halved until there is nothing
		x := low + (high-low)/2
		switch {
		case !(low < x && x < high):
			return high
		case reached(x):
			high = x
		default:
			low = x
		}
	}
}

// strategy returns one for the queries of a group, nil if none gains or the work that is left does
// not suffice.
func (j *grouping) strategy(g *group, left *workload.Work) *workload.Strategy {
	var asked []workload.Query
	for _, i := range g.queries {
		q := &j.Query[i]
		at := func(name string) int { return slices.Index(g.columns, name) }
		conditions := j.conditions[i]
		var places []int
		for k := range conditions {
			places = append(places, at(conditions[k].Column))
		}
		column, by := j.columnNamed(q.Column), j.columnNamed(q.By)
		x, y := at(q.Column), at(q.By)
		binsBy := max(1, by.cells(q.ByBins))
		w := workload.Query{Bins: int(q.numbers(j.Job)), Share: q.Share}
		if q.Kind == "quantiles" {
			w.Bins, w.Quantiles = q.Bins, q.At
		}
		w.Bin = func(row []float64) (bin int) {
			for k := range conditions {
				if !conditions[k].Holds(row[places[k]]) {
					return -1
				}
			}
			for _, axis := range []struct {
				*Column
				at, bins, cells int
			}{{column, x, q.Bins, 1}, {by, y, q.ByBins, binsBy}} {
				if axis.Column == nil {
					continue
				}
				if math.IsNaN(row[axis.at]) {
					return -1
				}
				bin = bin*axis.cells + axis.Bin(row[axis.at], axis.bins)
			}
			return bin
		}
		asked = append(asked, w)
	}
	return workload.Choose(g.values(), asked, left)
}
