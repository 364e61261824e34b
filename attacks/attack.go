package attacks

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"time"
)

// Attack is one attack of the catalogue.
type Attack struct {
	Name      string // such as SplitView
	Adversary string // who mounts it, such as "cheating server"
	About     string // what is tried, in one sentence
	Defence   string // what stops it
	Run       func(ctx context.Context, o Options) (*Report, error)
}

// Options of a run. The zero value is the quick form with made-up data.
type Options struct {
	// Seed of everything that is random in a run, but for keys and masks.
	Seed uint64
	// Data is the folder of the data sets, of which adult and digits are read; empty:
	// made-up rows in place of them.
	Data string
	// Long runs the long form: more repetitions, narrower intervals.
	Long bool
	// Now is the clock of attacks that measure time, such as time.Now; nil: their rows
	// are left out.
	Now func() time.Time
	// Progress, if not nil, is called now and then, never concurrently.
	Progress func(done, of int)
}

// Advance calls Progress, if there is one.
func (o Options) Advance(done, of int) {
	if o.Progress != nil {
		o.Progress(done, of)
	}
}

// Rand returns the random numbers of one part of a run.
func (o Options) Rand(part uint64) *rand.Rand {
	return rand.New(rand.NewPCG(o.Seed, part))
}

// Parallel calls trial for 0 to n−1 on all cores, each with random numbers of its
// own that depend on the seed, the part and the trial alone. It stops at the first
// error, or when ctx ends.
func (o Options) Parallel(ctx context.Context, part uint64, n int, trial func(i int, r *rand.Rand) error) error {
	workers := min(runtime.GOMAXPROCS(0), n)
	var group sync.WaitGroup
	errs := make([]error, workers)
	for w := range workers {
		group.Go(func() {
			for i := w; i < n; i += workers {
				if errs[w] = ctx.Err(); errs[w] != nil {
					return
				}
				r := rand.New(rand.NewPCG(o.Seed, part<<32|uint64(i)))
				if err := trial(i, r); err != nil {
					errs[w] = fmt.Errorf("trial %d: %w", i, err)
					return
				}
			}
		})
	}
	group.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// Report is what an attack found.
type Report struct {
	Rows    []Row
	Figures []Figure
}
