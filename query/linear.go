package query

import "math"

// This file has linear models by least squares. The vector has the products of each two of 1, the
// predictors and the column that is predicted, all scaled to −1 to 1, summed over rows: the count,
// and all that normal equations take.

// products returns how many products of two of n numbers there are, squares included.
func products(n int) int { return n * (n + 1) / 2 }

// anything is an interval of which nothing is known.
const anything = math.MaxFloat64

// normal holds the equations A·β = b of a model, and the mean square of what is predicted.
type normal struct {
	a [][]float64
	b []float64
	v float64
}

func newNormal(x []float64, size int) *normal {
	e := &normal{a: make([][]float64, size), b: make([]float64, size)}
	for i := range e.a {
		e.a[i] = make([]float64, size)
	}
	at := 0
	for i := range size {
		for j := i; j < size; j++ {
			e.a[i][j], e.a[j][i] = x[at], x[at]
			at++
		}
		e.b[i] = x[at]
		at++
	}
	e.v = x[at]
	return e
}

// inverse returns that of a symmetric matrix, by Cholesky's method; nil if it is not positive by
// more than least.
func inverse(a [][]float64, least float64) [][]float64 {
	n := len(a)
	l := make([][]float64, n)
	for i := range l {
		l[i] = make([]float64, n)
		for j := range i + 1 {
			sum := a[i][j]
			for k := range j {
				sum -= l[i][k] * l[j][k]
			}
			if i != j {
				l[i][j] = sum / l[j][j]
				continue
			}
			if !(sum > least) {
				return nil
			}
			l[i][i] = math.Sqrt(sum)
		}
	}
	out := make([][]float64, n)
	for i := range out {
		out[i] = make([]float64, n)
	}
	for c := range n { // L·Lᵀ·x = unit vector c
		x := make([]float64, n)
		for i := range n {
			if i == c {
				x[i] = 1
			}
			for k := range i {
				x[i] -= l[i][k] * x[k]
			}
			x[i] /= l[i][i]
		}
		for i := n - 1; i >= 0; i-- {
			for k := i + 1; k < n; k++ {
				x[i] -= l[k][i] * x[k]
			}
			x[i] /= l[i][i]
		}
		for i := range x {
			out[i][c] = x[i]
		}
	}
	return out
}

// linear solves the normal equations. Its intervals are for the model of all rows of the parties
// that are present, to first order in the noise. If noise leaves the predictors too near to each
// other, or rows too few, the intervals cover everything, and the values are 0.
func (s *sum) linear(a *ask, x []float64, reach float64) (out Answer) {
	size := len(a.on) + 1
	e := newNormal(x, size)
	each := reach / z95
	labels := []string{"intercept"}
	for _, on := range a.on {
		labels = append(labels, on.Name)
	}
	// The deviation of each pivot is some of each, however many predictors there are.
	inv := inverse(e.a, leastRows*each*float64(size))
	if inv == nil {
		for _, label := range labels {
			out.Cells = append(out.Cells, Cell{Label: label, Low: -anything, High: anything})
			out.Errors = append(out.Errors, anything)
		}
		return out
	}
	beta := make([]float64, size)
	rest := e.v // squares that the model does not explain
	for i := range beta {
		for j := range size {
			beta[i] += inv[i][j] * e.b[j]
		}
	}
	for i := range beta {
		rest -= beta[i] * e.b[i]
	}
	rest = max(0, rest) / max(1, e.a[0][0]-float64(size))
	scale := a.inUnits()
	for m, label := range labels {
		// A number in units is a sum of coefficients, plus the middle of what is predicted.
		value, sampling := 0.0, 0.0
		row := make([]float64, size)
		for i := range size {
			value += scale[m][i] * beta[i]
			for j := range size {
				row[j] += scale[m][i] * inv[i][j]
			}
		}
		for i := range size {
			sampling += row[i] * scale[m][i]
		}
		if m == 0 {
			value += a.column.mid()
		}
		noise := each * sensitivity(row, beta)
		out.Cells = append(out.Cells, Cell{Label: label, Value: value, Low: value - z95*noise,
			High: value + z95*noise})
		out.Errors = append(out.Errors, math.Sqrt(max(0, sampling*rest)+noise*noise))
	}
	return out
}

// sensitivity is the length of the gradient of Σ row·(b − A·β) by the numbers of the vector, where
// each number off the diagonal is in two places of A.
func sensitivity(row, beta []float64) float64 {
	squares := 0.0
	for i := range row {
		squares += row[i]*row[i] + math.Pow(row[i]*beta[i], 2)
		for j := range i {
			squares += math.Pow(row[i]*beta[j]+row[j]*beta[i], 2)
		}
	}
	return math.Sqrt(squares)
}

// inUnits returns what the intercept and slopes in units are made of: coefficients of scaled
// columns.
func (a *ask) inUnits() [][]float64 {
	size, half := len(a.on)+1, a.column.half()
	out := make([][]float64, size)
	for i := range out {
		out[i] = make([]float64, size)
	}
	out[0][0] = half
	for i, on := range a.on {
		out[i+1][i+1] = half / on.half()
		out[0][i+1] = -half * on.mid() / on.half()
	}
	return out
}

// slopeUnit is that of a slope.
func slopeUnit(of, on *axis) string {
	if of.Unit == "" || on.Unit == "" {
		return ""
	}
	return of.Unit + " each " + on.Unit
}
