package simulation

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"math"

	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/learning"
	"github.com/hushsum/hushsum/protocol"
)

// share settles which coordinates are summed from now on, and how. With Private sums
// it begins a session, whose lanes are of that length.
func (x *personal) share(ctx context.Context) error {
	x.shared = x.shared[:0]
	for j := range x.isOwn {
		if !x.isOwn[j] && (x.common == nil || x.common[j]) {
			x.shared = append(x.shared, j)
		}
	}
	if x.Noise != nil {
		if err := x.shareNoise(); err != nil {
			return err
		}
	}
	if x.Sum != Private {
		return nil
	}
	x.endSession()
	layout, err := x.lane().Layout()
	if err != nil {
		return err
	}
	n := len(x.Parties)
	who, err := newPeople(n)
	if err != nil {
		return err
	}
	config := protocol.Config{
		Label:     sessionLabel,
		Roster:    who.roster,
		Layout:    layout,
		Recovery:  x.Recovery,
		Colluders: x.Colluders,
	}
	if x.PerRound < n {
		config.PerRound = x.PerRound
		seed := binary.BigEndian.AppendUint64([]byte("hushsum simulation: personal schedule"), x.Seed)
		config.Seed = sha256.Sum256(binary.BigEndian.AppendUint64(seed, uint64(x.out.Sessions)))
	}
	drops := newDropOuts(x.Seed+uint64(x.out.Sessions), x.sums.DropOuts())
	x.sums.private = newSession(who, &config, drops, x.Now, nil)
	cost, err := x.sums.setUp(ctx)
	if err != nil {
		return failure(0, -1, err)
	}
	x.out.Setup.add(cost)
	x.out.Sessions++
	return nil
}

// shareNoise settles the noise for the coordinates in the sums. Rounds are all charged
// as the first, which has the most coordinates: fewer, with the same noise, tell no more.
func (x *personal) shareNoise() error {
	release, err := x.sums.release()
	if err != nil {
		return err
	}
	release.Dimension = len(x.shared)
	shape := job.LaneOptions{Parties: x.PerRound, Dimension: len(x.shared)}
	if x.noisy, err = x.sums.newNoisyLanes(shape, release); err != nil {
		return err
	}
	if x.account == nil {
		x.account, err = newAccount(x.noisy.noisy.Mechanism, x.sums.Options)
	}
	return err
}

// Calibrate returns the least Noise.Multiplier, to 0.1 %, with which all rounds keep every party
// within Budget: see [Options.Calibrate]. It counts every party in every round, since the server
// could tell which parties take part.
func (p Personal) Calibrate() (float64, error) {
	return p.settle().options().Calibrate()
}

func (x *personal) endSession() {
	x.sums.erase()
	x.sums.private = nil
}

// lane returns the lane by which a party's model becomes a submission.
func (x *personal) lane() aggregation.Lane {
	switch {
	case x.Noise != nil:
		return x.noisy.noisy
	case x.Mean == OverOwners || x.Mean == VotedMask:
		return x.owners()
	}
	return x.plain()
}

func (x *personal) plain() aggregation.Mean {
	return aggregation.Mean{
		Parties: x.PerRound, Dimension: len(x.shared), Range: x.Range, FractionBits: x.FractionBits,
	}
}

func (x *personal) owners() aggregation.Owners {
	return aggregation.Owners(x.plain())
}

// submission encodes what party k has made of the model.
func (x *personal) submission(round, k int, w []float64) ([][]uint64, error) {
	values := make([]float64, len(x.shared))
	for i, j := range x.shared {
		values[i] = w[j]
	}
	switch {
	case x.Noise != nil:
		for i, j := range x.shared {
			values[i] -= x.model[j]
		}
		return x.noisy.encode(round, job.Update[float64]{Vector: values})
	case x.Mean == OverOwners || x.Mean == VotedMask:
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
			start := x.Now()
			trained[k], err = x.update(round, k, x.model, x.Prune.Target)
			if x.Noise != nil && errors.Is(err, learning.ErrDiverged) {
				trained[k], err = x.received(k, x.model), nil // see Noise
			}
			if err != nil {
				return made, err
			}
			made.train = x.Now().Sub(start)
			if x.Sum != Clear {
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
	if round%x.EvaluateEvery == 0 || round == x.Rounds {
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
		case x.Noise != nil:
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
	if x.Sum == Clear {
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
	case x.Noise != nil:
		var t job.Total
		t, err = x.noisy.decode(round, out.sum, len(out.included))
		mean = t.Mean
	case x.Mean == OverOwners || x.Mean == VotedMask:
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
	if x.Mean == OverOwners || x.Mean == VotedMask {
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
