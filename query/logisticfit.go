package query

import "math"

// This file solves the equations of logistic models, and says how far off that may be.

// Limits of Newton's method.
const (
	mostSteps    = 100
	largestStep  = 2.0
	steepest     = 30 // coefficients, over half of a range: beyond, an event has a threshold
	nearlySolved = 1e-9
)

// solve returns the coefficients, by Newton's method: with smaller steps where the likelihood would
// fall, and more information where there is too little. It returns nil if none are found.
func (l *logit) solve(m *summed) []float64 {
	beta := make([]float64, l.size)
	log, gradient, information := l.likelihood(m, beta)
	for range mostSteps {
		most, ridge := 0.0, 0.0
		for i := range information {
			most = max(most, math.Abs(information[i][i]))
		}
		inv := inverse(information, 0)
		for ; inv == nil; inv = inverse(information, 0) {
			if ridge = max(2*ridge, 1e-6*most); !(ridge > 0) || ridge > 1e9*most {
				return nil
			}
			for i := range information {
				information[i][i] += ridge
			}
		}
		step, longest := make([]float64, l.size), 0.0
		for i := range step {
			for j := range step {
				step[i] += inv[i][j] * gradient[j]
			}
			longest = max(longest, math.Abs(step[i]))
		}
		if longest < nearlySolved {
			if ridge > 0 {
				return nil
			}
			return beta
		}
		scale := min(1, largestStep/longest)
		for {
			next := make([]float64, l.size)
			for i := range next {
				if next[i] = beta[i] + scale*step[i]; !(math.Abs(next[i]) <= steepest) {
					return nil
				}
			}
			after, g, h := l.likelihood(m, next)
			if after >= log-1e-12*math.Abs(log) {
				beta, log, gradient, information = next, after, g, h
				break
			}
			if scale /= 2; scale < 1e-12 {
				return nil
			}
		}
	}
	return nil
}

// surroundings are a solution's surroundings.
type surroundings struct {
	inv    [][]float64 // of the information
	noise  [][]float64 // covariance of the equations
	missed []float64   // of each equation, what polynomials miss of the curve
}

// around returns those, with a noise of this deviation in each number; nil if noise leaves too
// little of the information.
func (l *logit) around(m *summed, beta []float64, deviation float64) *surroundings {
	_, _, information := l.likelihood(m, beta)
	f := &surroundings{inv: inverse(information, 0), noise: make([][]float64, l.size),
		missed: make([]float64, l.size)}
	if f.inv == nil {
		return nil
	}
	nodes := l.basis.points()
	// Of each equation, and of the information of each coefficient, given the others: the function
	// that is summed over rows, at the nodes of a group.
	curves, bends := make([][]float64, l.size), make([][]float64, l.size)
	for i := range curves {
		curves[i], bends[i] = make([]float64, nodes), make([]float64, nodes)
		f.noise[i] = make([]float64, l.size)
		f.noise[i][i] = math.Pow(deviation/l.outcome, 2)
	}
	unsure := make([]float64, l.size) // variance of the information
	total, positive := 0.0, 0.0
	for _, masses := range m.masses {
		for _, mass := range masses {
			total += mass
			positive += max(0, mass)
		}
	}
	last := func(group int) {
		all := make([][]float64, l.size)
		for i := range curves {
			all[i] = l.basis.coefficients(curves[i])
			for node, value := range l.basis.values(all[i]) {
				f.missed[i] += max(0, m.masses[group][node]) * math.Abs(value-curves[i][node])
			}
			for k, c := range l.basis.coefficients(bends[i]) {
				unsure[i] += math.Pow(c*l.weight(deviation, k), 2)
			}
			for j := range i + 1 {
				for k := range all[i] {
					f.noise[i][j] += all[i][k] * all[j][k] * math.Pow(l.weight(deviation, k), 2)
				}
			}
		}
	}
	l.each(beta, func(group, node int, x []float64, eta float64) {
		middle := math.Tanh(eta/2) / 2
		for i := range x {
			curves[i][node] = middle * x[i]
			along := 0.0
			for j := range x {
				along += f.inv[i][j] * x[j]
			}
			bends[i][node] = (0.25 - middle*middle) * math.Pow(along/f.inv[i][i], 2)
		}
		if node == nodes-1 {
			last(group)
		}
	})
	for i := range f.noise {
		for j := range i {
			f.noise[j][i] = f.noise[i][j]
		}
		if f.missed[i] > 0 {
			f.missed[i] *= max(0, total) / positive
		}
		if !(1/f.inv[i][i] > leastRows*math.Sqrt(unsure[i])) {
			return nil
		}
	}
	return f
}

