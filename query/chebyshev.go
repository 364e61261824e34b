package query

import "math"

// This file has moments of rows: sums of products of Chebyshev polynomials of some columns, which
// are between −1 and 1. What is smooth is nearly a polynomial, and its sum over rows is then a sum
// of these moments.

// basis has the products whose degrees, in all columns together, add up to a degree at most.
type basis struct {
	columns, degree, nodes int
	terms                  [][]int   // degrees by column
	weights                []float64 // that a row has the terms with: of L2 norm 1 at most
	at                     []float64 // nodes of a column
	from, to               [][]float64
}

// fading is by how much a degree has a smaller weight than the one before, in squares: coefficients
// of logistic curves decay about as fast.
const fading = 0.5

// newBasis weighs terms so that the norm of a row is at most 1, if weighed, and each by 1 if not.
func newBasis(columns, degree int, weighed bool) *basis {
	b := &basis{columns: columns, degree: degree, nodes: degree + 4, terms: [][]int{{}}}
	if columns == 0 {
		b.degree, b.nodes = 0, 1
	}
	left := []int{b.degree}
	for range columns {
		var terms [][]int
		var rest []int
		for i, term := range b.terms {
			for d := range left[i] + 1 {
				terms = append(terms, append(append([]int{}, term...), d))
				rest = append(rest, left[i]-d)
			}
		}
		b.terms, left = terms, rest
	}
	total := 0.0
	for i := range b.terms {
		square := math.Pow(fading, float64(b.degree-left[i]))
		b.weights = append(b.weights, square)
		total += square
	}
	for i, square := range b.weights {
		if b.weights[i] = 1; weighed {
			b.weights[i] = math.Sqrt(square / total)
		}
	}
	b.from, b.to = make([][]float64, b.nodes), make([][]float64, b.degree+1)
	for k := range b.nodes {
		angle := math.Pi * (float64(k) + 0.5) / float64(b.nodes)
		b.at = append(b.at, math.Cos(angle))
		for d := range b.degree + 1 {
			t := math.Cos(float64(d) * angle)
			b.to[d] = append(b.to[d], t)
			if d > 0 {
				t *= 2
			}
			b.from[k] = append(b.from[k], t/float64(b.nodes))
		}
	}
	return b
}

// add adds the weighed terms of a row, times scale.
func (b *basis) add(v, y []float64, scale float64) {
	powers := make([][]float64, b.columns)
	for i := range powers {
		t := make([]float64, b.degree+1)
		t[0] = 1
		for d := 1; d <= b.degree; d++ {
			if t[d] = y[i]; d > 1 {
				t[d] = 2*y[i]*t[d-1] - t[d-2]
			}
			t[d] = min(max(t[d], -1), 1) // rounding is not to add to the norm
		}
		powers[i] = t
	}
	for k, term := range b.terms {
		x := scale * b.weights[k]
		for i, d := range term {
			x *= powers[i][d]
		}
		v[k] += x
	}
}

// points is how many nodes there are of all columns.
func (b *basis) points() int {
	n := 1
	for range b.columns {
		n *= b.nodes
	}
	return n
}

// point writes where a node is.
func (b *basis) point(k int, y []float64) {
	for i := b.columns - 1; i >= 0; i-- {
		y[i] = b.at[k%b.nodes]
		k /= b.nodes
	}
}

// along multiplies each axis of an array, which has the given number of axes, by a matrix.
func along(x []float64, axes int, matrix [][]float64) []float64 {
	width := len(matrix[0])
	for range axes { // the first axis, which then is the last
		rest := len(x) / len(matrix)
		out := make([]float64, rest*width)
		for i, row := range matrix {
			for k, value := range x[i*rest : (i+1)*rest] {
				for m, factor := range row {
					out[k*width+m] += value * factor
				}
			}
		}
		x = out
	}
	return x
}

// place is where a term is in an array with an axis for each column.
func (b *basis) place(term []int) (k int) {
	for _, d := range term {
		k = k*(b.degree+1) + d
	}
	return k
}

// coefficients returns those of the polynomial through a function's values at all nodes, less the
// terms that there are not.
func (b *basis) coefficients(values []float64) (out []float64) {
	all := along(values, b.columns, b.from)
	for _, term := range b.terms {
		out = append(out, all[b.place(term)])
	}
	return out
}

// values returns a polynomial's at all nodes.
func (b *basis) values(coefficients []float64) []float64 {
	return along(b.array(coefficients), b.columns, b.to)
}

// masses returns, for each node, what a function's value there counts when it is summed over rows
// with these moments: Σ masses·values is Σ moments·coefficients.
func (b *basis) masses(moments []float64) []float64 {
	back := make([][]float64, b.degree+1)
	for d := range back {
		for k := range b.nodes {
			back[d] = append(back[d], b.from[k][d])
		}
	}
	return along(b.array(moments), b.columns, back)
}

func (b *basis) array(terms []float64) []float64 {
	n := 1
	for range b.columns {
		n *= b.degree + 1
	}
	all := make([]float64, n)
	for k, term := range b.terms {
		all[b.place(term)] = terms[k]
	}
	return all
}

// even returns the moments of one row that is spread evenly.
func (b *basis) even() (moments []float64) {
	for _, term := range b.terms {
		x := 1.0
		for _, d := range term {
			if x /= 1 - float64(d*d); d%2 == 1 {
				x = 0
			}
		}
		moments = append(moments, x)
	}
	return moments
}
