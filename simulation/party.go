package simulation

import (
	"context"
	"errors"
	"math"
	"slices"

	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/learning"
)

// takePart is what party i makes of a round: it trains and clips. mean is that of the
// round's gradients, for the rules that take it.
func (l *learner) takePart(ctx context.Context, round, i int, mean []float64) (w work, err error) {
	if err := ctx.Err(); err != nil {
		return w, err
	}
	weights, err := l.train(ctx, round, i, mean, &w)
	if l.quiet && errors.Is(err, learning.ErrDiverged) {
		weights, err = slices.Clone(l.model), nil
	}
	if err != nil {
		return w, err
	}
	update := make([]float64, len(weights))
	for j, v := range l.model {
		update[j] = weights[j] - v
	}
	if l.last != nil {
		if w.cosine, err = aggregation.Cosine(update, l.last); err != nil {
			return w, err
		}
	}
	w.message.signed, w.message.samples = update, l.samples(i)
	if w.message.vector, err = l.clipped(update, &w); err != nil {
		return w, err
	}
	if l.Models {
		w.message.vector = weights
	}
	for _, x := range w.message.vector {
		w.largest = max(w.largest, math.Abs(x))
	}
	return w, nil
}

// gradient is that of party i at the round's model.
func (l *learner) gradient(i int) ([]float64, error) {
	g := make([]float64, len(l.model))
	return g, l.Model.Gradient(g, l.model, l.Parties[i])
}

// train returns the weights that party i's training leads to.
func (l *learner) train(
	ctx context.Context, round, i int, mean []float64, w *work,
) ([]float64, error) {
	local := l.Local
	local.Interrupt = ctx.Err
	rows := l.Parties[i]
	begin := slices.Clone(l.model)
	var own aggregation.Scaffold
	var err error
	switch l.Client.Kind {
	case FedProx:
		if l.Client.Mu != 0 { // a hook, even one that does nothing, takes another path
			local.Adjust, err = aggregation.Proximal(l.Client.Mu, l.model)
		}
	case SCAFFOLD:
		if own, err = l.controls(i, mean); err == nil {
			local.Adjust, err = own.Adjust()
		}
	case FedGA:
		var gradient []float64
		if gradient, err = l.gradient(i); err == nil {
			begin, err = aggregation.Displace(l.model, mean, gradient, l.Client.Beta)
		}
	}
	if err != nil {
		return nil, err
	}
	steps, err := local.Train(l.Model, begin, rows, l.derived("batches", round, i))
	if err != nil {
		return nil, err
	}
	if l.Client.stored() {
		if err := l.nextControls(i, own, begin, steps, w); err != nil {
			return nil, err
		}
	}
	if l.Clip.Kind == ModelClip {
		if begin, w.norm, err = aggregation.Clip(begin, l.norm); err != nil {
			return nil, err
		}
		w.clipped = w.norm > l.norm
	}
	return begin, nil
}

// controls are what SCAFFOLD corrects party i's gradients by.
func (l *learner) controls(i int, mean []float64) (own aggregation.Scaffold, err error) {
	if l.Client.Fresh {
		own.Server = mean
		own.Own, err = l.gradient(i)
		return own, err
	}
	own = aggregation.Scaffold{Server: l.variate, Own: l.variates[i]}
	if own.Own == nil {
		own.Own = make([]float64, len(l.model))
	}
	return own, nil
}

// nextControls finds SCAFFOLD's next c_i, and the change that party i sends, after so
// many steps to the weights trained.
func (l *learner) nextControls(
	i int, own aggregation.Scaffold, trained []float64, steps int, w *work,
) error {
	var err error
	if !l.Client.OptionI {
		w.own, w.message.control, err = own.FromSteps(l.model, trained, steps, l.Local.Rate)
		return err
	}
	gradient, err := l.gradient(i)
	if err != nil {
		return err
	}
	w.own, w.message.control, err = own.FromGradient(gradient)
	return err
}

// clipped bounds the update as it will be encoded, and says whether that took
// anything away. With noise it is brought from the norm in force to that of the
// encoding.
func (l *learner) clipped(update []float64, w *work) ([]float64, error) {
	if l.Clip.Kind == ModelClip {
		return update, nil
	}
	if l.norm == 0 {
		_, norm, err := aggregation.Clip(update, 1)
		w.norm = norm
		return update, err
	}
	clipped, norm, err := aggregation.Clip(update, l.norm)
	w.norm, w.clipped = norm, norm > l.norm
	if l.adaptive != nil {
		w.message.voted = l.adaptive.Vote(norm)
	}
	if l.Noise != nil {
		scale(clipped, l.Noise.Clip/l.norm)
	}
	return clipped, err
}
