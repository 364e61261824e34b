package simulation

import (
	"math"
	"slices"
	"time"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/learning"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/simulation/crowd"
)

// Cost states what a part of a run took. Bytes and the times of parties are of one party, the mean
// over all of the round, drop-outs included; the server's time is for all parties together. All
// figures but Train are for sums by message only. In virtual time Cost has bytes, and a PartyRound
// the times.
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

	// Began and Took are in virtual time, 0 in a world without: when the round began, after a set-up
	// before it, and how long it was until the last party that was there had the new model.
	Began, Took time.Duration
	Each        []PartyRound // what each party that was there had of it; without time see Result.Seen
	Gone        []string     // who left for good after it
	Received    int          // bytes, by servers
	// Of one-message sums in virtual time:
	Steps   []Step        // in their order
	Waited  []string      // the parties and members that it waited for, some hundred at most
	Members []MemberRound // of the committee

	// Server and Public report what the rounds until now, this one included, have
	// spent of every party's privacy, against the two adversaries, at privacy.delta.
	// Without noise there is no bound: Upper is +Inf. A lost round counts.
	Server, Public accounting.Claim

	Cost Cost
}

// Accuracy returns the accuracy of the model, NaN in a round in which it was not judged.
func (r *RoundResult) Accuracy() float64 {
	if r.Test == nil {
		return math.NaN()
	}
	return r.Test.Accuracy()
}

// Step is a part of a round.
type Step struct {
	Name string
	Took time.Duration
}

// MemberRound reports what a member of the committee did in a round.
type MemberRound struct {
	Member, Place string
	Work          time.Duration
	Sent, Got     int // bytes
}

// PartyRound reports what one party had of a round: in virtual time what it saw, and without time
// what parties had in the mean.
type PartyRound struct {
	Party, Place string
	Rows         int           // that it trained on
	Took         time.Duration // from the round's beginning until it had the new model
	Received     bool          // it has it
	Included     bool          // in the sum
	Stale        int           // with sum.buffer, how many rounds before that was begun
	Left         bool          // for good, after this round
	Accuracy     float64       // of the model that it holds; of a crowd, of the federated one
	MCC          float64
	Local        float64 // accuracy of what it trained in this round
	// Alone judges a model that it trained on its own rows only, in all its rounds; 0 in crowds and
	// among more than MostCompared parties, which are not looked at one by one. Without time
	// [Alone] judges such models.
	Alone     float64
	Work      time.Duration
	Sent, Got int // bytes
}

// SetUp is an exchange of keys in virtual time.
type SetUp struct {
	Round   int // before which it was
	Parties int
	Took    time.Duration // virtual, during the rounds; until its last message had arrived
	Bytes   int           // that parties sent and received
}

// Promise states what protects one party against the server and colluders.
type Promise struct {
	Party string
	// Asked is the ε that the party asked for; of a reference law it is the claim of
	// its formula, of one release.
	Asked float64
	// Certified bounds what all rounds spend, for the whole vector, or does not where a party leaves
	// by what its rows are.
	Certified accounting.Claim
	Honest    int // parties whose noise protects it, itself among them
}

// Result is the outcome of a run, as far as it went.
type Result struct {
	Job     *job.Job       `json:"-"` // with its defaults
	Weights int            // of the model
	Layout  masking.Layout // of a submission, nil for sums in the clear
	Setup   Cost           // of sums by message, once: key exchange and, with recovery, first material
	Rounds  []RoundResult  // those that ended, lost ones among them

	// Model is the last model, and Clear the last model of the training in the clear, nil with
	// world.skip_clear. Until a round has a sum they are the first models.
	Model, Clear []float64

	// Committee reports the members' work, of one-message sums.
	Committee Committee

	// Stopped is nil, or why the run ended before all rounds: the next round would have taken every
	// party over its budget.
	Stopped *accounting.OverBudget
	// Server and Public report what all rounds that began have spent, including a round that failed;
	// +Inf without noise. In virtual time, where parties are unlike each other, Privacy alone does.
	Server, Public accounting.Claim
	Privacy        []Promise // of each party that is unlike others; empty without noise

	SetUps []SetUp       // in virtual time
	Pairs  *crowd.Counts // of a crowd: what was done once
	Notes  []string
	Took   time.Duration // by the simulation itself, if it has a clock

	rows []int // of each party, without time
}

// Seen returns what each party had of a round, which is given by its place in Rounds. Without time
// costs are means, and nothing is kept of each round: thousands of them may be of thousands of
// parties.
func (r *Result) Seen(k int) []PartyRound {
	one := &r.Rounds[k]
	if one.Each != nil {
		return one.Each
	}
	var accuracy, mcc float64 // of the model that was judged last
	for i := range slices.Backward(r.Rounds[:k+1]) {
		if m := r.Rounds[i].Test; m != nil {
			accuracy, mcc = m.Accuracy(), m.MCC()
			break
		}
	}
	all := make([]PartyRound, len(r.rows))
	for i := range all {
		all[i] = PartyRound{Party: partyName(i), Place: partyName(i), Rows: r.rows[i], Received: true,
			Accuracy: accuracy, MCC: mcc, Work: one.Cost.Train + one.Cost.Client,
			Sent: int(one.Cost.BytesUp), Got: int(one.Cost.BytesDown)}
	}
	for _, i := range one.Included {
		all[i].Included = true
	}
	return all
}

// Certified returns a claim that holds for all parties, nil if nothing protects them.
func (r *Result) Certified() (out *accounting.Claim, err error) {
	for _, p := range r.Privacy {
		if out == nil {
			out = &p.Certified
		}
		c, err := out.Or(p.Certified)
		if err != nil {
			return nil, err
		}
		out = &c
	}
	return out, nil
}

// Elapsed returns how long all of it took in virtual time, including the exchange of keys before
// the first round.
func (r *Result) Elapsed() time.Duration {
	if len(r.Rounds) == 0 {
		return 0
	}
	last := &r.Rounds[len(r.Rounds)-1]
	return last.Began + last.Took
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
