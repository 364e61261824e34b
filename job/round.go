package job

import (
	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/masking"
)

// Round holds what a round begins with, at a party. F is how the party's program holds numbers: see
// [Update].
type Round[F aggregation.Float] struct {
	Number uint64 // in the job, from 1
	Model  []F    // of ModelLength numbers
}

// Done is a round that is over, at the coordinator.
type Done[F aggregation.Float] struct {
	Number  uint64 // in the job, from 1
	Parties []int  // whose vectors are in the sum, by roster index
	Lost    int    // rounds until now without a sum
	// Mean is the mean of the parties' vectors, with noise; nil if the job trains its model itself,
	// because submissions then have more than a vector: see training.Apply.
	Mean []F
	// Model has the weights that the round began with, and for a Coordinator's Round those that follow
	// from the sum.
	Model  []F
	Metric *Metric         // means of what parties measured; nil without metrics.share
	Sum    *masking.Vector // of the submissions, in the ring; it is only read
	// Broadcast is the digest of the round's broadcast, for decoding Sum.
	Broadcast [32]byte
	// Spent bounds what the parties have spent by then, for a Coordinator's Round; nil without noise,
	// and for Apply.
	Spent *accounting.Claim
}
