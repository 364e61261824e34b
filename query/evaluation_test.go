package query

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/internal/suite"
	"github.com/hushsum/hushsum/job"
)

const evaluated = `name = "evaluated"
parties = { count = 10, rows = %d }
%s
column = [
  { name = "score", type = "number", range = [0.0, 1.0] },
  { name = "died", type = "category", categories = ["no", "yes"] },
  { name = "site", type = "category", categories = ["a", "b"] },
]
query = [{ name = "how-good", kind = "evaluation", column = "score", event = "died = yes"%s }]
`

// scored is a row: a probability that a model gives, and whether the event came.
type scored struct {
	score float64
	came  bool
	site  int
}

// scoredRows draws rows of a population in which a quarter have the event, and scores are too sure
// of themselves: the slope of their calibration is 0.8.
func scoredRows(random *rand.Rand, n int) (rows []scored) {
	for i := range n {
		logit := -1.6 + 1.5*random.NormFloat64()
		came := random.Float64() < 1/(1+math.Exp(-0.1-0.8*logit))
		rows = append(rows, scored{1 / (1 + math.Exp(-logit)), came, i % 2})
	}
	return rows
}

func dealScored(p *Plan, rows []scored) (vectors [][]float64) {
	dealt := make([]*Rows, 10)
	for i := range dealt {
		dealt[i] = &Rows{}
	}
	for i, r := range rows {
		dealt[i%10].values = append(dealt[i%10].values, []float64{r.score, indicator(r.came),
			float64(r.site)})
	}
	for _, own := range dealt {
		vectors = append(vectors, mustVector(p, own))
	}
	return vectors
}

// rounded returns a row's score as an evaluation of so many bins has it.
func rounded(score float64, bins int) float64 {
	for bin := range bins {
		if score < job.Score(bin+1, bins) || bin == bins-1 {
			return job.Score(2*bin+1, 2*bins)
		}
	}
	return 1
}

// evaluate computes measures of rows, each by its definition over pairs or thresholds.
func evaluate(rows []scored, bins int, cut float64) map[string]float64 {
	out := map[string]float64{}
	var p, n, pairs, brier float64
	for i, r := range rows {
		rows[i].score = rounded(r.score, bins)
		brier += math.Pow(rows[i].score-indicator(r.came), 2)
	}
	for _, r := range rows {
		if !r.came {
			n++
			continue
		}
		p++
		for _, other := range rows {
			if !other.came {
				pairs += (1 + float64(cmp.Compare(r.score, other.score))) / 2
			}
		}
	}
	out["AUC"], out["Brier score"] = pairs/p/n, brier/(p+n)
	out["share with the event"] = p / (p + n)
	var tp, tn, predicted float64
	for _, r := range rows {
		tp += indicator(r.came && r.score >= cut)
		tn += indicator(!r.came && r.score < cut)
		predicted += indicator(r.score >= cut)
	}
	out["sensitivity at 0.5"], out["specificity at 0.5"] = tp/p, tn/n
	out["accuracy at 0.5"], out["precision at 0.5"] = (tp+tn)/(p+n), tp/predicted
	return out
}

// Without noise measures are those of the definitions for rounded scores, of all rows and of each
// site; gradients are those of differences.
func TestEvaluationExact(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for range 20 {
		rows := scoredRows(random, 200)
		for _, by := range []string{"", `, by = "site"`} {
			p := planOf(t, fmt.Sprintf(evaluated, 200, "", by))
			a := p.ask(t, dealScored(p, rows), rand.NewChaCha8([32]byte{}))[0]
			checked := 0
			for site, name := range []string{"a: ", "b: "} {
				want := evaluate(slices.Clone(rows), 32, 0.5)
				if by != "" {
					want = evaluate(slices.DeleteFunc(slices.Clone(rows), func(r scored) bool {
						return r.site != site
					}), 32, 0.5)
				}
				for _, c := range a.Cells {
					label, mine := strings.CutPrefix(c.Label, name)
					if x, ok := want[label]; ok && (mine || by == "") {
						checked++
						if math.Abs(c.Value-x) > 1e-12 || c.Low != c.Value || c.High != c.Value {
							t.Fatalf("%s: %+v, want %v", label, c, x)
						}
					}
				}
			}
			if checked != 14 {
				t.Fatalf("%d measures checked", checked)
			}
		}
	}
	table := make([]float64, 64)
	for i := range table {
		table[i] = 20 + 100*random.Float64()
	}
	for k, m := range measures(table, []int{16, 5}) {
		for i := range table {
			const step = 1e-4
			moved := slices.Clone(table)
			moved[i] += step
			up := measures(moved, []int{16, 5})[k].value
			moved[i] -= 2 * step
			down := measures(moved, []int{16, 5})[k].value
			if d := (up - down) / 2 / step; math.Abs(d-m.gradient[i]) > 1e-7 {
				t.Fatalf("%s: by number %d %v, want %v", m.label, i, m.gradient[i], d)
			}
		}
	}
}

