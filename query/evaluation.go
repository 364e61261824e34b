package query

import (
	"fmt"
	"math"

	"github.com/hushsum/hushsum/job"
)

// This file has the evaluation of a model's scores, probabilities of an event. The vector has two
// numbers for each bin of scores: the rows that the event did not come to, and those that it did.
// All measures are those of scores rounded to the middles of bins, whose width on the scale
// asin √score is the same: they are finer near 0 and 1, where scores crowd. Counts that noise takes
// below 0 stay as they are, since cutting them would move sums.

// measure is a number that follows from a table of scores.
type measure struct {
	label     string
	value     float64
	gradient  []float64 // by each number of the table
	low, high float64   // all that is possible
	known     bool
}

// ratio returns a measure that is a quotient of two sums over a table, with weights.
func ratio(label string, table, above, below []float64) measure {
	m := measure{label: label, high: 1}
	x, n := 0.0, 0.0
	for i := range table {
		x += above[i] * table[i]
		n += below[i] * table[i]
	}
	m.value, m.known = x/n, n > 0
	for i := range table {
		m.gradient = append(m.gradient, (above[i]-m.value*below[i])/n)
	}
	return m
}

// weights makes those of a table's numbers, by bin and whether the event came.
func weights(bins int, of func(bin int, came bool) float64) []float64 {
	out := make([]float64, 2*bins)
	for bin := range bins {
		out[2*bin], out[2*bin+1] = of(bin, false), of(bin, true)
	}
	return out
}

