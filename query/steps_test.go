package query

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hushsum/hushsum/internal/suite"
	"github.com/hushsum/hushsum/job"
)

// askRounds sums the vectors of parties in all rounds, as ask does in one.
func (p *Plan) askRounds(t testing.TB, dealt []*Rows, random *rand.ChaCha8) []Answer {
	t.Helper()
	var model []float64
	for range p.Rounds() {
		layout := p.settled.Layout()
		mask := ^uint64(0) >> (64 - layout[0].Bits)
		total := make([]uint64, layout[0].Length)
		for _, rows := range dealt {
			v, err := p.Vector(rows, model)
			if err != nil {
				t.Fatal(err)
			}
			values, err := p.settled.Encode(job.BroadcastDigest(nil), job.Update[float64]{Vector: v}, random)
			if err != nil {
				t.Fatal(err)
			}
			for i, x := range values[0] {
				total[i] = (total[i] + x) & mask
			}
		}
		sum, err := p.settled.Decode(job.BroadcastDigest(nil), [][]uint64{total}, len(dealt))
		if err != nil {
			t.Fatal(err)
		}
		if model, err = p.Next(model, sum.Mean, len(dealt)); err != nil {
			t.Fatal(err)
		}
	}
	answers, err := p.Answers(model, len(dealt))
	if err != nil {
		t.Fatal(err)
	}
	return answers
}

// stepped asks for a Cox and a Poisson model, half of the budget each, and for a count.
const stepped = `name = "stepped"
parties = { count = 4, rows = %d }
%s
column = [
  { name = "months", type = "number", range = [0.0, 36.0], unit = "month" },
  { name = "age", type = "number", range = [20.0, 90.0], unit = "year" },
  { name = "arm", type = "category", categories = ["a", "b"] },
  { name = "status", type = "category", categories = ["lost", "dead"] },
  { name = "visits", type = "whole", range = [0, 8] },
  { name = "a", type = "number", range = [-1.0, 1.0] },
  { name = "b", type = "number", range = [-1.0, 1.0] },
  { name = "c", type = "number", range = [-1.0, 1.0] },
  { name = "d", type = "number", range = [-1.0, 1.0] },
]
`

const (
	coxQuery = `query = [{ name = "hazard", kind = "cox", column = "months", event = "status = dead", ` +
		`on = ["age", "arm"] }]` + "\n"
	poissonQuery = `query = [{ name = "rate", kind = "poisson", column = "visits", ` +
		`on = ["age", "arm"] }]` + "\n"
	oddsQuery = `query = [{ name = "odds", kind = "logistic", event = "status = dead", ` +
		`on = ["age", "arm", "a", "b", "c", "d"] }]` + "\n"
)

// patient is a row for a reference: months, whether dead, age, whether in arm b, visits.
type patient struct{ months, dead, age, arm, visits float64 }

// patients draws rows: hazards change by 0.02 a year and −0.5 in arm b, rates of visits by 0.01 a
// year and 0.3 in arm b; hazards fall with time, 60 % of rows are lost or followed to the end.
func patients(n int, random *rand.Rand) (all []patient, dealt []*Rows) {
	dealt = []*Rows{{}, {}, {}, {}}
	for i := range n {
		r := patient{age: 20 + 70*random.Float64(), arm: float64(random.IntN(2))}
		rate := math.Exp(0.02*(r.age-55) - 0.5*r.arm)
		dies := 40 * math.Pow(random.ExpFloat64()/rate, 1.25)
		leaves := min(36, 50*random.ExpFloat64())
		if r.months = min(dies, leaves); dies <= leaves {
			r.dead = 1
		}
		mean := math.Exp(0.2 + 0.01*(r.age-55) + 0.3*r.arm)
		for at := random.ExpFloat64(); at < mean && r.visits < 8; at += random.ExpFloat64() {
			r.visits++
		}
		all = append(all, r)
		dealt[i%4].values = append(dealt[i%4].values, []float64{r.months, r.age, r.arm, r.dead, r.visits})
	}
	return all, dealt
}

// Laws of odds have an intercept and slopes, of age in years and of the others as they are. In one
// the event comes to 3 of 10; in the other odds change by a factor of 400 over the range of d.
var (
	oddsLaw  = []float64{-1 - 0.03*55, 0.03, -0.5, 0.8, -0.4, 0, 1.2}
	steepLaw = []float64{-1 - 0.03*55, 0.03, -0.5, 0.8, -0.4, 0, -3}
)

// casesOf draws rows for a logistic model of a law; b goes with a, and c is near one of its ends in
// most rows.
func casesOf(law []float64) drawn {
	return func(n int, random *rand.Rand) ([]float64, []*Rows) { return cases(law, n, random) }
}

