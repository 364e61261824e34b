// Package cores runs work on all cores.
package cores

import (
	"context"
	"runtime"
	"sync"
)

// Each calls work for 0 to n − 1, in order but several at a time, and done
// after each, never concurrently. It returns the context's error if that ended
// before all were begun, else the error of the smallest index that failed, which
// does not depend on the number of cores: indices are handed out in order, so
// that all smaller ones were begun too.
func Each(ctx context.Context, n int, work func(i int) error, done func(finished int)) error {
	var (
		mu       sync.Mutex
		next     int
		finished int
		failed   = -1
		failure  error
		wg       sync.WaitGroup
	)
	take := func() (int, bool) {
		mu.Lock()
		defer mu.Unlock()
		if next == n || failed >= 0 || ctx.Err() != nil {
			return 0, false
		}
		next++
		return next - 1, true
	}
	finish := func(i int, err error) {
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			if failed < 0 || i < failed {
				failed, failure = i, err
			}
			return
		}
		finished++
		if done != nil {
			done(finished)
		}
	}
	for range min(n, runtime.GOMAXPROCS(0)) {
		wg.Go(func() {
			for i, ok := take(); ok; i, ok = take() {
				finish(i, work(i))
			}
		})
	}
	wg.Wait()
	if failure != nil {
		return failure
	}
	if finished < n {
		return ctx.Err()
	}
	return nil
}
