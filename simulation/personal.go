package simulation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/learning"
	"github.com/hushsum/hushsum/training"
)

// Personal is a federated training of models that differ from party to party: each party has
// parameters of its own that never leave it, and a mask of the weights that it keeps. It covers
// FedLTN of chapter 4 of the thesis and the methods that the thesis compares it with:
//
//	FedAvg     the zero value of Own, Prune and Mix
//	FedBN      Own: the model's batch norm
//	LotteryFL  Prune: PrePrune, which rewinds
//	FedLTN     Own: batch norm; Prune: PostPrune; Mix 0.5
//
// [Personal.Train] runs it. The fields from Job to Model must be set.
type Personal struct {
	// Job declares the rounds, the sums and their noise. Its parties, its model and its training are
	// those of the fields below.
	Job     *job.Job
	Parties []learning.Personal // the rows of each, at least two parties
	Model   learning.Model

	// Local is a party's training in a round. Its Adjust must be nil.
	Local learning.SGD
	// Pull is the weight of ‖θ − received‖, the norm and not its square, in the loss of
	// a party's first training in a round; 0: none.
	Pull float64
	// Own are the parameters that stay with a party. All others are summed.
	Own   []learning.Span
	Prune Pruning
	// Mix is τ of the server's step θ ← τ·θ̄ + (1−τ)(θ − λ·Δ), where Δ is minus the last
	// step, and Lookahead is λ, 0 to 1; Mix 0: 1, plain averaging.
	Mix, Lookahead float64

	// JumpStart is how many trainings each party does alone before the first round, as in a round but
	// without a sum, pruning up to JumpTarget (0: 0.3). The first model is then the model that is
	// best in the mean over all parties' validation rows. Choosing it shows one party's model to all:
	// it is not a private sum, and does not go with noise.
	JumpStart  int
	JumpTarget float64

	// Mean says how models with unlike masks are averaged. Noise is for OverAll and PublicMask.
	Mean SparseMean
	// Quorum is the share of a round's parties that must keep a coordinate of
	// VotedMask, above 0 and up to 1; 0: a half.
	Quorum float64
	// Replay is as in World.
	Replay [][]int
	Now    func() time.Time
}

// PruneKind says when a party prunes.
type PruneKind int

const (
	// NoPrune keeps all weights.
	NoPrune PruneKind = iota
	// PrePrune prunes the model that a party receives before it trains, and rewinds the remaining
	// weights to the first model (LotteryFL).
	PrePrune
	// PostPrune prunes the model that a party has trained, and trains once more (FedLTN).
	PostPrune
)

// Pruning says how a party prunes. A party prunes in a round in which its accuracy on its
// validation rows is above Threshold, until the share Target is pruned.
type Pruning struct {
	Kind PruneKind
	// Step is the share that is pruned at a time, of the remaining weights or, with OfAll, of all; 0:
	// 0.1.
	Step  float64
	OfAll bool
	// Target is the share that is pruned in the end, below 1.
	Target float64
	// Threshold is an accuracy from 0 to below 1. The thesis has 0.6, and 0.5 for
	// LotteryFL with two classes.
	Threshold float64
	// Rewind makes PostPrune rewind the remaining weights to the first model.
	Rewind bool
}

// SparseMean says how models with masks are averaged.
type SparseMean int

const (
	// OverAll is the plain mean: a pruned weight counts as 0. One dense lane.
	OverAll SparseMean = iota
	// OverOwners is the mean over the parties that keep a weight; a weight that nobody keeps stays
	// unchanged. Two dense lanes, see aggregation.Owners.
	OverOwners
	// VotedMask is OverOwners over a mask that all parties share: the counts of owners
	// are votes, and a coordinate with fewer than Quorum leaves the sums for good. Lanes
	// are as short as the mask.
	VotedMask
	// PublicMask lets the server prune the public model by magnitude after each round, by Prune.Step
	// up to Prune.Target, and tell the parties, who have no masks of their own. One lane as short as
	// the mask. The mask says nothing about any single party, so it costs no privacy.
	PublicMask
)

func (m SparseMean) String() string {
	switch m {
	case OverAll:
		return "all"
	case OverOwners:
		return "owners"
	case VotedMask:
		return "voted"
	case PublicMask:
		return "public"
	}
	return fmt.Sprintf("mean(%d)", int(m))
}

