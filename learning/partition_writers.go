package learning

import (
	"math/rand/v2"
	"slices"

	"github.com/hushsum/hushsum/internal/fault"
)

func dealWriters(d *Dataset, o PartitionOptions, rng *rand.Rand) ([][]int, error) {
	if d.Writers == nil {
		return nil, fault.New(ErrValue, "read it with ReadMNISTWriters",
			"the data set does not name its writers")
	}
	rows := map[int][]int{}
	var writers []int
	for i, who := range d.Writers {
		if rows[who] == nil {
			writers = append(writers, who)
		}
		rows[who] = append(rows[who], i)
	}
	slices.Sort(writers)
	if o.Clients > len(writers) {
		return nil, fault.New(ErrTooFewRows, "", "%d clients and %d writers", o.Clients, len(writers))
	}
	if o.Clients > 0 && o.Clients < len(writers) {
		rng.Shuffle(len(writers), func(i, j int) { writers[i], writers[j] = writers[j], writers[i] })
		writers = writers[:o.Clients]
		slices.Sort(writers)
	}
	lists := make([][]int, len(writers))
	for c, who := range writers {
		lists[c] = rows[who]
	}
	return lists, nil
}

// checkWriters makes sure that no client holds a writer of the test set.
func checkWriters(
	clients []*Dataset, test *Dataset, _ PartitionOptions, _ *rand.Rand,
) (*Dataset, error) {
	if test == nil {
		return nil, nil
	}
	if test.Writers == nil {
		return nil, fault.New(ErrValue, "read it with ReadMNISTWriters",
			"the test set does not name its writers")
	}
	held := map[int]bool{}
	for _, d := range clients {
		held[d.Writers[0]] = true
	}
	for i, who := range test.Writers {
		if held[who] {
			return nil, fault.New(ErrValue, "",
				"row %d of the test set is by a writer that a client holds", i)
		}
	}
	return test, nil
}
