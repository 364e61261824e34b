package simulation

import (
	"fmt"
	"io"
	"math"
	"time"

	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/learning"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/protocol"
)

// Training is a federated training of any model by any of the papers' rules:
// what each party does, what is summed, and how, and what the server makes of the
// sum. [Train] runs it. The fields from Model to Rounds must be set; the zero
// value of all others is federated averaging of all parties, in the clear.
type Training struct {
	Model   learning.Model
	Parties []*learning.Dataset // the rows of each, at least two parties
	Test    *learning.Dataset   // what models are judged on
	Rounds  int                 // at least 1

	// PerRound is how many parties are in a round, drawn by Seed; 0: all.
	PerRound int
	// Poisson has every party train in a round with probability PerRound/len(Parties)
	// instead, independently of all others. With Noise sampling then counts against
	// those who see released models only, and to hide who was drawn, and how many,
	// all parties submit: those not drawn send zeros with their share of the noise,
	// and means divide by PerRound, whatever the number drawn. It is not for Private
	// sums, whose schedule is public.
	Poisson bool
	// Schedule is what the draws of Poisson sampling with Noise are made of, which
	// must be secret; nil: crypto/rand. Seed is none, since the first model may tell it.
	Schedule io.Reader

	// Replay, if not nil, says who is in the sum of each round in place of a draw, as
	// TrainingRound.Included had it, in ascending order; nobody: the round is lost. It
	// is how Private sums are repeated without masks, and not for Private sums or with
	// Noise.
	Replay [][]int

	// Local is a party's training in a round. Its Adjust must be nil.
	Local learning.SGD
	// Client is the parties' rule.
	Client ClientRule

	// Server is the server's rule and Mask the gradient mask before its step.
	Server aggregation.Optimizer
	Mask   aggregation.GradientMask

	Clip Clipping

	// MaxSamples, if above 0, weighs updates by the parties' numbers of rows, s_n/Σs, by
	// two sums: see aggregation.Weighted. A party with more rows counts as one with
	// MaxSamples, which bounds what it adds. 0: all parties count equally. Signs do in any
	// case.
	MaxSamples int

	// Sum is how updates are summed. Range and FractionBits are those of
	// aggregation.Mean, for sums without noise; 0: 64 and 20.
	Sum          Sum
	Range        float64
	FractionBits int // up to aggregation.MaxFractionBits
	// Recovery, Colluders and Drop are as in [Options], for Private sums.
	Recovery  *protocol.Recovery
	Colluders int
	Drop      float64

	// Noise adds noise to the sums, for differential privacy; nil: none. Its Clip is
	// that of difference clipping, so that Clip must be empty but for Adaptive.
	Noise *Noise
	// SignShare is the part of the privacy budget 1/z² that the sums of signs get if
	// there are both noise and a mask, above 0 and below 1; 0: a half.
	SignShare float64

	Seed uint64 // of models, draws and batches
	// EvaluateEvery is after how many rounds the model is judged; 0: 1. It always is
	// after the last one.
	EvaluateEvery int

	Now      func() time.Time          // as in Options
	Progress func(round, done, of int) // as in Options, with the parties of the round
}

// Sum is how the parties' vectors are summed.
type Sum int