func cases(law []float64, n int, random *rand.Rand) (truth []float64, dealt []*Rows) {
	dealt = []*Rows{{}, {}, {}, {}}
	var designs [][]float64
	var came []float64
	for i := range n {
		age, arm := 20+70*random.Float64(), float64(random.IntN(2))
		a, c, d := 2*random.Float64()-1, 1-2*math.Pow(random.Float64(), 3), 2*random.Float64()-1
		b := (a + 2*random.Float64() - 1) / 2
		x := []float64{1, age, arm, a, b, c, d}
		dead := indicator(random.Float64() < 1/(1+math.Exp(-dot(law, x))))
		x[1] -= 55
		designs, came = append(designs, x), append(came, dead)
		dealt[i%4].values = append(dealt[i%4].values, []float64{0, age, arm, dead, 0, a, b, c, d})
	}
	truth = newton(len(law), func(beta, score []float64, information [][]float64) {
		for r, x := range designs {
			p := 1 / (1 + math.Exp(-dot(beta, x)))
			for i := range x {
				score[i] += (came[r] - p) * x[i]
				for k := range x {
					information[i][k] += p * (1 - p) * x[i] * x[k]
				}
			}
		}
	})
	truth[0] -= 55 * truth[1]
	return truth, dealt
}

// ofPatients draws patients for a model, with what it is of these rows.
func ofPatients(truth func([]patient) []float64) drawn {
	return func(n int, random *rand.Rand) ([]float64, []*Rows) {
		all, dealt := patients(n, random)
		return truth(all), dealt
	}
}

// drawn draws rows, and says what a model of them is.
type drawn func(n int, random *rand.Rand) (truth []float64, dealt []*Rows)

// newton solves the equations of a model of n coefficients, whose score and information at some
// coefficients are given.
func newton(n int, at func(beta, score []float64, information [][]float64)) []float64 {
	beta := make([]float64, n)
	for range 30 {
		score, information := make([]float64, n), make([][]float64, n)
		for i := range information {
			information[i] = make([]float64, n)
		}
		at(beta, score, information)
		for i, inv := range inverse(information, 0) {
			for k := range score {
				beta[i] += inv[k] * score[k]
			}
		}
	}
	return beta
}

// partial is the Cox model of rows by the partial likelihood, which has no grid and no baseline.
func partial(all []patient) []float64 {
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b patient) int { return cmp.Compare(b.months, a.months) })
	return newton(2, func(beta, score []float64, information [][]float64) {
		risk, first, second := 0.0, make([]float64, 2), [2][2]float64{}
		for _, r := range all { // times differ
			x := []float64{r.age - 55, r.arm}
			w := math.Exp(beta[0]*x[0] + beta[1]*x[1])
			risk += w
			for i := range x {
				first[i] += w * x[i]
				for k := range x {
					second[i][k] += w * x[i] * x[k]
				}
			}
			for i := range x {
				score[i] += r.dead * (x[i] - first[i]/risk)
				for k := range x {
					information[i][k] += r.dead * (second[i][k]/risk - first[i]*first[k]/risk/risk)
				}
			}
		}
	})
}

// rated is the Poisson model of rows.
func rated(all []patient) []float64 {
	beta := newton(3, func(beta, score []float64, information [][]float64) {
		for _, r := range all {
			x := []float64{1, r.age - 55, r.arm}
			mean := math.Exp(beta[0] + beta[1]*x[1] + beta[2]*x[2])
			for i := range x {
				score[i] += (r.visits - mean) * x[i]
				for k := range x {
					information[i][k] += mean * x[i] * x[k]
				}
			}
		}
	})
	beta[0] -= 55 * beta[1]
	return beta
}

func private(rows int, epsilon float64) string {
	return fmt.Sprintf(`privacy = { unit = "record", records = %d, noise = "discrete-gaussian", `+
		`epsilon = %v }`, rows, epsilon)
}

// Intervals of models by steps hold those of the rows, fitted without grid and bounds, and those
// that add sampling hold the law that rows are drawn from: both in 95 % of answers or more, since
// they count in full what noise in the information may do. One that holds in 95 % fails 83 % of 40
// answers once in 300 times, and 92 % of 400 once in 150.
func TestStepsCoverage(t *testing.T) {
	runs := suite.Size(24, 40, 400, 400)
	least := map[bool]float64{true: 0.92, false: 0.83}[runs == 400]
	for _, c := range []struct {
		name, query string
		rows        int
		law         []float64
		draw        drawn
	}{
		{"cox", coxQuery, 3000, []float64{0.02, -0.5}, ofPatients(partial)},
		{"poisson", poissonQuery, 3000, []float64{0.2 - 0.55, 0.01, 0.3}, ofPatients(rated)},
		{"logistic", oddsQuery, 6000, oddsLaw, casesOf(oddsLaw)},
		{"steep", oddsQuery, 8000, steepLaw, casesOf(steepLaw)},
	} {
		for _, epsilon := range []float64{0.5, 1, 2} {
			// Of steep odds under such noise few coefficients are known, and 91.6 % of their intervals
			// held: docs/statistics.md says so.
			if runs < 400 && epsilon != 1 || c.name == "steep" && epsilon < 1 {
				continue
			}
			t.Run(fmt.Sprintf("%s/%v", c.name, epsilon), func(t *testing.T) {
				covers(t, fmt.Sprintf(stepped+c.query, c.rows, private(c.rows, epsilon)), c.draw, c.rows,
					c.law, runs, least, epsilon >= 1)
			})
		}
	}
}

