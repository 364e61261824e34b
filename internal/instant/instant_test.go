package instant

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// What is done in time is done; what is not is told to end at the instant, and the next waits for
// it, up to its own instant.
func TestWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w Worker
		w.Wait()
		began := time.Now()
		at := func(seconds int) time.Time { return began.Add(time.Duration(seconds) * time.Second) }
		done := func(context.Context) error { return nil }
		if err := w.Do(t.Context(), at(9), done); err != nil || time.Now() != began {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		var told error
		stubborn := func(ctx context.Context) error {
			<-ctx.Done()
			told = context.Cause(ctx)
			time.Sleep(15 * time.Second)
			return nil
		}
		if err := w.Do(t.Context(), at(10), stubborn); !errors.Is(err, ErrOverrun) ||
			time.Now() != at(10) {
			t.Errorf("%v at %v", err, time.Since(began))
		}
		if err := w.Do(t.Context(), at(20), done); !errors.Is(err, ErrOverrun) || time.Now() != at(20) {
			t.Errorf("the next: %v at %v", err, time.Since(began))
		}
		if err := w.Do(t.Context(), at(30), done); err != nil || time.Now() != at(25) {
			t.Errorf("once it has ended: %v at %v", err, time.Since(began))
		}
		if w.Wait(); !errors.Is(told, ErrOverrun) {
			t.Errorf("it was told %v", told)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := w.Do(ctx, at(40), stubborn); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		w.Wait()
		if err := Sleep(ctx, at(99)); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if err := Sleep(t.Context(), at(99)); err != nil || time.Now() != at(99) {
			t.Errorf("%v at %v", err, time.Since(began))
		}
	})
}
