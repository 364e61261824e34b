package query

import (
	"math"

	"github.com/hushsum/hushsum/job"
)

// This file has what a row adds to a model by steps in a round: score and information at
// coefficients that all know. A bound on what a row adds is needed for noise, and a bound on
// residuals would bias the model. So rows are bounded by what is known before their outcome is:
// the follow-up of a row ends where its score could leave the bound, whether or not the event
// comes then, as censoring that depends on its columns and on public coefficients alone; and a
// row whose fitted count is above all that a count can be weighs less. Scores then have mean 0
// where the model is true, whatever the bound is. What a logistic model leaves of an outcome is 1
// at most, and needs no bound.

const (
	timeCells = 24 // of follow-up: a baseline is constant in each
	// timeWeight scales the terms of a baseline that vary with time: with less, noise hides them, and
	// with more a row may add more.
	timeWeight = 0.7
	// scoreShare is the score's part of the budget in a round; the information has the rest.
	scoreShare = 0.55
	// followed is how far a score may go, in lengths of the longest row.
	followed = 1.15
)

// steps is a model that is fitted in several rounds.
type steps struct {
	on       []*axis
	first    []int // coefficient of each column, or the first of its words'
	baseline int   // coefficients of all strata's baselines
	size     int   // all coefficients
	timed    bool
	odds     bool        // of an event, by a logistic model
	strata   *axis       // nil: one
	column   *axis       // of times or counts
	terms    [][]float64 // of the baseline, in each cell of time; of counts there is one
	bound    float64     // of a row's score
	most     float64     // of the expected events of a row; of an outcome's variance if odds
	outer    float64     // norm of the products of the longest row with itself
}

func newSteps(j *job.Job, q *job.Query, column, by *axis, on []*axis) *steps {
	s := &steps{on: on, column: column, strata: by, timed: q.Kind == "cox", odds: q.Kind == "logistic",
		terms: [][]float64{{1}}}
	var slopes int
	s.baseline, slopes = j.Coefficients(q)
	s.size = s.baseline + slopes
	at := s.baseline
	for _, a := range on {
		s.first = append(s.first, at)
		if at++; !a.Numeric() {
			at += a.bins - 2
		}
	}
	squares := []float64{1} // of the largest numbers of a row
	if s.timed {
		s.terms = nil
		for cell := range timeCells {
			t := 2*math.Sqrt((float64(cell)+0.5)/timeCells) - 1
			s.terms = append(s.terms, []float64{1, timeWeight * t, timeWeight * (3*t*t - 1) / 2})
		}
		squares = append(squares, timeWeight*timeWeight, timeWeight*timeWeight)
	}
	for range on {
		squares = append(squares, 1)
	}
	sum, fourth := 0.0, 0.0
	for _, x := range squares {
		sum += x
		fourth += x * x
	}
	s.outer = math.Sqrt((sum*sum + fourth) / 2)
	switch s.bound = math.Sqrt(sum); {
	case s.timed:
		s.bound *= followed
		s.most = s.bound
	case s.odds:
		s.most = 1. / 4 // the variance of an outcome
	default:
		s.most = column.Range[1]
		s.bound *= s.most
	}
	return s
}

// products is how many numbers an information has.
func (s *steps) products() int { return products(s.size) }

// length is how many numbers of the vector are the model's: what a fit keeps takes more than a sum.
func (s *steps) length() int { return fitLength(s.size) }

// design writes a row's columns where their coefficients are, and reports whether it has all.
func (s *steps) design(row, x []float64) bool {
	clear(x)
	for i, a := range s.on {
		value := row[a.at]
		switch {
		case math.IsNaN(value):
			return false
		case a.Numeric():
			x[s.first[i]] = a.scaled(value)
		case value > 0:
			x[s.first[i]+int(value)-1] = 1
		}
	}
	return true
}

// part holds the two that a row adds: score, and information.
type part struct {
	score, information []float64
	expected           float64 // events, or the variance of an outcome
}

