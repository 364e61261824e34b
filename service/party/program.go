package party

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"

	"github.com/hushsum/hushsum/host"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/service/federation"
	"github.com/hushsum/hushsum/service/tensor"
)

// program makes vectors by a party's trainer.
type program running

// Make is a method of [host.Program].
func (p *program) Make(ctx context.Context, c *host.Cast) (host.Fill, error) {
	p.carrier.turn.work(true)
	defer p.carrier.turn.work(false)
	if err := p.carrier.turn.take(ctx); err != nil {
		return nil, err
	}
	update, err := p.train(ctx, c.Model.(*Work))
	if err == nil {
		if err = p.check(update); err != nil {
			err = localError(err)
		}
	}
	return func(v *masking.Vector, in *host.Cast, later uint64) error {
		return p.encode(v, update, in.Model.(*Work), later)
	}, err
}

// train has the trainer make an update.
func (p *program) train(ctx context.Context, w *Work) (update *Update, err error) {
	update, err = p.Trainer.Train(ctx, w)
	switch {
	case err != nil:
		return nil, err
	case update == nil:
		return nil, fmt.Errorf("%w: it returned no update", ErrTraining)
	case update.Values == nil && update.Message == nil && len(update.Vector) != len(w.Model):
		return nil, fmt.Errorf("%w: the update has %d numbers, the model %d", ErrTraining,
			len(update.Vector), len(w.Model))
	}
	if update.Without != nil {
		p.Log.Warn("this round's sum is without some records, and nobody else learns it",
			"round", w.Round, "error", update.Without.Error())
	}
	return update, nil
}

// check returns why an update does not fit the federation: the trainer is code of others, and
// another round would not help.
func (p *program) check(update *Update) error {
	encoded := update.Values != nil || update.Message != nil
	switch declared := p.Federation.Settled.Trains(); {
	case declared && !encoded:
		return errors.New("party: the federation declares the training; use Declared")
	case declared:
		return nil
	case encoded: // which nothing would clip, nor add noise to
		return errors.New("party: the federation declares no training; leave Vector, not Values")
	}
	return nil
}

// encode writes to v the submission in the round of w of an update that was begun a given number of
// rounds before. The noise of one-message sums is in the mask.
func (p *program) encode(v *masking.Vector, update *Update, w *Work, later uint64) (err error) {
	if update.Values != nil {
		err = v.Set(update.Values...)
		for _, lane := range update.Values {
			clear(lane)
		}
		return err
	}
	made := job.Update[float64]{Vector: update.Vector, Loss: update.Loss, Accuracy: update.Accuracy}
	if update.Message != nil {
		made = *update.Message
	}
	return job.EncodeTo(v, p.Federation.Settled, job.BroadcastDigest(w.File), made.Weighed(later),
		p.random)
}

// open checks a broadcast.
func open(f *federation.Federation, file []byte, round int) (*Work, error) {
	spec, values, notes, err := tensor.Parse(file)
	if err != nil {
		return nil, err
	}
	if err := f.Spec.Same(&spec); err != nil {
		return nil, err
	}
	fresh, err := hex.DecodeString(notes["fresh"])
	if err != nil || len(fresh) != 32 || notes["federation"] != f.ID ||
		notes["round"] != strconv.Itoa(round) {
		return nil, fmt.Errorf("%w: the notes of the model", ErrServer)
	}
	return &Work{
		Round:   round,
		Spec:    &f.Spec,
		Model:   values,
		File:    file,
		Metrics: f.Job.Metrics.Share > 0,
		Coins:   f.Settled.Coins(),
	}, nil
}
