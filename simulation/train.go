package simulation

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/learning"
	"github.com/hushsum/hushsum/protocol"
)

// TrainingRound is the outcome of one round of a [Training].
type TrainingRound struct {
	Round    int   // from 1
	Clients  int   // parties in the sum, 0 if the round is lost
	Included []int // which they are
	Dropped  int   // of Private sums
	Lost     error // as in Round; with Poisson sampling also too few parties

	// Test judges the model, on the rounds that EvaluateEvery says; else it is nil.
	Test *learning.Matrix

	// What clipping does, over the parties that submitted: the norms of their updates
	// (with ModelClip, of their weights) before it, the share that was clipped, the norm in force, and the cosine of
	// updates and the last step of the model, a mean, 0 in the first round. All are
	// what an experimenter sees, and nothing protects them.
	MeanNorm, MaxNorm float64
	Clipped           float64
	ClipNorm          float64
	Cosine            float64
	// Masked is the mean factor of the gradient mask, 1 without.
	Masked float64

	Server, Public accounting.Spent // as in Round, +Inf without noise
	Cost           Cost             // as in Round; without Private sums only Train
}

// Trained is the outcome of a [Training], as far as it went.
type Trained struct {
	Rounds  []TrainingRound
	Model   []float64
	Stopped *accounting.OverBudget // as in Summary
	Setup   Cost                   // of Private sums
}

// Final returns how the last model was judged, nil if none was.
func (t *Trained) Final() *learning.Matrix {
	for _, r := range slices.Backward(t.Rounds) {
		if r.Test != nil {
			return r.Test
		}
	}
	return nil
}

// training is the state of a [Training] that runs.
type training struct {
	Training
	lanes   *lanes // nil for Clear sums
	budget  *budget
	updates *session // of Private sums, else nil
	aligned *session // for the gradients of FedGA under Private sums
	align   aggregation.Mean

	model    []float64
	last     []float64   // the last step of the model, nil at first
	variate  []float64   // SCAFFOLD's c
	variates [][]float64 // and c_i, nil for zero
	norm     float64     // that updates are clipped to
	adaptive *aggregation.AdaptiveClip
	server   aggregation.Server
}

// Train runs a training. It calls report, if that is not nil, after every round. It
// fails as [Run] does, and returns what was done until then.
func Train(ctx context.Context, t Training, report func(TrainingRound)) (*Trained, error) {
	if err := t.Validate(); err != nil {
		return nil, err
	}
	x, err := newTraining(t.settle())
	if err != nil {
		return nil, err
	}
	defer x.erase()
	out := &Trained{}
	if out.Setup, err = x.setUp(ctx); err != nil {
		return out, failure(0, -1, err)
	}
	for round := 1; round <= x.Rounds; round++ {
		r := TrainingRound{Round: round}
		r.Server, r.Public = withoutNoise()
		if x.budget != nil {
			if r.Server, r.Public, err = x.budget.spend(); errors.As(err, &out.Stopped) {
				break
			} else if err != nil {
				return out, failure(round, -1, err)
			}
		}
		if err := x.playRound(ctx, &r); err != nil {
			out.Model = x.model
			return out, failure(round, -1, err)
		}
		out.Rounds = append(out.Rounds, r)
		if report != nil {
			report(r)
		}
	}
	out.Model = x.model
	if n := len(out.Rounds); n > 0 && out.Rounds[n-1].Test == nil {
		last := &out.Rounds[n-1]
		if err := x.evaluate(last); err != nil {
			return out, failure(last.Round, -1, err)
		}
	}
	return out, nil
}

