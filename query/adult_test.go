package query

import (
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/internal/realdata"
	"github.com/hushsum/hushsum/internal/suite"
)

// adultNames are the columns of adult.data.
const adultNames = "age,workclass,fnlwgt,education,education-num,marital,occupation,relation," +
	"race,sex,gain,loss,hours,country,income"

// adultTruths computes what the example's queries ask, from the text of the file alone.
func adultTruths(text string) map[string][]float64 {
	out := map[string][]float64{"hours": make([]float64, 4), "work": make([]float64, 9),
		"income-by-sex": make([]float64, 4)}
	works := []string{"Private", "Self-emp-not-inc", "Self-emp-inc", "Federal-gov", "Local-gov",
		"State-gov", "Without-pay", "Never-worked", "?"}
	var older, rich, hoursAll, hoursRich, nRich, n, sum, squares float64
	var ages []float64
	for line := range strings.Lines(text) {
		f := strings.Split(strings.TrimSpace(line), ", ")
		if len(f) != 15 {
			continue
		}
		number := func(s string) (x float64) {
			for _, c := range s {
				x = 10*x + float64(c-'0')
			}
			return x
		}
		age, hours, isRich := number(f[0]), min(80, number(f[12])), f[14] == ">50K"
		n++
		sum += age
		squares += age * age
		hoursAll += hours
		ages = append(ages, age)
		place := 0
		if isRich {
			nRich++
			hoursRich += hours
			place = 2
		}
		if f[9] == "Male" {
			place++
		}
		if age >= 65 {
			older++
			if isRich {
				rich++
			}
		}
		out["income-by-sex"][place]++
		out["work"][slices.Index(works, f[1])]++
		out["hours"][min(3, int(hours*4/81))]++
	}
	slices.Sort(ages)
	for _, q := range []float64{0.1, 0.25, 0.5, 0.75, 0.9} {
		out["ages"] = append(out["ages"], ages[int(math.Ceil(q*n))-1])
	}
	for name, x := range map[string]float64{"older": older, "older-and-rich": rich,
		"hours-in-all": hoursAll, "age": sum / n, "hours-of-the-rich": hoursRich / nRich,
		"age-varies": squares/n - sum*sum/(n*n)} {
		out[name] = []float64{x}
	}
	return out
}

// adultModels asks the kinds that the example does not.
const adultModels = `name = "models"
parties = { count = 100, rows = 400 }
privacy = { unit = "record", records = 32561, noise = "discrete-gaussian", epsilon = 1.0 }
column = [
  { name = "age", type = "whole", range = [17, 90] },
  { name = "education-num", type = "whole", range = [1, 16] },
  { name = "hours", type = "whole", range = [1, 80] },
  { name = "income", type = "category", categories = ["<=50K", ">50K"] },
]
query = [
  { name = "covariance", kind = "covariance", column = "age", by = "hours" },
  { name = "correlation", kind = "correlation", column = "education-num", by = "hours" },
  { name = "survival", kind = "survival", column = "age", bins = 8, event = "income = >50K" },
  { name = "linear", kind = "linear", column = "hours", on = ["age", "education-num"] },
  { name = "logistic", kind = "logistic", event = "income = >50K", on = ["age", "education-num"] },
]
`

// adultModelTruths computes what those ask, from the text of the file alone.
func adultModelTruths(text string) map[string][]float64 {
	var x [][]float64
	var hours, rich []float64
	var sums, squares [3]float64 // of age, education and hours
	var ageHours, educationHours float64
	var times []life
	for line := range strings.Lines(text) {
		f := strings.Split(strings.TrimSpace(line), ", ")
		if len(f) != 15 {
			continue
		}
		var row [3]float64
		for i, column := range []int{0, 4, 12} {
			for _, c := range f[column] {
				row[i] = 10*row[i] + float64(c-'0')
			}
		}
		row[2] = min(80, row[2])
		for i, value := range row {
			sums[i] += value
			squares[i] += value * value
		}
		ageHours += row[0] * row[2]
		educationHours += row[1] * row[2]
		isRich := 0.0
		if f[14] == ">50K" {
			isRich = 1
		}
		times = append(times, life{time: row[0], event: isRich == 1})
		x = append(x, []float64{1, row[0], row[1]})
		hours, rich = append(hours, row[2]), append(rich, isRich)
	}
	n := float64(len(x))
	spread := func(i int) float64 { return squares[i]/n - sums[i]*sums[i]/(n*n) }
	out := map[string][]float64{
		"covariance": {ageHours/n - sums[0]*sums[2]/(n*n)},
		"correlation": {(educationHours/n - sums[1]*sums[2]/(n*n)) /
			math.Sqrt(spread(1)*spread(2))},
		"linear": squaresLeast(x, hours), "logistic": likeliest(x, rich),
	}
	for bin := range 8 {
		out["survival"] = append(out["survival"], kaplanMeier(times, 17+9.25*float64(bin+1)))
	}
	return out
}

