package query

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/internal/suite"
)

const concordant = `name = "concordant"
parties = { count = 10, rows = %d }
%s
column = [
  { name = "months", type = %q, range = [0.0, 60.0] },
  { name = "died", type = "category", categories = ["no", "yes"] },
  { name = "risk", type = %q, range = [0.0, 40.0] },
]
query = [{ name = "c", kind = "cindex", column = "months", by = "risk", event = "died = yes"%s }]
`

// judged is a row: how long it is known about, whether the event came then, and a score.
type judged struct{ months, came, risk float64 }

// rankedRows draws rows whose hazard grows by a factor of e over 10 of the score.
func rankedRows(random *rand.Rand, n int) (rows []judged) {
	for range n {
		r := judged{risk: 40 * random.Float64()}
		dies := 60 * random.ExpFloat64() / math.Exp(r.risk/10-2)
		r.months = min(dies, 60*random.Float64()+10, 60)
		r.came = indicator(dies == r.months)
		rows = append(rows, r)
	}
	return rows
}

func dealRanked(p *Plan, rows []judged) (vectors [][]float64) {
	dealt := make([]*Rows, 10)
	for i := range dealt {
		dealt[i] = &Rows{}
	}
	for i, r := range rows {
		dealt[i%10].values = append(dealt[i%10].values, []float64{r.months, r.came, r.risk})
	}
	for _, own := range dealt {
		vectors = append(vectors, mustVector(p, own))
	}
	return vectors
}

// harrell returns the C-index of rows by its definition over pairs.
func harrell(rows []judged) float64 {
	agree, pairs := 0.0, 0.0
	for i, r := range rows {
		for k, other := range rows {
			if i == k || r.came == 0 || other.months < r.months ||
				other.months == r.months && other.came == 1 {
				continue
			}
			pairs++
			agree += (1 + indicator(r.risk > other.risk) - indicator(r.risk < other.risk)) / 2
		}
	}
	return agree / pairs
}

// inBins rounds times up and scores down to ends of bins.
func inBins(rows []judged, times, scores float64) []judged {
	rows = slices.Clone(rows)
	for i := range rows {
		r := &rows[i]
		r.months = min(math.Floor(r.months*times/60), times-1)
		r.risk = min(math.Floor(r.risk*scores/40), scores-1)
	}
	return rows
}

// Without noise the C-index is that of rounded rows by definition, and the grid holds that of the
// rows, whatever the bins; with a bin for each value it is theirs. Derivatives are those of
// differences.
func TestCIndexExact(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for range 10 {
		rows := rankedRows(random, 300)
		for _, bins := range [][2]int{{10, 10}, {2, 3}, {24, 16}} {
			p := planOf(t, fmt.Sprintf(concordant, 300, "", "number", "number",
				fmt.Sprintf(", bins = %d, by_bins = %d", bins[0], bins[1])))
			a := p.ask(t, dealRanked(p, rows), rand.NewChaCha8([32]byte{}))[0]
			want := harrell(inBins(rows, float64(bins[0]), float64(bins[1])))
			c := a.Cells[0]
			if math.Abs(c.Value-want) > 1e-12 || c.Low != c.Value || c.High != c.Value {
				t.Fatalf("%+v, want %v", c, want)
			}
			table := paired{table: make([]float64, p.Length()), scores: bins[1]}
			for _, v := range dealRanked(p, rows) {
				for i, x := range v {
					table.table[i] += x
				}
			}
			low, _, _ := table.index(against, 0)
			high, _, _ := table.index(inFavour, 0)
			if exact := harrell(rows); !(low <= exact && exact <= high && low <= want && want <= high) ||
				math.Abs(a.Grid[0]-(high-low)) > 1e-12 {
				t.Fatalf("between %v and %v, a grid of %v, and the rows have %v", low, high, a.Grid, exact)
			}
		}
		for i := range rows {
			rows[i].months, rows[i].risk = math.Round(rows[i].months/4), math.Round(rows[i].risk/3)
		}
		p := planOf(t, strings.NewReplacer("60.0", "15", "40.0", "14").Replace(fmt.Sprintf(concordant,
			300, "", "whole", "whole", "")))
		a := p.ask(t, dealRanked(p, rows), rand.NewChaCha8([32]byte{}))[0]
		if want := harrell(rows); math.Abs(a.Cells[0].Value-want) > 1e-12 || a.Grid[0] != 0 {
			t.Fatalf("%+v, want %v", a, want)
		}
	}
	p := paired{table: make([]float64, 48), scores: 6}
	for i := range p.table {
		p.table[i] = 20 + 100*random.Float64()
	}
	for _, by := range []order{asRounded, against, inFavour} {
		_, gradient, _ := p.index(by, 7)
		for i := range p.table {
			const step = 1e-4
			p.table[i] += step
			up, _, _ := p.index(by, 7)
			p.table[i] -= 2 * step
			down, _, _ := p.index(by, 7)
			p.table[i] += step
			if d := (up - down) / 2 / step; math.Abs(d-gradient[i]) > 1e-8 {
				t.Fatalf("order %v: by number %d %v, want %v", by, i, gradient[i], d)
			}
		}
	}
}

