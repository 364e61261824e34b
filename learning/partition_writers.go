package learning

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

func dealWriters(d *Dataset, o PartitionOptions, rng *rand.Rand) ([][]int, error) {
	if d.Writers == nil {
		return nil, fmt.Errorf("%w: the data set does not name its writers; read it with ReadMNISTWriters", ErrValue)
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
		return nil, fmt.Errorf("%w: %d clients and %d writers", ErrTooFewRows, o.Clients, len(writers))
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
func checkWriters(clients []*Dataset, test *Dataset) (*Dataset, error) {
	if test == nil {
		return nil, nil
	}
	if test.Writers == nil {
		return nil, fmt.Errorf("%w: the test set does not name its writers; read it with ReadMNISTWriters", ErrValue)
	}
	held := map[int]bool{}
	for _, d := range clients {
		held[d.Writers[0]] = true
	}
	for i, who := range test.Writers {
		if held[who] {
			return nil, fmt.Errorf("%w: row %d of the test set is by a writer whom a client holds", ErrValue, i)
		}
	}
	return test, nil
}
