package query

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/hushsum/hushsum/internal/suite"
)

// pressures asks for a model of blood pressure by age and a body mass index, whose deviation is a
// tenth of its range.
const pressures = `name = "pressures"
parties = { count = 4, rows = 6000 }
privacy = { unit = "record", records = 6000, noise = "discrete-gaussian", epsilon = %v }
column = [
  { name = "age", type = "number", range = [20.0, 90.0] },
  { name = "bmi", type = "number", range = [10.0, 60.0] },
  { name = "pressure", type = "number", range = [80.0, 220.0] },
]
query = [{ name = "model", kind = "linear", column = "pressure", on = ["age", "bmi"] }]
`

// pressureRows makes 6,000 rows, and the vectors of four parties.
func pressureRows(p *Plan) (x [][]float64, y []float64, vectors [][]float64) {
	random := rand.New(rand.NewPCG(2, 2))
	dealt := []*Rows{{}, {}, {}, {}}
	for i := range 6000 {
		age := min(max(55+16*random.NormFloat64(), 20), 90)
		bmi := min(max(26+5*random.NormFloat64()+0.03*(age-55), 10), 60)
		pressure := min(max(80+0.3*age+0.9*bmi+15*random.NormFloat64(), 80), 220)
		x, y = append(x, []float64{1, age, bmi}), append(y, pressure)
		dealt[i%4].values = append(dealt[i%4].values, []float64{age, bmi, pressure})
	}
	for _, own := range dealt {
		vectors = append(vectors, mustVector(p, own))
	}
	return x, y, vectors
}

// Intervals of a linear model hold the least squares of the rows, fitted one by one, in 95 ± 2 % of
// 1,000 answers, also of a column that varies little, and have ends from an epsilon of 0.5 on. In
// the short form 200 answers, and 95 ± 4.5 %: a right program fails once in 400.
func TestLinearCoverage(t *testing.T) {
	runs := suite.Size(200, 200, 1000, 1000)
	off := map[bool]float64{true: 0.02, false: 0.045}[runs == 1000]
	for _, epsilon := range []float64{0.5, 1, 2} {
		p := planOf(t, fmt.Sprintf(pressures, epsilon))
		x, y, vectors := pressureRows(p)
		truth := squaresLeast(x, y)
		random := rand.NewChaCha8([32]byte{9})
		var held [3]int
		unknown, width := 0, 0.0
		for range runs {
			for i, c := range p.ask(t, vectors, random)[0].Cells {
				if c.Unknown != "" {
					unknown++
					continue
				}
				if c.Low <= truth[i] && truth[i] <= c.High {
					held[i]++
				}
				if i == 2 {
					width += (c.High - c.Low) / 2 / float64(runs)
				}
			}
		}
		t.Logf("epsilon %v: %v of %d hold %.3f, %d unknown, ± %.3f", epsilon, held, runs, truth, unknown,
			width)
		if unknown > 0 {
			t.Errorf("epsilon %v: %d cannot be known", epsilon, unknown)
		}
		for i, n := range held {
			if share := float64(n) / float64(runs); share < 0.95-off || share > 0.95+off {
				t.Errorf("epsilon %v: coefficient %d: %.1f %% of intervals hold it", epsilon, i, 100*share)
			}
		}
	}
}
