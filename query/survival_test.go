package query

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hushsum/hushsum/internal/suite"
)

// life is a row: when it was last known about, whether the event came then, and its group.
type life struct {
	time  float64
	event bool
	group int
}

// kaplanMeier returns the curve of rows just before a time, from their times alone: events come
// before rows that are lost at the same time.
func kaplanMeier(rows []life, before float64) float64 {
	sorted := slices.Clone(rows)
	slices.SortFunc(sorted, func(a, b life) int {
		if a.time != b.time {
			return int(math.Copysign(1, a.time-b.time))
		}
		return map[bool]int{true: -1, false: 1}[a.event] // of two of one kind it does not matter
	})
	left := 1.0
	for i, r := range sorted {
		if r.event && r.time < before {
			left *= 1 - 1/float64(len(sorted)-i)
		}
	}
	return left
}

// lives declares a survival curve over some bins of a range.
func lives(kind string, from, to float64, bins int, privacy string) string {
	number := func(x float64) string {
		if kind == "whole" {
			return fmt.Sprintf("%.0f", x)
		}
		return fmt.Sprintf("%.6f", x)
	}
	return fmt.Sprintf(`name = "lives"
parties = { count = 4, rows = 20000 }
%s
column = [
  { name = "time", type = %q, range = [%s, %s] },
  { name = "status", type = "category", categories = ["lost", "dead"] },
]
query = [{ name = "curve", kind = "survival", column = "time", bins = %d, event = "status = dead" }]
`, privacy, kind, number(from), number(to), bins)
}

// dealLives makes the vectors of four parties.
func dealLives(p *Plan, rows []life) (vectors [][]float64) {
	dealt := make([]*Rows, 4)
	for i := range dealt {
		dealt[i] = &Rows{}
	}
	for i, r := range rows {
		row := []float64{r.time, map[bool]float64{true: 1}[r.event]}
		dealt[i%4].values = append(dealt[i%4].values, row)
	}
	for _, own := range dealt {
		vectors = append(vectors, mustVector(p, own))
	}
	return vectors
}

// Without noise an interval holds the curve of the rows in every order within bins, both of its
// ends are some order's, and where a bin is one value it is the curve itself. The truth is computed
// from times, and not from bins.
func TestSurvivalOrders(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	source := rand.NewChaCha8([32]byte{})
	p := planOf(t, lives("number", 0, 4, 4, ""))
	for range 300 {
		var rows []life
		for bin := range 4 {
			for range random.IntN(4) {
				rows = append(rows, life{float64(bin) + 0.999*random.Float64(), random.IntN(2) == 0, 0})
			}
		}
		if len(rows) == 0 {
			continue
		}
		cells := p.ask(t, dealLives(p, rows), source)[0].Cells
		first, last := slices.Clone(rows), slices.Clone(rows) // events go first, or last, in each bin
		for i := range rows {
			at := math.Floor(rows[i].time)
			first[i].time, last[i].time = at, at+0.5
			if !rows[i].event {
				first[i].time, last[i].time = at+0.5, at
			}
		}
		for bin, c := range cells {
			end := float64(bin + 1)
			truth := kaplanMeier(rows, end)
			if !(c.Low <= truth+1e-12 && truth <= c.High+1e-12) || !(c.Low <= c.Value && c.Value <= c.High) {
				t.Fatalf("%v: by %v %+v, and the curve is %v", rows, end, c, truth)
			}
			most, least := kaplanMeier(first, end), kaplanMeier(last, end)
			if math.Abs(c.High-most) > 1e-12 || math.Abs(c.Low-least) > 1e-12 {
				t.Fatalf("%v: by %v %+v, and orders have %v to %v", rows, end, c, least, most)
			}
		}
	}
	p = planOf(t, lives("whole", 1, 8, 8, ""))
	for range 300 {
		var rows []life
		for range 1 + random.IntN(30) {
			rows = append(rows, life{float64(1 + random.IntN(8)), random.IntN(2) == 0, 0})
		}
		for bin, c := range p.ask(t, dealLives(p, rows), source)[0].Cells {
			truth := kaplanMeier(rows, float64(bin+1)+0.5)
			if math.Abs(c.Value-truth) > 1e-12 || c.Low != c.Value || c.High != c.Value {
				t.Fatalf("%v: by %d %+v, and the curve is %v", rows, bin+1, c, truth)
			}
		}
	}
}

