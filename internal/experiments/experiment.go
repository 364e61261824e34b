package experiments

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Experiment is a table that can be rerun.
type Experiment struct {
	Name  string
	About string // one line, without a full stop
	// Quick and Long are how long the two forms take on two idle cores, roughly.
	Quick, Long time.Duration
	// Seeds is how many seeds there are unless Options say otherwise; 0 if nothing
	// is drawn.
	Seeds int
	// Run makes the table. With an error, the context's included, it returns what was
	// done until then, see [Table.Any], or nil. Errors are ErrOptions, those of package
	// learning when it reads files, and those of simulation.Train.
	Run func(ctx context.Context, o Options) (*Table, error)
}

// Options says how to run an experiment.
type Options struct {
	// Data is the folder that holds those of the data sets: adult, fashion-mnist,
	// mnist, qmnist-writers.
	Data string
	// Long runs the fuller form: more rows, rounds or arms.
	Long bool
	// Seeds is how many seeds to run, from 1 to MaxSeeds; 0: the experiment's own
	// number.
	Seeds int
	// Progress, if not nil, is told how much of the work is done, in steps whose
	// number the experiment chooses. It is never called concurrently.
	Progress func(done, of int)

	made source // tests only: rows that are made up, and the least work
}

// MaxSeeds is the most seeds of a run.
const MaxSeeds = 100

// ErrOptions: an option is outside its range.
var ErrOptions = errors.New("experiments: unusable options")

// All returns the experiments in the order of their listing.
func All() []Experiment {
	minutes := func(m float64) time.Duration { return time.Duration(m * float64(time.Minute)) }
	all := []Experiment{
		{Name: "convex", About: "masked averaging of a convex model, MNIST, iid and label skew",
			Quick: minutes(1.5), Long: minutes(5), Seeds: 4, Run: convex},
		{Name: "fashion", About: "masked averaging of a network, Fashion-MNIST, label skew",
			Quick: minutes(5), Long: minutes(80), Seeds: 4, Run: fashion},
		{Name: "writers", About: "masked averaging over 539 writers, tested on unseen ones",
			Quick: minutes(1.5), Long: minutes(8), Seeds: 4, Run: writers},
		{Name: "clipping", About: "what clipping and client-level noise cost a network",
			Quick: minutes(6), Long: minutes(260), Seeds: 4, Run: clipping},
		{Name: "privacy", About: "private against clear: equal to rounding; the cost of epsilon",
			Quick: minutes(3), Long: minutes(15), Seeds: 3, Run: privacy},
		{Name: "noise", About: "noise multipliers by the clipping paper's theorem, RDP and PLD",
			Quick: 5 * time.Second, Long: 15 * time.Second, Run: noise},
		{Name: "alignment", About: "FedAvg, FedProx, SCAFFOLD and FedGA under label skew",
			Quick: minutes(5), Long: minutes(60), Seeds: 4, Run: alignment},
	}
	for i, e := range all {
		all[i].Run = func(ctx context.Context, o Options) (*Table, error) {
			if o.Seeds == 0 {
				o.Seeds = e.Seeds
			}
			if o.Seeds < min(1, e.Seeds) || o.Seeds > MaxSeeds {
				return nil, fmt.Errorf("%w: %d seeds, want 1 to %d", ErrOptions, o.Seeds, MaxSeeds)
			}
			t, err := e.Run(ctx, o)
			if t != nil {
				t.Name = e.Name
			}
			return t, err
		}
	}
	return all
}

// pick returns what the form that runs is to use.
func pick[T any](o Options, quick, long, made T) T {
	switch {
	case o.made != nil:
		return made
	case o.Long:
		return long
	}
	return quick
}
