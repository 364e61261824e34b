package privacy

import (
	"errors"
	"fmt"
	"math"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/aggregation"
)

// Release declares the noisy sums of a run whose rounds are all alike.
type Release struct {
	// Promise says who is in a sum, and who shares the noise. Noise of a committee is discrete
	// Gaussian, without Signs and Band.
	Promise   Promise
	Noise     Noise
	Dimension int // coordinates of a party's vector, at least 1
	// Longest is the norm of the longest vector that is submitted, where that is less than Noise.Clip;
	// 0: the clip. It bounds what an ε is at least, and no noise follows from it.
	Longest float64
	Signs   *Signs // a second lane next to the vectors, nil: none
	// Records, if not nil, has the noise hide each record of a party, and not the party: Noise.Clip
	// is then the norm of a record's part of its vector. Not with Signs.
	Records *Records
	// Assumes lists what an ε of the release assumes besides what the Promise does.
	Assumes accounting.Assumptions
	// Rate is the probability that a party's vector is in a round, by a secret coin of its own that
	// the party tosses anew for every submission, above 0 to 1; 0: 1. A Rate below 1 counts against
	// the server too, even one that cheats, as long as nothing but the sum depends on the coin: all
	// parties submit in every round, at one instant, and the parties that their coins leave out
	// submit [Mechanism.Blank].
	Rate float64
	// Overrun is a probability that δ of a round is charged for, as accounting.Round has it, and that
	// Records do not know of: for one-message sums that is oneshot.Distance.
	Overrun float64
	// Heaviest and Total are the largest weight of a party and the sum of all weights where each
	// party's vector counts as often as its declared weight says, as in a roster with weights; 0: all
	// count once. Noise.Clip is then the norm of a vector before it is multiplied. Not with Signs,
	// Records and Band.
	Heaviest, Total int
	// Band, if not nil, correlates the noise of as many rounds as it has coefficients: see [Band].
	// One round of the accountant is then a band, and the multiplier is relative to the norm of a
	// band.
	Band Band
}

// Signs declares a lane that sums only the signs of vectors: the signs of updates, for a gradient
// mask, or votes. Its noise is of the same family.
type Signs struct {
	Dimension int // coordinates, at least 1
	// Part is this lane's share of 1/z², where z is the multiplier of both lanes together; above 0 and
	// below 1.
	Part float64
	// MinMultiplier is the least multiplier of this lane, 0 or more: where Part would leave this lane
	// less noise, the lane has MinMultiplier and the vectors get the rest.
	MinMultiplier float64
}

// Votes declares a lane for one vote of each party, 1 or −1, with the given number of parties in a
// sum, expected or actual. A sum of bits has noise with a standard deviation of a twentieth of the
// parties (Andrew 2021 §3.1), and a bit changes by two votes; but the lane leaves the vectors at
// least 15 parts in 16 of the budget.
func Votes(parties int) *Signs {
	return &Signs{Dimension: 1, Part: 1. / 16, MinMultiplier: float64(parties) / 10}
}

// multipliers divides the multiplier z of both lanes, such that 1/z² is the sum of
// those of the two.
func (s *Signs) multipliers(z float64) (vector, signs float64) {
	if s == nil {
		return z, math.Inf(1)
	}
	if signs = z / math.Sqrt(s.Part); signs >= s.MinMultiplier {
		return z / math.Sqrt(1-s.Part), signs
	}
	r := z / s.MinMultiplier
	return z / math.Sqrt((1-r)*(1+r)), s.MinMultiplier
}

// Validate returns a [ConfigError] for the first field that is outside its range. Only
// [Release.Mechanism] finds whether the sums fit their ring, and whether the noise can be
// sampled.
func (r *Release) Validate() error {
	if err := r.validate(); err != nil {
		return err
	}
	return r.Noise.Validate()
}

