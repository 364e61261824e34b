package learning

import (
	"math/rand/v2"
	"slices"

	"github.com/hushsum/hushsum/internal/fault"
)

// Personal is one client's share of a data set for personalised models: rows to train
// on, rows to choose by, and rows of the test set of the same kind.
type Personal struct{ Train, Validation, Test *Dataset }

// PersonalOptions says how PartitionPersonal deals rows.
type PersonalOptions struct {
	Clients int // at least 1
	// Train, Validation and Test are a client's rows of each; 0: 50, 50 and 200.
	Train, Validation, Test int
	// Classes is how many classes a client has, in equal parts; 0: 2.
	Classes int
	// Concentration, if not 0, lets each client draw its proportions of all classes from a
	// symmetric Dirichlet law instead, in [0.001, 1e6].
	Concentration float64
	Seed          uint64
}

// PartitionPersonal deals few rows of few classes to each client, as in chapter 4 of
// the thesis: two classes with 25 training and 25 validation rows each, and 200 test
// rows of those classes. (The thesis has "25 validation rows" next to 25 training rows
// per class; here they are per class too.) The classes go round in random order,
// reshuffled when all have been dealt. No two clients share a row of the training
// set; those of the test set may be shared. It fails with ErrValue for options out of
// range, ErrShape for malformed data, and ErrTooFewRows when a class runs out.
func PartitionPersonal(train, test *Dataset, o PersonalOptions) ([]Personal, error) {
	for _, d := range []*Dataset{train, test} {
		if err := d.checkShape(); err != nil {
			return nil, err
		}
	}
	for _, p := range []struct {
		n      *int
		preset int
	}{{&o.Train, 50}, {&o.Validation, 50}, {&o.Test, 200}, {&o.Classes, 2}} {
		if *p.n == 0 {
			*p.n = p.preset
		}
		if *p.n < 1 {
			return nil, fault.New(ErrValue, "", "%d rows or classes, want at least 1", *p.n)
		}
	}
	switch {
	case o.Clients < 1:
		return nil, fault.New(ErrValue, "", "%d clients, want at least 1", o.Clients)
	case o.Concentration != 0 && !(o.Concentration >= 1e-3 && o.Concentration <= 1e6):
		return nil, fault.New(ErrValue, "", "concentration %v, want one in 0.001..1e6", o.Concentration)
	}
	rng := rand.New(rand.NewPCG(o.Seed, streamParties))
	rows, unseen := labelled(train, rng), labelled(test, rng)
	labels := make([]int, 0, len(rows))
	for y := range rows {
		labels = append(labels, y)
	}
	slices.Sort(labels)
	if o.Concentration == 0 && o.Classes > len(labels) {
		return nil, fault.New(ErrValue, "", "%d classes for a client, of %d", o.Classes, len(labels))
	}
	clients := make([]Personal, o.Clients)
	var round []int
	for c := range clients {
		share := make([]float64, len(labels)) // of each class in the client's rows
		if o.Concentration != 0 {
			share = dirichlet(len(labels), o.Concentration, rng)
		} else {
			for range o.Classes {
				k := slices.IndexFunc(round, func(k int) bool { return share[k] == 0 })
				if k < 0 {
					round = append(round, rng.Perm(len(labels))...)
					k = slices.IndexFunc(round, func(k int) bool { return share[k] == 0 })
				}
				share[round[k]] = 1 / float64(o.Classes)
				round = slices.Delete(round, k, k+1)
			}
		}
		for _, part := range []struct {
			into   **Dataset
			from   *Dataset
			rows   map[int][]int
			n      int
			shared bool
		}{
			{&clients[c].Train, train, rows, o.Train, false},
			{&clients[c].Validation, train, rows, o.Validation, false},
			{&clients[c].Test, test, unseen, o.Test, true},
		} {
			var mine []int
			for k, n := range apportion(part.n, share) {
				left := part.rows[labels[k]]
				if n > len(left) {
					return nil, fault.New(ErrTooFewRows, "",
						"client %d needs %d rows of label %d, and %d are left",
						c, n, labels[k], len(left))
				}
				if part.shared {
					rng.Shuffle(len(left), func(i, j int) { left[i], left[j] = left[j], left[i] })
				} else {
					part.rows[labels[k]] = left[n:]
				}
				mine = append(mine, left[:n]...)
			}
			rng.Shuffle(len(mine), func(i, j int) { mine[i], mine[j] = mine[j], mine[i] })
			*part.into = part.from.gather(mine)
		}
	}
	return clients, nil
}

// labelled returns the rows of every label in random order.
func labelled(d *Dataset, rng *rand.Rand) map[int][]int {
	rows := map[int][]int{}
	for _, i := range rng.Perm(d.Len()) {
		rows[d.Labels[i]] = append(rows[d.Labels[i]], i)
	}
	return rows
}

// apportion cuts n into whole parts in the given proportions, which sum to 1.
func apportion(n int, share []float64) []int {
	rows := make([]int, n)
	parts := make([]int, len(share))
	for k, part := range cutBy(rows, share) {
		parts[k] = len(part)
	}
	return parts
}
