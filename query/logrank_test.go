package query

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/hushsum/hushsum/internal/suite"
)

// aml are the remissions in weeks of 23 patients with acute myelogenous leukaemia (Miller 1981,
// "Survival Analysis"), 11 of whom were treated on, as R's package survival 3.5 has them.
func aml() (rows []life) {
	for group, times := range []string{"9 13 13+ 18 23 28+ 31 34 45+ 48 161+",
		"5 5 8 8 12 16+ 23 27 30 33 43 45"} {
		var time int
		event, have := true, false
		for _, c := range times + " " {
			switch {
			case c >= '0' && c <= '9':
				time, have = 10*time+int(c-'0'), true
			case c == '+':
				event = false
			case have:
				rows = append(rows, life{float64(time), event, group})
				time, event, have = 0, true, false
			}
		}
	}
	return rows
}

// The curve of a textbook's rows is that of R's survfit, and tests of two and of three groups are
// those of its survdiff.
func TestRemissions(t *testing.T) {
	text := fmt.Sprintf(compared, 23, "", "whole", "1, 161", 161, 161)
	p := planOf(t, text)
	answers := p.ask(t, dealCompared(p, aml()), rand.NewChaCha8([32]byte{}))
	for at, want := range map[int]float64{4: 1, 5: 0.913043478260870, 8: 0.826086956521739,
		9: 0.782608695652174, 12: 0.739130434782609, 13: 0.695652173913043, 18: 0.645962732919255,
		23: 0.546583850931677, 27: 0.496894409937888, 30: 0.441683919944790, 31: 0.386473429951691,
		33: 0.331262939958592, 34: 0.276052449965493, 43: 0.220841959972395, 45: 0.165631469979296,
		48: 0.082815734989648, 161: 0.082815734989648} {
		if c := answers[0].Cells[at-1]; math.Abs(c.Value-want) > 1e-12 || answers[0].Grid[at-1] != 0 {
			t.Errorf("by week %d %+v, want %v", at, c, want)
		}
	}
	check := func(a Answer, chi, least float64, off ...float64) {
		t.Helper()
		if a.Test == nil || math.Abs(a.Test.ChiSquare-chi) > 1e-9 || math.Abs(a.Test.P-least) > 1e-9 {
			t.Fatalf("%+v", a.Test)
		}
		for g, want := range off {
			if c := a.Cells[g]; math.Abs(c.Value-want) > 1e-9 || c.Low != c.Value || c.High != c.Value {
				t.Errorf("group %d: %+v, want %v", g, c, want)
			}
		}
	}
	check(answers[1], 3.3963886989776, 0.0653393220405051, -3.68933599230072, 3.68933599230072)
	if e := answers[1].Errors[0]; math.Abs(e*e-4.00755074593873) > 1e-9 {
		t.Errorf("a variance of %v", e*e)
	}
	p = planOf(t, `name = "three"
parties = { count = 4, rows = 23 }
column = [
  { name = "time", type = "whole", range = [1, 161] },
  { name = "status", type = "category", categories = ["lost", "dead"] },
  { name = "arm", type = "category", categories = ["a", "b", "c"] },
]
query = [{ name = "t", kind = "logrank", column = "time", by = "arm", bins = 161, event = "status = dead" }]
`)
	rows := aml()
	for i := range rows {
		rows[i].group = (i + 1) % 3
	}
	check(p.ask(t, dealCompared(p, rows), rand.NewChaCha8([32]byte{}))[0], 0.856465545235982,
		0.651659708606481, -0.563606891605276, 1.828264337851765, -1.264657446246490)
}

// If groups are chance, the test rejects at 5 % in at most so many of its runs: of 300, 25 or more
// would come of a right test once in 100 times. If one of them has events twice as soon, it finds
// that, and the intervals of events hold those of the rows.
func TestLogrankNoise(t *testing.T) {
	runs := suite.Size(100, 100, 300, 1000)
	rows := exponential(rand.New(rand.NewPCG(3, 3)), 3000)
	text := fmt.Sprintf(compared, 3000, `privacy = { unit = "record", records = 3000, `+
		`noise = "discrete-gaussian", epsilon = 1.0 }`, "number", "0.0, 36.0", 24, 24)
	p := planOf(t, text)
	exact := planOf(t, fmt.Sprintf(compared, 3000, "", "number", "0.0, 36.0", 24, 24))
	random, source := rand.New(rand.NewPCG(4, 4)), rand.NewChaCha8([32]byte{7})
	for name, half := range map[string]float64{"chance": 1, "twice as soon": 0.5} {
		rejected, held := 0, 0
		for range runs {
			for i := range rows {
				rows[i].group = random.IntN(2)
			}
			others := append([]life(nil), rows...)
			for i := range others {
				if others[i].group == 1 {
					others[i].time *= half
				}
			}
			a := p.ask(t, dealCompared(p, others), source)[1]
			truth := exact.ask(t, dealCompared(exact, others), source)[1]
			if a.Test == nil {
				t.Fatalf("%+v", a)
			}
			if a.Test.P < 0.05 {
				rejected++
			}
			if c := a.Cells[0]; c.Low <= truth.Cells[0].Value && truth.Cells[0].Value <= c.High {
				held++
			}
		}
		t.Logf("%s: %d of %d rejected, %d intervals hold", name, rejected, runs, held)
		if half == 1 && float64(rejected) > 0.083*float64(runs)+2 || half < 1 && rejected < runs*9/10 {
			t.Errorf("%s: %d of %d are rejected", name, rejected, runs)
		}
		if share := float64(held) / float64(runs); share < 0.88 {
			t.Errorf("%s: %.1f %% of intervals hold", name, 100*share)
		}
	}
}
