package hushsum

import (
	"context"
	"time"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/internal/instant"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/transport"
)

// This file has a participant of a job with privacy.submit_after.

// workUntil has Work make this party's vector, unless its coin has no luck, and the party submit at
// the instant, whatever has come of it.
func (p *participant) workUntil(ctx context.Context, ask drive.Ask, b *transport.Broadcast) error {
	at := time.Now().Add(time.Duration(ask.After))
	id := drive.Answer{ID: ask.ID, Round: b.Round, Broadcast: b.Digest}
	p.broadcast = nil
	if p.zeros = 0; ask.Idle {
		p.zeros = b.Round
	} else {
		made, err := p.made(ctx, at, b)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		answer := id
		answer.Err = err
		answer.Fill = func(v *masking.Vector) error { return v.Add(made) }
		if err := p.party.Answer(answer); err != nil {
			return storeError{err}
		}
		if err == nil { // else what overruns may still write
			made.Erase()
		}
	}
	if err := instant.Sleep(ctx, at); err != nil {
		return err
	}
	if err := p.party.Instant(id); err != nil {
		return storeError{err}
	}
	return nil
}

// made returns what Work makes before the instant, encoded: that takes time too.
func (p *participant) made(
	ctx context.Context, at time.Time, b *transport.Broadcast,
) (v *masking.Vector, err error) {
	if v, err = masking.NewVector(p.Job.Layout()); err != nil {
		return nil, err
	}
	err = p.worker.Do(ctx, at, func(ctx context.Context) error {
		return p.try(func() error {
			fill, err := p.vector(ctx, b)
			if cause := context.Cause(ctx); cause != nil {
				return cause
			}
			if err != nil {
				return err
			}
			return fill(v)
		})
	})
	return v, err
}
