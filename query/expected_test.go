package query

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hushsum/hushsum/internal/suite"
	"github.com/hushsum/hushsum/job"
)

// plannedRows begins the jobs below, up to their last column.
const plannedRows = `name = "planned"
parties = { count = 4, rows = 6000 }
privacy = { unit = "record", records = 6000, noise = "discrete-gaussian", epsilon = 4.0 }
column = [
  { name = "x", type = "number", range = [-10.0, 30.0] },
  { name = "y", type = "number", range = [0.0, 6.0] },
  { name = "time", type = "number", range = [0.0, 24.0] },
  { name = "status", type = "category", categories = ["lost", "dead"] },
  { name = "arm", type = "category", categories = ["a", "b"] },
`

const planned = plannedRows + `  { name = "score", type = "number", range = [0.0, 1.0] },
]
query = [
  { name = "count", kind = "count", where = "x > 0" },
  { name = "sum", kind = "sum", column = "y" },
  { name = "mean", kind = "mean", column = "x" },
  { name = "variance", kind = "variance", column = "x" },
  { name = "covariance", kind = "covariance", column = "x", by = "y" },
  { name = "correlation", kind = "correlation", column = "x", by = "y" },
  { name = "survival", kind = "survival", column = "time", bins = 24, event = "status = dead" },
  { name = "logrank", kind = "logrank", column = "time", by = "arm", bins = 12, event = "status = dead" },
  { name = "evaluation", kind = "evaluation", column = "score", event = "status = dead" },
  { name = "cindex", kind = "cindex", column = "time", by = "x", event = "status = dead" },
  { name = "linear", kind = "linear", column = "y", on = ["x", "time"] },
]
`

// plannedOthers are the kinds that have texts, bins or moments.
const plannedOthers = plannedRows + `  { name = "word", type = "text", longest = 8 },
]
query = [
  { name = "histogram", kind = "histogram", column = "x" },
  { name = "crosstab", kind = "crosstab", column = "arm", by = "status" },
  { name = "quantiles", kind = "quantiles", column = "y", bins = 1024 },
  { name = "logistic", kind = "logistic", on = ["time"], event = "status = dead" },
  { name = "heavy", kind = "heavy", column = "word", top = 3 },
]
`

// plannedSteps is a model of several rounds.
const plannedSteps = `name = "planned"
parties = { count = 4, rows = 4000 }
privacy = { unit = "record", records = 4000, noise = "discrete-gaussian", epsilon = 2.0 }
column = [
  { name = "x", type = "number", range = [-10.0, 30.0] },
  { name = "time", type = "number", range = [0.0, 24.0] },
  { name = "status", type = "category", categories = ["lost", "dead"] },
  { name = "visits", type = "whole", range = [0, 8] },
  { name = "a", type = "number", range = [0.0, 1.0] },
  { name = "b", type = "number", range = [0.0, 1.0] },
  { name = "c", type = "number", range = [0.0, 1.0] },
  { name = "d", type = "number", range = [0.0, 1.0] },
]
query = [%s]
`

// The same holds of models by steps.
func TestExpectedSteps(t *testing.T) {
	for _, query := range []string{
		`{ name = "cox", kind = "cox", column = "time", on = ["x"], event = "status = dead" }`,
		`{ name = "poisson", kind = "poisson", column = "visits", on = ["x"] }`,
		`{ name = "odds", kind = "logistic", on = ["x", "a", "b", "c", "d"], event = "status = dead" }`,
	} {
		p := planOf(t, fmt.Sprintf(plannedSteps, query))
		random := rand.New(rand.NewPCG(5, 5))
		dealt := []*Rows{{}, {}, {}, {}}
		for i := range 4000 {
			visits := 0.0
			for at := random.ExpFloat64(); at < 2 && visits < 8; at += random.ExpFloat64() {
				visits++
			}
			row := []float64{-10 + 40*random.Float64(), 24 * random.Float64(), float64(random.IntN(2)),
				visits, random.Float64(), random.Float64(), random.Float64(), random.Float64()}
			if p.asks[0].Kind == "logistic" {
				eta := (row[0]-10)/20 + 2*(row[4]+row[5]+row[6]+row[7]-2)
				row[2] = indicator(random.Float64() < 1/(1+math.Exp(-eta)))
			}
			dealt[i%4].values = append(dealt[i%4].values, row)
		}
		var margins []float64
		source := rand.NewChaCha8([32]byte{8})
		at := 1 // behind an intercept
		if p.asks[0].Kind == "cox" {
			at = 0
		}
		draws := suite.Size(40, 40, 200, 200)
		for range draws {
			c := p.askRounds(t, dealt, source)[0].Cells[at]
			if c.Unknown != "" {
				t.Fatalf("%s: %+v", query, c)
			}
			margins = append(margins, (c.High-c.Low)/2)
		}
		slices.Sort(margins)
		want, got := p.Expected()[0].Margin, margins[draws/2]
		t.Logf("%s: %.4g planned, %.4g in the median", query, want, got)
		if !(math.Abs(got/want-1) < 0.2) {
			t.Errorf("%s: a margin of %.4g, where the plan says %.4g", query, got, want)
		}
	}
}