// add adds a row to the vector, at the coefficients of a fit.
func (s *steps) add(v, row []float64, came int, f *progress, scale float64) {
	x := make([]float64, s.size)
	outcome := float64(came)
	if s.column != nil {
		outcome = row[s.column.at]
	}
	if f.failed() || !(f.cut > 0) || math.IsNaN(outcome) || !s.design(row, x) {
		return
	}
	from := 0
	if s.strata != nil {
		stratum := row[s.strata.at]
		if math.IsNaN(stratum) {
			return
		}
		from = int(stratum) * len(s.terms[0])
	}
	p := part{make([]float64, s.size), make([]float64, s.products()), 0}
	switch {
	case s.timed:
		s.follow(&p, x, from, outcome/s.column.Range[1]*timeCells, float64(came), f.theta)
	case s.odds:
		mean := 1 / (1 + math.Exp(-predictor(x, f.theta)))
		p.expected = mean * (1 - mean)
		s.linear(&p, x, outcome-mean)
	default:
		mean, weight := math.Exp(min(predictor(x, f.theta), largestLog)), 1.0
		if mean > s.most {
			weight = s.most / mean
		}
		p.expected = weight * mean
		s.linear(&p, x, weight*(outcome-mean))
	}
	// The information is cut where more events are expected than of most rows: it then says too
	// little, and intervals are too wide.
	if p.expected > f.cut {
		for i := range p.information {
			p.information[i] *= f.cut / p.expected
		}
	}
	score, information := s.scales(f)
	norm := 0.0
	for i := range p.score {
		p.score[i] *= score
		norm += p.score[i] * p.score[i]
	}
	for i := range p.information {
		p.information[i] *= information
		norm += p.information[i] * p.information[i]
	}
	if !(norm <= math.MaxFloat64) { // coefficients that no fit has: whoever sends them learns nothing
		return
	}
	scale /= max(1, math.Sqrt(norm)) // which rounding alone takes above 1
	for i, y := range p.score {
		v[i] += scale * y
	}
	for i, y := range p.information {
		v[s.size+i] += scale * y
	}
}

// scales are those of score and information in the vector, so that a row adds norm 1 at most.
func (s *steps) scales(f *progress) (score, information float64) {
	return math.Sqrt(scoreShare) / s.bound, math.Sqrt(1-scoreShare) / (f.cut * s.outer)
}

// predictor sets the first column, of the intercept, and returns what a row's columns predict.
func predictor(x, theta []float64) (eta float64) {
	x[0] = 1
	for i := range x {
		eta += theta[i] * x[i]
	}
	return eta
}

// linear adds a row without time, with what is left of its outcome.
func (s *steps) linear(p *part, x []float64, left float64) {
	at := 0
	for i := range x {
		p.score[i] = left * x[i]
		for k := i; k < len(x); k++ {
			p.information[at] = p.expected * x[i] * x[k]
			at++
		}
	}
}

// follow adds a row that is followed until a time, in cells, when the event came to it or not.
func (s *steps) follow(p *part, x []float64, from int, until, came float64, theta []float64) {
	eta, square := 0.0, 0.0
	for i := s.baseline; i < len(x); i++ {
		eta += theta[i] * x[i]
		square += x[i] * x[i]
	}
	width := len(s.terms[0])
	// Expected events so far, times nothing, each term, and each product of two terms.
	var terms [job.BaselineTerms]float64
	var pairs [job.BaselineTerms][job.BaselineTerms]float64
	last := s.terms[0]
	for cell, now := range s.terms {
		if cell > 0 && float64(cell) >= until {
			break
		}
		last = now
		hazard := eta
		for i, term := range now {
			hazard += theta[from+i] * term
		}
		hazard = math.Exp(min(hazard, largestLog))
		// The score at both ends of the cell, with the event and without: it is longest at one of them.
		var without, with, before float64
		for i, term := range now {
			end := terms[i] + hazard*term
			without += end * end
			with += (term - end) * (term - end)
			before += (term - terms[i]) * (term - terms[i])
		}
		m := p.expected + hazard
		without += m * m * square
		with += (1 - m) * (1 - m) * square
		before += (1 - p.expected) * (1 - p.expected) * square
		if max(without, with, before) > s.bound*s.bound {
			came = 0
			break
		}
		more := hazard * min(1, until-float64(cell))
		p.expected += more
		for i := range now {
			terms[i] += more * now[i]
			for k := i; k < width; k++ {
				pairs[i][k] += more * now[i] * now[k]
			}
		}
	}
	for i := range width {
		p.score[from+i] = came*last[i] - terms[i]
		for k := i; k < width; k++ {
			p.information[triangle(from+i, from+k, s.size)] = pairs[i][k]
		}
	}
	for i := s.baseline; i < len(x); i++ {
		if x[i] == 0 {
			continue
		}
		p.score[i] = (came - p.expected) * x[i]
		for k := range width {
			p.information[triangle(from+k, i, s.size)] = terms[k] * x[i]
		}
		for k := i; k < len(x); k++ {
			p.information[triangle(i, k, s.size)] = p.expected * x[i] * x[k]
		}
	}
}