// exponential draws rows of which the event comes after 30 months on average and about 60 % are
// lost before, with 36 months in all.
func exponential(random *rand.Rand, n int) (rows []life) {
	for range n {
		event, lost := 30*random.ExpFloat64(), 20*random.ExpFloat64()
		rows = append(rows, life{min(event, lost, 36), event <= lost && event <= 36, 0})
	}
	return rows
}

// held asks for a curve many times, and returns the share of the intervals that hold the curve of
// the rows, of ends of bins beyond which 100 rows or more are known about, and their mean width.
func held(t *testing.T, p *Plan, rows []life, runs int) (share, width float64) {
	t.Helper()
	vectors := dealLives(p, rows)
	random := rand.NewChaCha8([32]byte{5})
	column := p.asks[0].column
	n, in := 0, 0
	for range runs {
		for bin, c := range p.ask(t, vectors, random)[0].Cells {
			end := column.edge(bin + 1)
			if bin == column.bins-1 {
				end = math.Inf(1) // the last bin has its end
			}
			beyond := 0
			for _, r := range rows {
				if r.time > end {
					beyond++
				}
			}
			if beyond < 100 {
				continue
			}
			n++
			width += c.High - c.Low
			if truth := kaplanMeier(rows, end); c.Low <= truth && truth <= c.High {
				in++
			}
		}
	}
	return float64(in) / float64(n), width / float64(n)
}

// Intervals of curves hold that of the rows, 6,000 of which 60 % are lost, in 93 % of cases at
// least, with bins of three months, which leave much of it to the order within them, and of one. A
// program whose intervals held 95 % of 300 curves of 10 ends, all alike, would be below with a
// probability of 0.06 at worst; the seed is fixed, and 99 % hold.
func TestSurvivalCoverage(t *testing.T) {
	rows := exponential(rand.New(rand.NewPCG(11, 1)), 6000)
	runs := suite.Size(20, 20, 300, 300)
	for _, epsilon := range []float64{1, 2} {
		for _, bins := range []int{12, 36} {
			privacy := fmt.Sprintf(`privacy = { unit = "record", records = 6000, `+
				`noise = "discrete-gaussian", epsilon = %v }`, epsilon)
			p := planOf(t, lives("number", 0, 36, bins, privacy), "parties.rows=6000")
			share, width := held(t, p, rows, runs)
			t.Logf("epsilon %v, %d bins: %.1f %% hold, width %.4f", epsilon, bins, 100*share, width)
			if share < 0.93 {
				t.Errorf("epsilon %v, %d bins: %.1f %% of intervals hold the curve of the rows",
					epsilon, bins, 100*share)
			}
			e := p.Expected()[0]
			if !(e.Grid > 0 && e.Grid < e.Margin) {
				t.Errorf("a margin of %v, %v of it by bins", e.Margin, e.Grid)
			}
		}
	}
}

// Intervals for the population hold the law of the event, over rows drawn anew: 95 % or more, of
// 300 draws with three ends each. One that held 95 % would be below 92 % with a probability of
// 0.01 if the three went together; bins leave more.
func TestSurvivalPopulation(t *testing.T) {
	random, source := rand.New(rand.NewPCG(12, 1)), rand.NewChaCha8([32]byte{6})
	p := planOf(t, lives("number", 0, 36, 12, `privacy = { unit = "record", records = 3000, `+
		`noise = "discrete-gaussian", epsilon = 1.0 }`), "parties.rows=3000")
	in, n := 0, 0
	for range suite.Size(60, 60, 300, 1000) {
		a := p.ask(t, dealLives(p, exponential(random, 3000)), source)[0]
		for _, bin := range []int{1, 5, 9} {
			truth := math.Exp(-3 * float64(bin+1) / 30)
			i := a.Population[bin]
			if n++; i[0] <= truth && truth <= i[1] {
				in++
			}
			if i[0] > a.Cells[bin].Low || i[1] < a.Cells[bin].High {
				t.Fatalf("population %v, rows %+v", i, a.Cells[bin])
			}
		}
	}
	share := float64(in) / float64(n)
	t.Logf("%.1f %% of %d", 100*share, n)
	if share < 0.92 {
		t.Errorf("%.1f %% of %d intervals hold the law", 100*share, n)
	}
}