// validate is Validate but for the multiplier.
func (r *Release) validate() error {
	if err := r.Noise.validateVector(); err != nil {
		return err
	}
	if err := r.validateShares(); err != nil {
		return err
	}
	if r.Records != nil {
		if err := r.Records.validate(); err != nil {
			return err
		}
	}
	if err := r.validateBand(); err != nil {
		return err
	}
	switch s := r.Signs; {
	case r.Heaviest < 0 || r.Total < r.Heaviest || (r.Heaviest == 0) != (r.Total == 0):
		return bad("Heaviest", "use a weight and the sum of all, or 0 for both",
			"the largest of weights that add up to %d is not %d", r.Total, r.Heaviest)
	case r.Heaviest > 0 && (s != nil || r.Records != nil || r.Band != nil):
		return bad("Heaviest", "leave it out", "signs, records and bands have no weights")
	case s != nil && r.Records != nil:
		return bad("Signs", "leave them out", "signs of sums over records hide no record")
	case r.Dimension < 1:
		return bad("Dimension", "use at least 1", "%d is too few", r.Dimension)
	case !(r.Longest >= 0):
		return bad("Longest", "use a norm, or 0 for the clip", "%v is no norm", r.Longest)
	case !(r.Rate >= 0 && r.Rate <= 1):
		return bad("Rate", "use a number above 0 to 1, or 0 for 1", "%v is not a probability", r.Rate)
	case !(r.Overrun >= 0 && r.Overrun < 1):
		return bad("Overrun", "use 0 or more, and less than 1", "%v is not a probability", r.Overrun)
	case s == nil:
		return nil
	case s.Dimension < 1:
		return bad("Signs.Dimension", "use at least 1", "%d is too few", s.Dimension)
	case !(s.Part > 0 && s.Part < 1):
		return bad("Signs.Part", "use a number between 0 and 1", "%v is not a share", s.Part)
	case !(s.MinMultiplier >= 0) || math.IsInf(s.MinMultiplier, 1):
		return bad("Signs.MinMultiplier", "use 0 or more", "%v is not a multiple of the sensitivity",
			s.MinMultiplier)
	}
	return nil
}

// Mechanism works out the release. In addition to what Validate finds it fails with a
// [ConfigError] if a sum does not fit the bits (aggregation.ErrBits), or if the noise is too wide
// to be sampled (noise.ErrTooLarge). It takes some milliseconds, and tenths of a second for wide
// discrete Laplace noise.
func (r *Release) Mechanism() (*Mechanism, error) {
	if err := r.Validate(); err != nil {
		return nil, err
	}
	m, err := r.mechanism(r.Noise.Multiplier)
	if err != nil {
		return nil, err
	}
	if err := m.Vector.prepare(); err != nil {
		return nil, err
	}
	if m.Signs == nil {
		return m, nil
	}
	if err := m.Signs.prepare(); err != nil {
		return nil, err
	}
	return m, nil
}

// Round returns what one round spends, as [Mechanism.Round] does, without what sampling requires.
func (r *Release) Round() (accounting.Round, error) {
	if err := r.Validate(); err != nil {
		return accounting.Round{}, err
	}
	m, err := r.mechanism(r.Noise.Multiplier)
	if err != nil {
		return accounting.Round{}, err
	}
	return m.Round(), nil
}

// validateShares is validate of those who share the noise.
func (r *Release) validateShares() error {
	err := r.Promise.check()
	switch {
	case err != nil || !r.Promise.members:
		return err
	case r.Noise.Family != accounting.FamilyDiscreteGaussian:
		return bad("Noise.Family", "use discrete Gaussian noise", "%v noise of a committee hides no key",
			r.Noise.Family)
	case r.Signs != nil:
		return bad("Signs", "leave them out", "one message has one lane")
	case r.Band != nil:
		return bad("Band", "leave it out", "members keep no noise from one round to the next")
	}
	return nil
}

// ownNoise hides a party's key where a committee adds the noise: see package oneshot.
const ownNoise = 6.4

// room returns the multiplier of noise that a ring must have room for, of all parties or, from a
// committee, of all members, and as much again, of which parties' own noise may be half.
func (r *Release) room(multiplier float64) (ratio float64, shares int) {
	p := r.Promise
	if !p.members {
		return multiplier, p.honest
	}
	return multiplier * math.Sqrt(2*float64(p.shares)/float64(p.honest)), p.parties
}

