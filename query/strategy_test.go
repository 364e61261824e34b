package query

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/internal/suite"
)

const togetherHead = `name = "together"
parties = { count = 3 }
privacy = { noise = "discrete-gaussian", epsilon = 1.0, unit = "record", records = 60000 }
column = [
  { name = "age", type = "whole", range = [0, 100] },
  { name = "x", type = "number", range = [0.0, 100.0] },
  { name = "group", type = "category", categories = ["a", "b", "c", "d", "e"] },
]
query = [
`

// strategies are jobs whose queries are answered together.
var strategies = []struct{ name, queries string }{
	{"20 ranges of a column", func() string {
		var b strings.Builder
		random := rand.New(rand.NewPCG(1, 1))
		for i := range 20 {
			low, high := random.IntN(101), random.IntN(101)
			fmt.Fprintf(&b, "  { name = 'r%d', kind = 'count', where = 'age >= %d and age <= %d' },\n", i,
				min(low, high), max(low, high))
		}
		return b.String()
	}()},
	{"10 ranges, each also of a group", func() string {
		var b strings.Builder
		for i := range 20 {
			and := []string{"", " and group = a"}[i%2]
			fmt.Fprintf(&b, "  { name = 'r%d', kind = 'count', where = 'age < %d%s' },\n", i, 10+9*(i/2),
				and)
		}
		return b.String()
	}()},
	{"9 quantiles, a query each", func() string {
		var b strings.Builder
		for i := 1; i < 10; i++ {
			fmt.Fprintf(&b, "  { name = 'q%d', kind = 'quantiles', column = 'x', at = [0.%d] },\n", i, i)
		}
		return b.String()
	}()},
	{"a cross table and histograms", `  { name = "c", kind = "crosstab", column = "age", by = "group" },
  { name = "a", kind = "histogram", column = "age" },
  { name = "g", kind = "histogram", column = "group" },
`},
	{"quantiles, a histogram, a count", `  { name = "q", kind = "quantiles", column = "x" },
  { name = "h", kind = "histogram", column = "x", bins = 16 },
  { name = "n", kind = "count", where = "x >= 65" },
`},
}

// togetherRows makes rows for three parties.
func togetherRows() (dealt []*Rows, xs []float64) {
	random := rand.New(rand.NewPCG(9, 9))
	for range 3 {
		own := &Rows{}
		for range 20000 {
			x := min(max(45+25*random.NormFloat64(), 0), 100)
			xs = append(xs, x)
			own.values = append(own.values, []float64{math.Floor(x), x, float64(random.IntN(5))})
		}
		dealt = append(dealt, own)
	}
	slices.Sort(xs)
	return dealt, xs
}

// errorsOf has what answers err, by runs.
type errorsOf struct {
	squares     []float64 // of a run the mean
	cells, held int
}

func (e *errorsOf) root() float64 {
	sum := 0.0
	for _, x := range e.squares {
		sum += x
	}
	return math.Sqrt(sum / float64(len(e.squares)))
}

// add counts answers of a run, over those that are promised if there are some; of quantiles the
// error is of the rows below.
func (e *errorsOf) add(all, truth []Answer, xs []float64, over func(query int) float64) {
	sum, n := 0.0, 0
	for i, a := range all {
		for k, c := range a.Cells {
			want := truth[i].Cells[k].Value
			e.cells++
			if c.Low <= want && want <= c.High {
				e.held++
			}
			off := c.Value - want
			if a.Kind == "quantiles" {
				below := func(x float64) int {
					at, _ := slices.BinarySearch(xs, x)
					return at
				}
				off = float64(below(c.Value) - below(want))
			}
			off /= over(i)
			sum += off * off
			n++
		}
	}
	e.squares = append(e.squares, sum/float64(n))
}

// Answers from one measurement err by what the plan promises, and less than those of queries by
// themselves of the same ε; 95 % intervals hold the truth. The mean square of counts over the
// variance promised is within 5 standard errors of 1, by seeds that are fixed.
func TestStrategy(t *testing.T) {
	runs := 40
	if suite.Long() {
		runs = 1000
	}
	dealt, xs := togetherRows()
	t.Logf("%-32s %8s %8s %8s %6s %7s", "", "together", "promised", "alone", "holds", "numbers")
	for _, c := range strategies {
		p := planOf(t, togetherHead+c.queries+"]\n")
		exactly := planOf(t, strings.ReplaceAll(strings.Replace(togetherHead, "privacy = {", "# ", 1),
			"parties = { count = 3 }", "parties = { count = 3, rows = 20000 }")+c.queries+"]\n")
		alone, err := newPlan(p.settled, nil)
		if err != nil || len(p.groups) != 1 {
			t.Fatal(c.name, len(p.groups), err)
		}
		var vectors, bare [][]float64
		sum := make([]float64, alone.length)
		for _, rows := range dealt {
			vectors, bare = append(vectors, mustVector(p, rows)), append(bare, mustVector(exactly, rows))
			for i, x := range mustVector(alone, rows) {
				sum[i] += x
			}
		}
		random, normal := rand.NewChaCha8([32]byte{6}), rand.New(rand.NewPCG(6, 6))
		truth := exactly.ask(t, bare, random)
		expected := p.Expected()
		var ours, theirs, relative errorsOf
		one := func(int) float64 { return 1 }
		quantiles := strings.Contains(c.queries, "quantiles")
		for run := range runs {
			if quantiles && run == runs/8 { // which take long
				break
			}
			answers := p.ask(t, vectors, random)
			ours.add(answers, truth, xs, one)
			theirs.add(alone.curator(t, sum, alone.deviation(3), normal), truth, xs, one)
			relative.add(answers, truth, xs, func(query int) float64 {
				return expected[query].Margin / z95
			})
		}
		promised, counts := 0.0, 0
		for i, e := range expected {
			if e.Kind != "quantiles" {
				for _, bins := range p.groups[0].bins[i] {
					v := p.deviation(3) / p.groups[0].scale
					promised += v * v * p.groups[0].covary(bins, bins)
					counts++
				}
			}
			if !(e.Margin <= e.Alone*(1+1e-9)) || e.Together != 1 {
				t.Errorf("%s: %+v", c.name, e)
			}
		}
		promise := "-"
		if !quantiles {
			want := math.Sqrt(promised / float64(counts))
			promise = fmt.Sprintf("%.1f", want)
			mean, square := 0.0, 0.0
			for _, x := range ours.squares {
				mean += x / float64(runs)
				square += x * x / float64(runs)
			}
			if off := math.Abs(mean - want*want); off > 5*math.Sqrt((square-mean*mean)/float64(runs)) {
				t.Errorf("%s: rows are %.2f off, and %.2f are promised", c.name, math.Sqrt(mean), want)
			}
		}
		share := float64(ours.held) / float64(ours.cells)
		t.Logf("%-32s %8.1f %8s %8.1f %4.1f %% %4d, %4d", c.name, ours.root(), promise, theirs.root(),
			100*share, p.length, alone.length)
		limit := 0.95
		if quantiles && !suite.Long() { // of five runs
			limit = 1.2
		}
		if !(ours.root() < limit*theirs.root()) {
			t.Errorf("%s: %.1f off, and %.1f by themselves", c.name, ours.root(), theirs.root())
		}
		if share < 0.93 {
			t.Errorf("%s: %.3f of the intervals hold the truth", c.name, share)
		}
	}
}
