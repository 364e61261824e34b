package simulation

import (
	"context"
	"errors"
	"math"
	"slices"

	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/internal/cores"
	"github.com/hushsum/hushsum/learning"
)

// received returns what party k makes of a model of the server's: its own parameters in
// their places and zeros where it has pruned.
func (x *personal) received(k int, model []float64) []float64 {
	w := slices.Clone(model)
	for j := range w {
		switch {
		case x.isOwn[j]:
			w[j] = x.own[k][j]
		case x.kept[k] != nil && !x.kept[k][j], x.common != nil && !x.common[j]:
			w[j] = 0
		}
	}
	return w
}

// keeps reports whether party k keeps a weight.
func (x *personal) keeps(k, j int) bool {
	return (x.kept[k] == nil || x.kept[k][j]) && (x.common == nil || x.common[j])
}

// numKept returns how many of the weights that can be pruned party k keeps.
func (x *personal) numKept(k int) int {
	n := 0
	for j := range x.isOwn {
		if !x.isOwn[j] && x.keeps(k, j) {
			n++
		}
	}
	return n
}

// update is a party's part of a round: what it makes of the model that it receives, of
// which it has pruned no more than target after it.
func (x *personal) update(round, k int, model []float64, target float64) ([]float64, error) {
	w := x.received(k, model)
	party := x.Parties[k]
	if x.Prune.Kind == PrePrune {
		pruned, err := x.prune(k, w, target)
		if err != nil {
			return nil, err
		}
		if pruned {
			x.rewind(k, w)
		}
	}
	if err := x.train(k, w, party.Train, x.derived("batches", round, k), x.Pull); err != nil {
		return nil, err
	}
	if x.Prune.Kind == PostPrune {
		pruned, err := x.prune(k, w, target)
		if err != nil {
			return nil, err
		}
		if pruned {
			if x.Prune.Rewind {
				x.rewind(k, w)
			}
			if err := x.train(k, w, party.Train, x.derived("batches after pruning", round, k),
				0); err != nil {
				return nil, err
			}
		}
	}
	x.own[k] = w
	return w, nil
}

// prune shrinks party k's mask if w is good enough on its validation rows, and sets the
// weights to 0 that go.
func (x *personal) prune(k int, w []float64, target float64) (bool, error) {
	judged, err := learning.Evaluate(x.Model, w, x.Parties[k].Validation)
	if err != nil || judged.Accuracy() <= x.Prune.Threshold {
		return false, err
	}
	count := aggregation.PruneCount(x.prunable, x.numKept(k), x.Prune.Step, target, x.Prune.OfAll)
	if count == 0 {
		return false, nil
	}
	kept := make([]bool, len(w))
	for j := range kept {
		kept[j] = x.keeps(k, j)
	}
	if x.kept[k], err = aggregation.Prune(w, kept, x.isOwn, count); err != nil {
		return false, err
	}
	for j := range w {
		if !x.isOwn[j] && !x.kept[k][j] {
			w[j] = 0
		}
	}
	return true, nil
}

// rewind sets the weights that are kept to those of the first model.
func (x *personal) rewind(k int, w []float64) {
	for j := range w {
		if !x.isOwn[j] && x.keeps(k, j) {
			w[j] = x.first[j]
		}
	}
}

// train trains w in place; what is pruned stays 0.
func (x *personal) train(
	k int, w []float64, rows *learning.Dataset, seed uint64, pull float64,
) error {
	local := x.Local
	start := slices.Clone(w)
	masked := x.kept[k] != nil || x.common != nil
	if masked || pull > 0 {
		local.Adjust = func(gradient, w []float64) {
			if pull > 0 {
				var away float64
				for j := range w {
					away += (w[j] - start[j]) * (w[j] - start[j])
				}
				if away > 0 {
					factor := pull / math.Sqrt(away)
					for j := range gradient {
						gradient[j] += factor * (w[j] - start[j])
					}
				}
			}
			if masked {
				for j := range gradient {
					if !x.isOwn[j] && !x.keeps(k, j) {
						gradient[j] = 0
					}
				}
			}
		}
	}
	_, err := local.Train(x.Model, w, rows, seed)
	return err
}

// jumpStart has every party train alone, and takes the best model for the first.
func (x *personal) jumpStart(ctx context.Context) error {
	if x.JumpStart == 0 {
		return nil
	}
	n := len(x.Parties)
	models := make([][]float64, n)
	target := min(x.JumpTarget, x.Prune.Target)
	err := cores.Each(ctx, n, func(k int) (err error) {
		models[k] = x.model
		for t := range x.JumpStart {
			if models[k], err = x.update(-1-t, k, models[k], target); err != nil {
				return failure(0, k, err)
			}
		}
		return nil
	}, nil)
	if err != nil {
		return err
	}
	scores := make([]float64, n)
	err = cores.Each(ctx, n, func(k int) error {
		for _, party := range x.Parties {
			judged, err := learning.Evaluate(x.Model, models[k], party.Validation)
			if err != nil {
				return failure(0, k, err)
			}
			scores[k] += judged.Accuracy() / float64(n)
		}
		return nil
	}, nil)
	if err != nil {
		return err
	}
	x.model = models[slices.Index(scores, slices.Max(scores))]
	// Masks belong to the parties' own models, which nobody goes on with.
	clear(x.kept)
	return nil
}

// judge evaluates every party's model.
func (x *personal) judge(ctx context.Context, round int) (*Judgement, error) {
	n := len(x.Parties)
	j := &Judgement{make([]float64, n), make([]float64, n)}
	err := cores.Each(ctx, n, func(k int) error {
		w := x.received(k, x.model)
		judged, err := learning.Evaluate(x.Model, w, x.Parties[k].Test)
		if err != nil {
			return failure(round, k, err)
		}
		j.Received[k] = judged.Accuracy()
		j.Trained[k] = j.Received[k]
		err = x.train(k, w, x.Parties[k].Train, x.derived("judged", round, k), x.Pull)
		if errors.Is(err, learning.ErrDiverged) {
			return nil // the party goes without
		}
		if err != nil {
			return failure(round, k, err)
		}
		if judged, err = learning.Evaluate(x.Model, w, x.Parties[k].Test); err != nil {
			return failure(round, k, err)
		}
		j.Trained[k] = judged.Accuracy()
		return nil
	}, nil)
	return j, err
}
