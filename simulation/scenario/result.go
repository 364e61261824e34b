package scenario

import (
	"math"
	"time"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/simulation/crowd"
)

// Result holds what came of a run.
type Result struct {
	Job     *job.Job `json:"-"` // with its defaults
	Weights int      // of the model
	Parties int
	SetUps  []SetUp
	Rounds  []RoundResult
	Privacy []Promise // of each party, empty without noise
	Notes   []string
	Pairs   *crowd.Counts // of a crowd: what was done once
	Took    time.Duration // by the simulation itself, if it has a clock
}

// SetUp is an exchange of keys.
type SetUp struct {
	Round   int // before which it was
	Parties int
	Took    time.Duration // virtual, during the rounds; until its last message had arrived
	Bytes   int           // that parties sent and received
}

// RoundResult is one round.
type RoundResult struct {
	Number   int
	Began    time.Duration // virtual; with a set-up before it, when that was over
	Took     time.Duration // until the last party that was there had the new model
	Included int           // in the sum
	Lost     string        // why there is no sum, else empty
	Accuracy float64       // of the federated model
	MCC      float64
	Left     []string // who left for good after it
	Parties  []PartyRound
	Server   int // bytes that servers received
	// Of one-message sums:
	Steps   []Step        // in their order
	Waited  []string      // the parties and members that it waited for, some hundred at most
	Members []MemberRound // of the committee
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

// PartyRound reports what one party saw of a round.
type PartyRound struct {
	Party, Place string
	Took         time.Duration // from the round's beginning until it had the new model
	Received     bool          // it has it
	Included     bool          // in the sum
	Stale        int           // with sum.buffer, how many rounds before that was begun
	Left         bool          // for good, after this round
	Accuracy     float64       // of the model that it holds; of a crowd, of the federated one
	MCC          float64
	Local        float64 // accuracy of what it trained in this round
	// Alone judges a model that it trained on its own rows only, in all its rounds; 0 in crowds and
	// among more than MostCompared parties, which are not looked at one by one.
	Alone     float64
	Work      time.Duration
	Sent, Got int // bytes
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

// conclude works out what was spent: for each party the most that any of the sessions that
// it was in would give for all rounds.
func (r *run) conclude() error {
	if !r.anyNoise() {
		return nil
	}
	told := map[*kind]int{}
	for _, c := range r.codecs {
		seen := map[*kind]bool{}
		for i, p := range c.parties {
			if seen[p.kind] { // those that are alike have the same
				continue
			}
			seen[p.kind] = true
			out, err := r.promise(c, i)
			if err != nil {
				return err
			}
			at, ok := told[p.kind]
			if !ok {
				told[p.kind] = len(r.result.Privacy)
				r.result.Privacy = append(r.result.Privacy, out)
				continue
			}
			was := &r.result.Privacy[at]
			if was.Certified, err = was.Certified.Or(out.Certified); err != nil {
				return err
			}
			was.Honest = min(was.Honest, out.Honest)
		}
	}
	return nil
}

func (r *run) promise(c *codec, i int) (Promise, error) {
	p := c.parties[i]
	out := Promise{
		Party:  p.Name,
		Asked:  p.epsilon,
		Honest: c.honest(),
	}
	var err error
	switch {
	case r.World.Tolerance > 0: // who is there follows from rows, and has no noise
		out.Certified = accounting.NewClaim(accounting.Statement{}, accounting.Figures{
			Bound: accounting.Bound{Upper: math.Inf(1), Reason: "who is there follows from rows"},
			Delta: r.Privacy.Delta})
	case c.mechanism == nil:
		out.Certified, err = c.counterpart(i)
	default:
		out.Certified, err = c.certified()
	}
	return out, err
}

// Lost returns how many rounds have no sum.
func (r *Result) Lost() (lost int) {
	for i := range r.Rounds {
		if r.Rounds[i].Lost != "" {
			lost++
		}
	}
	return lost
}

// Elapsed returns how long all of it took in virtual time, including the exchange of keys before
// the first round.
func (r *Result) Elapsed() time.Duration { return r.Final().Began + r.Final().Took }

// Final returns the last round; the zero value if there is none.
func (r *Result) Final() RoundResult {
	if len(r.Rounds) == 0 {
		return RoundResult{Accuracy: math.NaN(), MCC: math.NaN()}
	}
	return r.Rounds[len(r.Rounds)-1]
}
