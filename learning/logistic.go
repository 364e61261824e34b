package learning

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"

	"github.com/hushsum/hushsum/internal/fault"
)

// Logistic is binary logistic regression with L2 regularisation:
//
//	P(label 1 | x) = sigmoid(x·w)
//	F(w) = mean over rows of the log loss + Lambda/2 · ‖w‖²
//
// Features is the length of a row and of the parameter vector w. There is no
// separate bias: add a constant feature, as ReadAdult and Census do. Its weight
// is regularised like all others, which keeps F strongly convex in every
// direction; on Adult the published baselines fit with and without (see
// ReadAdult).
//
// Lambda must be finite and not negative. F is convex, and for rows of norm at
// most R gradient descent decreases it at every rate up to
// 2/(R²/4 + Lambda). The zero vector is the usual start.
type Logistic struct {
	Features int
	Lambda   float64
}

// NumParams returns the length of the parameter vector.
func (m Logistic) NumParams() int { return m.Features }

// Classes returns 2.
func (m Logistic) Classes() int { return 2 }

// Init returns the zero vector, and nil when the model has no features.
func (m Logistic) Init(uint64) []float64 {
	if m.Features < 1 {
		return nil
	}
	return make([]float64, m.Features)
}

func (m Logistic) check(w []float64, d *Dataset) error {
	if m.Features < 1 {
		return fault.New(ErrShape, "", "the model has %d features, want at least 1", m.Features)
	}
	if err := checkParams(m.Features, m.Lambda, w); err != nil {
		return err
	}
	return d.check(m.Features, 2)
}

// Loss returns F(w) on d: the mean log loss in nats plus the regularisation term.
// It returns ErrShape, ErrValue or ErrTooFewRows for input that does not fit.
func (m Logistic) Loss(w []float64, d *Dataset) (float64, error) {
	if err := m.check(w, d); err != nil {
		return 0, err
	}
	z := make([]float64, d.Len())
	m.scores(z, w, d)
	var sum float64
	for i, y := range d.Labels {
		sum += logLoss(z[i], y)
	}
	return sum/float64(d.Len()) + ridge(m.Lambda, w), nil
}

// Gradient writes the gradient of F at w over all rows of d into dst, which has
// NumParams elements and may be w itself. Errors are those of Loss; dst is then
// unchanged.
func (m Logistic) Gradient(dst, w []float64, d *Dataset) error {
	if err := checkGradient(m, dst, w, d); err != nil {
		return err
	}
	r := make([]float64, d.Len())
	m.scores(r, w, d)
	residuals(r, d.Labels)
	copy(dst, w)
	blas64.Gemv(blas.Trans, 1/float64(d.Len()), d.matrix(), vector(r), m.Lambda, vector(dst))
	return nil
}

// Train takes steps ≥ 0 full-batch gradient-descent steps at the given rate > 0,
// in place: w ← w − rate·∇F(w). It returns the errors of Loss for input that
// does not fit and ErrDiverged when the weights overflow (lower the rate); on
// every error w is unchanged. It allocates two vectors per call and none per
// step.
func (m Logistic) Train(w []float64, d *Dataset, rate float64, steps int) error {
	if err := m.check(w, d); err != nil {
		return err
	}
	if !finite(rate) || rate <= 0 {
		return fault.New(ErrValue, "", "rate %v, want a finite number above 0", rate)
	}
	if steps < 0 {
		return fault.New(ErrValue, "", "%d steps, want at least 0", steps)
	}
	v := append([]float64(nil), w...)
	r := make([]float64, d.Len())
	x := d.matrix()
	for range steps {
		m.descend(v, r, d, x, rate, 1-rate*m.Lambda)
	}
	if !allFinite(v) {
		return fmt.Errorf("%w after at most %d steps at rate %v; use a lower rate", ErrDiverged, steps,
			rate)
	}
	copy(w, v)
	return nil
}

// descend takes one step over all rows of d, which is x, in place: v shrinks by the
// factor and takes −rate times the mean gradient, both in one pass. r has a place for
// each row.
func (m Logistic) descend(v, r []float64, d *Dataset, x blas64.General, rate, shrink float64) {
	blas64.Gemv(blas.NoTrans, 1, x, vector(v), 0, vector(r))
	residuals(r, d.Labels)
	blas64.Gemv(blas.Trans, -rate/float64(d.Len()), x, vector(r), shrink, vector(v))
}

