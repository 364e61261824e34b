package training

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/learning"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/privacy"
)

// Training holds what a job's parties and server do, for the program that carries the sums: what a
// party submits, and what follows from a sum. It keeps nothing from one call to the next and is
// safe for concurrent use.
type Training struct {
	options Options
	parties int
	rounds  int          // of the training
	form    []job.Tensor // of a model
	narrow  bool         // it is sent as float32
	rows    job.Model    // features and classes
	settled *job.Settled
}

// Standing holds what a training has come to, and all that parties are told of it.
type Standing struct {
	Model []float64
	// Round is that of the training, from 1, and Exchange which of its sums is next: 1, or
	// 2 of rules that sum gradients first.
	Round, Exchange int
	Variate         []float64 // SCAFFOLD's c, of rules that store control variates
	// Counted is for each party the round of the last sum that it was in, with such
	// variates: from it a party learns which of its own hold.
	Counted  []int
	Gradient []float64 // mean of the parties', in exchange 2
	Mean     []float64 // of the models of the last rounds, where that is the last model
	Standard Standard  // of features, where records standardise
	// Earlier are the last decoded sums, of a job whose noise is correlated, the latest first. With
	// Number, the round's in the job, which is the caller's to say as Public is, they tell
	// parties which of theirs go on.
	Earlier []privacy.Decoded
	Number  uint64
	// Moments holds what the server's rule remembers, of a model that holds them; nil before its
	// first step.
	Moments [][]float64
	// Public is the digest of what the round's broadcast began with, which nobody could choose:
	// fresh for every sum.
	Public [32]byte
}

// Of returns the training that a job declares, which names its model. It fails with a
// [job.ConfigError].
func Of(s *job.Settled) (*Training, error) {
	j := s.Job()
	if j.Model.Name == "" {
		return nil, &job.ConfigError{Path: "model.name", Reason: "the job declares no training",
			Advice: `write model.name = "logistic", or train with a program`}
	}
	o, err := OptionsOf(j)
	if err != nil {
		return nil, err
	}
	if o.Clip.Adaptive != nil {
		return nil, noQuantile(j)
	}
	o.Band = s.Band()
	return &Training{
		options: o,
		parties: j.Size(),
		rounds:  j.Rounds,
		form:    j.Standing(),
		narrow:  j.Model.DType == "float32",
		rows:    j.Model,
		settled: s,
	}, nil
}

// OptionsOf returns how a job trains. It fails with a [job.ConfigError] where features and classes
// are not known, or make no model.
func OptionsOf(declared *job.Job) (o Options, err error) {
	j := declared.WithDefaults()
	t := &j.Training
	model, err := newModel(j.Model.Name, j.Model.Features, j.Model.Classes, t.Lambda)
	if err != nil || model.NumParams() == 0 {
		return o, declared.Mistake("model.name", "", "it makes no model: %v", err)
	}
	o = Options{
		Model: model,
		Local: learning.SGD{Rate: t.Rate, Momentum: t.Momentum, WeightDecay: t.WeightDecay,
			Batch: t.Batch, Epochs: t.Epochs, Steps: t.Steps},
		Client:     ClientRule{Kind: ClientRules[t.Rule]},
		Server:     *Optimizer(j),
		Mask:       mask(j),
		MaxSamples: j.MaxRows(),
		Models:     t.Submit == "weights",
		Restart:    t.Restart,
		Seed:       j.Seed,
		Rounds:     j.Rounds,
		Average:    int(math.Ceil(j.Server.Average*float64(j.Rounds) - 1e-9)),
	}
	switch o.Client.Kind {
	case FedProx:
		o.Client.Mu = t.Mu
	case FedGA:
		o.Client.Beta = t.Beta
	case SCAFFOLD:
		o.Client.OptionI, o.Client.Fresh = t.Variates == "gradient", t.Variates == "fresh"
	}
	if p := &j.Privacy; j.PerRecord() {
		o.Records = &Records{Coins: *j.Records(), Clip: p.Clip, Batch: j.Batch(), Lambda: t.Lambda,
			Persons: p.Group != "", Standardise: t.Standardise}
	} else if j.Noisy() {
		o.NoiseClip = p.Clip
	} else if p.Clip > 0 {
		o.Clip = Clipping{Kind: DifferenceClip, Norm: p.Clip}
	}
	if p := &j.Privacy; p.ClipQuantile > 0 {
		o.Clip.Adaptive = &aggregation.AdaptiveClip{Quantile: p.ClipQuantile, Rate: p.ClipRate}
	}
	return o, nil
}

// mask returns a job's.
func mask(j *job.Job) aggregation.GradientMask {
	t := j.WithDefaults().Training
	m := aggregation.GradientMask{Kind: masks[t.Mask]}
	if m.Kind != aggregation.NoMask {
		m.Threshold = t.MaskThreshold
	}
	return m
}

// Optimizer returns the server's rule of a job, at its beginning.
func Optimizer(j *job.Job) *aggregation.Optimizer {
	own := j.WithDefaults().Server
	o := &aggregation.Optimizer{Rule: ServerRules[own.Rule], Rate: own.Rate, Beta1: own.Beta1}
	if o.Rule != aggregation.RuleFedAvg && o.Rule != aggregation.RuleMomentum {
		o.Beta2, o.Tau, o.TauInside = own.Beta2, own.Tau, own.TauInside
	}
	return o
}

