package simulation

import (
	"time"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/learning"
	"github.com/hushsum/hushsum/masking"
)

// Cost is what a part of a run took. Bytes and the times of parties are of one
// party, the mean over all of the round, drop-outs included; the server's time is for all
// parties together.
type Cost struct {
	// BytesUp are the bytes of the party's messages to the server. BytesDown are
	// those of the server's messages to it, and the broadcast model, 8 bytes per
	// weight. What a transport adds is not counted.
	BytesUp, BytesDown int64

	// Train is local training. Client is the party's work for the private sum:
	// taking the server's messages, encoding and masking, and with recovery sealing,
	// opening and revealing shares and signing and checking who the survivors are; in
	// set-up, making, signing and checking keys. Server is the server's work: taking
	// the parties' messages, adding, unmasking and decoding the sum. All are 0
	// without a clock.
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
	Clients int // parties in the sum, 0 if the round is lost
	Samples int // training rows behind it, as decoded from the sum or, with noise, as dealt
	// Dropped is how many parties dropped out. Those that did after they submitted
	// are in the sum all the same.
	Dropped int
	// Lost is nil, or protocol.ErrTooFew with the particulars: too few parties were
	// left to unmask the sum. The models are then those of the round before.
	Lost error

	// Private judges the model that came out of the private sum, on the test
	// rows; Clear the one from the same training in the clear.
	Private, Clear learning.Confusion
	// MaxAbsDiff is the largest difference between a weight of the one model and
	// the same weight of the other.
	MaxAbsDiff float64
	// LargestWeight is the largest magnitude of any party's weight: how far the
	// private sum was from saturation at Options.Range, which noise has no use for.
	LargestWeight float64

	// Server and Public are what the rounds until now, this one included, have
	// spent of every party's privacy, against the two adversaries, at Noise.Delta.
	// Without noise there is no bound: Upper is +Inf. A lost round counts.
	Server, Public accounting.Spent

	Cost Cost
}

// Summary is the outcome of a run, as far as it went.
type Summary struct {
	Layout masking.Layout // of a submission: n_k·w_k, n_k; with noise the encoded update
	Setup  Cost           // once: key exchange and, with recovery, first material
	Rounds []Round        // those that ended, lost ones among them

	// Committee is what the members did, with Options.Oneshot.
	Committee Committee

	// Stopped is nil, or why the run ended before all rounds: the next one would
	// have taken every party over Noise.Epsilon.
	Stopped *accounting.OverBudget

	// Private and Clear are the last models; all zero until a round has a sum.
	Private, Clear []float64

	// Server and Public are what all rounds that began have spent, also one that
	// failed; +Inf without noise.
	Server, Public accounting.Spent
}

// Lost returns how many rounds were lost.
func (s *Summary) Lost() int {
	lost := 0
	for i := range s.Rounds {
		if s.Rounds[i].Lost != nil {
			lost++
		}
	}
	return lost
}

// Total returns the cost of all rounds together, set-up aside.
func (s *Summary) Total() Cost {
	var total Cost
	for i := range s.Rounds {
		total.add(s.Rounds[i].Cost)
	}
	return total
}
