package learning

import (
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"

	"github.com/hushsum/hushsum/internal/fault"
)

// ClippedSum writes to dst the sum over units of the gradient of each, clipped to L2 norm clip: the
// step of differentially private SGD (Abadi 2016, Algorithm 1) before noise. A unit is the rows of
// one record, or of one person, and its gradient the mean over them of that of the loss without
// its regularisation, which is no function of rows. With no units dst is zero. dst must not be w.
//
// What one unit adds depends on its own rows and on w alone, down to the last bit of a score, which
// decides all of a gradient where somebody has chosen w for that. One whose gradient is not a
// finite number, or with a label that the model does not know, adds nothing, and is no error:
// nobody else's part must change with it. The norm of what a unit adds is at most clip but for the
// rounding of float64.
//
// It returns ErrShape and ErrValue for arguments that do not fit, whatever is in the rows, and for
// models whose gradient is no sum over rows: a LeNet with batch normalisation, and those that are
// not of this package. dst is then unchanged.
func ClippedSum(
	dst []float64, m Model, w []float64, d *Dataset, units [][]int, clip float64,
) error {
	own, err := checkClipped(dst, m, w, d, units, clip)
	if err != nil {
		return err
	}
	ws := workspaces.Get().(*workspace)
	defer workspaces.Put(ws)
	clear(dst)
	fast, _ := own.(rowClipper)
	if clip < leastClip {
		fast = nil
	}
	rows := make([]int, 0, chunkRows)
	add := func() {
		if len(rows) > 0 && !fast.addClipped(ws, dst, w, d, rows, clip) {
			for i := range rows {
				addUnit(ws, own, dst, w, d, rows[i:i+1], clip)
			}
		}
		rows = rows[:0]
	}
	for _, unit := range units {
		switch {
		case !knows(d, unit, own.Classes()):
		case fast == nil || len(unit) > 1:
			addUnit(ws, own, dst, w, d, unit, clip)
		default:
			if rows = append(rows, unit[0]); len(rows) == chunkRows {
				add()
			}
		}
	}
	add()
	return nil
}

// rowClipper is a batchModel that clips the gradients of many rows at once.
type rowClipper interface {
	// addClipped adds to dst the gradients of the named rows, each clipped to leastClip or more; at
	// most chunkRows of them. If it cannot tell the norm of one it returns false, and dst is as it
	// was. A row's part is then the same but for rounding: it must not depend on other rows.
	addClipped(ws *workspace, dst, w []float64, d *Dataset, rows []int, clip float64) bool
}

// The least clip, and the largest square of what is multiplied by slopes, with which it does not
// matter to addClipped that squares of slopes underflow.
const (
	leastClip  = 1e-60
	mostSquare = 1e120
)

var (
	_ rowClipper = Logistic{}
	_ rowClipper = Softmax{}
	_ rowClipper = MLP{}
	_ rowClipper = Scattering{}
)

func checkClipped(
	dst []float64, m Model, w []float64, d *Dataset, units [][]int, clip float64,
) (batchModel, error) {
	own, ok := m.(batchModel)
	if lenet, is := m.(LeNet); !ok || is && lenet.BatchNorm {
		return nil, fault.New(ErrValue, "", "the gradient of %T is not a sum over rows", m)
	}
	if !(clip > 0) || !finite(clip) {
		return nil, fault.New(ErrValue, "", "clip %v, want a finite number above 0", clip)
	}
	if err := d.checkShape(); err != nil {
		return nil, err
	}
	// A row that is certainly of the right form stands for those that may not be.
	form := &Dataset{X: make([]float64, d.Features), Features: d.Features, Labels: []int{0}}
	if err := checkGradient(own, dst, w, form); err != nil {
		return nil, err
	}
	for _, unit := range units {
		if len(unit) == 0 {
			return nil, fault.New(ErrShape, "", "a unit without rows")
		}
		for _, i := range unit {
			if i < 0 || i >= d.Len() {
				return nil, fault.New(ErrShape, "", "row %d of a data set with %d rows", i, d.Len())
			}
		}
	}
	return own, nil
}

