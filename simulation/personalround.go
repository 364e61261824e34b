package simulation

import (
	"context"
	"errors"
	"math"

	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/learning"
)

// share settles which coordinates are summed from now on, and the job of such vectors. Sums by
// message begin a session, whose lanes are of that length. Rounds are all charged as the first,
// which has the most coordinates: fewer, with the same noise, tell no more.
func (x *personal) share(ctx context.Context) error {
	x.shared = x.shared[:0]
	for j := range x.isOwn {
		if !x.isOwn[j] && (x.common == nil || x.common[j]) {
			x.shared = append(x.shared, j)
		}
	}
	x.sums.erase()
	o := &setting{World: World{Replay: x.Replay, Now: x.Now}}
	for _, party := range x.Parties {
		o.Parties = append(o.Parties, party.Train)
	}
	x.Job.Model = job.Model{Length: len(x.shared), DType: "float64"}
	settled, err := o.settle(x.Job, len(x.Parties))
	if err != nil {
		return err
	}
	x.Job.Privacy.Multiplier = settled.Multiplier() // later sums have no other noise
	o.Training.Seed = x.Job.Seed
	if o, err = newSetting(settled, o.World); err != nil {
		return err
	}
	x.sums = summer{setting: o}
	if x.account == nil && o.noise() != nil {
		if x.account, err = newAccount(o); err != nil {
			return err
		}
	}
	if !o.messages() {
		return nil
	}
	layout, err := x.lane().Layout()
	if err != nil {
		return err
	}
	session := o.session(x.out.Sessions, layout, uint64(x.out.Sessions))
	x.sums.private = o.newSession(session, uint64(x.out.Sessions), nil)
	cost, err := x.sums.setUp(ctx)
	if err != nil {
		return failure(0, -1, err)
	}
	x.out.Setup.add(cost)
	x.out.Sessions++
	return nil
}

// lane returns the lane by which a party's model becomes a submission.
func (x *personal) lane() aggregation.Lane {
	switch {
	case x.sums.noise() != nil:
		return x.sums.noise()
	case x.byOwners():
		return x.owners()
	}
	return x.plain()
}

// byOwners reports whether a sum counts the parties that keep a weight.
func (x *personal) byOwners() bool { return x.Mean == OverOwners || x.Mean == VotedMask }

func (x *personal) plain() aggregation.Mean { return x.sums.plainMean(len(x.shared)) }

func (x *personal) owners() aggregation.Owners { return aggregation.Owners(x.plain()) }

// submission encodes what party k has made of the model.
func (x *personal) submission(round, k int, w []float64) ([][]uint64, error) {
	values := make([]float64, len(x.shared))
	for i, j := range x.shared {
		values[i] = w[j]
	}
	switch {
	case x.sums.noise() != nil:
		for i, j := range x.shared {
			values[i] -= x.model[j]
		}
		return x.sums.encode(round, job.Update[float64]{Vector: values})
	case x.byOwners():
		kept := make([]bool, len(x.shared))
		for i, j := range x.shared {
			kept[i] = x.keeps(k, j)
		}
		return x.owners().Encode(values, kept)
	}
	return x.plain().Encode(values)
}

// playRound runs one round and moves the model.
func (x *personal) playRound(ctx context.Context, round int) (PersonalRound, error) {
	r := PersonalRound{Round: round, Epsilon: x.epsilon}
	if x.account != nil {
		server, _, err := x.account.spend()
		if err != nil {
			return r, failure(round, -1, err)
		}
		x.epsilon, r.Epsilon = server.Bare().Upper, server.Bare().Upper
	}
	trained := make([][]float64, len(x.Parties))
	out, err := x.sums.sum(ctx, round, x.model,
		func(_ context.Context, k int) (made submission, err error) {
			start := x.sums.Now()
			trained[k], err = x.update(round, k, x.model, x.Prune.Target)
			if x.sums.noise() != nil && errors.Is(err, learning.ErrDiverged) {
				trained[k], err = x.received(k, x.model), nil // see training.Learner
			}
			if err != nil {
				return made, err
			}
			made.train = x.sums.Now().Sub(start)
			if !x.sums.inClear() {
				made.values, err = x.submission(round, k, trained[k])
			}
			return made, err
		})
	if err != nil {
		return r, err
	}
	r.Included, r.Lost, r.Cost = out.included, out.lost, out.cost
	r.Common = float64(len(x.shared)) / float64(x.prunable)
	x.count(&r)
	if out.lost == nil {
		if err := x.move(ctx, round, out, trained); err != nil {
			return r, failure(round, -1, err)
		}
	}
	if round%x.Job.World.EvaluateEvery == 0 || round == x.Job.Rounds {
		if r.Judged, err = x.judge(ctx, round); err != nil {
			return r, err
		}
	}
	return r, nil
}