// largestLog keeps exponentials finite.
const largestLog = 300

// triangle is the place of row i and column k ≥ i of a symmetric matrix of n rows, by rows.
func triangle(i, k, n int) int { return i*n - i*(i-1)/2 + k - i }

// labels name the coefficients that are answered.
func (s *steps) labels() (all []string) {
	if !s.timed {
		all = append(all, "intercept")
	}
	for _, a := range s.on {
		if a.Numeric() {
			all = append(all, a.Name)
			continue
		}
		for _, word := range a.Words()[1:] {
			all = append(all, a.Name+" = "+word)
		}
	}
	return all
}

// inUnits returns what the coefficients that are answered are made of, in units of the columns.
func (s *steps) inUnits() (out [][]float64) {
	for i := range s.size {
		row := make([]float64, s.size)
		row[i] = 1
		if i >= s.baseline || !s.timed {
			out = append(out, row)
		}
	}
	for i, a := range s.on {
		if !a.Numeric() {
			continue
		}
		k := s.first[i]
		out[k-s.size+len(out)][k] = 1 / a.half()
		if !s.timed {
			out[0][k] = -a.mid() / a.half()
		}
	}
	return out
}

// evenRows is how many made-up rows stand for those that a plan expects.
const evenRows = 512

// evenly returns half of the interval of the first slope, for the given number of rows that are
// spread evenly in all columns: half of them with the event, at times spread evenly; or with odds
// that each column of numbers changes by a factor of e over half of its range; or with counts of a
// quarter of the most on average. It fits the model to made-up rows without noise, and adds the
// noise that there will be, with the deviation of a vector's number in the scale of a row.
func (s *steps) evenly(rows, deviation float64, rounds int) float64 {
	f := s.begin(make([]float64, s.length()), true)
	for range rounds {
		sum := make([]float64, s.length())
		for i := range evenRows {
			s.addEven(sum, i, f)
		}
		for i := range sum {
			sum[i] *= rows / evenRows
		}
		if s.next(f, sum, deviation, 1, rounds, true); f.failed() {
			return math.Inf(1)
		}
	}
	byScore, byInformation := s.scales(f)
	score, off := deviation/byScore, deviation/byInformation
	inv := inverted(matrix(f.left, s.size), math.Sqrt(f.information))
	if inv == nil {
		return math.Inf(1)
	}
	// A round that counts is at the estimate of those before it, which n of them make √n times as
	// good as one.
	away, one := 0.0, 1.0
	for n := 1.0; n < f.kept; n++ {
		one += 1 / n
	}
	for i := range inv {
		for _, x := range inv[i] {
			away += math.Pow(score*f.kept*x, 2)
		}
	}
	answered := s.inUnits()
	first := answered[len(answered)-(s.size-s.baseline)]
	noise, _, known := f.noise(inv, first, f.score+off*off*away*one)
	if !known {
		return math.Inf(1)
	}
	return z95 * noise
}

// addEven adds one of the made-up rows, which follow an additive sequence in each column.
func (s *steps) addEven(sum []float64, i int, f *progress) {
	places := 1 + len(s.on)
	for _, a := range append([]*axis{s.column, s.strata}, s.on...) {
		if a != nil {
			places = max(places, a.at+1)
		}
	}
	row := make([]float64, places)
	part := func(k int) float64 { // by roots of k + 2, which go well together
		_, x := math.Modf(float64(i+1) * math.Sqrt(float64(3*k+2)))
		return x
	}
	eta := 0.0
	for k, a := range s.on {
		x := part(k + 1)
		if !a.Numeric() {
			row[a.at] = math.Floor(x * float64(a.bins))
			continue
		}
		row[a.at] = a.Range[0] + x*(a.Range[1]-a.Range[0])
		eta += 2*x - 1
	}
	if s.strata != nil {
		row[s.strata.at] = float64(i % s.strata.bins)
	}
	came := 0.5
	switch {
	case s.timed:
		row[s.column.at] = part(0) * s.column.Range[1]
	case s.odds:
		came = 1 / (1 + math.Exp(-eta))
	default:
		row[s.column.at] = s.most / 4
	}
	s.add(sum, row, 1, f, came)
	s.add(sum, row, 0, f, 1-came)
}