// knows reports whether a model of the given number of classes knows the labels of rows.
func knows(d *Dataset, rows []int, classes int) bool {
	for _, i := range rows {
		if y := d.Labels[i]; y < 0 || y >= classes {
			return false
		}
	}
	return true
}

// addUnit adds the clipped gradient of one unit to dst, if it is finite.
func addUnit(
	ws *workspace, m batchModel, dst, w []float64, d *Dataset, unit []int, clip float64,
) {
	ws.gradient = grown(ws.gradient, len(w))
	gradientOf(ws, m, ws.gradient, w, d, unit, 0)
	norm := blas64.Nrm2(vector(ws.gradient))
	if !finite(norm) || !allFinite(ws.gradient) {
		return
	}
	factor := shrinkTo(clip, norm)
	if factor < 0x1p-960 { // a quotient has fewer digits there
		blas64.Scal(1/norm, vector(ws.gradient))
		factor = clip
	}
	blas64.Axpy(factor, vector(ws.gradient), vector(dst))
}

// shrinkTo is the factor that clips what has a norm.
func shrinkTo(clip, norm float64) float64 {
	if norm > clip {
		return clip / norm
	}
	return 1
}

// shrinks turns squared norms into factors, or returns false if one is not finite.
func shrinks(squares []float64, clip float64) bool {
	for i, s := range squares {
		if !finite(s) {
			return false
		}
		squares[i] = shrinkTo(clip, math.Sqrt(s))
	}
	return true
}

// addClipped implements rowClipper: the gradient of a row is its residual times the row.
func (m Logistic) addClipped(
	ws *workspace, dst, w []float64, d *Dataset, rows []int, clip float64,
) bool {
	batch, r := m.slopes(ws, w, d, rows)
	ws.norms = grown(ws.norms, len(rows))
	for i, v := range r {
		x := batch.Data[i*batch.Stride : (i+1)*batch.Stride]
		square := dot(x, x)
		if !(square <= mostSquare) {
			return false
		}
		ws.norms[i] = v * v * square
	}
	if !shrinks(ws.norms, clip) {
		return false
	}
	for i, factor := range ws.norms {
		r[i] *= factor
	}
	blas64.Gemv(blas.Trans, 1, batch, vector(r), 1, vector(dst))
	return true
}

// addClipped implements rowClipper. The gradient of a dense layer's weights is the product of what
// enters it and its slopes, and the norm of a product of vectors that of their norms (Goodfellow
// 2015): no row's gradient is ever written down.
func (n network) addClipped(
	ws *workspace, dst, w []float64, d *Dataset, rows []int, clip float64,
) bool {
	b := len(rows)
	n.backward(ws, w, d, rows, 1)
	ws.norms, ws.below = grown(ws.norms, b), grown(ws.below, b)
	clear(ws.norms)
	for l := range n.layers() {
		entered := ws.below
		for i := range entered {
			entered[i] = 1 // of the bias
		}
		x, out := &ws.inputs[l], n.out(l)
		for e, v := range x.value[:x.start[len(x.start)-1]] {
			entered[x.row[e]] += v * v
		}
		for i, e := range entered {
			if !(e <= mostSquare) {
				return false
			}
			delta := ws.outputs[l][i*out : (i+1)*out]
			ws.norms[i] += e * dot(delta, delta)
		}
	}
	if !shrinks(ws.norms, clip) {
		return false
	}
	for l := range n.layers() {
		out := n.out(l)
		for i, factor := range ws.norms {
			if factor != 1 {
				blas64.Scal(factor, vector(ws.outputs[l][i*out:(i+1)*out]))
			}
		}
	}
	n.descend(ws, dst, b, 1)
	return true
}

func (m Softmax) addClipped(
	ws *workspace, dst, w []float64, d *Dataset, rows []int, clip float64,
) bool {
	return m.network().addClipped(ws, dst, w, d, rows, clip)
}

func (m MLP) addClipped(
	ws *workspace, dst, w []float64, d *Dataset, rows []int, clip float64,
) bool {
	return m.network().addClipped(ws, dst, w, d, rows, clip)
}