// Layout returns the segments of a submission, the same for all sums.
func (t *Training) Layout() masking.Layout { return t.settled.Layout() }

// Options returns how the model is trained.
func (t *Training) Options() Options { return t.options }

// Model returns what is trained.
func (t *Training) Model() learning.Model { return t.options.Model }

// Judged returns the model of a standing, which judges rows as its training does: of features that
// are standardised, if they are. It fails with errors of aggregation.
func (t *Training) Judged(s *Standing) (learning.Model, error) {
	l, err := t.learner(s, 0, nil)
	if err != nil {
		return nil, err
	}
	return l.Model, nil
}

// Exchanges returns how many sums a step of the model takes.
func (t *Training) Exchanges() int { return t.options.Client.Sums() }

// Stored reports whether parties keep control variates.
func (t *Training) Stored() bool { return t.options.Client.Stored() }

// First returns the standing before the first sum.
func (t *Training) First() *Standing {
	s := &Standing{Model: t.options.Model.Init(t.options.Seed), Round: 1, Exchange: 1}
	if t.Stored() {
		s.Variate = make([]float64, len(s.Model))
		s.Counted = make([]int, t.parties)
	}
	if t.Exchanges() > 1 {
		s.Gradient = make([]float64, len(s.Model))
	}
	return s
}

// learner returns one that stands where s does, with the rows of one party.
func (t *Training) learner(s *Standing, party int, rows *learning.Dataset) (*Learner, error) {
	of := make([]*learning.Dataset, t.parties)
	if rows != nil {
		of[party] = rows
	}
	l := NewLearner(t.options, of)
	l.Weights, l.Variate = s.Model, s.Variate
	l.Earlier, l.Number, l.Standard = s.Earlier, s.Number, s.Standard
	return l, l.standardise()
}

// Fits returns a [job.ConfigError] if rows are not of the job's form, or more records than all
// parties have by the job.
func (t *Training) Fits(rows *learning.Dataset) error {
	if r := t.options.Records; r != nil {
		if err := r.Fits(rows); err != nil {
			return err
		}
	}
	if rows.Features == t.rows.Features && classesOf(rows) <= t.rows.Classes {
		return nil
	}
	return &job.ConfigError{Path: "model.features",
		Reason: fmt.Sprintf("it says %d features and %d classes, and the party's rows have %d and %d",
			t.rows.Features, t.rows.Classes, rows.Features, classesOf(rows))}
}

// message has a party train on its rows, with what it keeps. It fails with what training fails
// with.
func (t *Training) message(
	ctx context.Context, s *Standing, party int, rows *learning.Dataset, kept *variates,
) (w Work, err error) {
	l, err := t.learner(s, party, rows)
	if err != nil {
		return w, err
	}
	if t.Stored() {
		l.Variates[party] = kept.Own
	}
	if l.Band != nil {
		l.Begun[party] = kept.Begun
	}
	if s.Exchange < t.Exchanges() {
		gradient, err := l.Gradient(party)
		if err != nil {
			return w, err
		}
		w.Message = job.Update[float64]{
			Vector:  gradient,
			Samples: 1,
			Signed:  make([]float64, len(gradient)),
		}
		return w, nil
	}
	return l.TakePart(ctx, s.Round, party, s.Gradient)
}

// Advance returns the standing that follows from a sum of the submissions of some
// parties; Public is left to the caller. optimizer is the server's rule, which
// remembers. The sum is cut to its rings. It fails with the errors of aggregation.
func (t *Training) Advance(
	s *Standing, optimizer *aggregation.Optimizer, sum [][]uint64, included []int,
) (*Standing, error) {
	total, err := t.settled.Decode(s.Public, sum, t.settled.Counts(included))
	if err != nil {
		return nil, err
	}
	after := *s
	if s.Exchange < t.Exchanges() {
		after.Gradient, after.Exchange = total.Mean, s.Exchange+1
		return &after, nil
	}
	l, err := t.learner(s, 0, nil)
	if err != nil {
		return nil, err
	}
	l.Optimizer = *optimizer
	l.Decode(&total)
	after.Earlier = l.Earlier
	if after.Model, _, err = l.Next(total); err != nil {
		return nil, err
	}
	for _, v := range after.Model {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, aggregation.ErrNotFinite
		}
	}
	l.Weights, l.Mean = after.Model, s.Mean
	if err := l.settleMean(s.Round); err != nil {
		return nil, err
	}
	after.Model, after.Mean, after.Standard = l.Weights, l.Mean, l.Standard
	if total.Control != nil {
		if after.Variate, err = aggregation.AdvanceVariate(s.Variate, total.Control, len(included),
			t.parties); err != nil {
			return nil, err
		}
		after.Counted = slices.Clone(s.Counted)
		for _, i := range included {
			after.Counted[i] = s.Round
		}
	}
	*optimizer = l.Optimizer
	after.Round, after.Exchange = s.Round+1, 1
	if after.Gradient != nil {
		after.Gradient = make([]float64, len(s.Model))
	}
	return &after, nil
}
