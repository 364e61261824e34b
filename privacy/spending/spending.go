// Package spending describes the runs that people ask about by name: a mechanism, how much
// noise it adds, how often it is used and on what part of the clients. It turns them into
// what package accounting composes.
package spending

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/internal/fault"
	"github.com/hushsum/hushsum/privacy"
)

// mechanisms are the names of the laws of noise.
var mechanisms = []string{"gaussian", "laplace", "discrete-gaussian", "discrete-laplace", "skellam"}

// Run is a mechanism with its repetitions.
type Run struct {
	Mechanism string // one of the laws of noise: gaussian, laplace, discrete-gaussian, …
	// How much noise: one of these is above 0. Scale is the standard deviation of a
	// Gaussian and of Skellam, the parameter σ of a discrete Gaussian and b or t of
	// Laplace's, in the units of Sensitivity; Variance its square.
	NoiseMultiplier float64 // Scale over Sensitivity
	Scale           float64
	Variance        float64

	Rate   float64 // probability with which a client is in a round, above 0 to 1
	Rounds int
	// Participations, if not 0, is the most of Of rounds that a client submits in, by its own
	// ledger and no matter who picks them, and Rounds is then 1.
	Participations, Of int
	// Sensitivity is by how much a client changes the sum: the L1 norm for Laplace's, L2
	// otherwise.
	Sensitivity float64
	Dimension   int // coordinates; matters for discrete Gaussian and Skellam
	Shares      int // independent discrete Gaussians that the noise is the sum of
	ReplaceOne  bool
	// Factorise, if not 0, is the number of rounds over which a client's vector is submitted in
	// parts: see [privacy.Band]. Sensitivity bounds all parts of it together, and the client is
	// charged once.
	Factorise int
	// Unit says whom the run is about. For records, a coin that their party keeps to itself decides
	// at Rate, which amplifies in both views.
	Unit accounting.Unit
	View accounting.View
}

// mostRounds is the most that the accountant takes.
const mostRounds = 1 << 40

// Check returns a privacy.ConfigError for the first field that no accountant can take.
// searched is a field that is to be found, "" if none is: it is not looked at.
func (r *Run) Check(searched string) error {
	discrete := r.Mechanism != "gaussian" && r.Mechanism != "laplace"
	vector := r.Mechanism == "discrete-gaussian" || r.Mechanism == "skellam"
	bad := func(field, advice, format string, a ...any) error {
		return &privacy.ConfigError{Field: field, Reason: fmt.Sprintf(format, a...), Advice: advice}
	}
	if !slices.Contains(mechanisms, r.Mechanism) {
		return bad("Mechanism", "use one of "+strings.Join(mechanisms, ", "), "%.40q is none",
			r.Mechanism)
	}
	if searched != "NoiseMultiplier" {
		if err := r.checkNoise(bad); err != nil {
			return err
		}
	}
	scale := r.scale()
	switch {
	case searched != "Rate" && !(r.Rate > 0 && r.Rate <= 1):
		return bad("Rate", "use a number above 0, at most 1", "%v is not a probability of taking part",
			r.Rate)
	case searched != "Rounds" && r.Rounds < 1:
		return bad("Rounds", "use 1 or more", "%d is too few", r.Rounds)
	case searched != "Rounds" && int64(r.Rounds) > mostRounds:
		return bad("Rounds", "use up to 2^40", "%d is too many", r.Rounds)
	case !(r.Sensitivity > 0) || math.IsInf(r.Sensitivity, 1):
		return bad("Sensitivity", "use a number above 0", "%v bounds nothing", r.Sensitivity)
	case r.Dimension < 1:
		return bad("Dimension", "use 1 or more", "%d is too few", r.Dimension)
	case r.Shares < 1:
		return bad("Shares", "use 1 or more", "%d is too few", r.Shares)
	case r.Dimension > 1 && !vector:
		return bad("Dimension", "leave it out", "under %s noise all vectors are as one coordinate",
			r.Mechanism)
	case r.Shares > 1 && r.Mechanism != "discrete-gaussian":
		return bad("Shares", "leave it out", "shares of %s noise add up exactly", r.Mechanism)
	case discrete && !r.Lanes() && r.Sensitivity != math.Trunc(r.Sensitivity):
		return bad("Sensitivity", "count in units of the integers",
			"%v is not whole, and the noise is on the integers", r.Sensitivity)
	case discrete && r.Sensitivity > 1<<30:
		return bad("Sensitivity", "", "%v is more than 2^30", r.Sensitivity)
	case discrete && searched != "NoiseMultiplier" && !(scale >= 0x1p-300 && scale <= 0x1p300):
		return bad("NoiseMultiplier", "use a number nearer to 1",
			"%v times the sensitivity is beyond what can be squared", r.Noise())
	}
	if r.Participations != 0 || r.Of != 0 {
		if err := r.checkParticipations(searched, bad); err != nil {
			return err
		}
	}
	if r.Factorise != 0 {
		if err := r.checkBands(searched, bad); err != nil {
			return err
		}
	}
	switch {
	case r.ReplaceOne && r.Lanes():
		return bad("ReplaceOne", "leave it out", "there is no bound for vectors")
	case r.ReplaceOne && r.Mechanism == "laplace" && r.rate() < 1:
		return bad("ReplaceOne", "leave out one of the two, or use gaussian or discrete-laplace",
			"there is no bound for laplace noise with a rate below 1")
	}
	return nil
}

