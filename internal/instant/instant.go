// Package instant waits for instants, at which submissions leave whatever was done by then.
package instant

import (
	"context"
	"errors"
	"time"
)

// ErrOverrun: work was not done by its instant.
var ErrOverrun = errors.New("training was not done by privacy.submit_after")

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