// Calibrate returns the least Noise.Multiplier, to 0.1 %, with which all rounds keep
// every party within Noise.Epsilon; see [Options.Calibrate].
func (t Training) Calibrate() (float64, error) {
	if t.Noise == nil || t.Noise.Epsilon == 0 {
		return 0, &OptionError{Option: "Noise.Epsilon", Reason: "there is no budget to calibrate to", Advice: "use a number above 0, such as 4"}
	}
	n := *t.Noise
	n.Multiplier = 1
	t.Noise = &n
	if err := t.Validate(); err != nil {
		return 0, err
	}
	t = t.settle()
	return calibrate(&n, t.Rounds, func(z float64) (accounting.Round, error) {
		without := t
		without.Noise = nil
		l, err := without.newLanes()
		if err == nil {
			l.plain = nil
			err = t.addNoise(l, z)
		}
		if err != nil {
			return accounting.Round{}, err
		}
		return l.round(&t), nil
	})
}

func newTraining(t Training) (*training, error) {
	x := &training{Training: t, server: t.Server, norm: t.Clip.Norm}
	x.model = t.Model.Init(t.Seed)
	if t.Now == nil {
		x.Now = func() time.Time { return time.Time{} }
	}
	if t.Client.Kind == SCAFFOLD {
		x.variate = make([]float64, len(x.model))
		x.variates = make([][]float64, len(t.Parties))
	}
	if t.Noise != nil {
		x.norm = t.Noise.Clip
	}
	if t.Clip.Adaptive != nil {
		adaptive := *t.Clip.Adaptive
		adaptive.Norm = x.norm
		x.adaptive = &adaptive
	}
	if t.Sum == Clear {
		return x, nil
	}
	var err error
	if x.lanes, err = t.newLanes(); err != nil {
		return nil, err
	}
	if t.Noise != nil {
		if x.budget, err = newBudget(t.Noise, len(t.Parties), x.lanes.round(&t)); err != nil {
			return nil, err
		}
	}
	x.align = aggregation.Mean{Parties: x.lanes.survivors.parties, Dimension: len(x.model), Range: t.Range, FractionBits: t.FractionBits}
	if t.Sum == Private {
		err = x.newSessions()
	}
	return x, err
}

// newSessions makes the sessions of private sums. Gradients have one of their own.
func (x *training) newSessions() error {
	layout, err := x.lanes.layout()
	if err != nil {
		return err
	}
	n := len(x.Parties)
	config := protocol.Config{Layout: layout, Recovery: x.Recovery}
	if x.PerRound < n {
		config.PerRound = x.PerRound
		config.Seed = sha256.Sum256(binary.BigEndian.AppendUint64([]byte("hushsum simulation: schedule"), x.Seed))
	}
	drops := func() *dropOuts {
		return newDropOuts(&Options{Seed: x.Seed, Clients: n, Drop: x.Drop})
	}
	if x.updates, err = newSession(n, config, drops(), x.Now, x.shown); err != nil {
		return err
	}
	if x.Client.Kind != FedGA {
		return nil
	}
	if config.Layout, err = x.align.Layout(); err != nil {
		return err
	}
	x.aligned, err = newSession(n, config, drops(), x.Now, nil)
	return err
}

// shown passes progress on.
func (x *training) shown(round, done int) {
	if x.Progress != nil {
		x.Progress(round, done, len(x.Parties))
	}
}

func (x *training) setUp(ctx context.Context) (cost Cost, err error) {
	for _, s := range []*session{x.updates, x.aligned} {
		if s == nil {
			continue
		}
		one, err := s.setUp(ctx)
		if err != nil {
			return cost, err
		}
		cost.add(one)
	}
	return cost, nil
}

func (x *training) erase() {
	for _, s := range []*session{x.updates, x.aligned} {
		if s != nil {
			s.erase()
		}
	}
}

// work is what one party made of a round.
type work struct {
	message message
	own     []float64 // SCAFFOLD's next c_i
	norm    float64   // of the update before clipping
	cosine  float64
	clipped bool
}