// Predict writes P(label 1) of every row of d into dst, which has d.Len()
// elements. Errors are those of Loss; dst is then unchanged. The labels of d do
// not influence the result.
func (m Logistic) Predict(dst, w []float64, d *Dataset) error {
	if err := m.check(w, d); err != nil {
		return err
	}
	if len(dst) != d.Len() {
		return fault.New(ErrShape, "", "%d places for %d predictions", len(dst), d.Len())
	}
	m.scores(dst, w, d)
	for i, z := range dst {
		dst[i] = sigmoid(z)
	}
	return nil
}

// Evaluate compares the predicted class of every row with its label. A row
// counts as positive when its probability is above one half; a tie is negative.
// Errors are those of Loss.
func (m Logistic) Evaluate(w []float64, d *Dataset) (Confusion, error) {
	c, err := Evaluate(m, w, d)
	if err != nil {
		return Confusion{}, err
	}
	return Confusion{TP: c.At(1, 1), FP: c.At(0, 1), TN: c.At(0, 0), FN: c.At(1, 0)}, nil
}

// Scores writes the logits 0 and x·w of every row, d.Len() × 2, into dst.
func (m Logistic) Scores(dst, w []float64, d *Dataset) error {
	if err := checkScores(m, dst, w, d); err != nil {
		return err
	}
	z := make([]float64, d.Len())
	m.scores(z, w, d)
	for i, x := range z {
		dst[2*i], dst[2*i+1] = 0, x
	}
	return nil
}

func (m Logistic) penalty() float64 { return m.Lambda }

// accumulate implements batchModel.
func (m Logistic) accumulate(
	ws *workspace, dst, w []float64, d *Dataset, rows []int, alpha, beta float64,
) {
	batch, r := m.slopes(ws, w, d, rows)
	blas64.Gemv(blas.Trans, alpha, batch, vector(r), beta, vector(dst))
}

// slopes returns the named rows, and the derivatives of their losses by their scores.
func (m Logistic) slopes(
	ws *workspace, w []float64, d *Dataset, rows []int,
) (batch blas64.General, r []float64) {
	f := d.Features
	ws.addLayers(1)
	ws.dense = grown(ws.dense, len(rows)*f)
	ws.outputs[0] = grown(ws.outputs[0], len(rows))
	x, r := ws.dense, ws.outputs[0]
	for i, row := range rows {
		d.values(x[i*f:(i+1)*f], row)
	}
	batch = blas64.General{Rows: len(rows), Cols: f, Data: x, Stride: f}
	for i, row := range rows {
		// Gemv adds up a row in an order that depends on how many there are: see ClippedSum.
		r[i] = sigmoid(dot(x[i*f:(i+1)*f], w)) - float64(d.Labels[row])
	}
	return batch, r
}

// scores sets dst to Xw.
func (m Logistic) scores(dst, w []float64, d *Dataset) {
	blas64.Gemv(blas.NoTrans, 1, d.matrix(), vector(w), 0, vector(dst))
}

// residuals turns scores into sigmoid(score) − label.
func residuals(z []float64, labels []int) {
	for i, y := range labels {
		z[i] = sigmoid(z[i]) - float64(y)
	}
}

// sigmoid needs no case distinction: when exp overflows the quotient is exactly
// the limit 0, and small results keep their full relative precision.
func sigmoid(z float64) float64 { return 1 / (1 + math.Exp(-z)) }

// logLoss is −log P(y | z) = log(1+e^z) − y·z, arranged so that exp never sees a
// positive argument and no large terms cancel.
func logLoss(z float64, y int) float64 {
	if y == 1 {
		z = -z
	}
	return max(z, 0) + math.Log1p(math.Exp(-math.Abs(z)))
}

// matrix wraps X; pixels become a matrix of their own, eight times their size.
func (d *Dataset) matrix() blas64.General {
	x := d.X
	if d.Pixels != nil {
		x = make([]float64, len(d.Pixels))
		for i := range d.Len() {
			d.values(x[i*d.Features:(i+1)*d.Features], i)
		}
	}
	return blas64.General{Rows: d.Len(), Cols: d.Features, Data: x, Stride: d.Features}
}

func vector(x []float64) blas64.Vector { return blas64.Vector{N: len(x), Data: x, Inc: 1} }
