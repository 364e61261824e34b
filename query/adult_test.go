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

// The example's queries of Adult, over 100 parties and over 10: the intervals of 1,000 answers hold
// the truth in 95 ± 2 %, and of ages, of which many are equal, in 93 % at least.
func TestCoverageAdult(t *testing.T) {
	suite.OnlyLong(t) // 110,000 submissions
	text, err := os.ReadFile(filepath.Join(realdata.Dir(t, "adult"), "adult.data"))
	if err != nil {
		t.Fatal(err)
	}
	declared, err := os.ReadFile(filepath.FromSlash("../examples/queries/adult.toml"))
	if err != nil {
		t.Fatal(err)
	}
	rows, _, err := schemaOf(t, string(declared)).Read("adult.data",
		strings.NewReader(string(text)), strings.Split(adultNames, ","))
	if err != nil {
		t.Fatal(err)
	}
	truth := adultTruths(string(text))
	for parties, set := range map[int][]string{100: nil, 10: {"parties.count=10",
		"parties.rows=4000"}} {
		p := planOf(t, string(declared), append(set, "parties.drop_out=0")...)
		var vectors [][]float64
		for _, own := range rows.Deal(parties, 0) {
			vectors = append(vectors, p.Vector(own))
		}
		y := newTally(truth)
		random := rand.NewChaCha8([32]byte{byte(parties)})
		for range 1000 {
			y.add(t, p.ask(t, vectors, random))
		}
		for kind, n := range y.cells {
			share := float64(y.held[kind]) / float64(n)
			t.Logf("%d parties, %-9s %5d intervals, %.1f %% hold the truth", parties, kind, n, 100*share)
			if share < 0.93 || share > 0.97 && kind != "quantiles" {
				t.Errorf("%d parties, %s: %.1f %%", parties, kind, 100*share)
			}
		}
	}
}