// Margins of 200 answers about rows that are as a plan assumes are within 20 % of the plan's in the
// median, and all numbers with a margin are known; so are those of a slope whose column has the
// deviation for which the plan gives a margin of its own.
func TestExpectedDraws(t *testing.T) {
	for _, narrow := range []bool{false, true} {
		p := planOf(t, planned)
		random := rand.New(rand.NewPCG(5, 5))
		dealt := []*Rows{{}, {}, {}, {}}
		for i := range 6000 {
			x := -10 + 40*random.Float64()
			if narrow {
				x = 10 + (x-10)*0.2*math.Sqrt(3) // a deviation of a tenth of the range
			}
			score := job.Score(random.IntN(1000), 1000) // the events of which are half of all
			dealt[i%4].values = append(dealt[i%4].values, []float64{x, 6 * random.Float64(),
				24 * random.Float64(), indicator(random.Float64() < score), float64(random.IntN(2)), score})
		}
		var vectors [][]float64
		for _, own := range dealt {
			vectors = append(vectors, mustVector(p, own))
		}
		margins := map[string][]float64{}
		source := rand.NewChaCha8([32]byte{8})
		for range 200 {
			for _, a := range p.ask(t, vectors, source) {
				at := map[string]int{"survival": 11, "linear": 1}[a.Name]
				if c := a.Cells[at]; c.Unknown != "" && (!narrow || a.Name == "linear") {
					t.Fatalf("%s: %+v", a.Name, c)
				} else {
					margins[a.Name] = append(margins[a.Name], (c.High-c.Low)/2)
				}
			}
		}
		for _, e := range p.Expected() {
			want := e.Margin
			if narrow && e.Name != "linear" {
				continue
			} else if narrow {
				want = e.Narrow
			}
			slices.Sort(margins[e.Name])
			got := margins[e.Name][100]
			t.Logf("%s: %.4g planned, %.4g in the median", e.Name, want, got)
			if !(math.Abs(got/want-1) < 0.2) {
				t.Errorf("%s: a margin of %.4g, where the plan says %.4g", e.Name, got, want)
			}
		}
	}
}

// So are those of tables, quantiles, frequent words and a logistic model of one round. The plan's
// margin of quantiles is that of the worst edge, and here the median may be an edge with less.
func TestExpectedOthers(t *testing.T) {
	p := planOf(t, plannedOthers)
	random := rand.New(rand.NewPCG(6, 6))
	words := []string{"cough", "fever", "sore"}
	var dealt []*Rows
	for range 4 {
		dealt = append(dealt, &Rows{words: words})
	}
	for i := range 6000 {
		time := 24 * random.Float64()
		dealt[i%4].values = append(dealt[i%4].values, []float64{-10 + 40*random.Float64(),
			6 * random.Float64(), time, indicator(random.Float64() < 1/(1+math.Exp(1-time/12))),
			float64(random.IntN(2)), float64(random.IntN(3))})
	}
	var vectors [][]float64
	for _, own := range dealt {
		vectors = append(vectors, mustVector(p, own))
	}
	margins := map[string][]float64{}
	source := rand.NewChaCha8([32]byte{9})
	for range 200 {
		for _, a := range p.ask(t, vectors, source) {
			for i, c := range a.Cells {
				if c.Unknown != "" {
					t.Fatalf("%s: %+v", a.Name, c)
				}
				if a.Name == "logistic" && i == 0 {
					continue // the intercept
				}
				margins[a.Name] = append(margins[a.Name], (c.High-c.Low)/2)
			}
		}
	}
	for _, e := range p.Expected() {
		want, least := e.Margin, 0.8
		if e.Name == "quantiles" {
			want *= 6 // of the column, whose values are spread evenly
			least = 0.5
		}
		slices.Sort(margins[e.Name])
		n := len(margins[e.Name])
		got := margins[e.Name][n/2]
		t.Logf("%s: %.4g planned, %.4g in the median", e.Name, want, got)
		if n < 200 || !(least < got/want && got/want < 1.2) {
			t.Errorf("%s: a margin of %.4g, where the plan says %.4g", e.Name, got, want)
		}
	}
}