const (
	// Clear sums float64 vectors, without rounding.
	Clear Sum = iota
	// Ring sums what a private sum would, encoded and with noise but without masks, at
	// a fraction of the cost. Without noise the outcome for the same parties is that of
	// Private bit for bit; who is drawn when PerRound is not all differs, see Replay.
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

// ClientKind is the rule by which parties train.
type ClientKind int

const (
	// FedAvg is plain local training (McMahan 2017).
	FedAvg ClientKind = iota
	// FedProx pulls towards the round's model: see aggregation.Proximal.
	FedProx
	// SCAFFOLD corrects every gradient by control variates: see
	// aggregation.Scaffold. It takes parties without momentum.
	SCAFFOLD
	// FedGA displaces the start by how far a party's gradient is from the mean,
	// which takes a sum of gradients before every round: see aggregation.Displace.
	// With one local step it is GradAlign.
	FedGA
)

func (k ClientKind) String() string {
	switch k {
	case FedAvg:
		return "fedavg"
	case FedProx:
		return "fedprox"
	case SCAFFOLD:
		return "scaffold"
	case FedGA:
		return "fedga"
	}
	return fmt.Sprintf("rule(%d)", int(k))
}

// ClientRule is a rule with its parameter.
type ClientRule struct {
	Kind ClientKind
	Mu   float64 // of FedProx, 0 or more
	Beta float64 // of FedGA, 0 or more
	// OptionI has SCAFFOLD take the gradient at the round's model for the new control
	// variate, which costs a pass over the rows; otherwise the mean of the gradients
	// on the way, option II.
	OptionI bool
	// Fresh has SCAFFOLD correct by the gradients at the round's model, own and mean,
	// instead of control variates from earlier rounds: "Implicit Gradient Alignment"
	// compares with that. It takes a sum of gradients before every round, as FedGA does.
	Fresh bool
}

// stored reports whether parties keep control variates from round to round.
func (c ClientRule) stored() bool { return c.Kind == SCAFFOLD && !c.Fresh }

// exchanges is how many sums a round takes.
func (c ClientRule) exchanges() int {
	if c.Kind == FedGA || c.Fresh {
		return 2
	}
	return 1
}

// ClipKind is what is clipped to an L2 norm.
type ClipKind int

const (
	// NoClip clips nothing.
	NoClip ClipKind = iota
	// DifferenceClip clips updates, the differences of models.
	DifferenceClip
	// ModelClip clips the weights themselves. It is worse, as "Understanding Clipping
	// for Federated Learning" shows, and there to be compared.
	ModelClip
)

// Clipping is how updates are bounded without noise.
type Clipping struct {
	Kind ClipKind
	// Norm is the L2 norm, above 0. With Factor it is the first round's.
	Norm float64
	// Factor, if above 0, has each round clip to Factor times the mean update norm of
	// the round before, which nothing protects.
	Factor float64
	// Adaptive has the norm follow a quantile of the update norms by votes that are
	// summed with the updates, from Norm on: see aggregation.AdaptiveClip. Its own
	// Norm is not read.
	Adaptive *aggregation.AdaptiveClip
}

// settle fills in defaults.
func (t Training) settle() Training {
	if t.Range == 0 {
		t.Range = 64
	}
	if t.FractionBits == 0 {
		t.FractionBits = 20
	}
	if t.PerRound == 0 {
		t.PerRound = len(t.Parties)
	}
	if t.SignShare == 0 {
		t.SignShare = .5
	}
	if t.EvaluateEvery == 0 {
		t.EvaluateEvery = 1
	}
	return t
}

// Validate returns an [OptionError] for the first field that is outside its range
// or does not go with the others.
func (t Training) Validate() error {
	t = t.settle()
	parties := len(t.Parties)
	switch {
	case t.Model == nil:
		return bad("Model", "", "there is none")
	case parties < 2:
		return bad("Parties", "the sum of one party is that party's update, so use at least 2", "%d is too few", parties)
	case t.Test == nil || t.Test.Len() == 0:
		return bad("Test", "", "there are no test rows")
	case t.Rounds < 1:
		return bad("Rounds", "use at least 1", "%d is too few", t.Rounds)
	case t.PerRound < 2 || t.PerRound > parties:
		return bad("PerRound", "", "%d is outside 2 to %d", t.PerRound, parties)
	case t.Local.Epochs < 0:
		return bad("Local.Epochs", "use 0 or more", "%d is too few", t.Local.Epochs)
	case t.Local.Steps < 0:
		return bad("Local.Steps", "use 0 or more", "%d is too few", t.Local.Steps)
	case t.Local.Epochs > 0 && t.Local.Steps > 0:
		return bad("Local.Steps", "set one of Epochs and Steps", "%d steps and %d epochs", t.Local.Steps, t.Local.Epochs)
	case t.Local.Batch < 0:
		return bad("Local.Batch", "use 0 for all rows", "%d is too few", t.Local.Batch)
	case !(t.Local.Rate > 0) || math.IsInf(t.Local.Rate, 1):
		return bad("Local.Rate", "use a number above 0, such as 0.1", "%v is no learning rate", t.Local.Rate)
	case !(t.Local.Momentum >= 0 && t.Local.Momentum < 1):
		return bad("Local.Momentum", "use 0 to below 1", "%v is no momentum", t.Local.Momentum)
	case !(t.Local.WeightDecay >= 0) || math.IsInf(t.Local.WeightDecay, 1):
		return bad("Local.WeightDecay", "use 0 or more", "%v is no weight decay", t.Local.WeightDecay)
	case t.Local.Adjust != nil:
		return bad("Local.Adjust", "set Client", "it is the client rule's")
	case t.Client.Kind < FedAvg || t.Client.Kind > FedGA:
		return bad("Client.Kind", "", "%v is no rule", t.Client.Kind)
	case !(t.Client.Mu >= 0) || math.IsInf(t.Client.Mu, 1) || t.Client.Mu != 0 && t.Client.Kind != FedProx:
		return bad("Client.Mu", "use FedProx with 0 or more, and no other rule with it", "%v is no pull of this rule", t.Client.Mu)
	case !(t.Client.Beta >= 0) || math.IsInf(t.Client.Beta, 1) || t.Client.Beta != 0 && t.Client.Kind != FedGA:
		return bad("Client.Beta", "use FedGA with 0 or more, and no other rule with it", "%v is no displacement of this rule", t.Client.Beta)
	case t.Client.Kind == SCAFFOLD && t.Local.Momentum != 0 && !t.Client.OptionI && !t.Client.Fresh:
		return bad("Local.Momentum", "use 0, or OptionI or Fresh", "the control variates of SCAFFOLD are means of gradients")
	case t.Client.Kind != SCAFFOLD && (t.Client.OptionI || t.Client.Fresh), t.Client.OptionI && t.Client.Fresh:
		return bad("Client.Fresh", "use SCAFFOLD with one of OptionI and Fresh", "the rule has no such variates")
	case t.MaxSamples < 0:
		return bad("MaxSamples", "use 0 or more", "%d is too few", t.MaxSamples)
	case t.Sum < Clear || t.Sum > Private:
		return bad("Sum", "", "%v is no way to sum", t.Sum)
	case t.Replay != nil && (t.Sum == Private || t.Poisson || t.Noise != nil || len(t.Replay) < t.Rounds):
		return bad("Replay", "use Clear or Ring, without Poisson and Noise, and a list for each round", "%d lists", len(t.Replay))
	case t.Sum == Private && t.Poisson:
		return bad("Poisson", "use Ring, or leave it out", "the schedule of a private sum is public, and of fixed size")
	case t.Sum != Private && (t.Recovery != nil || t.Drop != 0):
		return bad("Recovery", "use Private", "recovery and drop-outs are of the protocol")
	case !(t.Drop >= 0 && t.Drop <= 1):
		return bad("Drop", "use a number from 0 to 1", "%v is no fraction", t.Drop)
	case t.Drop > 0 && t.Recovery == nil:
		return bad("Drop", "set Recovery, or use 0", "without recovery every party must submit")
	case t.Sum == Private && parties > MaxClients:
		return bad("Parties", fmt.Sprintf("use at most %d", MaxClients), "%d is too many for private sums", parties)
	case t.EvaluateEvery < 0:
		return bad("EvaluateEvery", "use 0 or more", "%d is too few", t.EvaluateEvery)
	case t.Schedule != nil && !t.hidden():
		return bad("Schedule", "leave it out", "it is for Poisson sampling with Noise")
	case !(t.SignShare > 0 && t.SignShare < 1):
		return bad("SignShare", "use a number between 0 and 1", "%v", t.SignShare)
	}
	for _, included := range t.Replay {
		for k, i := range included {
			if i < 0 || i >= parties || k > 0 && i <= included[k-1] {
				return bad("Replay", "name every party once, in ascending order", "party %d is none, or out of order", i)
			}
		}
	}
	if n := t.Model.NumParams(); n < 1 || n > masking.MaxLength {
		return bad("Model", "", "it has %d weights, and sums have 1 to %d", n, masking.MaxLength)
	}
	if err := t.Server.Validate(); err != nil {
		return &OptionError{Option: "Server", Reason: err.Error(), Err: err}
	}
	if t.Sum == Private {
		if _, err := effectiveRecovery(t.PerRound, t.Recovery, t.Colluders); err != nil {
			return err
		}
	}
	if t.Noise == nil && t.Sum != Clear {
		if err := t.validateMean(); err != nil {
			return err
		}
	}
	if err := t.Mask.Validate(); err != nil {
		return &OptionError{Option: "Mask", Reason: err.Error(), Err: err}
	}
	if err := t.validateClip(); err != nil {
		return err
	}
	return t.validatePrivacy()
}

// validateMean checks how sums without noise are encoded.
func (t Training) validateMean() error {
	switch {
	case !(t.Range > 0) || math.IsInf(t.Range, 1):
		return bad("Range", "use a number above 0, such as 64", "%v bounds no weight", t.Range)
	case t.FractionBits < 0 || t.FractionBits > aggregation.MaxFractionBits:
		return bad("FractionBits", "", "%d is outside 0 to %d", t.FractionBits, aggregation.MaxFractionBits)
	}
	s, err := t.survivors()
	if err != nil {
		return err
	}
	mean := aggregation.Mean{Parties: s.parties, Dimension: 1, Range: t.Range, FractionBits: t.FractionBits}
	if _, err := mean.Layout(); err != nil {
		return &OptionError{
			Option: "FractionBits",
			Reason: fmt.Sprintf("the sum of %d parties, updates up to %v, %d fraction bits, could leave 64 bits", s.parties, t.Range, t.FractionBits),
			Advice: "use fewer fraction bits, a smaller range or fewer parties",
			Err:    err,
		}
	}
	return nil
}

func (t Training) validateClip() error {
	c := t.Clip
	positive := c.Norm >= 0x1p-500 && c.Norm <= 0x1p500
	switch {
	case c.Kind < NoClip || c.Kind > ModelClip:
		return bad("Clip.Kind", "", "%d is no way to clip", c.Kind)
	case c.Kind == NoClip && (c.Norm != 0 || c.Factor != 0):
		return bad("Clip.Kind", "use DifferenceClip", "there is a norm and nothing to clip")
	case c.Kind != NoClip && !positive:
		return bad("Clip.Norm", "use a number above 0", "%v bounds no norm", c.Norm)
	case !(c.Factor >= 0) || math.IsInf(c.Factor, 1):
		return bad("Clip.Factor", "use a number above 0, or 0 for a fixed norm", "%v is no factor", c.Factor)
	case c.Factor > 0 && c.Adaptive != nil:
		return bad("Clip.Factor", "use one of Factor and Adaptive", "the norm can follow the mean or a quantile, not both")
	case c.Adaptive != nil && c.Kind == ModelClip, c.Factor > 0 && c.Kind == ModelClip:
		return bad("Clip.Kind", "use DifferenceClip", "model clipping has a fixed norm")
	case c.Adaptive != nil && c.Kind == NoClip && t.Noise == nil:
		return bad("Clip.Kind", "use DifferenceClip", "the norm adapts and nothing is clipped")
	}
	if c.Adaptive != nil {
		adaptive := *c.Adaptive
		adaptive.Norm = 1
		if err := adaptive.Validate(); err != nil {
			return &OptionError{Option: "Clip.Adaptive", Reason: err.Error(), Err: err}
		}
	}
	return nil
}

func (t Training) validatePrivacy() error {
	if t.Noise == nil {
		return nil
	}
	switch {
	case t.Sum == Clear:
		return bad("Sum", "use Ring or Private", "noise is of whole numbers")
	case t.Clip.Kind != NoClip:
		return bad("Clip", "leave Clip.Kind out", "noise takes the norm of Noise.Clip")
	case t.Clip.Adaptive != nil && t.Mask.Kind != aggregation.NoMask:
		return bad("Clip.Adaptive", "use one of Mask and Adaptive", "signs and votes cannot both have noise")
	case t.Client.Kind == SCAFFOLD:
		return bad("Client.Kind", "use another rule with noise", "nothing bounds what a control variate says about a party")
	case t.Client.Kind == FedGA:
		return bad("Client.Kind", "use another rule with noise", "nothing bounds what the sum of gradients says about a party")
	}
	return t.Noise.validate()
}
