package query

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/internal/suite"
)

// rSet is a data set of R's package survival, and what R says of it.
type rSet struct {
	days, months []life
	top          float64 // days of the last row
	truth        map[string]map[float64]float64
}

// runR returns what a script prints, or skips the test without R.
func runR(t *testing.T, script string) string {
	t.Helper()
	program, err := exec.LookPath("Rscript")
	if err == nil {
		err = exec.Command(program, "-e", "library(survival)").Run()
	}
	if err != nil {
		if os.Getenv("HUSHSUM_REQUIRE_R") == "1" {
			t.Fatal("HUSHSUM_REQUIRE_R is 1, and R with its package survival is not here: ", err)
		}
		t.Skip("R with its package survival is not here; Debian has r-cran-survival")
	}
	text, err := exec.Command(program, script).Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// rSets runs R, or skips the test without it.
func rSets(t *testing.T) map[string]*rSet {
	t.Helper()
	text := runR(t, "testdata/truth.R")
	sets := map[string]*rSet{}
	for line := range strings.Lines(text) {
		f := strings.Split(strings.TrimSpace(line), ",")
		s := sets[f[1]]
		if s == nil {
			s = &rSet{truth: map[string]map[float64]float64{}}
			sets[f[1]] = s
		}
		number := func(text string) float64 {
			x, err := strconv.ParseFloat(text, 64)
			if err != nil {
				t.Fatal(line, err)
			}
			return x
		}
		if f[0] == "row" {
			event, group := f[4] == "1", int(number(f[5]))-1
			s.days = append(s.days, life{number(f[2]), event, group})
			s.months = append(s.months, life{number(f[3]), event, group})
			s.top = max(s.top, number(f[2]))
			continue
		}
		if s.truth[f[2]] == nil {
			s.truth[f[2]] = map[float64]float64{}
		}
		s.truth[f[2]][number(f[3])] = number(f[4])
	}
	return sets
}

// compared asks for the curve, the test and a model of rows in two groups.
const compared = `name = "compared"
parties = { count = 4, rows = %d }
%s
column = [
  { name = "time", type = %q, range = [%s] },
  { name = "status", type = "category", categories = ["lost", "dead"] },
  { name = "arm", type = "category", categories = ["a", "b"] },
  { name = "number", type = "whole", range = [1, 2] },
]
query = [
  { name = "curve", kind = "survival", column = "time", bins = %d, event = "status = dead" },
  { name = "test", kind = "logrank", column = "time", by = "arm", bins = %d, event = "status = dead" },
  { name = "model", kind = "linear", column = "time", on = ["number"] },
]
`

// dealCompared makes the vectors of four parties.
func dealCompared(p *Plan, rows []life) (vectors [][]float64) {
	dealt := []*Rows{{}, {}, {}, {}}
	for i, r := range rows {
		dealt[i%4].values = append(dealt[i%4].values, []float64{r.time,
			map[bool]float64{true: 1}[r.event], float64(r.group), float64(r.group + 1)})
	}
	for _, own := range dealt {
		vectors = append(vectors, mustVector(p, own))
	}
	return vectors
}

// Without noise, and with a bin for each month, curves, the log-rank test and a linear model of
// five data sets are those of R's survfit, survdiff and lm.
func TestRAgrees(t *testing.T) {
	for name, s := range rSets(t) {
		last := 0.0
		for _, r := range s.months {
			last = max(last, r.time)
		}
		p := planOf(t, fmt.Sprintf(compared, len(s.months), "", "whole", fmt.Sprintf("1, %.0f", last),
			int(last), int(last)))
		answers := p.ask(t, dealCompared(p, s.months), rand.NewChaCha8([32]byte{}))
		for at, want := range s.truth["months"] {
			c := answers[0].Cells[int(at)-1]
			if math.Abs(c.Value-want) > 1e-9 || c.Low != c.Value || c.High != c.Value {
				t.Errorf("%s: by month %v %+v, and survfit has %v", name, at, c, want)
			}
		}
		test := answers[1]
		if want := s.truth["chi"][0]; test.Test == nil || math.Abs(test.Test.ChiSquare-want) > 1e-9*want {
			t.Errorf("%s: %+v, and survdiff has %v", name, test.Test, want)
		}
		for g, c := range test.Cells {
			if want := s.truth["off"][float64(g+1)]; math.Abs(c.Value-want) > 1e-6 {
				t.Errorf("%s: group %d: %+v, and survdiff has %v", name, g, c, want)
			}
		}
		for i, c := range answers[2].Cells { // to as many digits as the sum's encoding has
			if want := s.truth["lm"][float64(i)]; math.Abs(c.Value-want) > 1e-3*math.Abs(want) ||
				!(c.Low <= want && want <= c.High) {
				t.Errorf("%s: coefficient %d: %+v, and lm has %v", name, i, c, want)
			}
		}
	}
}

// With noise, intervals of curves over bins of days hold R's survfit of the days in 93 % of cases
// or more, at ends beyond which 100 rows or more are known about, in each data set with more than
// 900 rows.
func TestRHeld(t *testing.T) {
	if !suite.Long() && os.Getenv("HUSHSUM_REQUIRE_R") != "1" {
		t.Skip("480 answers: with -long, or with HUSHSUM_REQUIRE_R=1")
	}
	runs := suite.Size(40, 40, 300, 300)
	for name, s := range rSets(t) {
		if len(s.days) < 600 {
			continue
		}
		for _, epsilon := range []float64{1, 2} {
			for _, bins := range []int{12, 36} {
				privacy := fmt.Sprintf(`privacy = { unit = "record", records = %d, `+
					`noise = "discrete-gaussian", epsilon = %v }`, len(s.days), epsilon)
				p := planOf(t, lives("number", 0, s.top, bins, privacy),
					fmt.Sprint("parties.rows=", len(s.days)))
				for at, want := range s.truth["days"] { // our own truth is R's
					if got := kaplanMeier(s.days, math.Nextafter(at, math.Inf(1))); math.Abs(got-want) > 1e-9 {
						t.Errorf("%s: %v by day %v, and survfit has %v", name, got, at, want)
					}
				}
				share, width := held(t, p, s.days, runs)
				t.Logf("%-9s %4d rows, epsilon %v, %d bins: %.1f %% hold, width %.4f", name, len(s.days),
					epsilon, bins, 100*share, width)
				if share < 0.93 {
					t.Errorf("%s, epsilon %v, %d bins: %.1f %% hold", name, epsilon, bins, 100*share)
				}
			}
		}
	}
}
