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
	// DataSets are the folders in Options.Data that it reads, such as adult. Without
	// Options.Data it makes up rows in place of them.
	DataSets []string
	// Run runs the attack against all its targets.
	Run func(ctx context.Context, o Options) (*Report, error)
}

// Options of a run. The zero value is the quick form with made-up data.
type Options struct {
	// Seed seeds everything that is random in a run, except keys and masks.
	Seed uint64
	// Data is the folder of the data sets; empty: attacks that read any make up rows.
	Data string
	// Long selects the long form: more repetitions, narrower intervals.
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

// Rand returns random numbers that depend on the seed and the part of a run alone. They
// protect nothing.
func (o Options) Rand(part uint64) *rand.Rand {
	return rand.New(rand.NewPCG(o.Seed, part))
}

// Parallel calls trial with i from 0 to n−1 on all cores, each time with random numbers
// that depend on the seed, the part and i alone. It stops at the first error, or when ctx
// ends.
func (o Options) Parallel(
	ctx context.Context, part uint64, n int, trial func(i int, r *rand.Rand) error,
) error {
	workers := min(runtime.GOMAXPROCS(0), n)
	var group sync.WaitGroup
	errs := make([]error, workers)
	for worker := range workers {
		group.Go(func() {
			for i := worker; i < n; i += workers {
				if errs[worker] = ctx.Err(); errs[worker] != nil {
					return
				}
				if err := trial(i, o.Rand(part<<32|uint64(i))); err != nil {
					errs[worker] = fmt.Errorf("trial %d: %w", i, err)
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

// Report holds the findings of an attack.
type Report struct {
	Rows    []Row
	Figures []Figure
}