// checkBands refuses what no theorem about bands covers.
func (r *Run) checkBands(
	searched string, bad func(field, advice, format string, a ...any) error,
) error {
	switch {
	case r.Mechanism == "laplace" || r.Mechanism == "discrete-laplace":
		return bad("Factorise", "use gaussian, discrete-gaussian or skellam noise",
			"a band's budget is an L2 norm, and that of %s noise is not", r.Mechanism)
	case searched == "Rounds":
		return bad("Factorise", "give the number of rounds, and find the noise",
			"a client is charged for bands")
	case r.Rounds == 1:
		return bad("Factorise", "leave it out, or give more rounds", "one round has no bands")
	case r.Factorise < 2 || r.Factorise > r.Rounds:
		advice := fmt.Sprintf("use 2 to %d, the number of rounds", r.Rounds)
		if r.Rounds == 2 {
			advice = "use 2, the number of rounds"
		}
		return bad("Factorise", advice, "no bands of %d are in rounds 1 to %d", r.Factorise, r.Rounds)
	case searched == "Rate" || r.Rate != 1:
		return bad("Rate", "leave it out, or the bands",
			"one coin for each part of a band amplifies nothing")
	case r.Unit.OfRecords():
		return bad("Factorise", "leave it out, or protect parties",
			"a record may be part of everything that its party makes")
	case r.ReplaceOne:
		return bad("ReplaceOne", "leave it out", "there is no bound for bands")
	case r.Dimension > math.MaxInt/r.Factorise:
		return bad("Dimension", "use fewer", "%d in each of %d parts are too many", r.Dimension,
			r.Factorise)
	}
	return nil
}

// checkParticipations refuses what contradicts that rounds are picked by anybody.
func (r *Run) checkParticipations(
	searched string, bad func(field, advice, format string, a ...any) error,
) error {
	k := r.Participations
	switch {
	case k < 1 || k > r.Of:
		return bad("Participations", "give both numbers, such as 10 of 200",
			"%d of %d rounds are not possible", k, r.Of)
	case int64(k) > mostRounds:
		return bad("Participations", "use up to 2^40", "%d is too many", k)
	case r.Factorise != 0:
		return bad("Factorise", "leave the participations out",
			"with bands parties take turns, and submit in every round")
	case r.Rounds != 1 || searched == "Rounds":
		return bad("Rounds", "leave it out, and give the number of rounds that they are out of",
			"a client is charged for its participations")
	case r.Rate != 1 || searched == "Rate":
		return bad("Rate", "leave one of the two out",
			"the party that picks the rounds of participations knows who is in them")
	}
	return nil
}

