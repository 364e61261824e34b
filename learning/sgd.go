package learning

import (
	"fmt"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/blas/blas64"

	"github.com/hushsum/hushsum/internal/fault"
)

// SGD is mini-batch gradient descent with heavy-ball momentum and weight decay:
//
//	g ← ∇F(w; batch) + WeightDecay·w
//	Adjust(g, w)
//	v ← Momentum·v + g
//	w ← w − Rate·v
//
// F contains the model's own Lambda, to which WeightDecay adds. v starts at 0 in
// every call of Train.
type SGD struct {
	Rate        float64 // above 0, finite
	Momentum    float64 // in [0, 1)
	WeightDecay float64 // at least 0, finite
	Batch       int     // rows of a step; 0 is all rows, more than there are too
	// Epochs or Steps says when to stop; at most one of them is set, and neither
	// means one epoch. Every epoch shuffles the rows anew and goes through them
	// once; its last batch may be smaller, and its gradient is the mean over
	// the rows that it has. Steps may end inside an epoch.
	Epochs, Steps int
	// Adjust, when it is not nil, may change the gradient of every step:
	// FedProx adds μ(w − w0), SCAFFOLD adds c − c_i. It must not change w or
	// keep either slice.
	Adjust func(gradient, w []float64)
	// Interrupt, when it is not nil, is asked every 50 steps, and an error of it ends
	// the training.
	Interrupt func() error
}

// stepsAtOnce is after how many steps Interrupt is asked.
const stepsAtOnce = 50

func (s SGD) check() error {
	for _, c := range []struct {
		name string
		x    float64
		ok   bool
		want string
	}{
		{"rate", s.Rate, s.Rate > 0, "above 0"},
		{"momentum", s.Momentum, s.Momentum >= 0 && s.Momentum < 1, "in [0, 1)"},
		{"weight decay", s.WeightDecay, s.WeightDecay >= 0, "at least 0"},
	} {
		if !c.ok || !finite(c.x) {
			return fault.New(ErrValue, "", "%s %v, want a finite number %s", c.name, c.x, c.want)
		}
	}
	if s.Batch < 0 || s.Epochs < 0 || s.Steps < 0 {
		return fault.New(ErrValue, "",
			"batch %d, %d epochs, %d steps, want none below 0", s.Batch, s.Epochs, s.Steps)
	}
	if s.Epochs > 0 && s.Steps > 0 {
		return fault.New(ErrValue, "", "%d epochs and %d steps, want one of them", s.Epochs, s.Steps)
	}
	return nil
}

