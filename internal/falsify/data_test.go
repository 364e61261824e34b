package falsify

import (
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/floats"

	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/learning"
	"github.com/hushsum/hushsum/privacy"
)

// parties are those of a job, of which one has rows.
func parties(s *job.Settled, who int, rows *learning.Dataset) []*learning.Dataset {
	out := make([]*learning.Dataset, s.Roster().Len())
	out[who%len(out)] = rows
	return out
}

// anyRows draws rows of a model: usual numbers, and such as nobody has. Every person has up to
// most rows.
func anyRows(random *rand.Rand, m learning.Model, n, most int) *learning.Dataset {
	f := featuresOf(m)
	d := &learning.Dataset{Features: f, X: make([]float64, 0, n*f)}
	alike := make([]float64, f)
	for i := range alike {
		alike[i] = random.NormFloat64()
	}
	same := random.IntN(2) == 0 // all rows but the first
	for i := range n {
		for k := range f {
			x := random.NormFloat64()
			if same && i > 0 {
				x = alike[k]
			}
			if random.IntN(25) == 0 && (i == 0 || !same) {
				x = pick(random, 0, math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64, -1e200, 1e200,
					5e-324, 1e-160, 1e155)
			}
			d.X = append(d.X, x)
		}
		label := random.IntN(m.Classes())
		if random.IntN(15) == 0 {
			label = -1
		}
		d.Labels = append(d.Labels, label)
		d.Writers = append(d.Writers, random.IntN(1+n/max(1, most)))
	}
	return d
}

// featuresOf is how many features a model has.
func featuresOf(m learning.Model) int {
	switch m := m.(type) {
	case learning.Logistic:
		return m.Features
	case learning.Softmax:
		return m.Features
	case learning.MLP:
		return m.Features
	case learning.LeNet:
		return m.Side * m.Side
	}
	panic("a model that falsify does not know")
}

// anyWeights draws a model that a server may send: a first one, a wild one, one that is no number,
// and one with which the last bit of a row's score decides its whole gradient.
func anyWeights(random *rand.Rand, m learning.Model, rows *learning.Dataset, row int) []float64 {
	w := m.Init(random.Uint64())
	by := pick(random, 0, 1, 1, 1, 1e3, 1e18, 1e18, 1e18, 1e18, 1e150, 1e300)
	for i := range w {
		w[i] = by * random.NormFloat64()
	}
	if _, linear := m.(learning.Logistic); linear && row < rows.Len() {
		x := rows.Row(row)
		if rest := floats.Dot(w, x) / x[0]; !math.IsNaN(rest) && !math.IsInf(rest, 0) {
			w[0] -= rest // its score is next to 0
		}
	}
	if random.IntN(12) == 0 {
		w[random.IntN(len(w))] = pick(random, math.NaN(), math.Inf(1), math.MaxFloat64)
	}
	return w
}

// earlier are the sums that parties are told of, after a round that had one.
func earlier(round, band int, of []privacy.Decoded, d int) []privacy.Decoded {
	out := append([]privacy.Decoded{{Round: uint64(round), Sum: make([]float64, d)}}, of...)
	return out[:min(len(out), band-1)]
}
