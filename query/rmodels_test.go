package query

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/internal/suite"
)

// rModels is a data set of R's package survival, and coefficients that R fits to it, by model, each
// with its standard error.
type rModels struct {
	dealt []*Rows
	rows  int
	top   float64
	truth map[string][][2]float64
}

const modelled = `name = "modelled"
parties = { count = 4, rows = %d }
%s
column = [
  { name = "time", type = "number", range = [0, %v] },
  { name = "status", type = "category", categories = ["lost", "dead"] },
  { name = "age", type = "number", range = [18, 102] },
  { name = "arm", type = "category", categories = ["a", "b"] },
  { name = "stratum", type = "category", categories = ["s", "t"] },
  { name = "count", type = "whole", range = [0, 20] },
  { name = "u", type = "whole", range = [0, 10] },
  { name = "v", type = "whole", range = [0, 12] },
]
query = [%s]
`

// modelQueries are asked by themselves, by the name of R's model.
var modelQueries = map[string]string{
	"cox": `{ name = "m", kind = "cox", column = "time", event = "status = dead", on = ["age", "arm"] }`,
	"strata": `{ name = "m", kind = "cox", column = "time", event = "status = dead", ` +
		`by = "stratum", on = ["age", "arm"] }`,
	"poisson": `{ name = "m", kind = "poisson", column = "count", on = ["age", "arm"] }`,
	"logistic": `{ name = "m", kind = "logistic", event = "status = dead", ` +
		`on = ["time", "age", "count", "u", "v", "arm"] }`,
}

func rModelSets(t *testing.T) map[string]*rModels {
	sets := map[string]*rModels{}
	for line := range strings.Lines(runR(t, "testdata/models.R")) {
		f := strings.Split(strings.TrimSpace(line), ",")
		s := sets[f[1]]
		if s == nil {
			s = &rModels{dealt: []*Rows{{}, {}, {}, {}}, truth: map[string][][2]float64{}}
			sets[f[1]] = s
		}
		var numbers []float64
		for _, text := range f[2:] {
			x, err := strconv.ParseFloat(text, 64)
			if err != nil && text != f[2] {
				t.Fatal(line, err)
			}
			numbers = append(numbers, x)
		}
		if f[0] == "row" {
			to := s.dealt[s.rows%4]
			to.values = append(to.values, numbers)
			s.rows++
			s.top = max(s.top, numbers[0])
			continue
		}
		s.truth[f[2]] = append(s.truth[f[2]], [2]float64{numbers[2], numbers[3]})
	}
	return sets
}

// Without noise Poisson and logistic models and their standard errors are those of R's glm, and a
// Cox model, with strata or not, is within a quarter of a standard error of R's coxph, and its
// errors within 5 %: the latter's baseline has no form, and it follows rows to the end, of which
// age ends some early in flchain.
func TestRModels(t *testing.T) {
	for name, s := range rModelSets(t) {
		for model, query := range modelQueries {
			p := planOf(t, fmt.Sprintf(modelled, s.rows, "", s.top, query))
			a := p.askRounds(t, s.dealt, rand.NewChaCha8([32]byte{}))[0]
			off, wide := 0.25, 0.05
			if model == "poisson" || model == "logistic" {
				off, wide = 1e-3, 1e-4
			}
			for i, want := range s.truth[model] {
				at := (a.Cells[i].Value - want[0]) / want[1]
				t.Logf("%s, %s: %.6g, R has %.6g: %.4f standard errors; %.5g, R has %.5g", name, model,
					a.Cells[i].Value, want[0], at, a.Errors[i], want[1])
				if !(math.Abs(at) <= off && math.Abs(a.Errors[i]/want[1]-1) <= wide) {
					t.Errorf("%s, %s: coefficient %d: %+v ± %v, and R has %v", name, model, i, a.Cells[i],
						a.Errors[i], want)
				}
			}
		}
	}
}

// With noise, intervals hold the coefficients of R's coxph and glm, of sets of 2,900 rows or more.
func TestRModelsHeld(t *testing.T) {
	if !suite.Long() && os.Getenv("HUSHSUM_REQUIRE_R") != "1" {
		t.Skip("240 answers of several rounds: with -long, or with HUSHSUM_REQUIRE_R=1")
	}
	const runs = 40
	for name, s := range rModelSets(t) {
		for model, query := range modelQueries {
			for _, epsilon := range []float64{1, 2} {
				if s.rows < 2900 || model == "strata" {
					continue
				}
				p := planOf(t, fmt.Sprintf(modelled, s.rows, private(s.rows, epsilon), s.top, query))
				source := rand.NewChaCha8([32]byte{byte(len(name)), byte(epsilon)})
				n := len(s.truth[model])
				held, known, width := make([]int, n), make([]int, n), make([]float64, n)
				for range runs {
					a := p.askRounds(t, s.dealt, source)[0]
					for i, c := range a.Cells {
						if want := s.truth[model][i][0]; c.Unknown == "" {
							known[i]++
							width[i] += (c.High - c.Low) / 2
							if c.Low <= want && want <= c.High {
								held[i]++
							}
						}
					}
				}
				for i, all := range known {
					t.Logf("%s, %s, epsilon %v: coefficient %d: %d of %d hold, ± %.4g", name, model, epsilon, i,
						held[i], all, width[i]/float64(all))
					if float64(held[i]) < 0.83*float64(all) || epsilon == 2 && all < runs*9/10 {
						t.Errorf("%s, %s, epsilon %v: coefficient %d: %d of %d hold, of %d", name, model, epsilon,
							i, held[i], all, runs)
					}
				}
			}
		}
	}
}
