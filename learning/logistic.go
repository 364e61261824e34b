package learning

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
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

// NumParams is the length of the parameter vector.
func (m Logistic) NumParams() int { return m.Features }

func (m Logistic) check(w []float64, d *Dataset) error {
	if m.Features < 1 {
		return fmt.Errorf("%w: the model has %d features, want at least 1", ErrShape, m.Features)
	}
	if !finite(m.Lambda) || m.Lambda < 0 {
		return fmt.Errorf("%w: lambda %v, want a finite number of at least 0", ErrValue, m.Lambda)
	}
	if len(w) != m.NumParams() {
		return fmt.Errorf("%w: %d parameters for a model that has %d", ErrShape, len(w), m.NumParams())
	}
	if !allFinite(w) {
		return fmt.Errorf("%w: a parameter is NaN or infinite", ErrValue)
	}
	return d.check(m.Features, 2)
}

// Loss is F(w) on d: the mean log loss in nats plus the regularisation term.
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
	var norm2 float64
	for _, x := range w {
		norm2 += x * x
	}
	return sum/float64(d.Len()) + m.Lambda/2*norm2, nil
}

// Gradient writes the gradient of F at w over all rows of d into dst, which has
// NumParams elements and may be w itself. Errors are those of Loss; dst is then
// unchanged.
func (m Logistic) Gradient(dst, w []float64, d *Dataset) error {
	if err := m.check(w, d); err != nil {
		return err
	}
	if len(dst) != m.NumParams() {
		return fmt.Errorf("%w: %d places for a gradient with %d elements", ErrShape, len(dst), m.NumParams())
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
		return fmt.Errorf("%w: rate %v, want a finite number above 0", ErrValue, rate)
	}
	if steps < 0 {
		return fmt.Errorf("%w: %d steps, want at least 0", ErrValue, steps)
	}
	v := append([]float64(nil), w...)
	r := make([]float64, d.Len())
	x := d.matrix()
	shrink, pull := 1-rate*m.Lambda, -rate/float64(d.Len())
	for range steps {
		m.scores(r, v, d)
		residuals(r, d.Labels)
		// Shrinkage and descent in one pass: v ← shrink·v + pull·Xᵀr.
		blas64.Gemv(blas.Trans, pull, x, vector(r), shrink, vector(v))
	}
	if !allFinite(v) {
		return fmt.Errorf("%w after at most %d steps at rate %v; use a lower rate", ErrDiverged, steps, rate)
	}
	copy(w, v)
	return nil
}

// Predict writes P(label 1) of every row of d into dst, which has d.Len()
// elements. Errors are those of Loss; dst is then unchanged. The labels of d do
// not influence the result.
func (m Logistic) Predict(dst, w []float64, d *Dataset) error {
	if err := m.check(w, d); err != nil {
		return err
	}
	if len(dst) != d.Len() {
		return fmt.Errorf("%w: %d places for %d predictions", ErrShape, len(dst), d.Len())
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
	if err := m.check(w, d); err != nil {
		return Confusion{}, err
	}
	z := make([]float64, d.Len())
	m.scores(z, w, d)
	var c Confusion
	for i, y := range d.Labels {
		switch {
		case z[i] > 0 && y == 1:
			c.TP++
		case z[i] > 0:
			c.FP++
		case y == 1:
			c.FN++
		default:
			c.TN++
		}
	}
	return c, nil
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

func (d *Dataset) matrix() blas64.General {
	return blas64.General{Rows: d.Len(), Cols: d.Features, Data: d.X, Stride: d.Features}
}

func vector(x []float64) blas64.Vector { return blas64.Vector{N: len(x), Data: x, Inc: 1} }
