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
	Paper string // whose table it is, in short: GMA, FedGA, clipping, FedLTN, thesis; "" for none
	Table string // which one there
	// Quick and Long are how long the two forms take on two idle cores, roughly.
	Quick, Long time.Duration
	// Seeds is how many seeds there are unless Options say otherwise; 0 if nothing
	// is drawn.
	Seeds int
	// Run makes the table. With an error, the context's included, it returns what was
	// done until then, see [Table.Any], or nil. Errors are ErrConfig, those of package
	// learning when it reads files, and those of simulation.Run.
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
	// Store keeps the outcome of each arm and seed, so that it is not run again; nil: none.
	Store Store

	made   source // tests only: rows that are made up, and the least work
	source source // tests only: rows in place of the data's
	// kept is for tests: what each row and seed has come to, in place of running it.
	kept func(labels []string, seed int) []float64
}

// MaxSeeds is the most seeds of a run.
const MaxSeeds = 100

// ErrConfig: an option is outside its range.
var ErrConfig = errors.New("experiments: unusable options")

// All returns the experiments in the order of their listing.
func All() []Experiment {
	minutes := func(m float64) time.Duration { return time.Duration(m * float64(time.Minute)) }
	all := []Experiment{
		{Name: "convex", About: "masked averaging of a convex model, MNIST, iid and label skew",
			Paper: "GMA, thesis", Table: "§3.5.4", Quick: minutes(4), Long: minutes(40), Seeds: 5,
			Run: convex},
		{Name: "fashion", About: "masked averaging of LeNet, Fashion-MNIST, 10 of 10 and of 100",
			Paper: "GMA", Table: "2; thesis 3.1", Quick: minutes(8), Long: minutes(6000), Seeds: 5,
			Run: fashion},
		{Name: "fashion-iid", About: "the same with rows dealt at random",
			Paper: "GMA", Table: "2; thesis 3.1", Quick: minutes(8), Long: minutes(6000), Seeds: 5,
			Run: fashionIID},
		{Name: "rules", About: "masked averaging with FedProx, SCAFFOLD, FedAdam, FedYogi, 10 of 10",
			Paper: "GMA", Table: "2; thesis 3.1", Quick: minutes(8), Long: minutes(1500), Seeds: 5,
			Run: otherRules},
		{Name: "thresholds", About: "the mask's threshold, 10 of 10",
			Paper: "GMA, thesis", Table: "ablations", Quick: minutes(2), Long: minutes(600), Seeds: 5,
			Run: thresholds},
		{Name: "writers", About: "masked averaging over 539 writers, tested on unseen ones",
			Paper: "GMA", Table: "3, FEMNIST", Quick: minutes(6), Long: minutes(600), Seeds: 5,
			Run: writers},
		{Name: "features", About: "colour or angle that goes with the label in training only",
			Paper: "GMA", Table: "3; thesis 3.2", Quick: minutes(8), Long: minutes(2400), Seeds: 5,
			Run: features},
		{Name: "features-loose", About: "colours by the label in some images",
			Paper: "GMA", Table: "3; thesis 3.2", Quick: minutes(8), Long: minutes(1500), Seeds: 5,
			Run: looseFeatures},
		{Name: "rates", About: "plain and masked averaging over server and local rates",
			Paper: "GMA, thesis", Table: "rate grid", Quick: minutes(6), Long: minutes(2000), Seeds: 5,
			Run: rates},
		{Name: "ablations", About: "clients, local epochs, momentum, skew, who took part; masks",
			Paper: "GMA, thesis", Table: "ablations", Quick: minutes(8), Long: minutes(2400), Seeds: 5,
			Run: ablations},
		{Name: "alignment", About: "FedGA with one class a client: equal updates and equal exchanges",
			Paper: "FedGA", Table: "EMNIST, one class", Quick: minutes(3), Long: minutes(600), Seeds: 5,
			Run: alignment},
		{Name: "alignment-iid", About: "the same with rows dealt at random",
			Paper: "FedGA", Table: "EMNIST, iid", Quick: minutes(3), Long: minutes(600), Seeds: 5,
			Run: alignmentIID},
		{Name: "alignment-steps", About: "FedGA with one step on a large batch, rows dealt at random",
			Paper: "FedGA", Table: "large batches", Quick: minutes(6), Long: minutes(600), Seeds: 5,
			Run: alignmentSteps},
		{Name: "clipping", About: "what clipping and client-level noise cost a network",
			Paper: "clipping", Table: "3, MLP", Quick: minutes(6), Long: minutes(400), Seeds: 5,
			Run: clipping},
		{Name: "clipping-many", About: "the same with the paper's 1,920 parties, 80 in a round",
			Paper: "clipping", Table: "3, MLP", Quick: minutes(8), Long: minutes(800), Seeds: 5,
			Run: manyClipped},
		{Name: "tickets", About: "FedLTN, FedBN, LotteryFL, Jump-Start, under private sums too",
			Paper: "FedLTN, thesis", Table: "ch. 4", Quick: minutes(8), Long: minutes(1500), Seeds: 5,
			Run: tickets},
		{Name: "tickets-many", About: "FedLTN and what it is compared with, 100 parties, 5 in a round",
			Paper: "FedLTN, thesis", Table: "ch. 4", Quick: minutes(9), Long: minutes(1500), Seeds: 5,
			Run: manyTickets},
		{Name: "tickets-dirichlet", About: "the same with classes by a Dirichlet law",
			Paper: "FedLTN, thesis", Table: "ch. 4", Quick: minutes(9), Long: minutes(1500), Seeds: 5,
			Run: unevenTickets},
		{Name: "privacy", About: "private against clear: equal to rounding; the cost of epsilon",
			Quick: minutes(3), Long: minutes(15), Seeds: 3, Run: privateSums},
		{Name: "poisoning", About: "parties that cheat: without a bound, a clipped sum, proofs of norms",
			Quick: minutes(8), Long: minutes(400), Seeds: 5, Run: poisoning},
		{Name: "poisoning-groups", About: "parties that cheat within their proofs, and medians of groups",
			Quick: minutes(20), Long: minutes(1000), Seeds: 10, Run: poisoningGroups},
		{Name: "noise", About: "noise multipliers by the clipping paper's theorem, RDP and PLD",
			Paper: "clipping", Table: "theorem 3.2", Quick: 5 * time.Second, Long: 15 * time.Second,
			Run: noise},
	}
	for i, e := range all {
		all[i].Run = func(ctx context.Context, o Options) (*Table, error) {
			if o.Seeds == 0 {
				o.Seeds = e.Seeds
			}
			if o.Seeds < min(1, e.Seeds) || o.Seeds > MaxSeeds {
				return nil, fmt.Errorf("%w: %d seeds, want 1 to %d", ErrConfig, o.Seeds, MaxSeeds)
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
