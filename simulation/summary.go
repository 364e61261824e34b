package simulation

import (
	"time"

	"github.com/hushsum/hushsum/learning"
	"github.com/hushsum/hushsum/masking"
)

// Cost is what a part of a run took. Bytes and the times of parties are of one
// party, the mean over all; the server's time is for all parties together.
type Cost struct {
	// BytesUp are the bytes of the party's messages to the server. BytesDown are
	// those of the server's messages to it, and the broadcast model, 8 bytes per
	// weight. What a transport adds is not counted.
	BytesUp, BytesDown int64

	// Train is local training. Client is the party's work for the private sum:
	// taking the server's message, encoding and masking; in set-up, making,
	// signing and checking keys. Server is the server's work: taking the parties'
	// messages, adding, and decoding the sum. All are 0 without a clock.
	Train, Client, Server time.Duration
}

func (c *Cost) add(d Cost) {
	c.BytesUp += d.BytesUp
	c.BytesDown += d.BytesDown
	c.Train += d.Train
	c.Client += d.Client
	c.Server += d.Server
}

// Round is the outcome of one round.
type Round struct {
	Round   int // from 1
	Clients int // parties in the sum
	Samples int // training rows behind it, as decoded from the sum

	// Private judges the model that came out of the private sum, on the test
	// rows; Clear the one from the same training in the clear.
	Private, Clear learning.Confusion
	// MaxAbsDiff is the largest difference between a weight of the one model and
	// the same weight of the other.
	MaxAbsDiff float64
	// LargestWeight is the largest magnitude of any party's weight: how far the
	// private sum was from saturation at Options.Range.
	LargestWeight float64

	Cost Cost
}

// Summary is the outcome of a run, as far as it went.
type Summary struct {
	Layout masking.Layout // of a submission: n_k·w_k, n_k
	Setup  Cost           // once: key exchange
	Rounds []Round        // those that were completed

	// Private and Clear are the last models; all zero before the first round is
	// completed.
	Private, Clear []float64
}

// Total returns the cost of all completed rounds together, set-up aside.
func (s *Summary) Total() Cost {
	var total Cost
	for i := range s.Rounds {
		total.add(s.Rounds[i].Cost)
	}
	return total
}