// Train trains w in place on d and returns the number of steps taken. The seed
// decides the order of the rows; with one batch an epoch it has no influence.
//
// It returns the errors of Model for input that does not fit, ErrValue for
// settings out of range, ErrDiverged when the weights leave the finite
// numbers (lower the rate), and the error of Interrupt; on every error w is unchanged
// and the count is 0.
// With a model of this package Train takes its memory from a pool and allocates
// nothing per step.
func (s SGD) Train(m Model, w []float64, d *Dataset, seed uint64) (int, error) {
	if err := s.check(); err != nil {
		return 0, err
	}
	own, _ := m.(batchModel)
	if err := checkTrain(m, own, w, d); err != nil {
		return 0, err
	}
	n := d.Len()
	batch := s.Batch
	if batch == 0 || batch > n {
		batch = n
	}
	perEpoch := (n-1)/batch + 1
	steps := s.Steps
	if steps == 0 {
		epochs := max(1, s.Epochs)
		if epochs > math.MaxInt/perEpoch {
			return 0, fault.New(ErrValue, "", "%d epochs of %d steps are too many", epochs, perEpoch)
		}
		steps = epochs * perEpoch
	}

	ws := workspaces.Get().(*workspace)
	defer workspaces.Put(ws)
	ws.weights = append(ws.weights[:0], w...)
	run := sgdRun{SGD: s, model: m, own: own, data: d, ws: ws, w: ws.weights}
	ws.gradient = grown(ws.gradient, len(w))
	if s.Momentum > 0 {
		ws.velocity = grown(ws.velocity, len(w))
		clear(ws.velocity)
	}
	order := ws.rowOrder(n)
	rng := rand.New(rand.NewPCG(seed, streamSGD))
	if logistic, ok := m.(Logistic); ok && perEpoch == 1 && s.Momentum == 0 && s.Adjust == nil &&
		d.Pixels == nil {
		run.whole = &logistic
		ws.dense = grown(ws.dense, n)
	}
	for step := range steps {
		if s.Interrupt != nil && step%stepsAtOnce == 0 {
			if err := s.Interrupt(); err != nil {
				return 0, err
			}
		}
		at := step % perEpoch
		if at == 0 {
			if step > 0 && !allFinite(run.w) {
				return 0, s.diverged(step)
			}
			for i := n - 1; i > 0 && perEpoch > 1; i-- {
				j := rng.IntN(i + 1)
				order[i], order[j] = order[j], order[i]
			}
		}
		if err := run.step(order[at*batch : min(n, (at+1)*batch)]); err != nil {
			if !allFinite(run.w) {
				return 0, s.diverged(step)
			}
			return 0, err
		}
	}
	if last, ok := m.(settler); ok && allFinite(run.w) {
		last.settle(ws, run.w, d)
	}
	// A weight that is infinite or NaN never comes back, so this sees it.
	if !allFinite(run.w) {
		return 0, s.diverged(steps)
	}
	copy(w, run.w)
	return steps, nil
}

func (s SGD) diverged(steps int) error {
	return fmt.Errorf("%w after at most %d steps at rate %v; use a lower rate", ErrDiverged, steps,
		s.Rate)
}

func checkTrain(m Model, own batchModel, w []float64, d *Dataset) error {
	if own != nil {
		return own.check(w, d)
	}
	if m == nil {
		return fault.New(ErrShape, "", "the model is nil")
	}
	if err := checkParams(m.NumParams(), 0, w); err != nil {
		return err
	}
	if err := d.checkShape(); err != nil {
		return err
	}
	return d.check(d.Features, m.Classes())
}

// sgdRun is one call of Train.
type sgdRun struct {
	SGD
	model Model
	own   batchModel // model, when it is one of this package
	whole *Logistic  // model, when every step is over all rows as they lie
	data  *Dataset
	ws    *workspace
	w     []float64
}

func (r *sgdRun) step(rows []int) error {
	if r.whole != nil {
		shrink := 1 - r.Rate*(r.whole.Lambda+r.WeightDecay)
		r.whole.descend(r.w, r.ws.dense[:r.data.Len()], r.data, r.data.matrix(), r.Rate, shrink)
		return nil
	}
	if r.own != nil && r.Momentum == 0 && r.Adjust == nil && len(rows) <= chunkRows {
		// Nobody looks at the gradient: backpropagation descends in place, and
		// lines of weights whose inputs are all 0 are never touched.
		shrink := 1 - r.Rate*(r.own.penalty()+r.WeightDecay)
		r.own.accumulate(r.ws, r.w, r.w, r.data, rows, -r.Rate/float64(len(rows)), shrink)
		return nil
	}
	g := r.ws.gradient
	if r.own != nil {
		gradientOf(r.ws, r.own, g, r.w, r.data, rows, r.own.penalty()+r.WeightDecay)
	} else {
		r.data.gatherInto(&r.ws.batch, rows)
		if err := r.model.Gradient(g, r.w, &r.ws.batch); err != nil {
			return err
		}
		if r.WeightDecay > 0 {
			blas64.Axpy(r.WeightDecay, vector(r.w), vector(g))
		}
	}
	if r.Adjust != nil {
		r.Adjust(g, r.w)
	}
	if r.Momentum > 0 {
		v := r.ws.velocity
		for j, x := range g {
			v[j] = r.Momentum*v[j] + x
		}
		g = v
	}
	blas64.Axpy(-r.Rate, vector(g), vector(r.w))
	return nil
}