func indicator(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// areaUnder returns the area under the ROC curve: the share of pairs of a row with the event and
// one without in which the former has the higher score, ties by half.
func areaUnder(table []float64) measure {
	bins := len(table) / 2
	m := measure{label: "AUC", high: 1, gradient: make([]float64, len(table))}
	p, n := 0.0, 0.0
	for bin := range bins {
		n += table[2*bin]
		p += table[2*bin+1]
	}
	below, above := 0.0, p
	// Of each number, the share of the others that agree: of a positive, negatives below.
	agree := make([]float64, len(table))
	for bin := range bins {
		above -= table[2*bin+1]
		agree[2*bin] = (above + table[2*bin+1]/2) / p
		agree[2*bin+1] = (below + table[2*bin]/2) / n
		below += table[2*bin]
		m.value += table[2*bin+1] * agree[2*bin+1] / p
	}
	for bin := range bins {
		m.gradient[2*bin] = (agree[2*bin] - m.value) / n
		m.gradient[2*bin+1] = (agree[2*bin+1] - m.value) / p
	}
	m.known = p > 0 && n > 0
	return m
}

// calibration fits the logarithm of the odds of the event to that of the score's: the intercept is
// 0 and the slope 1 if scores are probabilities. It is nil if the table has no such fit.
func calibration(table, middles []float64) []measure {
	var line [2]float64
	var inv [][]float64
	step := math.Inf(1)
	for range 50 {
		var score [2]float64
		h := square(2)
		for bin, middle := range middles {
			x := [2]float64{1, math.Log(middle / (1 - middle))}
			p := 1 / (1 + math.Exp(-line[0]-line[1]*x[1]))
			n := table[2*bin] + table[2*bin+1]
			for i := range x {
				score[i] += (table[2*bin+1] - n*p) * x[i]
				for j := range x {
					h[i][j] += n * p * (1 - p) * x[i] * x[j]
				}
			}
		}
		if inv = inverse(h, 0); inv == nil {
			return nil
		}
		step = 0
		for i := range line {
			d := inv[i][0]*score[0] + inv[i][1]*score[1]
			d = min(max(d, -2), 2)
			line[i] += d
			step = max(step, math.Abs(d))
		}
		if step < 1e-12 {
			break
		}
	}
	if !(step < 1e-6) {
		return nil
	}
	out := []measure{{label: "calibration intercept"}, {label: "calibration slope"}}
	for i := range out {
		m := &out[i]
		m.value, m.low, m.high, m.known = line[i], math.Inf(-1), math.Inf(1), true
		for _, middle := range middles {
			x := math.Log(middle / (1 - middle))
			p := 1 / (1 + math.Exp(-line[0]-line[1]*x))
			to := inv[i][0] + inv[i][1]*x
			m.gradient = append(m.gradient, -p*to, (1-p)*to)
		}
	}
	return out
}

// measures returns all that a table says, with rates at cuts, which are edges of bins.
func measures(table []float64, cuts []int) (all []measure) {
	bins := len(table) / 2
	middles := make([]float64, bins)
	for bin := range middles {
		middles[bin] = job.Score(2*bin+1, 2*bins)
	}
	one := weights(bins, func(int, bool) float64 { return 1 })
	events := weights(bins, func(_ int, came bool) float64 { return indicator(came) })
	others := weights(bins, func(_ int, came bool) float64 { return indicator(!came) })
	all = append(all, areaUnder(table),
		ratio("Brier score", table, weights(bins, func(bin int, came bool) float64 {
			return math.Pow(middles[bin]-indicator(came), 2)
		}), one))
	if fit := calibration(table, middles); fit != nil {
		all = append(all, fit...)
	} else {
		all = append(all, measure{label: "calibration intercept", low: math.Inf(-1), high: math.Inf(1)},
			measure{label: "calibration slope", low: math.Inf(-1), high: math.Inf(1)})
	}
	all = append(all, ratio("share with the event", table, events, one))
	for _, cut := range cuts {
		at := fmt.Sprintf(" at %.4g", job.Score(cut, bins))
		share := func(of func(bin int, came bool) bool) []float64 {
			return weights(bins, func(bin int, came bool) float64 { return indicator(of(bin, came)) })
		}
		hit := share(func(bin int, came bool) bool { return came && bin >= cut })
		all = append(all,
			ratio("accuracy"+at, table, share(func(bin int, came bool) bool {
				return came == (bin >= cut)
			}), one),
			ratio("sensitivity"+at, table, hit, events),
			ratio("specificity"+at, table, share(func(bin int, came bool) bool {
				return !came && bin < cut
			}), others),
			ratio("precision"+at, table, hit, share(func(bin int, _ bool) bool { return bin >= cut })))
	}
	return all
}

// cuts returns the edges of bins that are nearest to what a query declares, between the ends.
func (a *ask) cuts() (edges []int) {
	for _, at := range a.At {
		edge := int(math.Round(job.ScorePlace(at) * float64(a.Bins)))
		edges = append(edges, min(max(edge, 1), a.Bins-1))
	}
	return edges
}

// evaluation reads the tables of all groups. Intervals of the rows are by noise, those of the
// population by noise and by which rows were drawn, both to first order. A measure is not known
// where noise leaves too little of what it divides by.
func (s *sum) evaluation(a *ask, x []float64, deviation float64) (out Answer) {
	bins := a.Bins
	groups := []string{""}
	if a.by != nil {
		groups = a.by.Words()
	}
	for g, group := range groups {
		table := x[2*bins*g:][:2*bins]
		out.Tables = append(out.Tables, tableOfScores(group, table))
		rows, came := 0.0, 0.0
		for i, n := range table {
			rows += n
			if i%2 == 1 {
				came += n
			}
		}
		tell := leastRows * deviation * math.Sqrt(float64(bins))
		enough := came > tell && rows-came > tell
		for _, m := range measures(table, a.cuts()) {
			label := m.label
			if group != "" {
				label = group + ": " + label
			}
			noise, squares, mean := 0.0, 0.0, 0.0
			for i, d := range m.gradient {
				noise += d * d
				squares += max(0, table[i]) * d * d
				mean += max(0, table[i]) * d
			}
			noise = deviation * math.Sqrt(noise)
			drawn := math.Hypot(noise, math.Sqrt(max(0, squares-mean*mean/max(1, rows))))
			unknown := hides("how scores go with the event", deviation, label, m.low, m.high)
			if !m.known || !enough {
				out.add(unknown, [2]float64{m.low, m.high})
				continue
			}
			c := Cell{Label: label, Value: m.value, Low: m.value - z95*noise, High: m.value + z95*noise}
			if c.Low <= m.low && c.High >= m.high {
				out.add(unknown, [2]float64{m.low, m.high})
				continue
			}
			p := c
			p.Low, p.High = m.value-z95*drawn, m.value+z95*drawn
			p = p.within(m.low, m.high)
			out.add(c.within(m.low, m.high), [2]float64{p.Low, p.High})
		}
	}
	return out
}

// add adds a number with its interval for a population.
func (a *Answer) add(c Cell, population [2]float64) {
	a.Cells, a.Population = append(a.Cells, c), append(a.Population, population)
}

// ScoreTable holds the rows of a group by score and outcome, from which ROC, precision-recall and
// calibration curves follow.
type ScoreTable struct {
	Group  string    `json:"group"`
	Scores []float64 `json:"scores"` // the middles of bins
	Others []float64 `json:"others"` // rows without the event; noise may take them below 0
	Events []float64 `json:"events"`
}

func tableOfScores(group string, table []float64) ScoreTable {
	out := ScoreTable{Group: group}
	bins := len(table) / 2
	for bin := range bins {
		out.Scores = append(out.Scores, job.Score(2*bin+1, 2*bins))
		out.Others, out.Events = append(out.Others, table[2*bin]), append(out.Events, table[2*bin+1])
	}
	return out
}

// ROC returns the curve's points from (0, 0) to (1, 1): the shares of rows without and with the
// event whose score is above an edge of bins.
func (t *ScoreTable) ROC() (points [][2]float64) {
	n, p := 0.0, 0.0
	for bin := range t.Scores {
		n += t.Others[bin]
		p += t.Events[bin]
	}
	x, y := 0.0, 0.0
	points = append(points, [2]float64{})
	for bin := len(t.Scores) - 1; bin >= 0; bin-- {
		x += t.Others[bin]
		y += t.Events[bin]
		if n > 0 && p > 0 {
			points = append(points, [2]float64{min(max(x/n, 0), 1), min(max(y/p, 0), 1)})
		}
	}
	return points
}

// scoredEvenly returns half of the interval of an AUC by noise, for scores that are spread evenly
// on the scale of bins and are probabilities, in groups of one size.
func (a *ask) scoredEvenly(rows, deviation float64) float64 {
	table := make([]float64, 2*a.Bins)
	groups := float64(a.length / len(table))
	for bin := range a.Bins {
		p := job.Score(2*bin+1, 2*a.Bins)
		table[2*bin] = (1 - p) * rows / groups / float64(a.Bins)
		table[2*bin+1] = p * rows / groups / float64(a.Bins)
	}
	if rows/groups/2 <= leastRows*deviation*math.Sqrt(float64(a.Bins)) {
		return math.Inf(1)
	}
	squares := 0.0
	for _, d := range areaUnder(table).gradient {
		squares += d * d
	}
	return z95 * deviation * math.Sqrt(squares)
}
