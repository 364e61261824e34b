package instant

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// A sleep ends at its instant, or with its context.
func TestSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := time.Now().Add(99 * time.Second)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := Sleep(ctx, at); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if err := Sleep(t.Context(), at); err != nil || time.Now() != at {
			t.Errorf("%v, %v from the instant", err, time.Since(at))
		}
	})
}
