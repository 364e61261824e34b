// Package instant runs work ahead of an instant that does not depend on it.
package instant

import (
	"context"
	"errors"
	"time"
)

// ErrOverrun: work was not done by its instant.
var ErrOverrun = errors.New("training was not done by privacy.submit_after")

// Worker does one piece of work at a time. One that overruns its instant is told to end, and keeps
// the next waiting until it has.
type Worker struct {
	busy chan struct{} // closed once the last work has ended; nil: there was none
}

// Do runs work and returns its error, or [ErrOverrun] at the instant, or ctx's error. The caller
// may read what work writes only where the error is nil.
func (w *Worker) Do(ctx context.Context, at time.Time, work func(ctx context.Context) error) error {
	ctx, cancel := context.WithDeadlineCause(ctx, at, ErrOverrun)
	if w.busy != nil {
		select {
		case <-w.busy:
		case <-ctx.Done():
			cancel()
			return context.Cause(ctx)
		}
	}
	busy, ended := make(chan struct{}), make(chan error, 1)
	w.busy = busy
	go func() {
		defer close(busy)
		ended <- work(ctx)
	}()
	defer cancel()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Wait waits until no work is under way.
func (w *Worker) Wait() {
	if w.busy != nil {
		<-w.busy
	}
}

// Sleep waits for an instant. It fails with ctx's error.
func Sleep(ctx context.Context, at time.Time) error {
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
