package party

import (
	"context"
	"time"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/internal/instant"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/masking"
)

// This file runs a party of a federation with privacy.submit_after: it submits at the instant,
// however far its training has come.

// workUntil trains, unless the party's coin excludes it, and has the party submit at the instant.
func (r *running) workUntil(ctx context.Context, at time.Time, ask drive.Ask, w *Work) error {
	answer := drive.Answer{
		ID:        ask.ID,
		Round:     ask.Round,
		Broadcast: job.BroadcastDigest(w.File),
	}
	if !ask.Idle {
		made, err := r.made(at, w)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		answer.Err = err
		answer.Fill = func(v *masking.Vector) error { return v.Add(made) }
		if err := r.party.Answer(answer); err != nil {
			return localError{err}
		}
		if err == nil { // otherwise a training that overruns may still write
			made.Erase()
		}
	}
	r.rest()
	if err := instant.Sleep(ctx, at); err != nil {
		return err
	}
	if err := r.party.Instant(answer); err != nil {
		return localError{err}
	}
	return nil
}

// made returns the result of training before the instant, encoded: encoding takes time too.
func (r *running) made(at time.Time, w *Work) (v *masking.Vector, err error) {
	if v, err = masking.NewVector(r.Federation.Settled.Layout()); err != nil {
		return nil, err
	}
	err = r.worker.Do(r.working, at, func(ctx context.Context) error {
		update, err := r.train(ctx, w)
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		if err == nil {
			err = r.check(update)
		}
		if err != nil {
			return err
		}
		return r.encode(v, update, w)
	})
	return v, err
}