// checkNoise checks that the noise is stated once.
func (r *Run) checkNoise(bad func(field, advice, format string, a ...any) error) error {
	stated := 0
	for _, x := range []struct {
		field string
		value float64
	}{{"NoiseMultiplier", r.NoiseMultiplier}, {"Scale", r.Scale}, {"Variance", r.Variance}} {
		switch {
		case x.value == 0:
			continue
		case !(x.value > 0) || math.IsInf(x.value, 1):
			return bad(x.field, "use a number above 0, such as 1", "%v is not a noise multiplier", x.value)
		}
		if stated++; stated > 1 {
			return bad(x.field, "give the noise once", "the noise is given twice")
		}
	}
	if stated == 0 {
		return bad("NoiseMultiplier", "use a number above 0, such as 1", "0 is not a noise multiplier")
	}
	return nil
}

// scale is the noise in the units of Sensitivity.
func (r *Run) scale() float64 {
	switch {
	case r.Scale > 0:
		return r.Scale
	case r.Variance > 0:
		return math.Sqrt(r.Variance)
	}
	return r.NoiseMultiplier * r.Sensitivity
}

// Noise returns the noise over the sensitivity.
func (r *Run) Noise() float64 {
	if r.NoiseMultiplier > 0 {
		return r.NoiseMultiplier
	}
	return r.scale() / r.Sensitivity
}

// variance is the square of the scale.
func (r *Run) variance() float64 {
	if r.Variance > 0 {
		return r.Variance
	}
	s := r.scale()
	return s * s
}

// Lanes reports whether the run is of vectors without a one-dimensional worst case: bands of
// discrete noise too, whose parts are in as many sums.
func (r *Run) Lanes() bool {
	return r.Dimension > 1 || r.Shares > 1 || r.Factorise > 0 && r.Mechanism != "gaussian"
}

// In returns how many rounds a client is in, at most.
func (r *Run) In() int { return max(r.Rounds, r.Participations) }

// Charges returns how often a client is charged: in every round that it is in, or once for each
// band.
func (r *Run) Charges() int {
	if r.Factorise == 0 {
		return r.In()
	}
	return (r.Rounds-1)/r.Factorise + 1
}

// rate is the sampling rate that counts.
func (r *Run) rate() float64 {
	if r.View == accounting.ServerView && r.Unit == accounting.PartyUnit {
		return 1
	}
	return r.Rate
}

// Steps returns a one-dimensional run.
func (r *Run) Steps() []accounting.Step {
	whole := int(r.Sensitivity)
	var m accounting.Mechanism
	switch r.Mechanism {
	case "gaussian":
		m = accounting.Gaussian{NoiseMultiplier: r.Noise()}
	case "laplace":
		m = accounting.Laplace{Scale: r.Noise()}
	case "discrete-gaussian":
		m = accounting.DiscreteGaussian{Sigma: r.scale(), Sensitivity: whole}
	case "discrete-laplace":
		m = accounting.DiscreteLaplace{Scale: r.scale(), Sensitivity: whole}
	default:
		m = accounting.Skellam{Variance: r.variance(), Sensitivity: whole}
	}
	q := r.rate()
	switch {
	case r.ReplaceOne:
		m = accounting.ReplaceOne{Mechanism: m, Rate: q}
	case q < 1:
		m = accounting.Sampled{Mechanism: m, Rate: q}
	}
	return []accounting.Step{{Mechanism: m, Count: r.Charges()}}
}