// withDefaults fills in defaults.
func (p Personal) withDefaults() Personal {
	preset := func(x *float64, to float64) {
		if *x == 0 {
			*x = to
		}
	}
	preset(&p.Mix, 1)
	preset(&p.JumpTarget, 0.3)
	preset(&p.Prune.Step, 0.1)
	preset(&p.Quorum, 0.5)
	j := p.Job.Clone()
	j.Name, j.Parties.Count = cmp.Or(j.Name, "personal"), len(p.Parties)
	j.World.EvaluateEvery = cmp.Or(j.World.EvaluateEvery, j.Rounds)
	p.Job = j
	return p
}

// check returns a [job.ConfigError] for the first field that is outside its range or does not go
// with the others.
func (p *Personal) check() error {
	if p.Model == nil {
		return bad("Model", "", "there is none")
	}
	for k, party := range p.Parties {
		if party.Train.Len() == 0 || party.Validation.Len() == 0 || party.Test.Len() == 0 {
			return bad("Parties", "", "party %d has no rows of some kind", k)
		}
	}
	share := func(x float64) bool { return x >= 0 && x < 1 }
	switch {
	case !(p.Pull >= 0) || math.IsInf(p.Pull, 1):
		return bad("Pull", "use 0 or more", "%v is not a weight", p.Pull)
	case p.Prune.Kind < NoPrune || p.Prune.Kind > PostPrune:
		return bad("Prune.Kind", "", "%d is not a way to prune", p.Prune.Kind)
	case !(p.Prune.Step > 0 && p.Prune.Step <= 1):
		return bad("Prune.Step", "use a share, such as 0.1", "%v is none", p.Prune.Step)
	case !share(p.Prune.Target):
		return bad("Prune.Target", "use a share below 1, such as 0.9", "%v is none", p.Prune.Target)
	case !share(p.Prune.Threshold):
		return bad("Prune.Threshold", "use an accuracy below 1, such as 0.6", "%v is none",
			p.Prune.Threshold)
	case !(p.Mix > 0 && p.Mix <= 1):
		return bad("Mix", "use a share, such as 0.5", "%v is none", p.Mix)
	case !(p.Lookahead >= 0 && p.Lookahead <= 1):
		return bad("Lookahead", "use 0 to 1", "%v is outside", p.Lookahead)
	case p.JumpStart < 0:
		return bad("JumpStart", "use 0 or more", "%d is too few", p.JumpStart)
	case !share(p.JumpTarget):
		return bad("JumpTarget", "use a share below 1, such as 0.3", "%v is none", p.JumpTarget)
	case p.Mean < OverAll || p.Mean > PublicMask:
		return bad("Mean", "", "%v is not a mean", p.Mean)
	case p.Mean == PublicMask && p.Prune.Kind != NoPrune:
		return bad("Prune.Kind", "use NoPrune; Step and Target are the server's",
			"with a public mask parties do not prune")
	case !(p.Quorum > 0 && p.Quorum <= 1):
		return bad("Quorum", "use a share, such as 0.5", "%v is none", p.Quorum)
	case p.Job.Noisy() && (p.Mean == OverOwners || p.Mean == VotedMask):
		return bad("Mean", "use OverAll or PublicMask with noise",
			"nothing bounds what the counts of owners reveal about a party")
	case p.Job.Noisy() && p.JumpStart > 0:
		return bad("JumpStart", "use 0 with noise", "it shows a party's model to all")
	}
	last := 0
	for _, s := range p.Own {
		if s.From < last || s.To < s.From || s.To > p.Model.NumParams() {
			return bad("Own", "name spans of the model's parameters in order", "%d to %d", s.From, s.To)
		}
		last = s.To
	}
	return nil
}