// squaresLeast fits rows by least squares.
func squaresLeast(rows [][]float64, y []float64) []float64 {
	k := len(rows[0])
	m := make([][]float64, k)
	for i := range m {
		m[i] = make([]float64, k+1)
		for r, x := range rows {
			for j := range x {
				m[i][j] += x[i] * x[j]
			}
			m[i][k] += x[i] * y[r]
		}
	}
	return eliminated(m)
}

// Queries of Adult, over 100 parties and over 10, those of the example and models: the intervals of
// 1,000 answers hold the truth in 95 ± 2 %, and of ages and curves, of which some are of whole bins
// or end at what can be, in 93 % at least. Errors are at most 1.2 times those of a
// central curator: of quantiles they are of one year, and rare.
func TestCoverageAdult(t *testing.T) {
	suite.OnlyLong(t) // 220,000 submissions
	text, err := os.ReadFile(filepath.Join(realdata.Dir(t, "adult"), "adult.data"))
	if err != nil {
		t.Fatal(err)
	}
	example, err := os.ReadFile(filepath.FromSlash("../examples/queries/adult.toml"))
	if err != nil {
		t.Fatal(err)
	}
	for declared, truth := range map[string]map[string][]float64{
		string(example): adultTruths(string(text)), adultModels: adultModelTruths(string(text)),
	} {
		rows, _, err := schemaOf(t, declared).Read("adult.data", strings.NewReader(string(text)),
			strings.Split(adultNames, ","))
		if err != nil {
			t.Fatal(err)
		}
		for parties, set := range map[int][]string{100: nil, 10: {"parties.count=10",
			"parties.rows=4000"}} {
			coverAdult(t, planOf(t, declared, append(set, "parties.drop_out=0")...),
				rows.Deal(parties, 0), truth)
		}
	}
}

func coverAdult(t *testing.T, p *Plan, dealt []*Rows, truth map[string][]float64) {
	parties := len(dealt)
	vectors, exact := make([][]float64, parties), make([]float64, p.Length())
	for i := range vectors {
		vectors[i] = mustVector(p, dealt[i])
		for k, x := range vectors[i] {
			exact[k] += x
		}
	}
	ours, central := newTally(truth), newTally(truth)
	random, normal := rand.NewChaCha8([32]byte{byte(parties)}), rand.New(rand.NewPCG(7, 8))
	noise := p.leastNoise(t)
	for range 1000 {
		ours.add(t, p.ask(t, vectors, random))
		central.add(t, p.curator(t, exact, noise, normal))
	}
	for kind, n := range ours.cells {
		share := float64(ours.held[kind]) / float64(n)
		ratio := ours.error(kind) / central.error(kind)
		t.Logf("%3d parties, %-11s %5d intervals, %.1f %% hold the truth; error %.4g, %.3f times a "+
			"central curator's", parties, kind, n, 100*share,
			ours.error(kind), ratio)
		if share < 0.93 || share > 0.97 && kind != "quantiles" && kind != "survival" {
			t.Errorf("%d parties, %s: %.1f %%", parties, kind, 100*share)
		}
		if !(ratio <= 1.2) && central.squares[kind] > 0 {
			t.Errorf("%d parties, %s: %.3f times the error of a central curator", parties, kind, ratio)
		}
	}
}
