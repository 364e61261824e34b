package simulation

import (
	"context"
	crand "crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/hushsum/hushsum/aggregation"
)

// errTooFew ends a round that too few parties were drawn for.
var errTooFew = errors.New("simulation: too few parties in the round")

// sum has the parties of the round submit, and sums.
func (x *training) sum(ctx context.Context, private *session, round int, submit func(ctx context.Context, party int) (submission, error)) (outcome, error) {
	if private != nil {
		broadcast, err := aggregation.AppendModel(nil, x.model)
		if err != nil {
			return outcome{}, err
		}
		return private.play(ctx, round, broadcast, submit)
	}
	var out outcome
	parties, err := x.drawn(round)
	if err != nil {
		return out, err
	}
	out.included = parties
	if x.hidden() {
		parties = x.everybody()
		drawn := make([]bool, len(parties))
		for _, i := range out.included {
			drawn[i] = true
		}
		train := submit
		submit = func(ctx context.Context, i int) (made submission, err error) {
			if drawn[i] {
				return train(ctx, i)
			}
			made.values, err = x.lanes.blank()
			return made, err
		}
	}
	if len(parties) == 0 {
		out.lost = errTooFew
		return out, nil
	}
	times := make([]time.Duration, len(parties))
	var adding sync.Mutex
	err = parallel(ctx, len(parties), func(k int) error {
		made, err := submit(ctx, parties[k])
		if err != nil && ctx.Err() == nil {
			return failure(round, parties[k], err)
		}
		if err != nil {
			return err
		}
		times[k] = made.train
		adding.Lock()
		defer adding.Unlock()
		out.sum = addRing(out.sum, made.values)
		return nil
	}, func(done int) {
		if x.Progress != nil {
			x.Progress(round, done, len(parties))
		}
	})
	if err != nil {
		return out, err
	}
	for _, d := range times {
		out.cost.Train += d
	}
	out.cost.Train /= time.Duration(max(len(out.included), 1))
	return out, nil
}

// addRing adds a submission to a sum, nil at first. The rings' moduli are powers
// of two, so that what is above them can be cut off later, once.
func addRing(sum, values [][]uint64) [][]uint64 {
	if sum == nil {
		return values
	}
	for s := range sum {
		for j, y := range values[s] {
			sum[s][j] += y
		}
	}
	return sum
}

// drawn returns the parties of a round, sorted.
func (x *training) drawn(round int) ([]int, error) {
	n := len(x.Parties)
	rng := rand.New(rand.NewPCG(x.derived("parties", round, 0), 0))
	switch {
	case x.Replay != nil:
		return x.Replay[round-1], nil
	case x.hidden():
		return x.drawnInSecret()
	case x.Poisson:
		var parties []int
		q := float64(x.PerRound) / float64(n)
		for i := range n {
			if rng.Float64() < q {
				parties = append(parties, i)
			}
		}
		return parties, nil
	case x.PerRound < n:
		parties := rng.Perm(n)[:x.PerRound]
		slices.Sort(parties)
		return parties, nil
	}
	return x.everybody(), nil
}

// drawnInSecret draws from Schedule.
func (x *training) drawnInSecret() (parties []int, err error) {
	r := x.Schedule
	if r == nil {
		r = crand.Reader
	}
	words := make([]uint64, len(x.Parties))
	if err := binary.Read(r, binary.BigEndian, words); err != nil {
		return nil, err
	}
	for i, w := range words {
		// w/2^64 < PerRound/n
		if high, _ := bits.Mul64(w, uint64(len(words))); high < uint64(x.PerRound) {
			parties = append(parties, i)
		}
	}
	return parties, nil
}

func (x *training) everybody() []int {
	all := make([]int, len(x.Parties))
	for i := range all {
		all[i] = i
	}
	return all
}

// derived returns a seed for one purpose.
func (x *training) derived(purpose string, round, party int) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%d %s %d %d", x.Seed, purpose, round, party)
	return h.Sum64()
}

