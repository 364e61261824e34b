package job

import (
	"fmt"
	"math"
	"slices"
	"testing"
)

// Queries of the same columns, or of some of them, are together if that gains; all that have too
// many combinations, sums and what has no noise are by themselves.
func TestTogether(t *testing.T) {
	const head = `name = "a"
parties = { count = 4 }
privacy = { noise = "discrete-gaussian", epsilon = 1.0 }
column = [
  { name = "age", type = "whole", range = [0, 100] },
  { name = "x", type = "number", range = [-1.0, 1.0], missing = "drop" },
  { name = "sex", type = "category", categories = ["F", "M"] },
]
query = [
`
	const child, adult = `kind = "count", where = "age < 18"`, `kind = "count", where = "age >= 18"`
	for _, c := range []struct {
		queries []string
		want    [][]int
	}{
		{[]string{child, adult}, [][]int{{0, 1}}},
		{[]string{child, `kind = "sum", column = "age"`, adult}, [][]int{{0, 2}}},
		{[]string{child, adult, `kind = "count", where = "sex = F"`}, [][]int{{0, 1}}},
		{[]string{child, `kind = "count", where = "age >= 18 and sex = F"`}, [][]int{{0, 1}}},
		{[]string{`kind = "quantiles", column = "x"`, `kind = "histogram", column = "x"`}, [][]int{{0, 1}}},
		{[]string{`kind = "quantiles", column = "x", bins = 1024`, `kind = "histogram", column = "x"`}, nil},
		{[]string{`kind = "histogram", column = "x"`, `kind = "histogram", column = "sex"`}, nil},
		{[]string{`kind = "quantiles", column = "x"`}, nil},
	} {
		text := head
		for i, q := range c.queries {
			text += fmt.Sprintf("  { name = \"q%d\", %s },\n", i, q)
		}
		j := parse(t, text+"]\n").WithDefaults()
		var got [][]int
		numbers := 0
		for _, group := range j.Together() {
			got = append(got, group.Queries)
			numbers += len(group.Strategy.Counts)
		}
		if !slices.EqualFunc(got, c.want, slices.Equal) {
			t.Errorf("%q: together are %v, want %v", c.queries, got, c.want)
		}
		j.Privacy.Noise = ""
		if j.Together() != nil {
			t.Errorf("%q: without noise some are together", c.queries)
		}
	}
}

// A text takes as much work as a few strategies, whatever groups its queries fall into: parties
// read it before they consent. Without a bound 500 pairs of histograms took minutes.
func TestTogetherIsBounded(t *testing.T) {
	text := "name = \"a\"\nparties = { count = 4 }\n" +
		"privacy = { noise = \"discrete-gaussian\", epsilon = 1.0 }\n" +
		"column = [{ name = \"x\", type = \"number\", range = [0.0, 1.0] }]\nquery = [\n"
	for i := range maxList {
		text += fmt.Sprintf("  { name = \"q%d\", kind = \"histogram\", column = \"x\", bins = %d },\n", i,
			12+i/2)
	}
	j := parse(t, text+"]\n").WithDefaults()
	if n := len(j.Together()); n == 0 || n > 40 {
		t.Errorf("%d groups", n)
	}
	g := &grouping{Job: j, conditions: make([][]Condition, len(j.Query))}
	one, other := g.groupOf(0, []string{"x"}), g.groupOf(1, []string{"x"})
	if !one.take(other) || one.cells != 12 || one.take(g.groupOf(999, []string{"x"})) {
		t.Errorf("%+v", one)
	}
}

// A bin begins at the least number that is in it, also where the edges are no numbers of their own.
func TestBegins(t *testing.T) {
	for _, c := range []Column{
		{Type: "number", Range: []float64{0, 1}}, {Type: "number", Range: []float64{-0.1, 0.2}},
		{Type: "number", Range: []float64{-1e9, 1e-9}}, {Type: "number", Range: []float64{-1, 1}},
	} {
		for _, bins := range []int{2, 3, 7, 10, 64} {
			for bin := 1; bin < bins; bin++ {
				x := c.begins(bin, bins)
				if below := math.Nextafter(x, math.Inf(-1)); c.Bin(x, bins) != bin ||
					c.Bin(below, bins) != bin-1 {
					t.Errorf("%v: bin %d of %d begins at %v", c.Range, bin, bins, x)
				}
			}
		}
	}
	if c := (Column{Type: "number", Range: []float64{1 << 40, 1<<40 + 1e-3}}); c.begins(5, 64) > 0 {
		t.Error("bins that are too narrow to tell have a beginning")
	}
}
