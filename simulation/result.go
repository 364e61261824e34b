package simulation

import (
	"slices"
	"time"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/learning"
	"github.com/hushsum/hushsum/masking"
)

// Cost states what a part of a run took. Bytes and the times of parties are of one party, the mean
// over all of the round, drop-outs included; the server's time is for all parties together. All
// figures but Train are for sums by message only.
type Cost struct {
	// BytesUp are the bytes of the party's messages to the server. BytesDown are the bytes of the
	// server's messages to the party, and of the broadcast model, 8 bytes per weight. Bytes that a
	// transport adds are not counted.
	BytesUp, BytesDown int64

	// Train is local training. Client is the party's work for the private sum: taking the server's
	// messages, encoding and masking, and with recovery sealing, opening and revealing shares and
	// signing and checking the list of survivors; in set-up, making, signing and checking keys.
	// Server is the server's work: taking the parties' messages, adding, unmasking and decoding the
	// sum. All are 0 without a clock.
	Train, Client, Server time.Duration
}

func (c *Cost) add(d Cost) {
	c.BytesUp += d.BytesUp
	c.BytesDown += d.BytesDown
	c.Train += d.Train
	c.Client += d.Client
	c.Server += d.Server
}

// perParty turns sums over all parties into means.
func (c Cost) perParty(n int) Cost {
	c.BytesUp /= int64(n)
	c.BytesDown /= int64(n)
	c.Train /= time.Duration(n)
	c.Client /= time.Duration(n)
	return c
}

// RoundResult is the outcome of one round.
type RoundResult struct {
	Round    int   // from 1
	Parties  int   // in the sum, 0 if the round is lost
	Included []int // which they are
	Samples  int   // rows behind the sum: as it says itself, or as the parties have them
	// Dropped is how many parties dropped out. Parties that dropped out after they submitted are
	// still in the sum.
	Dropped int
	// Refused is how many parties were refused for cheating: see world.malicious.
	Refused int
	// Lost is nil, or why there is no sum: too few parties were left to unmask one
	// (protocol.ErrTooFew with the particulars), or too few were drawn. The models are
	// then those of the round before.
	Lost error

	// Test judges the model, and Clear the model of the same training in the clear, in the rounds
	// that world.evaluate_every says; in other rounds both are nil. Clear is also nil with
	// world.skip_clear.
	Test, Clear *learning.Matrix
	// MaxAbsDiff is the largest difference between a weight of the model and the same weight of the
	// model in the clear, 0 with world.skip_clear.
	MaxAbsDiff float64

	// Effects of training and clipping, over the parties in the sum: the norms of their updates (with
	// ModelClip, of their weights) before clipping, the share that was clipped, the norm in force,
	// and the cosine of updates and the last step of the model, a mean, 0 in the first round. Left
	// and Spread are ᾱ and the mean of |α_i − ᾱ| of aggregation.ClipSpread; 1 and 0 without clipping.
	// Largest is the largest magnitude of a coordinate that any party submitted: how far the sum was
	// from saturation at sum.range, which sums with noise do not use. An experimenter sees all these
	// figures, and nothing protects them.
	MeanNorm, MaxNorm float64
	Clipped           float64
	ClipNorm          float64
	Cosine            float64
	Norms, Cosines    []float64 // of each party of Included
	Left, Spread      float64
	Largest           float64
	// Masked is the mean factor of the gradient mask, 1 without a mask, and Disagreed the share of
	// coordinates whose factor is below 1.
	Masked, Disagreed float64
	// Model is the model after the round. Only the results that report receives have it: a Result
	// does not keep a model of every round.
	Model []float64
	// Exchanges is how many sums the round took: two for FedGA and fresh variates.
	Exchanges int

	// Server and Public report what the rounds until now, this one included, have
	// spent of every party's privacy, against the two adversaries, at privacy.delta.
	// Without noise there is no bound: Upper is +Inf. A lost round counts.
	Server, Public accounting.Claim

	Cost Cost
}

// Result is the outcome of a run, as far as it went.
type Result struct {
	Layout masking.Layout // of a submission, nil for sums in the clear
	Setup  Cost           // of sums by message, once: key exchange and, with recovery, first material
	Rounds []RoundResult  // those that ended, lost ones among them

	// Model is the last model, and Clear the last model of the training in the clear, nil with
	// world.skip_clear. Until a round has a sum they are the first models.
	Model, Clear []float64

	// Committee reports the members' work, of one-message sums.
	Committee Committee

	// Stopped is nil, or why the run ended before all rounds: the next round would have taken every
	// party over its budget.
	Stopped *accounting.OverBudget
	// Server and Public report what all rounds that began have spent, including a round that failed;
	// +Inf without noise.
	Server, Public accounting.Claim
}

// Final returns the last round in which the model was judged, nil if there was none.
func (r *Result) Final() *RoundResult {
	for i := range slices.Backward(r.Rounds) {
		if r.Rounds[i].Test != nil {
			return &r.Rounds[i]
		}
	}
	return nil
}

// Lost returns how many rounds were lost.
func (r *Result) Lost() int {
	lost := 0
	for i := range r.Rounds {
		if r.Rounds[i].Lost != nil {
			lost++
		}
	}
	return lost
}

// Total returns the cost of all rounds together, set-up aside.
func (r *Result) Total() Cost {
	var total Cost
	for i := range r.Rounds {
		total.add(r.Rounds[i].Cost)
	}
	return total
}
