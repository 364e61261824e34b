package simulation

import (
	"fmt"
	"io"
	"math"
	"time"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/learning"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/oneshot"
	"github.com/hushsum/hushsum/privacy"
	"github.com/hushsum/hushsum/protocol"
	"github.com/hushsum/hushsum/training"
)

// maxParties is the most parties of Private sums. Every pair of parties shares keys,
// so that set-up takes time and memory in proportion to the square.
const maxParties = 5000

// Options says what to run: what each party does, what is summed and how, and how the server makes
// the next model from the sum. The fields from Model to Local.Rate must be set; the zero value of
// all others is federated averaging of all parties' updates with equal weight, in the clear.
type Options struct {
	Model   learning.Model
	Parties []*learning.Dataset // the rows of each, at least two parties
	Test    *learning.Dataset   // what models are judged on
	Rounds  int                 // at least 1
	// Local is a party's training in a round. Its Adjust and Interrupt must be nil.
	Local learning.SGD

	// Client is the parties' rule, Server the server's and Mask the gradient mask before
	// its step.
	Client training.ClientRule
	Server aggregation.Optimizer
	Mask   aggregation.GradientMask
	Clip   training.Clipping
	// MaxSamples, if above 0, weighs parties' vectors by their numbers of rows, which they submit
	// too; a party with more rows counts as one with MaxSamples. Without Noise the sums are of n·x
	// and n, exactly: see aggregation.FedAvg; with it, see aggregation.WeightedVector. Signs, votes,
	// gradients and control variates have equal weight in any case. 0: updates have equal weight too.
	MaxSamples int
	// Models makes parties submit their weights (McMahan 2017, Algorithm 1) and not the difference
	// from the round's model. The next model is the mean, so Models does not go with Server, Mask,
	// DifferenceClip and Noise.
	Models bool

	// Records, if not nil, has parties sum over records, and the noise hides each record: Local,
	// Client, Clip, Mask and MaxSamples then do not apply, and Rounds and Noise.Clip are those of
	// Records.
	Records *training.Records
	// Average makes the last model the mean of the models of that many last rounds; 0: the last model
	// is that of the last round.
	Average int

	// PerRound is how many parties are in a round, drawn by Seed; 0: all.
	PerRound int
	// Participations is how many rounds a party is in at most, and charged for; 0: all. The parties
	// that were in the fewest are drawn. Participations does not go with Private sums, whose schedule
	// is fixed when the session is set up.
	Participations int
	// Hidden makes every party take part in a round with this probability, independently of all
	// others; 0: every party takes part. With Noise that counts against the server too, since all
	// parties submit: parties that their coins leave out send zeros with their share of the noise.
	// Coins are then the parties' own, and means divide by the expected number of parties. Without
	// Noise parties that their coins leave out are not in the round.
	Hidden float64
	// Factorise, if not 0, is the number of rounds whose noise is correlated: parties take turns to
	// train, each once in that many rounds, and submit parts of the update that they made in each of
	// these rounds. Factorise needs Noise, and a party is charged for its turns: see [privacy.Band].
	Factorise int
	// Random gives the coins of Hidden with Noise, which must be secret; nil: crypto/rand. Seed
	// cannot serve here, since the first model may reveal it.
	Random io.Reader
	// Replay, if not nil, lists the parties in the sum of each round in place of a draw, in ascending
	// order, as Round.Included had them; with no parties the round is lost. Use Replay to repeat
	// Private sums without masks; it does not go with Private sums or Noise.
	Replay [][]int

	// Sum says how the submissions are summed. Without Noise Range is the largest
	// magnitude of a coordinate that can be encoded, beyond which a run ends with
	// aggregation.ErrSaturated, and FractionBits are the binary places of a coordinate,
	// with MaxSamples of one times rows, up to aggregation.MaxFractionBits; 0: 64 and 20.
	Sum          Sum
	Range        float64
	FractionBits int
	// Recovery lets a round of Private sums survive parties that drop out of it; see
	// protocol.Recovery, whose zero value will do. Nil: every party must submit in every
	// round. On the complete graph bytes and memory grow with the square of the parties.
	Recovery *protocol.Recovery
	// Colluders is how many parties may pool what they know with the server of Private
	// sums; see protocol.Config. Their shares of noise are not counted.
	Colluders int
	// Oneshot lets a committee help with Private sums, to which parties send one message; see
	// [Oneshot]. Nil: pairwise masks, by package protocol.
	Oneshot *Oneshot
	// Drop is the fraction of the parties, from 0 to 1, that drop out of each round
	// and come back for the next: see DropOuts. They are drawn by Seed, each at a random
	// one of three moments: after it was told of the round and before it trains and
	// submits; after that and before it signs who the survivors are; or after that
	// and before it reveals its shares. It takes Recovery.
	//
	// For other sums it is the fraction of a round's messages that are lost on their way: parties
	// have trained, and are charged. Recovery.MinSurvivors is then the fewest parties in a sum, whose
	// noise is enough; its other fields belong to the protocol.
	Drop float64
	// Malicious is the part of the parties that cheat, the last ones, from 0 to below 1; with Oneshot
	// and Noise. Each cheat moves the sum against what it learnt, as far as the sum's range allows
	// for all cheats; with Oneshot.Bounded its proof does not hold, and it is refused.
	Malicious float64
	// LostRounds is how many rounds, drawn by Seed, have no sum although their parties submit; it
	// does not go with Private sums.
	LostRounds int

	// Noise makes the rounds sum clipped updates with noise in them, for differential privacy; nil:
	// none. Noise.Clip is the norm of difference clipping, so Options.Clip must be empty except for
	// Adaptive; Range and FractionBits are not used.
	//
	// The effect of a party's rows on its own training may show in the sum only: a party whose
	// training diverges submits an update of zeros, with its share of the noise. Rows that do not fit
	// the model end a run before its first round. Other failures, and the figures of single parties
	// in Round, are for the experimenter only.
	Noise *privacy.Noise
	// Budget limits what Noise may spend of every party's privacy: a run ends before the
	// round that would take a party over it. Without an Epsilon there is no limit.
	Budget privacy.Budget
	// SignShare is the part of the privacy budget 1/z² for the sums of signs, if there are both noise
	// and a mask; above 0 and below 1; 0: a half.
	SignShare float64

	// Beside runs the same training in the clear as well: the same seeds, the same parties in every
	// round, updates clipped alike, neither rounding nor noise. The accounts ignore it.
	Beside bool

	Seed uint64 // of models, draws and batches
	// EvaluateEvery, in rounds, is the interval at which models are judged; 0: 1. The last model is
	// always judged.
	EvaluateEvery int

	// Now is the clock that durations are measured with, such as time.Now; it is
	// called from several goroutines. Nil: all durations are 0.
	Now func() time.Time
	// Progress, if not nil, is called while parties work, never concurrently: done says how many
	// parties of the round have finished their part (round 0: set-up). With Recovery a round has
	// three parts, and done counts each as a third.
	Progress func(round, done, of int)
}

