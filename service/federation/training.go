package federation

import (
	"fmt"

	"github.com/hushsum/hushsum"
	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/job/old"
	"github.com/hushsum/hushsum/learning"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/privacy"
	"github.com/hushsum/hushsum/protocol"
	"github.com/hushsum/hushsum/service/tensor"
	"github.com/hushsum/hushsum/training"
)

// Training declares what parties do with a model in a round: one of package learning's,
// trained as package simulation does. Without it a party's own command trains. The names
// are those of hushsum simulate's flags.
type Training struct {
	Model  string  `toml:"model"`  // softmax, mlp:N,…, lenet, lenet-norm or logistic
	Lambda float64 `toml:"lambda"` // of L2 regularisation

	Epochs      int     `toml:"epochs"`
	Steps       int     `toml:"steps"`
	Batch       int     `toml:"batch"` // 0: all rows
	Rate        float64 `toml:"rate"`
	Momentum    float64 `toml:"momentum"`
	WeightDecay float64 `toml:"weight_decay"`

	Rule string  `toml:"rule"` // fedavg (default), fedprox, scaffold or fedga
	Mu   float64 `toml:"mu"`   // of fedprox
	Beta float64 `toml:"beta"` // of fedga
	// Variates are scaffold's: "" by steps (option II), "gradient" (option I) or "fresh".
	Variates string `toml:"variates"`
	// Mask is the gradient mask: none (default), soft or hard; MaskThreshold the agreement
	// from which on a coordinate counts in full.
	Mask          string  `toml:"mask"`
	MaskThreshold float64 `toml:"mask_threshold"`
	ByRows        bool    `toml:"by_rows"` // weigh parties by their rows
	Weights       bool    `toml:"weights"` // parties submit weights, not their change

	Range        float64 `toml:"range"` // largest coordinate without noise; 0: 64
	FractionBits int     `toml:"fraction_bits"`

	Rows Rows `toml:"rows"`
}

// Rows is the form of all parties' rows.
type Rows struct {
	Features int `toml:"features"`
	Classes  int `toml:"classes"`
	Most     int `toml:"most"` // with by_rows: who has more counts with so many
}

// earlierTraining returns the training that an earlier release's file declares for so many
// parties: that of the job that the file becomes.
func (f *Federation) earlierTraining(parties int) (o training.Options, j *job.Job, err error) {
	t := f.File.Training
	if t.Rows.Features < 1 || t.Rows.Classes < 2 {
		return o, nil, wrong(f.Text, "training.rows", "it does not say what rows are like",
			"write features, and classes from 2 on, under [training.rows]")
	}
	j, _, _, err = old.Read("federation.toml", f.Text, fmt.Sprintf("parties.count=%d", parties))
	if err != nil {
		return o, nil, fromEarlier(f.Text, err)
	}
	if o, err = training.OptionsOf(j); err != nil {
		return o, nil, fromEarlier(f.Text, err)
	}
	o.Server = *f.Optimizer() // with the numbers that its rule does not use
	return o, j, nil
}

// noise is the family that the file names, 0 for none.
func (f *Federation) noise() (family accounting.Family, err error) {
	name := f.File.Privacy.Noise
	if name == "" || name == "none" {
		return 0, nil
	}
	if err := family.UnmarshalText([]byte(name)); err != nil {
		advice := "use none"
		for _, known := range accounting.Families() {
			advice += ", " + known.String()
		}
		return 0, wrong(f.Text, "privacy.noise", fmt.Sprintf("there is no noise %.40q", name), advice)
	}
	return family, nil
}

// settleTraining finds what is summed, once the sessions are settled but for that.
func (f *Federation) settleTraining(session *protocol.Config) error {
	o, j, err := f.earlierTraining(session.Roster.Len())
	if err != nil {
		return err
	}
	if rounds := f.File.Rounds; o.Client.Sums() > 1 && rounds%2 != 0 {
		return wrong(f.Text, "rounds", fmt.Sprintf("the rule takes two sums for a step of the model, "+
			"one of gradients before it, and %d is odd", rounds), "use twice the number of steps")
	}
	n, d, t := session.Roster.Len(), o.Model.NumParams(), f.File.Training
	shape := job.LaneOptions{Parties: n, Dimension: d, Range: t.Range, FractionBits: t.FractionBits,
		MaxWeight: o.MaxSamples, Signs: o.Mask.Kind != aggregation.NoMask, Control: o.Client.Stored(),
		Clip: o.NoiseClip}
	if shape.Range == 0 {
		shape.Range = 64
	}
	if shape.FractionBits == 0 {
		shape.FractionBits = 20
	}
	if o.NoiseClip > 0 {
		if err := f.settleNoise(&shape, session); err != nil {
			return err
		}
	}
	lanes := job.NewLanes(shape)
	if f.layout, err = lanes.Layout(); err != nil {
		return wrong(f.Text, "training", err.Error(), "")
	}
	f.training = training.New(o, j, training.RoundLanes{Lanes: lanes})
	return f.begin()
}