// covers asks about as many sets of rows, and counts the intervals that hold what the rows say, and
// the law.
func covers(t *testing.T, text string, draw drawn, rows int, law []float64, runs int,
	least float64, sure bool) {
	p := planOf(t, text)
	random, source := rand.New(rand.NewPCG(5, 5)), rand.NewChaCha8(sha256.Sum256([]byte(text)))
	held, lawful, width := make([]int, len(law)), make([]int, len(law)), make([]float64, len(law))
	known := 0
	for range runs {
		truth, dealt := draw(rows, random)
		a := p.askRounds(t, dealt, source)[0]
		if slices.ContainsFunc(a.Cells, func(c Cell) bool { return c.Unknown != "" }) {
			continue
		}
		known++
		for i, cell := range a.Cells {
			width[i] += (cell.High - cell.Low) / 2
			if cell.Low <= truth[i] && truth[i] <= cell.High {
				held[i]++
			}
			if math.Abs(cell.Value-law[i]) <= z95*a.Errors[i] {
				lawful[i]++
			}
		}
	}
	for i := range width {
		width[i] /= float64(known)
	}
	t.Logf("%d known of %d, rows held %v, law %v, ± %.4f", known, runs, held, lawful, width)
	if sure && known < runs*9/10 {
		t.Errorf("%d of %d are known", known, runs)
	}
	for i := range held {
		if float64(held[i]) < least*float64(known) || float64(lawful[i]) < least*float64(known) {
			t.Errorf("coefficient %d is held %d and %d times of %d", i, held[i], lawful[i], known)
		}
	}
}

// Without noise Poisson and logistic models are those of the rows, and a Cox model off by what a
// parabola of time for the baseline leaves: far less than sampling.
func TestStepsExact(t *testing.T) {
	for _, c := range []struct {
		query string
		draw  drawn
		off   float64 // of standard errors
	}{
		{coxQuery, ofPatients(partial), 0.15},
		{poissonQuery, ofPatients(rated), 1e-3},
		{oddsQuery, casesOf(oddsLaw), 1e-3},
	} {
		truth, dealt := c.draw(2000, rand.New(rand.NewPCG(6, 6)))
		p := planOf(t, fmt.Sprintf(stepped+c.query, 2000, ""))
		a := p.askRounds(t, dealt, rand.NewChaCha8([32]byte{6}))[0]
		for i, cell := range a.Cells {
			if !(math.Abs(cell.Value-truth[i]) <= c.off*a.Errors[i]) {
				t.Errorf("%s: %v ± %v, and the rows have %v", a.Kind, cell, a.Errors[i], truth[i])
			}
		}
	}
}

// A row adds norm 1 at most in every round, whatever model a server sends.
func TestStepsBounded(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 7))
	for _, query := range []string{coxQuery, poissonQuery, oddsQuery} {
		p := planOf(t, fmt.Sprintf(stepped+query, 1, private(1, 1)))
		longest := 0.0
		for i := range 20000 {
			model := make([]float64, p.Length())
			size := p.asks[0].steps.size
			model[0], model[2] = float64(i%12), random.ExpFloat64()
			for k := range size {
				model[7+k] = 3 * random.NormFloat64() * float64(i%5)
			}
			if i%7 == 0 {
				model[2+random.IntN(6+size)] = []float64{math.NaN(), math.Inf(1), math.Inf(-1), 0, -1,
					1e300}[random.IntN(6)]
			}
			ends := func(low, high float64) float64 {
				return []float64{low, high, low + (high-low)*random.Float64()}[random.IntN(3)]
			}
			row := []float64{ends(0, 36), ends(20, 90), float64(random.IntN(2)), float64(random.IntN(2)),
				math.Round(ends(0, 8))}
			for range 4 {
				row = append(row, ends(-1, 1))
			}
			v, err := p.Vector(&Rows{values: [][]float64{row}}, model)
			if err != nil {
				t.Fatal(err)
			}
			norm := 0.0
			for _, x := range v {
				norm += x * x
			}
			if !(norm <= 1+1e-12) {
				t.Fatalf("%v: %v adds a norm of %v at %v", query, row, math.Sqrt(norm), model)
			}
			longest = max(longest, math.Sqrt(norm))
		}
		t.Logf("the longest is %.3f", longest)
		if longest < 0.7 { // noise would be for more than there is
			t.Errorf("the longest of all rows adds %v", longest)
		}
	}
}