// Sum says how the parties' vectors are summed.
type Sum int

const (
	// Clear sums float64 vectors, without rounding.
	Clear Sum = iota
	// Ring sums the same encoded vectors as a private sum, with noise but without masks, at a
	// fraction of the cost. Without noise the outcome for the same parties equals that of Private bit
	// for bit. If PerRound draws some of the parties, the draws differ: see Replay.
	Ring
	// Private is the protocol, with all its messages.
	Private
)

func (s Sum) String() string {
	switch s {
	case Clear:
		return "clear"
	case Ring:
		return "ring"
	case Private:
		return "private"
	}
	return fmt.Sprintf("sum(%d)", int(s))
}

// DefaultNoise returns discrete Gaussian noise of multiplier 1, with Clip 1 and 18
// bits, which suits logistic regression on the two censuses of package learning: see
// [learning.Census]. A smaller Clip slows training down, and noise grows with a larger
// one. Of 100 parties of 200 synthetic rows, 50 steps a round at rate 2, a Matthews
// correlation of 0.527 without clipping became 0.446, 0.499, 0.521 and 0.527 with
// 0.25, 0.5, 1 and 2, still without noise; with noise of multiplier 10, 1 lost 0.002
// more and 2 lost 0.02.
func DefaultNoise() privacy.Noise {
	return privacy.Noise{Family: accounting.FamilyDiscreteGaussian, Multiplier: 1, Clip: 1, Bits: 18}
}

// settled fills in defaults.
func (o Options) settled() *Options {
	if o.Range == 0 {
		o.Range = 64
	}
	if o.FractionBits == 0 {
		o.FractionBits = 20
	}
	if o.PerRound == 0 {
		o.PerRound = len(o.Parties)
	}
	if o.SignShare == 0 {
		o.SignShare = 0.5
	}
	if o.EvaluateEvery == 0 {
		o.EvaluateEvery = 1
	}
	if o.Now == nil {
		o.Now = func() time.Time { return time.Time{} }
	}
	o.Budget = o.Budget.WithDefaults()
	return &o
}

// Cheats returns how many parties cheat: Malicious times the number of parties, rounded up.
func (o Options) Cheats() int { return int(math.Ceil(o.Malicious * float64(len(o.Parties)))) }

// DropOuts returns how many parties drop out of each round: Drop times all of them, rounded to the
// nearest whole number. Unless sums are Private it returns how many messages a round loses: Drop
// times the number of its messages.
func (o Options) DropOuts() int {
	of := len(o.Parties)
	if o.Sum != Private && o.PerRound > 0 {
		of = o.PerRound
	}
	return int(math.Round(o.Drop * float64(of)))
}

// EffectiveRecovery returns Recovery with all defaults filled in, as they are for rounds of
// PerRound parties, and nil without recovery. Only MinSurvivors counts unless sums are Private. It
// fails with a [job.ConfigError] if no session of that many parties can have that recovery.
func (o Options) EffectiveRecovery() (*protocol.Recovery, error) {
	x := o.settled()
	if x.Sum != Private && x.Recovery != nil {
		return &protocol.Recovery{MinSurvivors: x.fewest()}, nil
	}
	return effectiveRecovery(x.PerRound, x.Recovery, x.Colluders)
}