// decode returns what the sum says; of Clear sums from the parties' own vectors.
func (x *training) decode(round int, out outcome, works []work) (sum total, err error) {
	if x.lanes == nil {
		sum.parties = len(out.included)
		sum.update = meanOf(out.included, func(i int) []float64 { return works[i].message.update })
		if x.Client.stored() {
			sum.control = meanOf(out.included, func(i int) []float64 { return works[i].message.control })
		}
		if x.Mask.Kind != aggregation.NoMask {
			signed := make([][]float64, len(out.included))
			for k, i := range out.included {
				signed[k] = works[i].message.signed
			}
			sum.signs, err = aggregation.SumSigns(signed...)
		}
		if x.adaptive != nil {
			sum.votes = []int64{0}
			for _, i := range out.included {
				sum.votes[0] += int64(works[i].message.voted[0])
			}
		}
		x.divide(&sum, sum.parties)
		return sum, err
	}
	layout, err := x.lanes.layout()
	if err != nil {
		return sum, err
	}
	for s, segment := range layout {
		cut(out.sum[s], segment.Bits)
	}
	parties := len(out.included)
	if x.hidden() {
		parties = len(x.Parties)
	}
	sum, err = x.lanes.decode(round, out.sum, parties)
	if err == nil {
		x.divide(&sum, parties)
	}
	if err == nil && x.hidden() {
		// How many were drawn is part of what sampling hides: means are over the number
		// expected, and weighted ones over the noisy sum of weights.
		sum.parties = x.PerRound
		if x.MaxSamples == 0 {
			scale(sum.update, float64(parties)/float64(x.PerRound))
		}
	}
	if err == nil && x.Noise != nil {
		scale(sum.update, x.norm/x.Noise.Clip)
	}
	return sum, err
}

// divide makes a weighted mean of the mean of weighted updates and weights.
func (x *training) divide(sum *total, parties int) {
	if x.MaxSamples > 0 {
		sum.update, _ = aggregation.WeightedMean(sum.update, parties, x.countNorm())
	}
}

// cut takes values modulo 2^bits.
func cut(values []uint64, bits int) {
	for i := range values {
		values[i] &= ^uint64(0) >> (64 - bits)
	}
}

// meanOf is the mean of the given parties' vectors, added in their order.
func meanOf(parties []int, of func(party int) []float64) []float64 {
	var mean []float64
	for _, i := range parties {
		v := of(i)
		if mean == nil {
			mean = make([]float64, len(v))
		}
		for j, y := range v {
			mean[j] += y
		}
	}
	for j := range mean {
		mean[j] /= float64(len(parties))
	}
	return mean
}

// move applies the server's rule, and all else that changes from round to round.
func (x *training) move(r *TrainingRound, sum total, included []int, works []work) error {
	r.Masked = 1
	var mask []float64
	var err error
	if sum.signs != nil {
		if mask, err = x.Mask.Weights(sum.signs, sum.parties); err != nil {
			return err
		}
		r.Masked = 0
		for _, m := range mask {
			r.Masked += m / float64(len(mask))
			if m < 1 {
				r.Disagreed += 1 / float64(len(mask))
			}
		}
	}
	next, err := x.server.Apply(x.model, sum.update, mask)
	if err != nil {
		return err
	}
	if sum.control != nil {
		if x.variate, err = aggregation.AdvanceVariate(x.variate, sum.control, len(included), len(x.Parties)); err != nil {
			return err
		}
		for _, i := range included {
			x.variates[i] = works[i].own
		}
	}
	r.ClipNorm = x.norm
	if len(included) > 0 {
		if err := x.observe(r, included, works); err != nil {
			return err
		}
	}
	switch {
	case x.adaptive != nil:
		if err := x.adaptive.Update(sum.votes[0], sum.parties); err != nil {
			return err
		}
		x.norm = x.adaptive.Norm
	case x.Clip.Factor > 0:
		if x.norm, err = aggregation.MeanNormClip(x.Clip.Factor, []float64{r.MeanNorm}); err != nil {
			return err
		}
	}
	x.last = make([]float64, len(next))
	for j, v := range next {
		if x.last[j] = v - x.model[j]; math.IsInf(x.last[j], 0) {
			return aggregation.ErrNotFinite
		}
	}
	x.model = next
	return nil
}

// observe says what clipping did.
func (x *training) observe(r *TrainingRound, included []int, works []work) (err error) {
	clipped, n := 0, float64(len(included))
	for _, i := range included {
		w := &works[i]
		r.Norms = append(r.Norms, min(w.norm, math.MaxFloat64))
		r.Cosines = append(r.Cosines, w.cosine)
		r.MaxNorm = max(r.MaxNorm, w.norm)
		r.MeanNorm += w.norm / n
		r.Cosine += w.cosine / n
		if w.clipped {
			clipped++
		}
	}
	r.Clipped = float64(clipped) / n
	r.Left = 1
	if x.norm > 0 {
		r.Left, r.Spread, err = aggregation.ClipSpread(r.Norms, x.norm)
	}
	return err
}
