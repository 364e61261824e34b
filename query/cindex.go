package query

import "math"

// This file has the C-index (Harrell 1982): the share of pairs in which the event comes first to
// the row with the higher score, of all pairs of rows of which it is known to which it came first;
// equal scores count by half. The vector has the rows that were lost and those with the event, for
// each bin of times and each of scores. The index is that of times rounded up to the ends of bins
// and of rounded scores. Rows of one bin may be in any order, so that the index of the rows is
// somewhere between those of the least and the greatest order.

// order says how pairs count whose order nobody is told.
type order int

const (
	asRounded order = iota // as rounded times and scores do
	against                // the index
	inFavour               // of it
)

// paired is a table of rows by times and scores.
type paired struct {
	table  []float64 // by bin of times, bin of scores, and whether the event came
	scores int       // bins
	// Each bin of times, and of scores, is one value.
	exactTimes, exactScores bool
}

// pair returns whether a row with the event and another are compared, and whether they agree, as
// numbers from 0 to 1; first and second are places in the table.
func (p *paired) pair(first, second int, by order) (agree, compared float64) {
	event := second%2 == 1
	t, u := first/2/p.scores, second/2/p.scores
	s, z := first/2%p.scores, second/2%p.scores
	switch {
	case u < t || u == t && event && (p.exactTimes || by == asRounded):
		return 0, 0 // the other came first, or both at once
	case u == t && event: // either may be the first: each of the two counts by half
		return map[order]float64{inFavour: 0.5}[by], 0.5
	case u == t && by != asRounded && !p.exactTimes: // they are compared if the event came first
		if by == against && s > z || by == inFavour && s < z {
			return 0, 0
		}
		return map[order]float64{inFavour: 1}[by], 1
	case s == z && (by == asRounded || p.exactScores):
		return 0.5, 1
	case s == z:
		return map[order]float64{inFavour: 1}[by], 1
	}
	return indicator(s > z), 1
}

// index returns the C-index, its derivatives by the numbers of the table, and how many pairs are
// compared. Noise has a variance in each number, which the squares of numbers lose.
func (p *paired) index(by order, variance float64) (c float64, gradient []float64, pairs float64) {
	n := len(p.table)
	agree, compared := make([]float64, n), make([]float64, n) // derivatives
	agreed := 0.0
	for i := 1; i < n; i += 2 {
		for k, other := range p.table {
			a, b := p.pair(i, k, by)
			if b == 0 {
				continue
			}
			agree[i] += a * other
			agree[k] += a * p.table[i]
			compared[i] += b * other
			compared[k] += b * p.table[i]
			product := p.table[i] * other
			if i == k { // a row is no pair with itself
				product -= p.table[i] + variance
				agree[i] -= a
				compared[i] -= b
			}
			agreed += a * product
			pairs += b * product
		}
	}
	c = agreed / pairs
	for i := range agree {
		gradient = append(gradient, (agree[i]-c*compared[i])/pairs)
	}
	return c, gradient, pairs
}

// spread returns the deviations of an index by noise of a deviation in each number, and by noise
// and by which rows were drawn, to first order.
func (p *paired) spread(gradient []float64, deviation float64) (noise, drawn float64) {
	squares, mean, rows := 0.0, 0.0, 0.0
	for i, d := range gradient {
		n := max(0, p.table[i])
		noise += d * d
		squares += n * d * d
		mean += n * d
		rows += n
	}
	noise = deviation * math.Sqrt(noise)
	return noise, math.Hypot(noise, math.Sqrt(max(0, squares-mean*mean/max(1, rows))))
}

// enough reports whether noise of a deviation leaves to tell how many rows have the event.
func (p *paired) enough(deviation float64) bool {
	came, rows := 0.0, 0.0
	for i, n := range p.table {
		rows += n
		came += n * float64(i%2)
	}
	return min(came, rows/2) > leastRows*deviation*math.Sqrt(float64(len(p.table))/2)
}

func (a *ask) paired(table []float64) *paired {
	return &paired{table, a.by.bins, a.column.oneEach(), a.by.oneEach()}
}

// concordance reads a C-index, with its interval for rounded rows by noise.
func (s *sum) concordance(a *ask, x []float64, deviation float64) (out Answer) {
	p := a.paired(x)
	variance := deviation * deviation
	c, gradient, pairs := p.index(asRounded, variance)
	noise, drawn := p.spread(gradient, deviation)
	cell := Cell{Value: c, Low: c - z95*noise, High: c + z95*noise}
	if !p.enough(deviation) || !(pairs > 0) || cell.Low <= 0 && cell.High >= 1 {
		out.add(hides("how scores go with the event", deviation, "", 0, 1), [2]float64{0, 1})
		out.Grid = []float64{1}
		return out
	}
	whole := Cell{Value: c, Low: c - z95*drawn, High: c + z95*drawn}.within(0, 1)
	out.add(cell.within(0, 1), [2]float64{whole.Low, whole.High})
	low, _, _ := p.index(against, variance)
	high, _, _ := p.index(inFavour, variance)
	out.Grid = []float64{min(1, max(0, high-low))}
	return out
}

// pairedEvenly returns half of the interval of a C-index by noise, for rows that are spread evenly
// over times and scores, half of them with the event.
func (a *ask) pairedEvenly(rows, deviation float64) float64 {
	table := make([]float64, a.length)
	for i := range table {
		table[i] = rows / float64(len(table))
	}
	p := a.paired(table)
	if !p.enough(deviation) {
		return math.Inf(1)
	}
	_, gradient, _ := p.index(asRounded, 0)
	noise, _ := p.spread(gradient, deviation)
	return z95 * noise
}