// Release returns the noisy sums of the run as package privacy declares them. It fails
// with a [job.ConfigError], also without Noise.
func (o Options) Release() (*privacy.Release, error) {
	if o.Noise == nil {
		return nil, bad("privacy.noise", "set it", "there is none, and without it there is no bound")
	}
	if err := o.Validate(); err != nil {
		return nil, err
	}
	return o.settled().release()
}

// release is Release of settled options; the multiplier may be any.
func (o *Options) release() (*privacy.Release, error) {
	promise, err := o.promise()
	if err != nil {
		return nil, err
	}
	r := job.ReleaseOptions{Promise: promise, Noise: *o.Noise, Parties: o.PerRound,
		Length: o.Model.NumParams(), MaxWeight: o.MaxSamples, Hidden: o.Hidden, Band: o.band(),
		SignShare: o.SignShare, Votes: o.Clip.Adaptive != nil}
	if o.Oneshot != nil {
		r.Members, r.Bounded = o.Oneshot.withDefaults().Members, o.Oneshot.Bounded
	}
	if o.Mask.Kind != aggregation.NoMask {
		r.Signs = r.Length
	}
	if o.Records != nil {
		r.Records = &o.Records.Coins
	}
	if o.Records != nil || o.Hidden > 0 { // a run has no time, and of coins no side channel
		r.Assumes = accounting.AssumesCoins
	}
	return job.NewRelease(r), nil
}

// band returns the coefficients of correlated noise, nil where it is independent or cannot be had.
func (o *Options) band() privacy.Band {
	if o.Factorise == 0 {
		return nil
	}
	b, _ := privacy.NewBand(o.Factorise, o.Rounds)
	return b
}

// charges returns how many submissions a party is charged for at most, or turns.
func (o *Options) charges() int {
	if o.Factorise > 0 {
		return (o.Rounds + o.Factorise - 1) / o.Factorise
	}
	if o.Participations == 0 {
		return o.Rounds
	}
	return min(o.Participations, o.Rounds)
}

// expected is how many parties take part in a round, by expectation where coins say who does, and
// by turns where noise is correlated.
func (o *Options) expected() int {
	if o.Factorise > 0 {
		return max(1, o.PerRound/o.Factorise)
	}
	if o.Hidden > 0 {
		return max(1, int(math.Round(o.Hidden*float64(len(o.Parties)))))
	}
	return o.PerRound
}

// promise returns what the sums of the run hold: of Private sums what their sessions run with.
func (o *Options) promise() (privacy.Promise, error) {
	if o.Sum != Private {
		return privacy.Assumed(o.PerRound, o.fewest()), nil
	}
	recovery, err := effectiveRecovery(o.PerRound, o.Recovery, o.Colluders)
	if err != nil {
		return privacy.Promise{}, err
	}
	parties, err := sessionOf(len(o.Parties)) // of their number alone
	if err != nil {
		return privacy.Promise{}, because("parties.count", err)
	}
	var p privacy.Promise
	if o.Oneshot == nil {
		config := o.session(people{roster: parties.Roster})
		config.Layout = parties.Layout
		p, err = privacy.OfSession(&config)
		return p, ofPrivacy(err)
	}
	members, err := sessionOf(o.Oneshot.withDefaults().Members)
	if err != nil {
		return privacy.Promise{}, because("sum.members", err)
	}
	p, err = privacy.OfOneshot(&oneshot.Config{Roster: parties.Roster, Committee: members.Roster,
		Terms: o.terms(recovery)})
	if err != nil {
		return privacy.Promise{}, because("sum.protocol", err)
	}
	return p.Unnamed(), nil
}

// fewest returns how many messages a sum that is not Private takes at least.
func (o *Options) fewest() int {
	if o.Recovery == nil {
		return o.PerRound
	}
	return o.Recovery.MinSurvivors
}

// hidden reports whether all parties submit, including parties that their coins leave out.
func (o *Options) hidden() bool { return o.Hidden > 0 && o.Noise != nil }

// Calibrate returns the least Noise.Multiplier, to 0.1 %, with which all rounds keep every party
// within Budget: see privacy.Release's Calibrate. It ignores the value of Noise.Multiplier. It
// fails with a [job.ConfigError].
func (o Options) Calibrate() (multiplier float64, err error) {
	if o.Noise != nil {
		settled := *o.Noise
		settled.Multiplier = 1
		o.Noise = &settled
	}
	r, err := o.Release()
	if err != nil {
		return 0, err
	}
	multiplier, err = r.Calibrate(o.Budget, o.charges())
	return multiplier, ofPrivacy(err)
}

// Layout returns the segments of a submission, nil for Clear sums. It fails with a
// [job.ConfigError].
func (o Options) Layout() (masking.Layout, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	settled := o.settled()
	if settled.Sum == Clear {
		return nil, nil
	}
	l, err := settled.newLanes()
	if err != nil {
		return nil, err
	}
	return l.layout()
}
