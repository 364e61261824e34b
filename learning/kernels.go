package learning

import "gonum.org/v1/gonum/blas/blas64"

// short is the length up to which a plain loop beats the call of blas64.
const short = 16

// columns is a batch by feature: the entries that are not 0, feature after
// feature. Entry e of feature f, start[f] ≤ e < start[f+1], says that row row[e]
// has value[e].
type columns struct {
	start []int
	row   []int32
	value []float64
}

// reset makes room for a batch without entries yet.
func (c *columns) reset(features, rows int) {
	c.start = grown(c.start, features+1)
	c.row = grown(c.row, features*rows)
	c.value = grown(c.value, features*rows)
}

// multiplyInto adds X·W to z (rows × out), for W (in × out).
func multiplyInto(z []float64, x *columns, w []float64, out int) {
	for f, lo := range x.start[:len(x.start)-1] {
		line := w[f*out : (f+1)*out]
		hi := x.start[f+1]
		rows := x.row[lo:hi]
		for e, v := range x.value[lo:hi] {
			at := int(rows[e]) * out
			axpy(v, line, z[at:at+out])
		}
	}
}

// outerInto adds Xᵀ·delta to g (in × out), for delta (rows × out).
func outerInto(g []float64, x *columns, delta []float64, out int) {
	for f, lo := range x.start[:len(x.start)-1] {
		line := g[f*out : (f+1)*out]
		hi := x.start[f+1]
		rows := x.row[lo:hi]
		for e, v := range x.value[lo:hi] {
			at := int(rows[e]) * out
			axpy(v, delta[at:at+out], line)
		}
	}
}

// back sets below (rows × in) to delta·Wᵀ where the activations x have an entry,
// and to 0 elsewhere: the derivative of ReLU.
func back(below []float64, x *columns, delta, w []float64, out int) {
	clear(below)
	in := len(x.start) - 1
	for j, lo := range x.start[:in] {
		line := w[j*out : (j+1)*out]
		for _, i := range x.row[lo:x.start[j+1]] {
			at := int(i) * out
			below[int(i)*in+j] = dot(delta[at:at+out], line)
		}
	}
}

// axpy adds a·x to y, which has the same length.
func axpy(a float64, x, y []float64) {
	if len(x) > short {
		blas64.Axpy(a, vector(x), vector(y))
		return
	}
	y = y[:len(x)]
	for j, v := range x {
		y[j] += a * v
	}
}

func dot(x, y []float64) float64 {
	if len(x) > short {
		return blas64.Dot(vector(x), vector(y))
	}
	var sum float64
	y = y[:len(x)]
	for j, v := range x {
		sum += v * y[j]
	}
	return sum
}
