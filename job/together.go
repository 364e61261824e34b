package job

import (
	"encoding/json"
	"math"
	"slices"
	"sync"

	"github.com/hushsum/hushsum/internal/workload"
)

// Together holds queries of a job that are answered together: from one measurement of counts of
// rows, by least squares, because that has less error than measuring each by itself.
type Together struct {
	Queries []int // places in the job
	// Strategy says which counts are measured; the queries of its cells are in the order of
	// Queries.
	Strategy *workload.Strategy
}

// Together returns the queries of a valid job with its defaults that are answered together. It
// follows from what is declared alone, and is the same for all parties.
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
	type group struct {
		queries []int
		columns []string
	}
	var order []int
	for i := range j.Query {
		if j.counts(&j.Query[i]) {
			order = append(order, i)
		}
	}
	columns := func(i int) []string { return j.ColumnsOf(&j.Query[i]) }
	slices.SortStableFunc(order, func(a, b int) int { return len(columns(b)) - len(columns(a)) })
	var groups []group
	for _, i := range order {
		names := columns(i)
		k := slices.IndexFunc(groups, func(g group) bool {
			for _, name := range names {
				if !slices.Contains(g.columns, name) {
					return false
				}
			}
			return j.partsOf(g.columns, append(slices.Clone(g.queries), i)) != nil
		})
		if k >= 0 {
			groups[k].queries = append(groups[k].queries, i)
		} else if j.partsOf(names, []int{i}) != nil {
			groups = append(groups, group{[]int{i}, names})
		}
	}
	for _, g := range groups {
		slices.Sort(g.queries)
		if len(g.queries) < 2 {
			continue
		}
		if s := j.strategy(g.columns, g.queries); s != nil {
			all = append(all, Together{g.queries, s})
		}
	}
	slices.SortFunc(all, func(a, b Together) int { return a.Queries[0] - b.Queries[0] })
	return all
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

// partsOf returns, for each column, values that stand for all that queries tell apart; nil: there
// are too many.
func (j *Job) partsOf(columns []string, queries []int) (values [][]float64) {
	all := 1
	values = [][]float64{}
	for _, name := range columns {
		list := j.parts(j.columnNamed(name), queries)
		if all *= len(list); all == 0 || all > workload.MostCells {
			return nil
		}
		values = append(values, list)
	}
	return values
}

// parts returns the least value of each part of a column that queries tell apart, and NaN if rows
// may have none; nil: there are too many.
func (j *Job) parts(c *Column, queries []int) (list []float64) {
	lacks := c.Missing == "drop" || c.Numeric() && c.Outside == "drop"
	switch {
	case !c.Numeric():
		for i := range c.Words() {
			list = append(list, float64(i))
		}
	default:
		list = append(list, c.Range[0])
		for _, i := range queries {
			q := &j.Query[i]
			conditions, _ := j.Conditions(q) // of a valid job they are right
			for _, k := range conditions {
				if k.Column == c.Name {
					list = append(list, k.cuts()...)
				}
			}
			for axis, bins := range map[string]int{q.Column: q.Bins, q.By: q.ByBins} {
				if axis != c.Name {
					continue
				}
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
		list = slices.Compact(list)
	}
	if lacks {
		list = append(list, math.NaN())
	}
	return list
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

// Bin returns the bin of a value inside the range, among a given number of bins of equal width.
// Where whole numbers are fewer than bins each has one of its own, and those that are left have
// none.
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

// strategy returns one for queries of some columns, nil if none gains.
func (j *Job) strategy(columns []string, queries []int) *workload.Strategy {
	var asked []workload.Query
	for _, i := range queries {
		q := &j.Query[i]
		at := func(name string) int { return slices.Index(columns, name) }
		conditions, err := j.Conditions(q)
		if err != nil {
			return nil
		}
		column, by := j.columnNamed(q.Column), j.columnNamed(q.By)
		x, y := at(q.Column), at(q.By)
		binsBy := max(1, by.cells(q.ByBins))
		w := workload.Query{Bins: int(q.numbers(j)), Share: q.Share}
		if q.Kind == "quantiles" {
			w.Bins, w.Quantiles = q.Bins, q.At
		}
		w.Bin = func(row []float64) (bin int) {
			for k := range conditions {
				if !conditions[k].Holds(row[at(conditions[k].Column)]) {
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
	values := j.partsOf(columns, queries)
	if values == nil {
		return nil
	}
	return workload.Choose(values, asked)
}