// settleNoise finds the noise of a training that an earlier release's file declares.
func (f *Federation) settleNoise(shape *job.LaneOptions, session *protocol.Config) error {
	family, err := f.noise()
	if err != nil {
		return err
	}
	own := f.File.Privacy
	release := privacy.Release{
		Noise:     privacy.Noise{Family: family, Clip: own.Clip, Bits: own.Bits},
		Dimension: shape.Dimension,
		Contributors: privacy.Contributors{Parties: shape.Parties, Colluders: session.Colluders,
			MinSurvivors: session.Recovery.MinSurvivors},
	}
	if release.Noise.Bits == 0 {
		release.Noise.Bits = 32
	}
	if shape.MaxWeight > 0 { // the weight is one coordinate more
		release.Dimension++
		release.Noise.Clip *= aggregation.WeightedClip(aggregation.DefaultCountShare)
	}
	if shape.Signs {
		release.Signs = &privacy.Signs{Dimension: shape.Dimension, Part: 0.5}
	}
	terms := job.Terms{Release: release, Session: *session,
		Budget: privacy.Budget{Epsilon: own.Epsilon, Delta: own.Delta}.WithDefaults()}
	noise := &terms.Release.Noise
	if noise.Multiplier, err = release.Calibrate(terms.Budget, f.File.Rounds); err == nil {
		f.spends, err = terms.Settle()
	}
	if err != nil {
		return wrong(f.Text, "privacy", err.Error(), "")
	}
	shape.Noise = f.spends.Mechanism()
	return nil
}

// begin makes the first model of a training that is declared.
func (f *Federation) begin() error {
	f.Initial = f.training.Flat(f.training.First())
	f.Spec.Round(f.Initial)
	return nil
}

// trainedModel makes the tensors of a model that is trained as declared, before its
// sessions are settled.
func (f *Federation) trainedModel(parties int) error {
	m := f.File.Model
	switch {
	case m.File != "" || len(m.Tensors) != 0 || m.Init != "":
		return wrong(f.Text, "model", "[training] makes the model",
			"leave out tensors, file and init; dtype may stay")
	case len(m.Personal) != 0:
		return wrong(f.Text, "model.personal", "no part of a model of [training] stays with a party",
			"leave it out")
	case f.File.Metrics.Share != 0:
		return wrong(f.Text, "metrics.share", "the training that is declared sums no metrics",
			"leave it out")
	}
	if m.DType == "" {
		f.Spec.DType = tensor.Float64
	}
	_, j, err := f.earlierTraining(parties)
	if err != nil {
		return err
	}
	return f.trainedTensors(j)
}

// trainedTensors makes the tensors of a training that is declared.
func (f *Federation) trainedTensors(j *job.Job) error {
	if d := j.Model.Numbers(); d < 1 || d > masking.MaxLength/4 {
		return wrong(f.Text, "training.model", fmt.Sprintf("it has %d weights", d), "use a smaller one")
	}
	for _, t := range j.Standing() {
		f.Spec.Tensors = append(f.Spec.Tensors, tensor.Tensor{Name: t.Name, Shape: t.Shape})
	}
	return nil
}

// Standing reads what a model says of a training that is declared, which began with a
// broadcast; nil: none is at hand. It fails with tensor.ErrFormat.
func (f *Federation) Standing(model []float64, broadcast []byte) (*training.Standing, error) {
	s, err := f.training.Standing(model)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", tensor.ErrFormat, err)
	}
	if broadcast != nil {
		s.Public = hushsum.BroadcastDigest(broadcast)
	}
	return s, nil
}

// Exchanges returns how many sums a step of the model takes.
func (f *Federation) Exchanges() int {
	if f.training == nil {
		return 1
	}
	return f.training.Exchanges()
}

// Exact reports whether models travel as they are computed.
func (f *Federation) Exact() bool { return f.Spec.DType == tensor.Float64 }

// Learner returns the model whose training is declared, nil if none is.
func (f *Federation) Learner() learning.Model {
	if f.training == nil {
		return nil
	}
	return f.training.Model()
}

// FixedPoint returns the range and the binary places of coordinates without noise.
func (f *Federation) FixedPoint() (limit float64, fractionBits int) {
	if f.job != nil {
		return f.job.Sum.Range, f.job.Sum.FractionBits
	}
	return f.File.Training.Range, f.File.Training.FractionBits
}

// Weights returns the part of a model that is one of package learning, if the training is
// declared, else all of it.
func (f *Federation) Weights(model []float64) []float64 {
	if f.training == nil {
		return model
	}
	return model[:f.Spec.Tensors[0].Len()]
}

// Trained returns the training that is declared, nil if none is. It fails with a
// [job.ConfigError] if rows are not of its form.
func (f *Federation) Trained(rows *learning.Dataset) (*training.Training, error) {
	if f.training == nil {
		return nil, nil
	}
	if e := job.Errors(f.training.Fits(rows)); len(e) > 0 {
		return nil, wrong(f.Text, e[0].Path, e[0].Reason, e[0].Advice)
	}
	return f.training, nil
}
