package query

import (
	"math"
	"math/rand/v2"
	"testing"
)

const jointly = `name = "joint"
parties = { count = 30 }
privacy = { noise = "discrete-gaussian", epsilon = 1.0 }
column = [
  { name = "x", type = "number", range = [-10.0, 30.0], unit = "kg" },
  { name = "y", type = "number", range = [0.0, 6.0], unit = "m" },
  { name = "months", type = "whole", range = [1, 24] },
  { name = "status", type = "category", categories = ["alive", "dead"] },
]
query = [
  { name = "covariance", kind = "covariance", column = "x", by = "y" },
  { name = "correlation", kind = "correlation", column = "x", by = "y" },
  { name = "survival", kind = "survival", column = "months", bins = 12, event = "status = dead" },
  { name = "linear", kind = "linear", column = "y", on = ["x", "months"] },
]
`

// jointRows makes rows of which x and y go together, and half live to the end or are lost.
func jointRows(parties, each int) (all [][]float64, dealt []*Rows) {
	random := rand.New(rand.NewPCG(8, 8))
	for range parties {
		own := &Rows{}
		for range each {
			x := min(max(8+7*random.NormFloat64(), -10), 30)
			months := min(1+math.Floor(random.ExpFloat64()*12), 24)
			y := min(max(2+0.08*x+0.02*months+0.5*random.NormFloat64(), 0), 6)
			dead := float64(random.IntN(3) / 2)
			if months == 24 {
				dead = 0
			}
			row := []float64{x, y, months, dead}
			all, own.values = append(all, row), append(own.values, row)
		}
		dealt = append(dealt, own)
	}
	return all, dealt
}

// jointTruths computes what the rows of all parties say, without this package's vectors.
func jointTruths(rows [][]float64) map[string][]float64 {
	n := float64(len(rows))
	var mean, second [3]float64
	var product float64
	for _, r := range rows {
		for i := range mean {
			mean[i] += r[i] / n
		}
	}
	for _, r := range rows {
		for i := range second {
			second[i] += (r[i] - mean[i]) * (r[i] - mean[i]) / n
		}
		product += (r[0] - mean[0]) * (r[1] - mean[1]) / n
	}
	out := map[string][]float64{"covariance": {product},
		"correlation": {product / math.Sqrt(second[0]*second[1])}}
	var times []life
	for _, r := range rows {
		times = append(times, life{time: r[2], event: r[3] == 1})
	}
	for bin := range 12 {
		out["survival"] = append(out["survival"], kaplanMeier(times, float64(2*bin)+2.5))
	}
	// The model by steps down its gradient, in columns with mean 0 and variance 1.
	slope := [2]float64{}
	for range 2000 {
		var gradient [2]float64
		for _, r := range rows {
			u, w := (r[0]-mean[0])/math.Sqrt(second[0]), (r[2]-mean[2])/math.Sqrt(second[2])
			off := r[1] - mean[1] - slope[0]*u - slope[1]*w
			gradient[0] += off * u / n
			gradient[1] += off * w / n
		}
		slope[0] += 0.5 * gradient[0]
		slope[1] += 0.5 * gradient[1]
	}
	bx, bm := slope[0]/math.Sqrt(second[0]), slope[1]/math.Sqrt(second[2])
	out["linear"] = []float64{mean[1] - bx*mean[0] - bm*mean[2], bx, bm}
	return out
}

// Intervals of covariances, correlations, survival curves and linear models hold the truth in 95 ±
// 2 % of 1,000 answers, as TestCoverage has it of other kinds. Where noise is nearly all there is,
// as with 30 parties and the party for the unit, intervals end at what can be, and hold it more
// often.
func TestCoverageJoint(t *testing.T) {
	for _, unit := range []string{"party", "record"} {
		t.Run(unit, func(t *testing.T) {
			const parties, each, runs = 30, 200, 1000
			set := []string{"parties.rows=200", "privacy.epsilon=20"}
			if unit == "record" {
				set = []string{"privacy.unit=record", "privacy.records=6000"}
			}
			p := planOf(t, jointly, set...)
			rows, dealt := jointRows(parties, each)
			truth := jointTruths(rows)
			vectors, exact := make([][]float64, parties), make([]float64, p.Length())
			for i := range vectors {
				vectors[i] = mustVector(p, dealt[i])
				for k, x := range vectors[i] {
					exact[k] += x
				}
			}
			ours, central := newTally(truth), newTally(truth)
			random, normal := rand.NewChaCha8([32]byte{3}), rand.New(rand.NewPCG(4, 4))
			noise := p.leastNoise(t)
			for run := range runs {
				ours.add(t, p.ask(t, vectors, random))
				if run%2 == 0 {
					central.add(t, p.curator(t, exact, noise, normal))
				}
			}
			for _, kind := range []string{"covariance", "correlation", "survival", "linear"} {
				n := float64(ours.cells[kind])
				share := float64(ours.held[kind]) / n
				ratio := ours.error(kind) / central.error(kind)
				t.Logf("%-11s %5.0f intervals, %.1f %% hold the truth; error %.4g, %.3f times a central "+
					"curator's", kind, n, 100*share, ours.error(kind), ratio)
				// A curve's interval holds every order within bins too.
				if !(share >= 0.93 && (share <= 0.97 || unit == "party" || kind == "survival")) {
					t.Errorf("%s: %.1f %% of %.0f intervals hold the truth", kind, 100*share, n)
				}
				if !(ratio <= 1.1) {
					t.Errorf("%s: %.3f times the error of a central curator", kind, ratio)
				}
			}
		})
	}
}
