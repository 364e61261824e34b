package hushsum

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/privacy"
	"github.com/hushsum/hushsum/protocol"
)

// Settled is a [Plan] worked out for a roster: the sessions of protocol, how a vector
// becomes a submission with its party's share of the noise, how a sum becomes a mean,
// and what a round spends. It is safe for concurrent use.
type Settled struct {
	plan      Plan
	roster    *keyexchange.Roster
	encoder   aggregation.Encoder
	mechanism *privacy.Mechanism // nil without noise
	layout    masking.Layout
	survivors int // fewest in a sum
	digest    [32]byte
}

// Settle works the plan out. It fails with a [ConfigError] if the plan cannot be kept
// with so many parties: if too many may be missing for the adversary that is to be
// withstood, or if the noise that the budget takes does not fit the ring. It takes some
// milliseconds, with noise some more.
func (p *Plan) Settle(roster *keyexchange.Roster) (*Settled, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	if roster == nil {
		return nil, &ConfigError{Field: "roster", Reason: "there is none"}
	}
	s := &Settled{plan: p.withDefaults(), roster: roster, survivors: p.minSurvivors(roster.Len())}
	n := roster.Len()
	var err error
	multiplier := 0.
	if s.plan.Noise == 0 {
		s.encoder, err = aggregation.Encoder{
			Parties:   n,
			Dimension: p.Length,
			Clip:      p.Clip,
			Bits:      s.plan.Bits,
			Rotate:    new([32]byte),
		}.ChooseScale(0, s.survivors)
		if err != nil {
			return nil, &ConfigError{Field: "Bits", Reason: err.Error(), Advice: "use more bits", Err: err}
		}
	} else {
		release := privacy.Release{
			Contributors: privacy.Contributors{
				Parties:      n,
				MinSurvivors: s.survivors,
				Colluders:    p.Colluders,
			},
			Noise:     privacy.Noise{Family: p.Noise, Clip: p.Clip, Bits: s.plan.Bits},
			Dimension: p.Length,
		}
		budget := privacy.Budget{Epsilon: p.Epsilon, Delta: s.plan.Delta}
		if release.Noise.Multiplier, err = release.Calibrate(budget, p.Rounds); err != nil {
			return nil, fromPrivacy(err)
		}
		if s.mechanism, err = release.Mechanism(); err != nil {
			return nil, fromPrivacy(err)
		}
		s.encoder, multiplier = s.mechanism.Encoder, release.Noise.Multiplier
	}
	if s.layout, err = s.encoder.Layout(); err != nil {
		return nil, &ConfigError{Field: "Length", Reason: err.Error(), Err: err}
	}
	s.digest = s.plan.digest(roster, multiplier, s.encoder.Scale)
	if err := s.Config(0).Validate(); err != nil {
		return nil, &ConfigError{
			Field:  "DropOut",
			Reason: fmt.Sprintf("%v lets %d of %d parties make a sum: %v", p.DropOut, s.survivors, n, err),
			Advice: "allow fewer to be missing, fewer Colluders, or a weaker Adversary",
			Err:    err,
		}
	}
	return s, nil
}

// fromPrivacy names the plan's field for that of package privacy.
func fromPrivacy(err error) error {
	var c *privacy.ConfigError
	if !errors.As(err, &c) {
		return err
	}
	field := map[string]string{
		"Noise.Bits":                "Bits",
		"Noise.Clip":                "Clip",
		"Noise.Family":              "Noise",
		"Noise.Multiplier":          "Epsilon",
		"Contributors.Colluders":    "Colluders",
		"Contributors.MinSurvivors": "DropOut",
		"Budget.Epsilon":            "Epsilon",
		"Dimension":                 "Length",
	}[c.Field]
	if field == "" {
		field = c.Field
	}
	return &ConfigError{Field: field, Reason: c.Reason, Advice: c.Advice, Err: err}
}

// Plan returns the plan, with its defaults filled in.
func (s *Settled) Plan() Plan { return s.plan }

// Roster returns the parties.
func (s *Settled) Roster() *keyexchange.Roster { return s.roster }

// Digest is over all that the sides must agree on. It is in the label of every
// session, so that sides that differ refuse each other's keys.
func (s *Settled) Digest() [32]byte { return s.digest }

// Config returns the configuration of the session of the given number. All sessions of
// a plan have one label; see protocol.Config for what a number is good for.
func (s *Settled) Config(number uint64) *protocol.Config {
	n := s.roster.Len()
	threshold := s.plan.Colluders + 1
	if s.plan.Adversary != protocol.CuriousServer {
		// The least that keeps the promise for the whole roster, and so for fewer.
		threshold = (n-1+s.plan.Colluders)/2 + 1
	}
	return &protocol.Config{
		Label:      label(s.plan.Name, s.digest),
		Number:     number,
		Roster:     s.roster,
		MinMembers: s.survivors,
		Layout:     s.layout,
		Colluders:  s.plan.Colluders,
		Recovery: &protocol.Recovery{
			Adversary:    s.plan.Adversary,
			Threshold:    threshold,
			MinSurvivors: s.survivors,
		},
		Classical: s.plan.Classical,
	}
}

// MinSurvivors returns the fewest parties in a sum, those whose noise is counted and
// the colluders among them.
func (s *Settled) MinSurvivors() int { return s.survivors }

// Round returns what a round spends; without noise it is of no use, and zero.
func (s *Settled) Round() accounting.Round {
	if s.mechanism == nil {
		return accounting.Round{}
	}
	return s.mechanism.Round()
}

// Ledger returns an empty ledger that holds every party to the plan's budget, or nil
// without noise.
func (s *Settled) Ledger() (*accounting.Ledger, error) {
	if s.mechanism == nil {
		return nil, nil
	}
	return privacy.Budget{Epsilon: s.plan.Epsilon, Delta: s.plan.Delta}.Ledger()
}

// rotation is the seed of a round's rotation, which follows from its broadcast.
func rotation(broadcast []byte) [32]byte {
	return sha256.Sum256(append([]byte("hushsum/2 rotation of a broadcast"), broadcast...))
}

// Encode returns a party's submission: its vector of Length coordinates clipped,
// rounded to integers and with the party's share of the noise. broadcast is what the
// round began with. random serves noise and rounding (nil: crypto/rand). A submission
// that is sent again must be the same, not a new one. It fails as aggregation.Encoder's
// Encode does, without telling a value.
func (s *Settled) Encode(broadcast []byte, vector []float64, random io.Reader) ([][]uint64, error) {
	seed := rotation(broadcast)
	if s.mechanism != nil {
		return s.mechanism.Encode(seed, vector, nil, random)
	}
	e := s.encoder
	e.Rotate = &seed
	return e.Encode(vector, nil, random)
}

// Decode returns the mean of the vectors in a sum of so many parties' submissions.
func (s *Settled) Decode(broadcast []byte, sum [][]uint64, parties int) ([]float64, error) {
	seed := rotation(broadcast)
	if s.mechanism != nil {
		mean, _, err := s.mechanism.Decode(seed, sum, parties)
		return mean, err
	}
	e := s.encoder
	e.Rotate = &seed
	return e.Decode(sum, parties)
}

// StdDev returns the standard deviation of the noise in each coordinate of a mean of so
// many parties, in the units of the vectors; 0 without noise.
func (s *Settled) StdDev(parties int) float64 {
	if s.mechanism == nil {
		return 0
	}
	return s.mechanism.StdDev(parties) / float64(parties)
}
