package query

import (
	"math"
	"strings"
)

// This file has linear models by least squares. The vector has the products of each two of 1, the
// predictors and the column that is predicted, all scaled to −1 to 1, summed over rows: the count,
// and all that normal equations take.

// products returns how many products of two of n numbers there are, squares included.
func products(n int) int { return n * (n + 1) / 2 }

// gram holds the products of each two of some numbers, summed over rows.
type gram [][]float64

// newGram takes the products of a vector, in which those of a number with itself and later ones
// follow each other.
func newGram(x []float64, size int) gram {
	g := make(gram, size)
	for i := range g {
		g[i] = make([]float64, size)
	}
	at := 0
	for i := range size {
		for j := i; j < size; j++ {
			g[i][j], g[j][i] = x[at], x[at]
			at++
		}
	}
	return g
}

// product returns the product of two combinations of the numbers, summed over rows.
func (g gram) product(u, v []float64) (sum float64) {
	for i := range u {
		for j := range v {
			sum += u[i] * g[i][j] * v[j]
		}
	}
	return sum
}

// apart returns two combinations less what others explain of them; false if the others are not
// independent of each other.
func (g gram) apart(others [][]float64, of ...[]float64) ([][]float64, bool) {
	a := make([][]float64, len(others))
	for i := range a {
		for j := range others {
			a[i] = append(a[i], g.product(others[i], others[j]))
		}
	}
	inv := inverse(a, 0)
	if inv == nil {
		return nil, false
	}
	var out [][]float64
	for _, u := range of {
		rest := append([]float64(nil), u...)
		for i := range others {
			part := 0.0
			for j := range others {
				part += inv[i][j] * g.product(others[j], u)
			}
			for k, x := range others[i] {
				rest[k] -= part * x
			}
		}
		out = append(out, rest)
	}
	return out, true
}

// moves returns the product of two gradients by the numbers of the vector: those of u·v and u·w,
// where each number off the diagonal is in two places.
func moves(u, v, w []float64) (sum float64) {
	by := func(r []float64, i, j int) float64 {
		if i == j {
			return u[i] * r[i]
		}
		return u[i]*r[j] + u[j]*r[i]
	}
	for i := range u {
		for j := i; j < len(u); j++ {
			sum += by(v, i, j) * by(w, i, j)
		}
	}
	return sum
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

// coefficient is one of a model, of scaled columns.
type coefficient struct {
	value, low, high float64
	error            float64 // the standard error, as an estimate for a population
	known            bool    // false: its column varies no more than noise
}

// coefficient finds one coefficient: what is left of its column, less what the others explain of
// it, times what is left of the predicted one, by.x, over its square, bb.x. Its interval is that of
// Fieller 1954: all b for which by.x − b·bb.x is within its noise, to first order. It has ends if
// bb.x is above its own noise.
func (a *ask) coefficient(g gram, at int, reach float64) (c coefficient) {
	size := len(a.on) + 1
	unit := func(i int) []float64 {
		u := make([]float64, size+1)
		u[i] = 1
		return u
	}
	var others [][]float64
	for i := range size {
		if i == at {
			continue
		}
		u := unit(i)
		if at == 0 { // the intercept is at 0 of each column, in its own unit
			u[0] = a.on[i-1].mid() / a.on[i-1].half()
		}
		others = append(others, u)
	}
	rest, ok := g.apart(others, unit(at), unit(size))
	if !ok {
		return c
	}
	u, v := rest[0], rest[1]
	bb, by := g.product(u, u), g.product(u, v)
	vv, uv, uu := moves(u, v, v), moves(u, v, u), moves(u, u, u)
	if square := bb*bb - reach*reach*uu; bb > 0 && square > 1e-12*bb*bb {
		middle := (by*bb - reach*reach*uv) / square
		half := math.Sqrt(max(0, middle*middle-(by*by-reach*reach*vv)/square))
		c.value, c.known = by/bb, true
		c.low, c.high = min(middle-half, c.value), max(middle+half, c.value)
		rows := max(1, g[0][0]-float64(size))
		left := max(0, g.product(v, v)-c.value*by) / rows
		noise := reach / z95 / bb * math.Sqrt(max(0, vv-2*c.value*uv+c.value*c.value*uu))
		c.error = math.Hypot(math.Sqrt(left/bb), noise)
	}
	return c
}

// linear solves the normal equations. Its intervals are for the model of all rows of the parties
// that are present. If a predictor varies no more than noise leaves to tell, apart from the others,
// no coefficient is known.
func (s *sum) linear(a *ask, x []float64, reach float64) (out Answer) {
	size := len(a.on) + 1
	g := newGram(x, size+1)
	labels, all := []string{"intercept"}, make([]coefficient, size)
	var hidden []string
	for i := range all {
		if all[i] = a.coefficient(g, i, reach); i > 0 {
			labels = append(labels, a.on[i-1].Name)
			if !all[i].known {
				hidden = append(hidden, a.on[i-1].Name)
			}
		}
	}
	for i, c := range all {
		scale, middle := a.column.half(), a.column.mid()
		if i > 0 {
			scale, middle = scale/a.on[i-1].half(), 0
		}
		if hidden != nil || !c.known {
			why := "how many rows there are"
			if hidden != nil {
				why = "how " + strings.Join(hidden, " and ") + " varies apart from the other columns"
			}
			out.Cells = append(out.Cells, hides(why, reach, labels[i], math.Inf(-1), math.Inf(1)))
			out.Errors = append(out.Errors, math.NaN())
			continue
		}
		out.Cells = append(out.Cells, Cell{Label: labels[i], Value: scale*c.value + middle,
			Low: scale*c.low + middle, High: scale*c.high + middle})
		out.Errors = append(out.Errors, scale*c.error)
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
