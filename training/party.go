package training

import (
	"context"
	"errors"
	"math"
	"slices"

	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/learning"
)

// TakePart returns what party i makes of a round: it trains and clips. mean is the mean of the
// round's gradients, for the rules that take it.
func (l *Learner) TakePart(ctx context.Context, round, i int, mean []float64) (w Work, err error) {
	if err := ctx.Err(); err != nil {
		return w, err
	}
	if l.Records != nil {
		return w, l.takeRecords(round, i, &w)
	}
	if l.Band != nil {
		return l.takeTurn(ctx, round, i)
	}
	return l.update(ctx, round, i, mean)
}

// update is TakePart of one who trains, and submits what that changed.
func (l *Learner) update(ctx context.Context, round, i int, mean []float64) (w Work, err error) {
	weights, err := l.train(ctx, round, i, mean, &w)
	if l.Quiet && errors.Is(err, learning.ErrDiverged) {
		weights, w.Diverged, err = slices.Clone(l.Weights), true, nil
	}
	if err != nil {
		return w, err
	}
	w.Trained = weights
	update := make([]float64, len(weights))
	for j, v := range l.Weights {
		update[j] = weights[j] - v
	}
	if l.Last != nil {
		if w.Cosine, err = aggregation.Cosine(update, l.Last); err != nil {
			return w, err
		}
	}
	w.Message.Signed, w.Message.Samples = update, l.Samples(i)
	if w.Message.Vector, err = l.clipped(update, &w); err != nil {
		return w, err
	}
	if l.Models {
		w.Message.Vector = weights
	}
	for _, x := range w.Message.Vector {
		w.Largest = max(w.Largest, math.Abs(x))
	}
	return w, nil
}

// begins returns the model that a round's training begins from.
func (l *Learner) begins() []float64 {
	if l.Restart {
		return l.first
	}
	return l.Weights
}

// Gradient returns the gradient of party i at the round's model.
func (l *Learner) Gradient(i int) ([]float64, error) {
	g := make([]float64, len(l.Weights))
	return g, l.Model.Gradient(g, l.Weights, l.Parties[i])
}

// train returns the weights that party i's training leads to.
func (l *Learner) train(
	ctx context.Context, round, i int, mean []float64, w *Work,
) ([]float64, error) {
	local := l.Local
	local.Interrupt = ctx.Err
	rows := l.Parties[i]
	begin := slices.Clone(l.begins())
	var own aggregation.Scaffold
	var err error
	switch l.Client.Kind {
	case FedProx:
		if l.Client.Mu != 0 { // a hook, even one that does nothing, takes another path
			local.Adjust, err = aggregation.Proximal(l.Client.Mu, l.Weights)
		}
	case SCAFFOLD:
		if own, err = l.controls(i, mean); err == nil {
			local.Adjust, err = own.Adjust()
		}
	case FedGA:
		var gradient []float64
		if gradient, err = l.Gradient(i); err == nil {
			begin, err = aggregation.Displace(l.Weights, mean, gradient, l.Client.Beta)
		}
	}
	if err != nil {
		return nil, err
	}
	steps, err := local.Train(l.Model, begin, rows, l.derived("batches", round, i))
	if err != nil {
		return nil, err
	}
	if l.Client.Stored() {
		if err := l.nextControls(i, own, begin, steps, w); err != nil {
			return nil, err
		}
	}
	if l.Clip.Kind == ModelClip {
		if begin, w.Norm, err = aggregation.Clip(begin, l.Norm); err != nil {
			return nil, err
		}
		w.Clipped = w.Norm > l.Norm
	}
	return begin, nil
}

// controls returns what SCAFFOLD corrects party i's gradients by.
func (l *Learner) controls(i int, mean []float64) (own aggregation.Scaffold, err error) {
	if l.Client.Fresh {
		own.Server = mean
		own.Own, err = l.Gradient(i)
		return own, err
	}
	own = aggregation.Scaffold{Server: l.Variate, Own: l.Variates[i]}
	if own.Own == nil {
		own.Own = make([]float64, len(l.Weights))
	}
	return own, nil
}

// nextControls finds SCAFFOLD's next c_i, and the change that party i sends, after so
// many steps to the weights trained.
func (l *Learner) nextControls(
	i int, own aggregation.Scaffold, trained []float64, steps int, w *Work,
) error {
	var err error
	if !l.Client.OptionI {
		w.Own, w.Message.Control, err = own.FromSteps(l.Weights, trained, steps, l.Local.Rate)
		return err
	}
	gradient, err := l.Gradient(i)
	if err != nil {
		return err
	}
	w.Own, w.Message.Control, err = own.FromGradient(gradient)
	return err
}

// clipped bounds the update as it will be encoded, and says whether that took
// anything away. With noise it is brought from the norm in force to that of the
// encoding.
func (l *Learner) clipped(update []float64, w *Work) ([]float64, error) {
	if l.Clip.Kind == ModelClip {
		return update, nil
	}
	if l.Norm == 0 {
		_, norm, err := aggregation.Clip(update, 1)
		w.Norm = norm
		return update, err
	}
	clipped, norm, err := aggregation.Clip(update, l.Norm)
	w.Norm, w.Clipped = norm, norm > l.Norm
	if l.Adaptive != nil {
		w.Message.Voted = l.Adaptive.Vote(norm)
	}
	if l.NoiseClip > 0 {
		scale(clipped, l.NoiseClip/l.Norm)
	}
	return clipped, err
}