// mechanism is Mechanism of a valid release for any multiplier, without tables.
func (r *Release) mechanism(multiplier float64) (*Mechanism, error) {
	p := r.Promise
	m := &Mechanism{promise: p, rate: r.Rate, overrun: r.Overrun, records: r.Records, band: r.Band,
		assumes: r.Assumes}
	if m.rate == 0 {
		m.rate = 1
	}
	units := 0
	if r.Records != nil {
		units = r.Records.Most()
	}
	vector, signs := r.Signs.multipliers(multiplier)
	heaviest, counted := float64(max(1, r.Heaviest)), p.parties
	if r.Total > 0 {
		counted = r.Total // as many vectors of norm Clip as a sum has
	}
	var bounds accounting.Sensitivity
	var err error
	e := aggregation.Encoder{
		Parties:     counted,
		Dimension:   r.Dimension,
		Clip:        r.Noise.Clip,
		Units:       units,
		Bits:        r.Noise.Bits,
		Rotate:      new([32]byte),
		NoiseFamily: r.Noise.Family,
	}
	if r.Band != nil {
		m.Encoder, bounds, err = r.Band.chooseScale(e, vector, p.honest)
	} else {
		room, shares := r.room(vector)
		if m.Encoder, err = e.ChooseScale(room*heaviest, shares); err == nil {
			bounds, err = m.Encoder.Sensitivity()
		}
		if r.Heaviest > 1 {
			bounds.L2 = math.Nextafter(bounds.L2*heaviest, math.Inf(1))
			bounds.L1 = math.Nextafter(bounds.L1*heaviest, math.Inf(1))
		}
	}
	switch {
	case errors.Is(err, aggregation.ErrBits):
		return nil, &ConfigError{
			Field: "Noise.Bits",
			Reason: fmt.Sprintf("%d is too few for the sum of %d parties and noise of multiplier %.4g",
				r.Noise.Bits, p.parties, vector),
			Advice: "use more bits, or less noise",
			Err:    err,
		}
	case err != nil:
		return nil, because("Noise", err)
	}
	if m.Vector, err = newLane(r.Noise.Family, p, bounds, vector); err != nil {
		return nil, err
	}
	if m.Vector.Attained, err = r.Band.attained(m.Encoder); err != nil {
		return nil, because("Noise", err)
	}
	if r.Longest > 0 {
		m.Vector.Attained *= min(1, r.Longest/r.Noise.Clip)
	}
	if m.overlong, err = m.Encoder.Overlong(); err != nil {
		return nil, because("Noise", err)
	}
	own := ownNoise * math.Sqrt(float64(p.parties))
	if p.members && m.Vector.SumStdDev(p.shares) < own {
		return nil, &ConfigError{
			Field: "Noise.Bits",
			Reason: fmt.Sprintf("the committee's noise deviates by %.3g units, and what hides the keys of "+
				"%d parties by %.3g", m.Vector.SumStdDev(p.shares), p.parties, own),
			Advice: "use more bits, or more noise",
			Err:    errTooLittle,
		}
	}
	if r.Signs == nil {
		return m, nil
	}
	if err := m.addSigns(r, signs); err != nil {
		return nil, err
	}
	return m, nil
}

// addSigns works out the second lane, of the given multiplier.
func (m *Mechanism) addSigns(r *Release, multiplier float64) error {
	p := r.Promise
	m.signs = aggregation.Signs{
		Parties:     p.parties,
		Dimension:   r.Signs.Dimension,
		NoiseFamily: r.Noise.Family,
	}
	bounds, err := m.signs.Sensitivity()
	if err != nil {
		return because("Signs", err)
	}
	lane, err := newLane(r.Noise.Family, p, bounds, multiplier)
	if err != nil {
		return err
	}
	if r.Noise.Family == accounting.FamilyDiscreteGaussian {
		share := lane.accounting().ShareSigma
		if tau, err := accounting.SumTau(p.honest, share*share); err != nil || tau > 0.1 {
			return &ConfigError{
				Field: "Noise.Family",
				Reason: fmt.Sprintf(
					"shares of %.3g on signs or votes are too small for discrete Gaussians to add up", share),
				Advice: "use Skellam noise, whose shares add up exactly, or a larger multiplier",
				Err:    errTooLittle,
			}
		}
	}
	spread := math.Sqrt(float64(p.shares) / float64(p.honest))
	m.signs.NoiseStdDev = multiplier * bounds.L2 * spread
	m.Signs = &lane
	return nil
}
