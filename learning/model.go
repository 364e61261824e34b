package learning

import (
	"sync"

	"github.com/hushsum/hushsum/internal/fault"
)

// Model is a classifier whose parameters are one flat vector. The types of this
// package are stateless values: one Model may serve any number of goroutines.
//
// Methods return ErrShape, ErrValue or ErrTooFewRows for parameters or data that
// do not fit, and then leave dst as it was.
type Model interface {
	// NumParams is the length of the parameter vector.
	NumParams() int
	// Classes is the number of classes, at least 2; labels are 0..Classes()-1.
	Classes() int
	// Init returns a new start vector, the same for the same seed.
	Init(seed uint64) []float64
	// Loss is the mean loss over the rows of d plus the regularisation term.
	Loss(w []float64, d *Dataset) (float64, error)
	// Gradient writes the gradient of Loss into dst, which may be w itself.
	Gradient(dst, w []float64, d *Dataset) error
	// Scores writes d.Len() × Classes() logits, row-major, into dst. The labels
	// of d do not influence them.
	Scores(dst, w []float64, d *Dataset) error
}

var (
	_ batchModel = Logistic{}
	_ batchModel = Softmax{}
	_ batchModel = MLP{}
	_ batchModel = LeNet{}
	_ batchModel = Scattering{}
)

// batchModel has what SGD needs to train without allocating or checking at every
// step.
type batchModel interface {
	Model
	check(w []float64, d *Dataset) error
	penalty() float64 // Lambda
	// accumulate sets dst to beta·dst + alpha·(sum over the named rows of the
	// gradient of their unregularised loss at w). dst may be w. There are at
	// most chunkRows rows, all valid.
	accumulate(ws *workspace, dst, w []float64, d *Dataset, rows []int, alpha, beta float64)
}

// settler is a model some of whose parameters are not trained but taken from the rows
// once training is over.
type settler interface {
	settle(ws *workspace, w []float64, d *Dataset)
}

// chunkRows bounds the rows that are worked on at once, and so the workspace.
const chunkRows = 256

// workspace holds what a computation needs besides its result. Its slices keep
// their capacity from call to call.
type workspace struct {
	params, weights, gradient, velocity []float64
	order                               []int
	batch                               Dataset
	dense                               []float64   // rows × features, for Logistic
	inputs                              []columns   // by layer
	outputs                             [][]float64 // by layer: scores, then derivatives
	pixelRows                           [][]byte
	valueRows                           [][]float64
	norms                               []float64    // by row
	scatter                             scatterBatch // of Scattering
	text                                []byte       // of a row

	// Of LeNet: what goes in, the two convolutions, and what is between them and the
	// dense layers.
	images, patches, flat, below, under, filters []float64
	maps                                         [2]mapSpace
}

var workspaces = sync.Pool{New: func() any { return new(workspace) }}

// grown returns s with length n; its content is arbitrary.
func grown[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

// gradientOf is Gradient for a model of this package and checked arguments.
func gradientOf(
	ws *workspace, m batchModel, dst, w []float64, d *Dataset, rows []int, decay float64,
) {
	// A single chunk may read w and write dst in turn; with more of them dst
	// would no longer hold the w that the next chunk needs.
	if len(rows) > chunkRows && &dst[0] == &w[0] {
		ws.params = append(ws.params[:0], w...)
		w = ws.params
	} else if decay != 0 {
		copy(dst, w)
	}
	alpha := 1 / float64(len(rows))
	for beta := decay; len(rows) > 0; beta = 1 {
		n := min(chunkRows, len(rows))
		m.accumulate(ws, dst, w, d, rows[:n], alpha, beta)
		rows = rows[n:]
	}
}

// rowOrder returns 0..n-1 in the workspace.
func (ws *workspace) rowOrder(n int) []int {
	ws.order = grown(ws.order, n)
	for i := range ws.order {
		ws.order[i] = i
	}
	return ws.order
}

func checkGradient(m batchModel, dst, w []float64, d *Dataset) error {
	if err := m.check(w, d); err != nil {
		return err
	}
	if len(dst) != m.NumParams() {
		return fault.New(ErrShape, "",
			"%d places for a gradient with %d elements", len(dst), m.NumParams())
	}
	return nil
}

func checkScores(m batchModel, dst, w []float64, d *Dataset) error {
	if err := m.check(w, d); err != nil {
		return err
	}
	// Rows and classes both fit in memory, so this product does not wrap.
	if len(dst) != d.Len()*m.Classes() {
		return fault.New(ErrShape, "", "%d places for %d × %d scores", len(dst), d.Len(), m.Classes())
	}
	return nil
}

func checkParams(n int, lambda float64, w []float64) error {
	if !finite(lambda) || lambda < 0 {
		return fault.New(ErrValue, "", "lambda %v, want a finite number of at least 0", lambda)
	}
	if len(w) != n {
		return fault.New(ErrShape, "", "%d parameters for a model that has %d", len(w), n)
	}
	if !allFinite(w) {
		return fault.New(ErrValue, "", "a parameter is NaN or infinite")
	}
	return nil
}

// ridge is lambda/2 · ‖w‖².
func ridge(lambda float64, w []float64) float64 {
	var sum float64
	for _, x := range w {
		sum += x * x
	}
	return lambda / 2 * sum
}
