package simulation

import (
	"context"
	"errors"
	"slices"

	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/learning"
)

// work is what one party made of a round.
type work struct {
	message message
	own     []float64 // SCAFFOLD's next c_i
	norm    float64   // before clipping: of the update, with ModelClip of the weights
	cosine  float64
	clipped bool
}

// meanGradient is the first sum of FedGA and of fresh variates, with its cost; nil for
// other rules.
func (x *training) meanGradient(ctx context.Context, round int) (mean []float64, cost Cost, err error) {
	if x.Client.exchanges() < 2 {
		return nil, cost, nil
	}
	clear := make([][]float64, len(x.Parties))
	out, err := x.sum(ctx, x.aligned, round, func(_ context.Context, i int) (made submission, err error) {
		g := make([]float64, len(x.model))
		if err = x.Model.Gradient(g, x.model, x.Parties[i]); err != nil {
			return made, err
		}
		if x.lanes == nil {
			clear[i] = g
			return made, nil
		}
		made.values, err = x.align.Encode(g)
		return made, err
	})
	switch {
	case err != nil:
		return nil, cost, err
	case out.lost != nil:
		return nil, out.cost, out.lost
	case x.lanes == nil:
		return meanOf(out.included, func(i int) []float64 { return clear[i] }), out.cost, nil
	}
	layout, err := x.align.Layout()
	if err != nil {
		return nil, cost, err
	}
	cut(out.sum[0], layout[0].Bits)
	mean, err = x.align.Decode(out.sum, len(out.included))
	return mean, out.cost, err
}

// takePart is a party's round: train, clip, encode.
func (x *training) takePart(ctx context.Context, round, i int, mean []float64, w *work) (made submission, err error) {
	if err := ctx.Err(); err != nil {
		return made, err
	}
	start := x.Now()
	update, err := x.localUpdate(round, i, mean, w)
	if x.Noise != nil && errors.Is(err, learning.ErrDiverged) {
		update, err = make([]float64, len(x.model)), nil // see Noise
	}
	if err != nil {
		return made, err
	}
	made.train = x.Now().Sub(start)
	if x.last != nil {
		if w.cosine, err = aggregation.Cosine(update, x.last); err != nil {
			return made, err
		}
	}
	w.message.signed = update
	if w.message.update, err = x.clipped(update, w); err != nil {
		return made, err
	}
	if x.MaxSamples > 0 {
		w.message.update = aggregation.WeightedVector(w.message.update, x.Parties[i].Len(), x.MaxSamples, x.countNorm())
	}
	if x.lanes != nil {
		made.values, err = x.lanes.encode(round, w.message)
		w.message = message{} // what the server must not see is not kept
	}
	return made, err
}

// localUpdate trains a party's copy of the model and returns the difference.
func (x *training) localUpdate(round, i int, mean []float64, w *work) ([]float64, error) {
	local := x.Local
	rows := x.Parties[i]
	begin := slices.Clone(x.model)
	var own aggregation.Scaffold
	var gradient []float64
	var err error
	switch x.Client.Kind {
	case FedProx:
		if x.Client.Mu != 0 { // a hook, even one that does nothing, takes another path
			local.Adjust, err = aggregation.Proximal(x.Client.Mu, x.model)
		}
	case SCAFFOLD:
		if x.Client.Fresh {
			own = aggregation.Scaffold{Server: mean, Own: make([]float64, len(x.model))}
			err = x.Model.Gradient(own.Own, x.model, rows)
		} else {
			own = aggregation.Scaffold{Server: x.variate, Own: x.variates[i]}
			if own.Own == nil {
				own.Own = make([]float64, len(x.model))
			}
		}
		if err != nil {
			return nil, err
		}
		local.Adjust, err = own.Adjust()
	case FedGA:
		gradient = make([]float64, len(x.model))
		if err = x.Model.Gradient(gradient, x.model, rows); err == nil {
			begin, err = aggregation.Displace(x.model, mean, gradient, x.Client.Beta)
		}
	}
	if err != nil {
		return nil, err
	}
	steps, err := local.Train(x.Model, begin, rows, x.derived("batches", round, i))
	if err != nil {
		return nil, err
	}
	if x.Client.stored() {
		if x.Client.OptionI {
			gradient = make([]float64, len(x.model))
			if err := x.Model.Gradient(gradient, x.model, rows); err != nil {
				return nil, err
			}
			w.own, w.message.control, err = own.FromGradient(gradient)
		} else {
			w.own, w.message.control, err = own.FromSteps(x.model, begin, steps, local.Rate)
		}
		if err != nil {
			return nil, err
		}
	}
	if x.Clip.Kind == ModelClip {
		if begin, w.norm, err = aggregation.Clip(begin, x.norm); err != nil {
			return nil, err
		}
		w.clipped = w.norm > x.norm
	}
	for j, v := range x.model {
		begin[j] -= v
	}
	return begin, nil
}

// clipped bounds the update as it will be encoded, and says whether that took
// anything away.
func (x *training) clipped(update []float64, w *work) ([]float64, error) {
	if x.Clip.Kind == ModelClip {
		return update, nil
	}
	if x.norm == 0 {
		_, norm, err := aggregation.Clip(update, 1)
		w.norm = norm
		return update, err
	}
	clipped, norm, err := aggregation.Clip(update, x.norm)
	w.norm, w.clipped = norm, norm > x.norm
	if x.adaptive != nil {
		w.message.voted = x.adaptive.Vote(norm)
	}
	if x.Noise != nil {
		scale(clipped, x.Noise.Clip/x.norm)
	}
	return clipped, err
}

func scale(v []float64, by float64) {
	if by == 1 {
		return
	}
	for i := range v {
		v[i] *= by
	}
}