// playRound runs one round and moves the model.
func (x *training) playRound(ctx context.Context, r *TrainingRound) error {
	mean, cost, err := x.meanGradient(ctx, r.Round)
	r.Cost = cost
	if errors.Is(err, errTooFew) || errors.Is(err, protocol.ErrTooFew) {
		r.Lost = err
		err = x.updates.skip()
	}
	if err != nil {
		return err
	}
	works := make([]work, len(x.Parties))
	var sum total
	var included []int
	if r.Lost == nil {
		out, err := x.sum(ctx, x.updates, r.Round, func(ctx context.Context, i int) (submission, error) {
			return x.takePart(ctx, r.Round, i, mean, &works[i])
		})
		if err != nil {
			return err
		}
		r.Dropped, r.Lost = out.dropped, out.lost
		r.Cost.add(out.cost)
		included = out.included
		if r.Lost == nil {
			if sum, err = x.decode(r.Round, out, works); err != nil {
				return err
			}
		}
	}
	if r.Lost == nil {
		r.Clients, r.Included = len(included), included
		if err := x.move(r, sum, included, works); err != nil {
			return err
		}
	}
	if r.Round%x.EvaluateEvery == 0 || r.Round == x.Rounds {
		return x.evaluate(r)
	}
	return nil
}

// evaluate judges the model.
func (x *training) evaluate(r *TrainingRound) error {
	matrix, err := learning.Evaluate(x.Model, x.model, x.Test)
	r.Test = &matrix
	return err
}

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
	parties := x.drawn(round)
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
	err := parallel(ctx, len(parties), func(k int) error {
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
func (x *training) drawn(round int) []int {
	n := len(x.Parties)
	rng := rand.New(rand.NewPCG(x.derived("parties", round, 0), 0))
	switch {
	case x.Replay != nil:
		return x.Replay[round-1]
	case x.Poisson:
		var parties []int
		q := float64(x.PerRound) / float64(n)
		for i := range n {
			if rng.Float64() < q {
				parties = append(parties, i)
			}
		}
		return parties
	case x.PerRound < n:
		parties := rng.Perm(n)[:x.PerRound]
		slices.Sort(parties)
		return parties
	}
	return x.everybody()
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

// meanGradient is FedGA's first sum, with its cost; nil for other rules.
func (x *training) meanGradient(ctx context.Context, round int) (mean []float64, cost Cost, err error) {
	if x.Client.Kind != FedGA {
		return nil, cost, nil
	}
	clear := make([][]float64, len(x.Parties))
	out, err := x.sum(ctx, x.aligned, round, func(_ context.Context, i int) (made submission, err error) {
		g := make([]float64, len(x.model))
		if err = x.Model.Gradient(g, x.model, x.Parties[i]); err != nil {
			return made, err
		}
		if x.lanes == nil {
			clear[i] = g
			return made, nil
		}
		made.values, err = x.align.Encode(g)
		return made, err
	})
	switch {
	case err != nil:
		return nil, cost, err
	case out.lost != nil:
		return nil, out.cost, out.lost
	case x.lanes == nil:
		return meanOf(out.included, func(i int) []float64 { return clear[i] }), out.cost, nil
	}
	layout, err := x.align.Layout()
	if err != nil {
		return nil, cost, err
	}
	cut(out.sum[0], layout[0].Bits)
	mean, err = x.align.Decode(out.sum, len(out.included))
	return mean, out.cost, err
}

// takePart is a party's round: train, clip, encode.
func (x *training) takePart(ctx context.Context, round, i int, mean []float64, w *work) (made submission, err error) {
	if err := ctx.Err(); err != nil {
		return made, err
	}
	start := x.Now()
	update, err := x.localUpdate(round, i, mean, w)
	if err != nil {
		return made, err
	}
	made.train = x.Now().Sub(start)
	if x.last != nil {
		if w.cosine, err = aggregation.Cosine(update, x.last); err != nil {
			return made, err
		}
	}
	w.message.signed = update
	if w.message.update, err = x.clipped(update, w); err != nil {
		return made, err
	}
	if x.lanes != nil {
		made.values, err = x.lanes.encode(round, w.message)
		w.message = message{} // what the server must not see is not kept
	}
	return made, err
}

// localUpdate trains a party's copy of the model and returns the difference.
func (x *training) localUpdate(round, i int, mean []float64, w *work) ([]float64, error) {
	local := x.Local
	rows := x.Parties[i]
	begin := slices.Clone(x.model)
	var own aggregation.Scaffold
	var gradient []float64
	var err error
	switch x.Client.Kind {
	case FedProx:
		if x.Client.Mu != 0 { // a hook, even one that does nothing, takes another path
			local.Adjust, err = aggregation.Proximal(x.Client.Mu, x.model)
		}
	case SCAFFOLD:
		own = aggregation.Scaffold{Server: x.variate, Own: x.variates[i]}
		if own.Own == nil {
			own.Own = make([]float64, len(x.model))
		}
		local.Adjust, err = own.Adjust()
	case FedGA:
		gradient = make([]float64, len(x.model))
		if err = x.Model.Gradient(gradient, x.model, rows); err == nil {
			begin, err = aggregation.Displace(x.model, mean, gradient, x.Client.Beta)
		}
	}
	if err != nil {
		return nil, err
	}
	steps, err := local.Train(x.Model, begin, rows, x.derived("batches", round, i))
	if err != nil {
		return nil, err
	}
	if x.Client.Kind == SCAFFOLD {
		if x.Client.OptionI {
			gradient = make([]float64, len(x.model))
			if err := x.Model.Gradient(gradient, x.model, rows); err != nil {
				return nil, err
			}
			w.own, w.message.control, err = own.FromGradient(gradient)
		} else {
			w.own, w.message.control, err = own.FromSteps(x.model, begin, steps, local.Rate)
		}
		if err != nil {
			return nil, err
		}
	}
	if x.Clip.Kind == ModelClip {
		if begin, w.norm, err = aggregation.Clip(begin, x.norm); err != nil {
			return nil, err
		}
		w.clipped = w.norm > x.norm
	}
	for j, v := range x.model {
		begin[j] -= v
	}
	return begin, nil
}

// clipped bounds the update as it will be encoded, and says whether that took
// anything away.
func (x *training) clipped(update []float64, w *work) ([]float64, error) {
	if x.Clip.Kind == ModelClip {
		return update, nil
	}
	if x.norm == 0 {
		_, norm, err := aggregation.Clip(update, 1)
		w.norm = norm
		return update, err
	}
	clipped, norm, err := aggregation.Clip(update, x.norm)
	w.norm, w.clipped = norm, norm > x.norm
	if x.adaptive != nil {
		w.message.voted = x.adaptive.Vote(norm)
	}
	if x.Noise != nil {
		scale(clipped, x.Noise.Clip/x.norm)
	}
	return clipped, err
}

func scale(v []float64, by float64) {
	if by == 1 {
		return
	}
	for i := range v {
		v[i] *= by
	}
}

// decode returns what the sum says; of Clear sums from the parties' own vectors.
func (x *training) decode(round int, out outcome, works []work) (sum total, err error) {
	if x.lanes == nil {
		sum.parties = len(out.included)
		sum.update = meanOf(out.included, func(i int) []float64 { return works[i].message.update })
		if x.Client.Kind == SCAFFOLD {
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
	if err == nil && x.hidden() {
		// How many were drawn is part of what sampling hides: means are over the number
		// expected.
		sum.parties = x.PerRound
		scale(sum.update, float64(parties)/float64(x.PerRound))
	}
	if err == nil && x.Noise != nil {
		scale(sum.update, x.norm/x.Noise.Clip)
	}
	return sum, err
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
		x.observe(r, included, works)
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
func (x *training) observe(r *TrainingRound, included []int, works []work) {
	clipped, n := 0, float64(len(included))
	for _, i := range included {
		w := &works[i]
		r.MaxNorm = max(r.MaxNorm, w.norm)
		r.MeanNorm += w.norm / n
		r.Cosine += w.cosine / n
		if w.clipped {
			clipped++
		}
	}
	r.Clipped = float64(clipped) / n
}