// PersonalRound is the outcome of one round of a [Personal].
type PersonalRound struct {
	Round    int
	Included []int // the parties in the sum
	Lost     error // as in RoundResult

	// Kept is the mean over parties of the share of weights that they keep, of those that
	// can be pruned; Common the share of coordinates that are in the sums.
	Kept, Common float64
	// SparseBytes counts the bytes that the parties of the sum would send together if each sent the
	// weights that it keeps, 4 bytes each, without hiding which weights these are: the thesis's
	// count. MaskedBytes counts the bytes of the parties' packed lanes under masks, and BytesUp the
	// bytes that they really send in sums by message, whole messages included.
	SparseBytes, MaskedBytes, BytesUp int64

	// Judged is nil in rounds without a judgement.
	Judged *Judgement

	Cost Cost
	// Epsilon bounds what all rounds until now have spent against the server; +Inf without noise.
	Epsilon float64
}

// Judgement is the accuracy of each party's model on its own test rows: the model that it received,
// with its own parameters and mask, and the model after one more training, which the party would
// use (if that training diverges, the model that it received).
type Judgement struct{ Received, Trained []float64 }

// MeanMin returns the mean and the least of the accuracies.
func MeanMin(accuracies []float64) (mean, least float64) {
	least = math.Inf(1)
	for _, a := range accuracies {
		mean += a / float64(len(accuracies))
		least = min(least, a)
	}
	return mean, least
}

// PersonalResult is the outcome of a [Personal], as far as it went.
type PersonalResult struct {
	// Stopped is nil, or why the run ended before all rounds, as in Result.
	Stopped *accounting.OverBudget
	Rounds  []PersonalRound
	Model   []float64 // the server's
	Kept    [][]bool  // by party, nil: all
	Own     [][]float64
	// Setup is the cost of the sessions of sums by message, in the mean over parties; the
	// lanes' length is part of a session, so that a mask that shrinks begins a new one.
	Setup    Cost
	Sessions int
}

// personal is the state of a Personal that runs.
type personal struct {
	Personal
	first     []float64
	model     []float64
	optimizer aggregation.Optimizer
	kept      [][]bool    // by party
	own       [][]float64 // by party, whole vectors whose spans count
	isOwn     []bool
	common    []bool // the mask that all share, nil: all
	shared    []int  // the coordinates in the sums
	prunable  int

	sums    summer // over the coordinates that are shared
	account *account
	epsilon float64
	out     *PersonalResult
}

// Train runs the training and calls report, if that is not nil, after every round. It
// fails with a [job.ConfigError] or a [RoundError].
func (p Personal) Train(ctx context.Context, report func(PersonalRound)) (*PersonalResult, error) {
	x, err := newPersonal(p)
	if err != nil {
		return nil, err
	}
	defer x.sums.erase()
	if err := x.jumpStart(ctx); err != nil {
		return nil, err
	}
	if err := x.share(ctx); err != nil {
		return nil, err
	}
	for round := 1; round <= x.Job.Rounds; round++ {
		r, err := x.playRound(ctx, round)
		if errors.As(err, &x.out.Stopped) {
			break
		}
		if err != nil {
			return nil, err
		}
		x.out.Model = x.model
		x.out.Rounds = append(x.out.Rounds, r)
		if report != nil {
			report(r)
		}
	}
	return x.out, nil
}

func newPersonal(p Personal) (*personal, error) {
	p = p.withDefaults()
	if err := p.check(); err != nil {
		return nil, err
	}
	d := p.Model.NumParams()
	x := &personal{
		Personal: p, first: p.Model.Init(p.Job.Seed), isOwn: make([]bool, d), prunable: d,
		kept: make([][]bool, len(p.Parties)), own: make([][]float64, len(p.Parties)),
		optimizer: aggregation.Optimizer{
			Rule: aggregation.RuleMomentum, Rate: p.Mix, Beta1: (1 - p.Mix) * p.Lookahead,
		},
		epsilon: math.Inf(1),
	}
	x.model = x.first
	for _, s := range p.Own {
		for j := s.From; j < s.To; j++ {
			x.isOwn[j] = true
			x.prunable--
		}
	}
	for k := range x.own {
		x.own[k] = x.first
	}
	if x.prunable < 1 {
		return nil, bad("Own", "", "no parameter is left to be summed")
	}
	x.out = &PersonalResult{Model: x.model, Kept: x.kept, Own: x.own}
	return x, nil
}

// derived returns a seed for one purpose.
func (x *personal) derived(purpose string, round, party int) uint64 {
	return training.DerivedSeed(x.Job.Seed, purpose, round, party)
}