// move takes the mean of the round to the model, and what follows from it to the masks.
func (x *personal) move(ctx context.Context, round int, out outcome, trained [][]float64) error {
	mean, owners, err := x.decode(round, out, trained)
	if err != nil {
		return err
	}
	update := make([]float64, len(x.model))
	for i, j := range x.shared {
		switch {
		case x.sums.noise() != nil:
			update[j] = mean[i]
		case owners == nil || owners[i] > 0:
			update[j] = mean[i] - x.model[j]
		}
	}
	if x.model, err = x.optimizer.Apply(x.model, update, nil); err != nil {
		return err
	}
	before := len(x.shared)
	switch x.Mean {
	case VotedMask:
		x.vote(owners, len(out.included))
	case PublicMask:
		if err := x.prunePublic(); err != nil {
			return err
		}
	}
	if x.common == nil {
		return nil
	}
	left := 0
	for j := range x.model {
		if !x.isOwn[j] && x.common[j] {
			left++
		} else if !x.isOwn[j] {
			x.model[j] = 0
		}
	}
	if left == before {
		return nil
	}
	return x.share(ctx)
}

// vote keeps what enough parties keep.
func (x *personal) vote(owners []int, parties int) {
	next := make([]bool, len(x.model))
	for i, j := range x.shared {
		next[j] = float64(owners[i]) >= x.Quorum*float64(parties)
	}
	x.common = next
}

// prunePublic prunes the public model.
func (x *personal) prunePublic() (err error) {
	count := aggregation.PruneCount(x.prunable, len(x.shared), x.Prune.Step, x.Prune.Target,
		x.Prune.OfAll)
	if count == 0 {
		return nil
	}
	kept := make([]bool, len(x.model))
	for _, j := range x.shared {
		kept[j] = true
	}
	x.common, err = aggregation.Prune(x.model, kept, x.isOwn, count)
	return err
}

// decode returns the mean over the shared coordinates: of models, with noise of
// updates; owners is nil where all count.
func (x *personal) decode(
	round int, out outcome, trained [][]float64,
) (mean []float64, owners []int, err error) {
	if x.sums.inClear() {
		return x.clearMean(out.included, trained)
	}
	layout, err := x.lane().Layout()
	if err != nil {
		return nil, nil, err
	}
	for s, segment := range layout {
		cut(out.sum[s], segment.Bits)
	}
	switch {
	case x.sums.noise() != nil:
		var t job.Total
		t, err = x.sums.decode(round, out.sum, len(out.included))
		mean = t.Mean
	case x.byOwners():
		mean, owners, err = x.owners().Decode(out.sum)
	default:
		mean, err = x.plain().Decode(out.sum, len(out.included))
	}
	return mean, owners, err
}

func (x *personal) clearMean(
	included []int, trained [][]float64,
) (mean []float64, owners []int, err error) {
	mean = make([]float64, len(x.shared))
	if x.byOwners() {
		owners = make([]int, len(x.shared))
	}
	for i, j := range x.shared {
		n := len(included)
		if owners != nil {
			for _, k := range included {
				if x.keeps(k, j) {
					owners[i]++
				}
			}
			n = max(1, owners[i])
		}
		for _, k := range included {
			if owners == nil || x.keeps(k, j) {
				mean[i] += trained[k][j]
			}
		}
		if mean[i] /= float64(n); math.IsNaN(mean[i]) || math.IsInf(mean[i], 0) {
			return nil, nil, aggregation.ErrNotFinite
		}
	}
	return mean, owners, nil
}

// count fills in what is kept and sent.
func (x *personal) count(r *PersonalRound) {
	for k := range x.Parties {
		r.Kept += float64(x.numKept(k)) / float64(x.prunable*len(x.Parties))
	}
	for _, k := range r.Included {
		r.SparseBytes += 4 * int64(x.numKept(k))
	}
	if layout, err := x.lane().Layout(); err == nil {
		r.MaskedBytes = int64(layout.PackedSize()) * int64(len(r.Included))
	}
	if x.sums.private != nil {
		r.BytesUp = r.Cost.BytesUp * int64(len(r.Included))
	}
}
