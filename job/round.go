package job

import "github.com/hushsum/hushsum/masking"

// Round is a round that gave a sum.
type Round struct {
	Number  uint64 // in the job, from 1
	Parties []int  // whose vectors are in the sum, by roster index
	// Mean is the mean of the parties' vectors, with noise; nil if the job trains its model itself,
	// because submissions then have more than a vector: see training.Apply.
	Mean   []float64
	Mean32 []float32       // the same, in place of Mean, of a coordinator with Model32 or Apply32
	Sum    *masking.Vector // of their submissions, in the ring; it is only read
	// Broadcast is the digest of the round's broadcast, for decoding Sum.
	Broadcast [32]byte
}
