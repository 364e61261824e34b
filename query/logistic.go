package query

import "math"

// This file has logistic models: the logarithm of the odds of an event is linear in columns of
// numbers and of words. The maximum of the likelihood is where Σ (y − ½)·x is Σ (p(x) − ½)·x, over
// rows with an outcome y of 0 or 1. The left is in the vector as it is, a number for each
// coefficient. The right is a sum of a smooth function of x, whatever the coefficients are: the
// vector has the moments of x that give it (basis), for each combination of words. So the equations
// are linear in what noise is added to, and their noise has mean 0.

// logit is a logistic model's part of the vector.
type logit struct {
	on     []*axis
	first  []int // coefficient of each column, or the first of its words'
	size   int   // coefficients, the intercept first
	groups int   // combinations of words
	basis  *basis
	// A row has its moments with the one weight, its outcome with the other; both norms together
	// are 1 at most.
	moment, outcome float64
}

// newLogit weighs both parts so that the noise of the equations is about least, if weighed.
func newLogit(on []*axis, degree int, weighed bool) *logit {
	l := &logit{on: on, size: 1, groups: 1, moment: 1, outcome: 1}
	numbers := 0
	for _, a := range on {
		l.first = append(l.first, l.size)
		if a.Numeric() {
			numbers++
			l.size++
			continue
		}
		l.groups *= a.bins
		l.size += a.bins - 1
	}
	l.basis = newBasis(numbers, degree, weighed)
	if weighed {
		// The norm of (y − ½)·x, and the usual noise of the right side with a weight of 1.
		norm := math.Sqrt(float64(1+len(on))) / 2
		noise := 0.4 * math.Pow(1.7, float64(numbers)) * math.Sqrt(float64(l.groups))
		part := noise / (noise + norm)
		l.moment, l.outcome = math.Sqrt(part), math.Sqrt(1-part)/norm
	}
	return l
}

// length is how many numbers of the vector are the model's.
func (l *logit) length() int { return l.groups*len(l.basis.terms) + l.size }

// add adds a row with an outcome of ½ or −½, unless one of its columns is missing.
func (l *logit) add(v, row []float64, outcome, scale float64) {
	group, y := 0, make([]float64, 0, len(l.on))
	x := make([]float64, l.size)
	x[0] = 1
	for i, a := range l.on {
		value := row[a.at]
		switch {
		case math.IsNaN(value):
			return
		case a.Numeric():
			y = append(y, a.scaled(value))
			x[l.first[i]] = y[len(y)-1]
		default:
			group = group*a.bins + int(value)
			if value > 0 {
				x[l.first[i]+int(value)-1] = 1
			}
		}
	}
	l.basis.add(v[group*len(l.basis.terms):], y, scale*l.moment)
	for i, x := range x {
		v[l.groups*len(l.basis.terms)+i] += scale * l.outcome * outcome * x
	}
}

// columns writes what the words of a group, and a node, give the columns of the equations.
func (l *logit) columns(group int, y, x []float64) {
	clear(x)
	x[0] = 1
	n := len(y)
	for i := len(l.on) - 1; i >= 0; i-- {
		if a := l.on[i]; a.Numeric() {
			n--
			x[l.first[i]] = y[n]
		} else {
			if word := group % a.bins; word > 0 {
				x[l.first[i]+word-1] = 1
			}
			group /= a.bins
		}
	}
}

// each calls do for all nodes of all groups, with their columns and the linear predictor.
func (l *logit) each(beta []float64, do func(group, node int, x []float64, eta float64)) {
	y, x := make([]float64, l.basis.columns), make([]float64, l.size)
	for group := range l.groups {
		for node := range l.basis.points() {
			l.basis.point(node, y)
			l.columns(group, y, x)
			eta := 0.0
			for i := range x {
				eta += beta[i] * x[i]
			}
			do(group, node, x, eta)
		}
	}
}

// summed holds what the vector says of all rows: masses of nodes by group, and Σ (y − ½)·x.
type summed struct {
	masses [][]float64
	left   []float64
}

// likelihood returns the logarithm of that, its gradient and the information, at coefficients.
func (l *logit) likelihood(m *summed, beta []float64) (log float64, gradient []float64,
	information [][]float64) {
	gradient, information = make([]float64, l.size), make([][]float64, l.size)
	for i := range information {
		information[i] = make([]float64, l.size)
		gradient[i] = m.left[i]
		log += beta[i] * m.left[i]
	}
	l.each(beta, func(group, node int, x []float64, eta float64) {
		mass, middle := m.masses[group][node], math.Tanh(eta/2)/2 // p − ½
		log -= mass * (math.Abs(eta)/2 + math.Log1p(math.Exp(-math.Abs(eta))))
		for i := range x {
			gradient[i] -= mass * middle * x[i]
			for j := range i + 1 {
				information[i][j] += mass * (0.25 - middle*middle) * x[i] * x[j]
			}
		}
	})
	for i := range information {
		for j := range i {
			information[j][i] = information[i][j]
		}
	}
	return log, gradient, information
}