// Measures of rounded scores are scikit-learn's.
func TestSklearn(t *testing.T) {
	rows := scoredRows(rand.New(rand.NewPCG(2, 2)), 3000)
	var text bytes.Buffer
	for _, r := range rows {
		fmt.Fprintf(&text, "%.17g,%v\n", r.score, indicator(r.came))
	}
	const python = "/usr/bin/python3" // with Debian's packages
	if err := exec.Command(python, "-c", "import sklearn").Run(); err != nil {
		if os.Getenv("HUSHSUM_REQUIRE_SKLEARN") == "1" {
			t.Fatal("HUSHSUM_REQUIRE_SKLEARN is 1, and scikit-learn is not here: ", err)
		}
		t.Skip("scikit-learn is not here; Debian has python3-sklearn")
	}
	command := exec.Command(python, "testdata/scores.py")
	command.Stdin = &text
	out, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	p := planOf(t, fmt.Sprintf(evaluated, 3000, "", ""))
	a := p.ask(t, dealScored(p, rows), rand.NewChaCha8([32]byte{}))[0]
	said := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(said) != len(a.Cells) {
		t.Fatalf("%d measures, want %d", len(a.Cells), len(said))
	}
	for i, line := range said {
		name, value, _ := strings.Cut(line, ",")
		want, err := strconv.ParseFloat(value, 64)
		within := 1e-9
		if strings.HasPrefix(name, "calibration") {
			within = 1e-6 // as far as its solver goes
		}
		if c := a.Cells[i]; err != nil || c.Label != name || math.Abs(c.Value-want) > within {
			t.Errorf("%+v, want %s", c, line)
		}
	}
}

// Intervals of 10,000 rows at ten hospitals hold the measures of the rows' rounded scores in 95 ± 2
// % of 1,000 answers, and intervals for the population those of 400,000 rows of it, rows being
// drawn anew: AUC, Brier score, calibration slope, sensitivity and precision. In the short form 200
// answers and 4.5 points: a right program fails once in 200, over all measures.
func TestEvaluationCoverage(t *testing.T) {
	runs := suite.Size(200, 200, 1000, 1000)
	off := map[bool]float64{true: 0.02, false: 0.045}[runs == 1000]
	random := rand.New(rand.NewPCG(3, 3))
	few := planOf(t, fmt.Sprintf(evaluated, 1000, "", ""))
	exactly := func(rows []scored) map[string]float64 {
		out, table := map[string]float64{}, make([]float64, few.Length())
		for _, v := range dealScored(few, rows) {
			for i, x := range v {
				table[i] += x
			}
		}
		for _, m := range measures(table, few.asks[0].cuts()) {
			out[m.label] = m.value
		}
		return out
	}
	few.job.Parties.Rows = 1 << 20 // all of a party's rows count
	population := exactly(scoredRows(random, 400_000))
	for _, epsilon := range []float64{0.5, 1} {
		p := planOf(t, fmt.Sprintf(evaluated, 1000, fmt.Sprintf(`privacy = { unit = "record", `+
			`records = 10000, noise = "discrete-gaussian", epsilon = %v }`, epsilon), ""))
		source := rand.NewChaCha8([32]byte{4})
		held, drawn, width := map[string]int{}, map[string]int{}, map[string]float64{}
		for range runs {
			rows := scoredRows(random, 10_000)
			truth := exactly(rows)
			a := p.ask(t, dealScored(p, rows), source)[0]
			for i, c := range a.Cells {
				if c.Unknown != "" {
					t.Fatalf("%+v", c)
				}
				if c.Low <= truth[c.Label] && truth[c.Label] <= c.High {
					held[c.Label]++
				}
				if x := population[c.Label]; a.Population[i][0] <= x && x <= a.Population[i][1] {
					drawn[c.Label]++
				}
				width[c.Label] += (c.High - c.Low) / 2 / float64(runs)
			}
		}
		for _, name := range []string{"AUC", "Brier score", "calibration slope",
			"sensitivity at 0.5", "precision at 0.5"} {
			of, by := float64(held[name])/float64(runs), float64(drawn[name])/float64(runs)
			t.Logf("epsilon %v: %-18s ± %.4f, rows %.1f %%, population %.1f %%", epsilon, name,
				width[name], 100*of, 100*by)
			if math.Abs(of-0.95) > off || math.Abs(by-0.95) > off {
				t.Errorf("epsilon %v: %s: intervals hold that of rows in %.1f %%, of the population in %.1f %%",
					epsilon, name, 100*of, 100*by)
			}
		}
	}
}
