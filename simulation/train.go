package simulation

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"slices"
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
	// (with ModelClip, of their weights) before it, the share that was clipped, the
	// norm in force, and the cosine of updates and the last step of the model, a mean,
	// 0 in the first round. All are what an experimenter sees, and nothing protects
	// them.
	MeanNorm, MaxNorm float64
	Clipped           float64
	ClipNorm          float64
	Cosine            float64
	// Norms and Cosines are those of each party of Included.
	Norms, Cosines []float64
	// Left and Spread are ᾱ and the mean of |α_i − ᾱ| of aggregation.ClipSpread; 1 and 0
	// without clipping.
	Left, Spread float64
	// Masked is the mean factor of the gradient mask, 1 without, and Disagreed the share
	// of coordinates that it takes below 1.
	Masked, Disagreed float64
	// Model is the model after the round, for what is given to report only: no result
	// keeps a model of every round.
	Model []float64
	// Exchanges is how many sums the round took: two for FedGA and fresh variates.
	Exchanges int

	Server, Public accounting.Spent // as in Round, +Inf without noise
	Cost           Cost             // as in Round; without Private sums only Train
}

// Trained is the outcome of a [Training], as far as it went.
type Trained struct {
	Rounds         []TrainingRound
	Model          []float64
	Setup          Cost                   // of Private sums
	Stopped        *accounting.OverBudget // as in Summary
	Server, Public accounting.Spent       // as in Summary
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
	server   aggregation.Optimizer
}

// Train runs a training. It calls report, if that is not nil, after every round. It
// fails as [Run] does, and returns what was done until then. A budget that not even
// one round is within is no failure: there are no rounds then, and Stopped says why.
func Train(ctx context.Context, t Training, report func(TrainingRound)) (*Trained, error) {
	if err := t.Validate(); err != nil {
		return nil, err
	}
	x, err := newTraining(t.settle())
	if err != nil {
		return nil, err
	}
	defer x.erase()
	out := &Trained{Model: x.model}
	if out.Server, out.Public, err = x.budget.spent(); err != nil {
		return out, failure(0, -1, err)
	}
	if err := x.checkData(); err != nil {
		return out, err
	}
	if out.Setup, err = x.setUp(ctx); err != nil {
		return out, failure(0, -1, err)
	}
	for round := 1; round <= x.Rounds; round++ {
		server, public, err := x.budget.spend()
		if errors.As(err, &out.Stopped) {
			break
		}
		if err != nil {
			return out, failure(round, -1, err)
		}
		out.Server, out.Public = server, public
		r := TrainingRound{Round: round, Server: server, Public: public}
		err = x.playRound(ctx, &r)
		out.Model = x.model
		if err != nil {
			return out, failure(round, -1, err)
		}
		out.Rounds = append(out.Rounds, r)
		if report != nil {
			r.Model = x.model
			report(r)
		}
	}
	if n := len(out.Rounds); n > 0 && out.Rounds[n-1].Test == nil {
		last := &out.Rounds[n-1]
		if err := x.evaluate(last); err != nil {
			return out, failure(last.Round, -1, err)
		}
	}
	return out, nil
}

// checkData finds rows that do not fit the model, with noise those of parties too,
// while nothing is spent yet.
func (x *training) checkData() error {
	if _, err := learning.Evaluate(x.Model, x.model, x.Test); err != nil {
		return &OptionError{Option: "Test", Reason: "it does not go with the model: " + err.Error(), Err: err}
	}
	if x.Noise == nil {
		return nil
	}
	for i, rows := range x.Parties {
		if _, err := x.Model.Loss(x.model, rows); err != nil {
			return failure(0, i, err)
		}
	}
	return nil
}

func newTraining(t Training) (*training, error) {
	x := &training{Training: t, server: t.Server, norm: t.Clip.Norm}
	x.model = t.Model.Init(t.Seed)
	if t.Now == nil {
		x.Now = func() time.Time { return time.Time{} }
	}
	if t.Client.stored() {
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
	config := protocol.Config{Layout: layout, Recovery: x.Recovery, Colluders: x.Colluders}
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
	if x.Client.exchanges() < 2 {
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

// playRound runs one round and moves the model.
func (x *training) playRound(ctx context.Context, r *TrainingRound) error {
	mean, cost, err := x.meanGradient(ctx, r.Round)
	r.Cost, r.Exchanges = cost, x.Client.exchanges()
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
