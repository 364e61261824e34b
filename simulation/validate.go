package simulation

import (
	"errors"
	"fmt"
	"math"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/protocol"
	"github.com/hushsum/hushsum/training"
)

// Validate returns a [job.ConfigError], by the job's field, for the first option that is out of its
// range or does not go with the others. Only [Options.Layout] and [Run] find whether the noise
// fits the ring and can be sampled.
func (o Options) Validate() error {
	s := o.settled()
	for _, check := range []func() error{
		s.validateSizes, s.validateLocal, s.validateRules, s.validateWho, s.validateSums, s.validateClip,
		s.validateRecords, s.validateBands, s.validatePrivacy,
	} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

func (o *Options) validateSizes() error {
	parties := len(o.Parties)
	switch {
	case o.Model == nil:
		return bad("model.name", "", "there is none")
	case parties < 2:
		return bad("parties.count", "the sum of one party is that party's update, so use at least 2",
			"%d is too few", parties)
	case o.Sum == Private && o.Oneshot == nil && parties > maxParties:
		return bad("parties.count",
			fmt.Sprintf("every pair shares keys, so use at most %d", maxParties),
			"%d is too many", parties)
	case o.Test == nil || o.Test.Len() == 0:
		return bad("Test", "", "there are no test rows")
	case o.Rounds < 1:
		return bad("rounds", "use at least 1", "%d is too few", o.Rounds)
	case o.EvaluateEvery < 0:
		return bad("world.evaluate_every", "use 0 or more", "%d is too few", o.EvaluateEvery)
	}
	for i, rows := range o.Parties {
		if rows == nil || rows.Len() == 0 {
			return bad("parties.count", "every party needs at least 1 row", "party %d has no rows", i)
		}
	}
	if n := o.Model.NumParams(); n < 1 || n > masking.MaxLength {
		return bad("model.name", "", "it has %d weights, and sums have 1 to %d", n, masking.MaxLength)
	}
	return nil
}

func (o *Options) validateLocal() error {
	l := o.Local
	switch {
	case l.Epochs < 0:
		return bad("training.epochs", "use 0 or more", "%d is too few", l.Epochs)
	case l.Steps < 0:
		return bad("training.steps", "use 0 or more", "%d is too few", l.Steps)
	case l.Epochs > 0 && l.Steps > 0:
		return bad("training.steps", "set one of Epochs and Steps", "%d steps and %d epochs", l.Steps,
			l.Epochs)
	case l.Batch < 0:
		return bad("training.batch", "use 0 for all rows", "%d is too few", l.Batch)
	case !(l.Rate > 0) || !finite(l.Rate):
		return bad("training.rate", "use a number above 0, such as 0.1",
			"%v is not a learning rate", l.Rate)
	case !(l.Momentum >= 0 && l.Momentum < 1):
		return bad("training.momentum", "use 0 to below 1", "%v is not a momentum", l.Momentum)
	case !(l.WeightDecay >= 0) || !finite(l.WeightDecay):
		return bad("training.weight_decay", "use 0 or more", "%v is not a weight decay", l.WeightDecay)
	case l.Adjust != nil:
		return bad("Local.Adjust", "set Client", "it is the client rule's")
	case l.Interrupt != nil:
		return bad("Local.Interrupt", "end the context", "it is the run's")
	}
	return nil
}

func (o *Options) validateRules() error {
	c := o.Client
	switch {
	case c.Kind < training.FedAvg || c.Kind > training.FedGA:
		return bad("training.rule", "", "%v is not a rule", c.Kind)
	case !(c.Mu >= 0) || !finite(c.Mu) || c.Mu != 0 && c.Kind != training.FedProx:
		return bad("training.mu", "use FedProx with 0 or more, and no other rule with it",
			"%v is not a pull of this rule", c.Mu)
	case !(c.Beta >= 0) || !finite(c.Beta) || c.Beta != 0 && c.Kind != training.FedGA:
		return bad("training.beta", "use FedGA with 0 or more, and no other rule with it",
			"%v is not a displacement of this rule", c.Beta)
	case c.Kind == training.SCAFFOLD && o.Local.Momentum != 0 && !c.OptionI && !c.Fresh:
		return bad("training.momentum", "use 0, or OptionI or Fresh",
			"the control variates of SCAFFOLD are means of gradients")
	case c.Kind != training.SCAFFOLD && (c.OptionI || c.Fresh), c.OptionI && c.Fresh:
		return bad("training.variates", "use SCAFFOLD with one of OptionI and Fresh",
			"the rule has no such variates")
	case o.MaxSamples < 0:
		return bad("sum.max_weight", "use 0 or more", "%d is too few", o.MaxSamples)
	case o.Models && (o.Server.Rule != aggregation.RuleFedAvg ||
		o.Server.Rate != 0 && o.Server.Rate != 1):
		return bad("training.submit", "leave it out", "a mean of models has no server's rule")
	case o.Models && o.Mask.Kind != aggregation.NoMask:
		return bad("training.submit", "leave it out", "a gradient mask is for updates")
	}
	if err := o.Server.Validate(); err != nil {
		return because("server.rate", err)
	}
	if err := o.Mask.Validate(); err != nil {
		return because("training.mask", err)
	}
	return nil
}

// validateWho checks who is in a round.
func (o *Options) validateWho() error {
	parties := len(o.Parties)
	switch {
	case o.PerRound < 2 || o.PerRound > parties:
		return bad("parties.per_round", "", "%d is outside 2 to %d", o.PerRound, parties)
	case o.Participations < 0 || o.Participations > 0 &&
		(o.Sum == Private || o.Hidden > 0 || o.Replay != nil):
		return bad("parties.participations", "use Clear or Ring, without Hidden and Replay",
			"%d rounds of a party", o.Participations)
	case o.Participations > 0 && parties*o.Participations < o.Rounds*o.PerRound:
		return bad("parties.participations", "use more, or fewer rounds or parties a round",
			"%d parties in %d rounds each are too few for %d rounds of %d", parties, o.Participations,
			o.Rounds, o.PerRound)
	case !(o.Hidden >= 0 && o.Hidden <= 1):
		return bad("parties.hidden", "use a probability, or 0 for all in each round",
			"%v is none", o.Hidden)
	case o.Hidden > 0 && (o.PerRound < parties || o.Oneshot != nil):
		return bad("parties.hidden", "leave out PerRound and Oneshot",
			"with secret coins all parties submit")
	case o.Hidden > 0 && o.Sum == Private && o.Noise == nil:
		return bad("parties.hidden", "use Noise, or Ring", "zeros without noise are visible")
	case o.Random != nil && !o.hidden():
		return bad("Random", "leave it out", "it is for Hidden with Noise")
	case o.Replay == nil:
		return nil
	case o.Sum == Private || o.Hidden > 0 || o.Noise != nil || len(o.Replay) < o.Rounds:
		return bad("Replay", "use Clear or Ring, without Hidden and Noise, and a list for each round",
			"%d lists", len(o.Replay))
	}
	for _, included := range o.Replay {
		for k, i := range included {
			if i < 0 || i >= parties || k > 0 && i <= included[k-1] {
				return bad("Replay", "name every party once, in ascending order",
					"party %d is none, or out of order", i)
			}
		}
	}
	return nil
}

// validateSums checks how submissions are encoded and summed.
func (o *Options) validateSums() error {
	switch {
	case o.Sum < Clear || o.Sum > Private:
		return bad("world.fidelity", "", "%v is not a way to sum", o.Sum)
	case o.Sum != Private && o.Recovery != nil && (o.Recovery.MinSurvivors < 1 || *o.Recovery !=
		protocol.Recovery{MinSurvivors: o.Recovery.MinSurvivors}):
		return bad("parties.drop_out", "use Private, or MinSurvivors alone",
			"all else is of the protocol")
	case o.Sum != Private && o.Recovery != nil && o.fewest() > o.PerRound:
		return bad("parties.drop_out", "use 1 up to the parties of a round", "%d of %d parties",
			o.fewest(), o.PerRound)
	case o.Sum != Private && o.Recovery != nil && o.PerRound-o.DropOuts() < o.fewest():
		return bad("world.drop", "use less, or fewer as Recovery's MinSurvivors",
			"of %d messages %d are lost, and a sum needs %d", o.PerRound, o.DropOuts(), o.fewest())
	case o.LostRounds < 0 || o.LostRounds > 0 && o.LostRounds >= o.Rounds:
		return bad("world.lost_rounds", "use less than all rounds, or 0",
			"%d of %d are lost", o.LostRounds,
			o.Rounds)
	case o.LostRounds > 0 && o.Sum == Private:
		return bad("world.lost_rounds", "use Ring or Clear",
			"sums simulated by message are lost through what parties do")
	case o.Sum != Private && o.Colluders != 0:
		return bad("parties.colluders", "use Private",
			"the server of other sums sees nothing that others could help it with")
	case o.Oneshot != nil && o.Sum != Private:
		return bad("sum.protocol", "use Private", "a committee is of the protocol")
	case o.Oneshot != nil && o.PerRound < len(o.Parties):
		return bad("parties.per_round", "leave it out", "a one-message sum takes all parties")
	case !(o.Malicious >= 0 && o.Malicious < 1):
		return bad("world.malicious", "use a number from 0 to below 1, such as 0.05",
			"%v is not a share of the parties", o.Malicious)
	case o.Malicious > 0 && (o.Oneshot == nil || o.Noise == nil ||
		o.Oneshot.Covered && !o.Oneshot.Bounded):
		return bad("world.malicious", "use Oneshot, not Covered but with Bounded, and Noise, or 0",
			"parties cheat in one-message sums with a clip")
	case !(o.Drop >= 0 && o.Drop <= 1):
		return bad("world.drop", "use a number from 0 to 1, such as 0.1 for a tenth of the parties",
			"%v is not a fraction", o.Drop)
	case o.Drop > 0 && o.Recovery == nil:
		return bad("world.drop", "set Recovery, or use 0",
			"without recovery every party must submit, and none may drop out")
	case !(o.Range > 0) || !finite(o.Range):
		return bad("sum.range", "use a number above 0, such as 64", "%v bounds nothing", o.Range)
	case o.FractionBits < 0 || o.FractionBits > aggregation.MaxFractionBits:
		return bad("sum.fraction_bits", "", "%d is outside 0 to %d", o.FractionBits,
			aggregation.MaxFractionBits)
	}
	if o.Sum == Private {
		if _, err := effectiveRecovery(o.PerRound, o.Recovery, o.Colluders); err != nil {
			return err
		}
	}
	if o.Noise != nil || o.Sum == Clear {
		return nil
	}
	return o.validateRing()
}

// ringLane is the lane of one coordinate without noise.
func (o *Options) ringLane() *job.Lanes {
	return job.NewLanes(job.LaneOptions{Parties: o.PerRound, Dimension: 1, Range: o.Range,
		FractionBits: o.FractionBits, MaxWeight: o.MaxSamples})
}

// validateRing checks that a sum without noise cannot wrap, and names the option that
// is most to blame if it can: the one without which it could not.
func (o *Options) validateRing() error {
	_, err := o.ringLane().Layout()
	if err == nil {
		return nil
	}
	if !errors.Is(err, aggregation.ErrWrap) {
		return because("sum.fraction_bits", err)
	}
	field := "sum.fraction_bits"
	less := *o
	less.FractionBits = 0
	if _, err := less.ringLane().Layout(); err != nil {
		field = "sum.range"
	}
	rows := ""
	if o.MaxSamples > 0 {
		rows = fmt.Sprintf(" %d rows each,", o.MaxSamples)
	}
	what := "updates"
	if o.Models {
		what = "weights"
	}
	return &job.ConfigError{
		Path: field,
		Reason: fmt.Sprintf("the sum of %d parties,%s %s up to %v, %d fraction bits, could leave 64 bits",
			o.PerRound, rows, what, o.Range, o.FractionBits),
		Advice: "use a smaller sum.range, a smaller sum.fraction_bits, or fewer rows or parties",
		Err:    err,
	}
}

func (o *Options) validateClip() error {
	c := o.Clip
	positive := c.Norm >= 0x1p-500 && c.Norm <= 0x1p500
	switch {
	case c.Kind < training.NoClip || c.Kind > training.ModelClip:
		return bad("privacy.clip", "", "%d is not a way to clip", c.Kind)
	case c.Kind == training.NoClip && (c.Norm != 0 || c.Factor != 0):
		return bad("privacy.clip", "use DifferenceClip", "there is a norm and nothing to clip")
	case c.Kind != training.NoClip && !positive:
		return bad("privacy.clip", "use a number above 0", "%v bounds no norm", c.Norm)
	case !(c.Factor >= 0) || math.IsInf(c.Factor, 1):
		return bad("privacy.clip", "use a number above 0, or 0 for a fixed norm", "%v is not a factor",
			c.Factor)
	case c.Factor > 0 && c.Adaptive != nil:
		return bad("privacy.clip", "use one of Factor and Adaptive",
			"the norm can follow the mean or a quantile, not both")
	case (c.Adaptive != nil || c.Factor > 0) && c.Kind == training.ModelClip:
		return bad("privacy.clip", "use DifferenceClip", "model clipping has a fixed norm")
	case c.Adaptive != nil && c.Kind == training.NoClip && o.Noise == nil:
		return bad("privacy.clip", "use DifferenceClip", "the norm adapts and nothing is clipped")
	case o.Models && c.Kind == training.DifferenceClip:
		return bad("privacy.clip", "use ModelClip, or leave Models out",
			"with models there is no difference to clip")
	case c.Adaptive == nil:
		return nil
	}
	adaptive := *c.Adaptive
	adaptive.Norm = 1
	if err := adaptive.Validate(); err != nil {
		return because("privacy.clip_quantile", err)
	}
	return nil
}

func (o *Options) validateRecords() error {
	r := o.Records
	if o.Average < 0 || o.Average > o.Rounds {
		return bad("server.average", "use 0 to Rounds",
			"there is no mean of the last %d models", o.Average)
	}
	switch {
	case r == nil:
		return nil
	case o.Noise == nil && o.Sum != Clear:
		return bad("privacy.unit", "set Noise, or sum in the clear",
			"without noise nothing protects a record")
	case r.Batch < 1 || !(r.Clip > 0) || !finite(r.Clip) || !(r.Lambda >= 0) || !finite(r.Lambda):
		return bad("privacy.unit", "use a batch of at least 1, and a clip above 0",
			"batch %d, clip %v, lambda %v", r.Batch, r.Clip, r.Lambda)
	case o.Noise != nil && o.Noise.Clip != r.Clip:
		return bad("privacy.clip", "use the same",
			"it is %v, and that of records %v", o.Noise.Clip, r.Clip)
	case o.Client.Kind != training.FedAvg || o.Mask.Kind != aggregation.NoMask || o.MaxSamples > 0 ||
		o.Models || o.Oneshot != nil || o.Clip.Kind != training.NoClip || o.Clip.Adaptive != nil:
		return bad("privacy.unit", "leave the other out",
			"sums over records do not combine with another rule, mask, weight, clip or protocol")
	case o.PerRound < len(o.Parties) || o.Hidden > 0 || o.Replay != nil:
		return bad("privacy.unit", "leave PerRound, Hidden and Replay out",
			"all parties are in each round")
	}
	return nil
}

func (o *Options) validateBands() error {
	b := o.Factorise
	switch {
	case b == 0:
		return nil
	case b < 2 || b > o.Rounds || b > len(o.Parties):
		return bad("privacy.factorise", "use 2 up to the number of rounds, and of parties",
			"%d rounds of %d parties have no bands of %d", o.Rounds, len(o.Parties), b)
	case o.Noise == nil:
		return bad("privacy.factorise", "set Noise", "there is no noise to correlate")
	case o.PerRound < len(o.Parties) || o.Participations > 0 || o.Hidden > 0 || o.Replay != nil:
		return bad("privacy.factorise", "leave the other out",
			"parties take turns, and submit in each round")
	case o.Records != nil || o.Mask.Kind != aggregation.NoMask || o.MaxSamples > 0 ||
		o.Clip.Adaptive != nil || o.Oneshot != nil:
		return bad("privacy.factorise", "leave the other out",
			"parts of an update do not combine with records, a mask, a weight, a quantile or a "+
				"one-message sum")
	}
	return nil
}

func (o *Options) validatePrivacy() error {
	switch {
	case !(o.SignShare > 0 && o.SignShare < 1):
		return bad("privacy.sign_share", "use a number between 0 and 1", "%v is not a share", o.SignShare)
	case o.Noise == nil && o.Oneshot != nil && o.Oneshot.CommitteeNoise:
		return bad("privacy.noise_by", "leave out CommitteeNoise", "a committee has no noise to add")
	case o.Noise == nil:
		return nil
	case o.Sum == Clear:
		return bad("world.fidelity", "use Ring or Private", "noise consists of whole numbers")
	case o.Models:
		return bad("training.submit", "leave it out", "noise is for updates, which are clipped")
	case o.Clip.Kind != training.NoClip:
		return bad("privacy.clip", "leave Clip.Kind out", "noise takes the norm of Noise.Clip")
	case o.Oneshot != nil && o.Noise.Family != accounting.FamilyDiscreteGaussian:
		return bad("privacy.noise", "use discrete Gaussian noise",
			"%v noise does not hide the keys of a one-message sum", o.Noise.Family)
	case o.Oneshot != nil && (o.Mask.Kind != aggregation.NoMask || o.Clip.Adaptive != nil):
		return bad("sum.protocol", "leave out the mask or the noise",
			"all coordinates of a one-message sum have the same noise")
	case o.Clip.Adaptive != nil && o.Mask.Kind != aggregation.NoMask:
		return bad("privacy.clip_quantile", "use one of Mask and Adaptive",
			"signs and votes cannot both have noise")
	case o.Client.Kind == training.SCAFFOLD:
		return bad("training.rule", "use another rule with noise",
			"nothing bounds what a control variate reveals about a party")
	case o.Client.Kind == training.FedGA:
		return bad("training.rule", "use another rule with noise",
			"nothing bounds what the sum of gradients reveals about a party")
	}
	if err := o.Noise.Validate(); err != nil {
		return ofPrivacy(err)
	}
	if err := o.Budget.Validate(); err != nil {
		return ofPrivacy(err)
	}
	release, err := o.release()
	if err != nil {
		return err
	}
	return ofPrivacy(release.Validate())
}