// Intervals of 6,000 rows at ten hospitals hold the C-index of the rounded rows in 95 ± 2 % of
// 1,000 answers, and intervals for the population that of 400,000 rows of it, rows being drawn
// anew. In the short form 200 answers and 4.5 points: a right program fails once in 70.
func TestCIndexCoverage(t *testing.T) {
	runs := suite.Size(200, 200, 1000, 1000)
	off := map[bool]float64{true: 0.02, false: 0.045}[runs == 1000]
	random := rand.New(rand.NewPCG(3, 4))
	few := planOf(t, fmt.Sprintf(concordant, 6000, "", "number", "number", ""))
	few.job.Parties.Rows = 1 << 20 // all of a party's rows count
	exactly := func(rows []judged) float64 {
		table := paired{table: make([]float64, few.Length()), scores: 10}
		for _, v := range dealRanked(few, rows) {
			for i, x := range v {
				table.table[i] += x
			}
		}
		c, _, _ := table.index(asRounded, 0)
		return c
	}
	population := exactly(rankedRows(random, 400_000))
	for _, epsilon := range []float64{0.5, 1} {
		p := planOf(t, fmt.Sprintf(concordant, 6000, private(6000, epsilon), "number", "number", ""))
		source := rand.NewChaCha8([32]byte{4})
		held, drawn, width := 0, 0, 0.0
		for range runs {
			rows := rankedRows(random, 6000)
			a := p.ask(t, dealRanked(p, rows), source)[0]
			c, truth := a.Cells[0], exactly(rows)
			if c.Unknown != "" {
				t.Fatalf("%+v", c)
			}
			held += int(indicator(c.Low <= truth && truth <= c.High))
			drawn += int(indicator(a.Population[0][0] <= population && population <= a.Population[0][1]))
			width += (c.High - c.Low) / 2 / float64(runs)
		}
		of, by := float64(held)/float64(runs), float64(drawn)/float64(runs)
		t.Logf("epsilon %v: ± %.4f, rows %.1f %%, population %.1f %%; the plan ± %.4f", epsilon, width,
			100*of, 100*by, p.Expected()[0].Margin)
		if math.Abs(of-0.95) > off || math.Abs(by-0.95) > off {
			t.Errorf("epsilon %v: intervals hold that of rows in %.1f %%, of the population in %.1f %%",
				epsilon, 100*of, 100*by)
		}
	}
}

// The C-index of flchain by age is R's: of rounded rows without noise, and with noise in an
// interval. R says that of the rows as they are, too, which the grid has to hold.
func TestRConcordance(t *testing.T) {
	var rows []judged
	truth := map[string]float64{}
	for line := range strings.Lines(runR(t, "testdata/concordance.R")) {
		f := strings.Split(strings.TrimSpace(line), ",")
		var x [3]float64
		for i, text := range f[1:] {
			var err error
			if x[i], err = strconv.ParseFloat(text, 64); err != nil {
				t.Fatal(err)
			}
		}
		if f[0] == "row" {
			rows = append(rows, judged{x[0], x[1], x[2]})
		} else {
			truth[f[0]] = x[0]
		}
	}
	at := strings.NewReplacer("[0.0, 60.0]", "[0.0, 6000.0]", "[0.0, 40.0]", "[50.0, 110.0]")
	asked := func(privacy string) *Plan {
		return planOf(t, at.Replace(fmt.Sprintf(concordant, len(rows), privacy, "number", "number", "")))
	}
	p := asked("")
	vectors := dealRanked(p, rows)
	a := p.ask(t, vectors, rand.NewChaCha8([32]byte{}))[0]
	if math.Abs(a.Cells[0].Value-truth["rounded"]) > 1e-9 {
		t.Errorf("%+v, and R has %v", a.Cells[0], truth["rounded"])
	}
	if off := math.Abs(a.Cells[0].Value - truth["exact"]); off > a.Grid[0] {
		t.Errorf("%+v is %v off R's %v, and the grid is %v", a.Cells[0], off, truth["exact"], a.Grid)
	}
	p = asked(private(len(rows), 1))
	held, width, source := 0, 0.0, rand.NewChaCha8([32]byte{1})
	vectors = dealRanked(p, rows)
	for range 200 {
		c := p.ask(t, vectors, source)[0].Cells[0]
		held += int(indicator(c.Low <= truth["rounded"] && truth["rounded"] <= c.High))
		width += (c.High - c.Low) / 400
	}
	t.Logf("R: %.4f of days, %.4f of bins; at epsilon 1 ± %.4f, held %d of 200, grid %.3f",
		truth["exact"], truth["rounded"], width, held, a.Grid[0])
	if held < 180 { // a right program fails once in 600
		t.Errorf("%d of 200 intervals hold R's", held)
	}
}
