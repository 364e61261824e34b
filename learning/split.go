package learning

import (
	"math"
	"math/rand/v2"

	"github.com/hushsum/hushsum/internal/fault"
)

// Streams keep what different functions draw apart when a caller passes one seed
// to all of them.
const (
	streamSplit uint64 = iota + 1
	streamPartition
	streamCensus
	streamInit
	streamSGD
	streamParties
	streamKDD
)

// Split shuffles the rows by seed and cuts them into a training and a test set.
// The test set gets testFraction of the rows, in (0, 1), rounded to the nearest
// count; both sets must end up with at least one row (ErrTooFewRows). The same
// data set, fraction and seed always give the same split.
func (d *Dataset) Split(testFraction float64, seed uint64) (train, test *Dataset, err error) {
	if err := d.checkShape(); err != nil {
		return nil, nil, err
	}
	if !(testFraction > 0 && testFraction < 1) {
		return nil, nil, fault.New(ErrValue, "", "test fraction %v, want one inside (0, 1)", testFraction)
	}
	n := d.Len()
	nTest := int(math.Round(testFraction * float64(n)))
	if nTest < 1 || nTest >= n {
		return nil, nil, fault.New(ErrTooFewRows, "use more rows or another fraction",
			"%d rows cannot be split with test fraction %v", n, testFraction)
	}
	perm := rand.New(rand.NewPCG(seed, streamSplit)).Perm(n)
	return d.gather(perm[nTest:]), d.gather(perm[:nTest]), nil
}

// PartitionIID deals rows to clients parties, rowsPerClient each, uniformly at
// random by seed and without overlap; rows left over belong to nobody. It
// returns ErrTooFewRows when the data set has fewer than
// clients × rowsPerClient rows, and ErrValue unless both counts are positive.
func (d *Dataset) PartitionIID(clients, rowsPerClient int, seed uint64) ([]*Dataset, error) {
	if err := d.checkShape(); err != nil {
		return nil, err
	}
	if clients < 1 || rowsPerClient < 1 {
		return nil, fault.New(ErrValue, "",
			"%d clients with %d rows each, want at least 1 of both", clients, rowsPerClient)
	}
	n := d.Len()
	// clients*rowsPerClient could overflow; the quotient cannot.
	if rowsPerClient > n/clients {
		return nil, fault.New(ErrTooFewRows, "",
			"%d clients with %d rows each do not fit in %d rows; at most %d clients with %d rows, or %d "+
				"rows each",
			clients, rowsPerClient, n, n/rowsPerClient, rowsPerClient, n/clients)
	}
	perm := rand.New(rand.NewPCG(seed, streamPartition)).Perm(n)
	parts := make([]*Dataset, clients)
	for c := range parts {
		parts[c] = d.gather(perm[c*rowsPerClient : (c+1)*rowsPerClient])
	}
	return parts, nil
}