// Round returns one round of a release under discrete noise.
func (r *Run) Round() accounting.Round {
	coordinates := r.Dimension * max(1, r.Factorise)
	out := accounting.Round{
		Family: accounting.FamilySkellam, Statement: accounting.Calculated(r.Unit), Shares: r.Shares,
		Honest: r.Shares,
		Rate:   r.Rate, HiddenSchedule: true, Messages: r.Factorise,
		Update: accounting.Lane{
			ShareVariance: r.variance(),
			Sensitivity: accounting.Sensitivity{
				L1:        accounting.RoundedL1(r.Sensitivity, coordinates),
				L2:        r.Sensitivity,
				Dimension: coordinates,
			},
		},
	}
	if r.Unit.OfRecords() {
		out.SecretRate, out.Rate, out.HiddenSchedule = r.Rate, 1, false
	}
	switch r.Mechanism {
	case "discrete-gaussian":
		out.Family = accounting.FamilyDiscreteGaussian
		out.Update.ShareVariance = 0
		out.Update.ShareSigma = r.scale() / math.Sqrt(float64(r.Shares))
	case "discrete-laplace":
		out.Family = accounting.FamilyDiscreteLaplace
		out.Update.ShareVariance = 0
		out.Update.SumScale = r.scale()
	}
	return out
}

// Epsilon accounts for the run at delta, which is 0 to below 1.
func (r *Run) Epsilon(delta float64) (accounting.Claim, error) {
	if r.Lanes() {
		round := r.Round()
		round.Statement = r.Statement()
		return round.Spent(r.View, r.Charges(), delta)
	}
	c, err := accounting.Compose(r.Steps()...)
	if err != nil {
		return accounting.Claim{}, err
	}
	b, err := c.Epsilon(delta)
	return accounting.NewClaim(r.Statement(), accounting.Figures{Bound: b, Delta: delta,
		Accountant: "PLD"}), err
}

// Statement returns what an ε of the run is about. Against the public neighbours differ in whether
// a client is there, but not for vectors with shares of noise, where a missing one would show in
// the variance, nor for a band, which is of a client that takes part in any case.
func (r *Run) Statement() accounting.Statement {
	s := r.View.Of(accounting.Calculated(r.Unit))
	switch {
	case r.ReplaceOne:
		return s.By(accounting.ReplacesOne)
	case r.Unit.OfRecords():
		if r.Rate < 1 {
			return s.Assuming(accounting.AssumesCoins)
		}
	case r.View == accounting.PublicView && r.Factorise == 0 && !r.Lanes():
		return s.By(accounting.AddRemove)
	}
	return s
}

// Delta returns the δ of the run at an ε. It fails with accounting.ErrUnsupported for
// vectors without a one-dimensional worst case.
func (r *Run) Delta(epsilon float64) (accounting.Bound, error) {
	if r.Lanes() {
		return accounting.Bound{}, fault.New(accounting.ErrUnsupported,
			"ask for the epsilon at a delta", "the delta of an epsilon, for vectors under %s noise",
			r.Mechanism)
	}
	c, err := accounting.Compose(r.Steps()...)
	if err != nil {
		return accounting.Bound{}, err
	}
	return c.Delta(epsilon)
}

// Calibrate sets the field NoiseMultiplier, Rounds or Rate to the least or most with
// which the run meets the target.
func (r *Run) Calibrate(field string, t accounting.Target) (err error) {
	try := *r
	switch {
	case field == "NoiseMultiplier":
		try.Scale, try.Variance = 0, 0
		if r.Lanes() {
			r.NoiseMultiplier, err = accounting.CalibrateRound(t, r.View, r.Charges(),
				func(x float64) accounting.Round {
					try.NoiseMultiplier = x
					return try.Round()
				})
			break
		}
		r.NoiseMultiplier, err = accounting.CalibrateNoise(t, func(x float64) []accounting.Step {
			try.NoiseMultiplier = x
			return try.Steps()
		})
	case field == "Rounds" && r.Lanes():
		r.Rounds, err = accounting.CalibrateRoundCount(t, r.View, r.Round())
	case field == "Rounds":
		try.Rounds = 1
		r.Rounds, err = accounting.CalibrateRounds(t, try.Steps()...)
	case r.Lanes():
		schedule := *r // both amplify alike
		schedule.Unit = accounting.PartyUnit
		r.Rate, err = accounting.CalibrateRoundRate(t, r.Rounds, schedule.Round())
	default:
		r.Rate, err = accounting.CalibrateRate(t, func(x float64) []accounting.Step {
			try.Rate = x
			return try.Steps()
		})
	}
	return err
}