// weight is the deviation of a moment.
func (l *logit) weight(deviation float64, term int) float64 {
	return deviation / (l.moment * l.basis.weights[term])
}

// inUnits returns what the intercept and slopes in units are made of: coefficients of scaled
// columns.
func (l *logit) inUnits() [][]float64 {
	out := make([][]float64, l.size)
	for i := range out {
		out[i] = make([]float64, l.size)
		out[i][i] = 1
	}
	for i, a := range l.on {
		if k := l.first[i]; a.Numeric() {
			out[k][k] = 1 / a.half()
			out[0][k] = -a.mid() / a.half()
		}
	}
	return out
}

// labels name the coefficients.
func (l *logit) labels() []string {
	all := []string{"intercept"}
	for _, a := range l.on {
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

// logistic reads a model. Its intervals are for the model of all rows of the parties that are
// present, to first order in the noise, plus what polynomials miss of its curve; if noise leaves
// too little, no number is known.
func (s *sum) logistic(a *ask, x []float64, deviation float64) (out Answer) {
	l := a.logit
	m, terms := &summed{}, len(l.basis.terms)
	for group := range l.groups {
		moments := make([]float64, terms)
		for k := range moments {
			moments[k] = x[group*terms+k] / (l.moment * l.basis.weights[k])
		}
		m.masses = append(m.masses, l.basis.masses(moments))
	}
	for _, x := range x[l.groups*terms:] {
		m.left = append(m.left, x/l.outcome)
	}
	var f *surroundings
	beta := l.solve(m)
	if beta != nil {
		f = l.around(m, beta, deviation)
	}
	for i, row := range l.inUnits() {
		c := Cell{Label: l.labels()[i]}
		if f == nil {
			out.Cells = append(out.Cells, hides("how its columns go with the event", deviation, c.Label,
				math.Inf(-1), math.Inf(1)))
			out.Errors = append(out.Errors, math.NaN())
			continue
		}
		// The coefficient in units is a sum of equations.
		part, missed, noise, sampling := make([]float64, l.size), 0.0, 0.0, 0.0
		for j := range part {
			c.Value += row[j] * beta[j]
			for k := range row {
				part[j] += row[k] * f.inv[k][j]
			}
			missed += math.Abs(part[j]) * f.missed[j]
			sampling += part[j] * row[j]
		}
		for j := range part {
			for k := range part {
				noise += part[j] * f.noise[j][k] * part[k]
			}
		}
		off := z95*math.Sqrt(max(0, noise)) + missed
		c.Low, c.High = c.Value-off, c.Value+off
		out.Cells = append(out.Cells, c)
		out.Errors = append(out.Errors, math.Sqrt(max(0, sampling)+max(0, noise)))
	}
	return out
}

// evenly returns half of the interval of the first slope, for the given number of rows, spread
// evenly, half of them with the event, each column changing its odds by a factor of e over half
// of its range.
func (l *logit) evenly(rows, deviation float64) float64 {
	m, beta := &summed{}, make([]float64, l.size)
	moments := l.basis.even()
	for k := range moments {
		moments[k] *= rows / float64(l.groups)
	}
	for range l.groups {
		m.masses = append(m.masses, l.basis.masses(moments))
	}
	m.left = make([]float64, l.size)
	for i, a := range l.on {
		if a.Numeric() {
			beta[l.first[i]] = 1
		}
	}
	f := l.around(m, beta, deviation)
	if f == nil {
		return math.Inf(1)
	}
	noise, unit := 0.0, l.inUnits()[1][1]
	for j := range l.size {
		for k := range l.size {
			noise += f.inv[1][j] * f.noise[j][k] * f.inv[1][k]
		}
	}
	return z95 * unit * math.Sqrt(max(0, noise))
}
