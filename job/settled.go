package job

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/oneshot"
	"github.com/hushsum/hushsum/privacy"
	"github.com/hushsum/hushsum/protocol"
)

// Settled is a [Plan] worked out for a roster, or [Terms]: the sessions of protocol, how a vector
// becomes a submission with its party's share of the noise, how a sum becomes a mean,
// and what a round spends. It is safe for concurrent use.
type Settled struct {
	job       *Job   // nil of a Plan and of Terms
	lanes     *Lanes // of a Job, nil of one that goes on under a Plan's encoding
	plan      Plan   // zero for others
	session   protocol.Config
	budget    privacy.Budget
	before    *Before // nil: nothing counts that was spent before
	encoder   aggregation.Encoder
	mechanism *privacy.Mechanism // nil without noise
	layout    masking.Layout
	survivors int // fewest in a sum
	digest    [32]byte
	oneshot   *oneshot.Config // nil where sums are pairwise
	byRound   bool            // the rotation of a training's sum follows from its round too
}

// Settle works the plan out. It fails with a [ConfigError] if the plan cannot be kept
// with that many parties: if too many may be missing for the adversary that is to be
// withstood, or if the noise that the budget takes does not fit the ring. It takes some
// milliseconds, with noise some more.
func (p *Plan) Settle(roster *keyexchange.Roster) (*Settled, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	if p.Protocol == Oneshot {
		return nil, &ConfigError{Path: "Protocol", Reason: "sums of one message take a committee",
			Advice: "call SettleOneshot"}
	}
	s, err := p.settle(roster)
	if err != nil {
		return nil, err
	}
	if err := s.session.Validate(); err != nil {
		return nil, &ConfigError{
			Path: "DropOut",
			Reason: fmt.Sprintf("%v lets %d of %d parties make a sum: %v", p.DropOut, s.survivors,
				roster.Len(), err),
			Advice: "allow fewer to be missing, fewer Colluders, or a weaker Adversary",
			Err:    err,
		}
	}
	return s, nil
}

// settle works a valid plan out, whatever takes the sums.
func (p *Plan) settle(roster *keyexchange.Roster) (*Settled, error) {
	if roster == nil {
		return nil, &ConfigError{Path: "roster", Reason: "there is none"}
	}
	if p.Noise == 0 {
		return p.settleInTheClear(roster)
	}
	n, q := roster.Len(), p.WithDefaults()
	survivors := p.minSurvivors(n)
	terms := Terms{
		Release: privacy.Release{
			Contributors: privacy.Contributors{
				Parties:      n,
				MinSurvivors: survivors,
				Colluders:    p.Colluders,
			},
			Noise:     privacy.Noise{Family: p.Noise, Clip: p.Clip, Bits: q.Bits},
			Dimension: p.Length,
		},
		// Plans stay as they were: the digest that sides compare has the multiplier in it.
		Budget: privacy.Budget{Epsilon: p.Epsilon, Delta: q.Delta, ByRDP: true},
	}
	var err error
	multiplier := &terms.Release.Noise.Multiplier
	if *multiplier, err = terms.Release.Calibrate(terms.Budget, p.Rounds); err != nil {
		return nil, fromPrivacy(err)
	}
	s, err := terms.Settle()
	if err != nil {
		return nil, fromPrivacy(err)
	}
	return p.finish(s, roster, *multiplier), nil
}

// settleInTheClear works a plan without noise out.
func (p *Plan) settleInTheClear(roster *keyexchange.Roster) (*Settled, error) {
	n := roster.Len()
	s := &Settled{survivors: p.minSurvivors(n)}
	var err error
	s.encoder, err = aggregation.Encoder{
		Parties:   n,
		Dimension: p.Length,
		Clip:      p.Clip,
		Bits:      p.WithDefaults().Bits,
		Rotate:    new([32]byte),
	}.ChooseScale(0, s.survivors)
	if err != nil {
		return nil, &ConfigError{Path: "Bits", Reason: err.Error(), Advice: "use more bits", Err: err}
	}
	if s.layout, err = s.encoder.Layout(); err != nil {
		return nil, &ConfigError{Path: "Length", Reason: err.Error(), Err: err}
	}
	return p.finish(s, roster, 0), nil
}

// finish makes the sessions those of the plan.
func (p *Plan) finish(
	s *Settled, roster *keyexchange.Roster, multiplier float64,
) *Settled {
	n := roster.Len()
	s.plan = p.WithDefaults()
	s.digest = s.plan.digest(roster, multiplier, s.encoder.Scale)
	threshold := p.Colluders + 1
	if p.Adversary != protocol.CuriousServer {
		// The least that keeps the promise for the whole roster, and so for fewer.
		threshold = (n-1+p.Colluders)/2 + 1
	}
	s.session = protocol.Config{
		Label:      label(p.Name, s.digest),
		Roster:     roster,
		MinMembers: s.survivors,
		Layout:     s.layout,
		Colluders:  p.Colluders,
		Recovery: &protocol.Recovery{
			Adversary:    p.Adversary,
			Threshold:    threshold,
			MinSurvivors: s.survivors,
		},
		Classical: p.Classical,
	}
	return s
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
	return &ConfigError{Path: field, Reason: c.Reason, Advice: c.Advice, Err: err}
}

// Plan returns the plan, with its defaults filled in; for [Terms] it is zero.
func (s *Settled) Plan() Plan { return s.plan }

// Digest covers everything that the sides must agree on. It is in the label of every session, so
// that sides that differ refuse each other's keys.
func (s *Settled) Digest() [32]byte { return s.digest }

// MinSurvivors returns the fewest parties in a sum, including those whose noise is counted and the
// colluders.
func (s *Settled) MinSurvivors() int { return s.survivors }

// Honest returns the fewest honest parties in a sum: those of MinSurvivors without the colluders,
// but on a sparse graph, of a server that cheats after keys are exchanged, fewer (SPEC.md §13.7).
func (s *Settled) Honest() int {
	if r := s.session.Recovery; s.job != nil && s.job.Sum.Sparse && r != nil &&
		r.Adversary == protocol.SemiMaliciousServer {
		return r.Threshold - s.session.Colluders + 1
	}
	return s.survivors - s.Colluders()
}

// Round returns what a round, or a [Settled.Band], spends; without noise it is zero and
// meaningless.
func (s *Settled) Round() accounting.Round {
	if s.mechanism == nil {
		return accounting.Round{}
	}
	return s.mechanism.Round()
}

// rotation is the seed of a round's rotation, which follows from the digest of its
// broadcast.
func rotation(broadcast [32]byte) [32]byte {
	return sha256.Sum256(append([]byte("hushsum/2 rotation of a broadcast"), broadcast[:]...))
}

// BroadcastDigest names a broadcast: the sum of protocol.NewBroadcastHash.
func BroadcastDigest(broadcast []byte) [32]byte {
	h := protocol.NewBroadcastHash()
	h.Write(broadcast)
	return [32]byte(h.Sum(nil))
}

// Encode returns a party's submission: its vector of Length coordinates clipped,
// rounded to integers and with the party's share of the noise, which for Oneshot is left
// to its masks. broadcast began the round. random serves noise and rounding
// (nil: crypto/rand). A submission that is sent again must be the same, not a new one. It
// fails as aggregation.Encoder's Encode does, without telling a value.
func (s *Settled) Encode(broadcast []byte, vector []float64, random io.Reader) ([][]uint64, error) {
	return s.EncodeDigest(BroadcastDigest(broadcast), vector, random)
}

// EncodeDigest is [Settled.Encode] with the digest of the broadcast, by [BroadcastDigest].
func (s *Settled) EncodeDigest(
	broadcast [32]byte, vector []float64, random io.Reader,
) ([][]uint64, error) {
	if s.lanes != nil {
		m, err := s.Message(vector, 1)
		if err != nil {
			return nil, err
		}
		return s.EncodeMessage(broadcast, 0, m, random)
	}
	seed := rotation(broadcast)
	e, share := s.encoder, []int64(nil)
	e.Rotate = &seed
	if s.mechanism != nil {
		if s.oneshot == nil {
			return s.mechanism.Encode(seed, vector, nil, random)
		}
		share = make([]int64, s.mechanism.Vector.Sensitivity.Dimension)
	}
	return e.Encode(vector, share, random)
}

// Message returns what a party sends for a vector that its own program has made: the vector clipped
// as the job says, the number of rows that it counts with, at most sum.max_weight, and for a mask
// its signs. It fails with the errors of aggregation.
func (s *Settled) Message(vector []float64, samples int) (m Message, err error) {
	clip, most := s.job.Privacy.Clip, s.lanes.shape.MaxWeight
	// A mechanism clips too, but the vector with its weight.
	if clip > 0 && (s.mechanism == nil || most > 0) {
		if vector, _, err = aggregation.Clip(vector, clip); err != nil {
			return m, err
		}
	}
	m = Message{Vector: vector, Samples: samples}
	if most > 0 {
		m.Samples = min(samples, most)
	}
	if s.lanes.shape.Signs {
		m.Signed = vector
	}
	return m, nil
}

// Alone reports whether what parties send is a vector and nothing more: no weight, no signs and
// no votes. [EncodeTo] and [DecodeTo] are for these.
func (s *Settled) Alone() bool { return s.lanes == nil || s.plainable() == nil }

// Decode returns the mean of the vectors in a sum of a given number of parties' submissions.
func (s *Settled) Decode(broadcast []byte, sum [][]uint64, parties int) ([]float64, error) {
	return s.DecodeDigest(BroadcastDigest(broadcast), sum, parties)
}

// DecodeDigest is [Settled.Decode] with the digest of the broadcast.
func (s *Settled) DecodeDigest(
	broadcast [32]byte, sum [][]uint64, parties int,
) ([]float64, error) {
	if s.lanes != nil {
		total, err := s.DecodeTotal(broadcast, 0, sum, parties)
		return total.Mean, err
	}
	seed := rotation(broadcast)
	if s.mechanism != nil {
		mean, _, err := s.mechanism.Decode(seed, sum, parties)
		return mean, err
	}
	e := s.encoder
	e.Rotate = &seed
	return e.Decode(sum, parties)
}

// EncodeTo is [Settled.Encode] for vectors too large for a second copy: it writes the submission to
// v, which has the plan's layout, and draws the noise as it goes. broadcast is the digest: see
// [BroadcastDigest]. v is zero after an error.
func EncodeTo[F aggregation.Float](
	v *masking.Vector, s *Settled, broadcast [32]byte, vector []F, random io.Reader,
) error {
	if s.oneshot != nil {
		v.Erase()
		return &ConfigError{Path: "Oneshot", Reason: "one message is not encoded in place",
			Advice: "use Encode"}
	}
	seed := rotation(broadcast)
	if s.lanes != nil && (s.mechanism == nil || !s.Alone()) {
		return encodePlain(v, s, vector)
	}
	if s.mechanism != nil {
		return privacy.EncodeTo(v, s.mechanism, seed, vector, random)
	}
	e := s.encoder
	e.Rotate = &seed
	return aggregation.EncodeTo(v, 0, e, vector, nil, random)
}

// DecodeTo is [Settled.Decode] without a second copy: it writes the mean, of Length
// coordinates, to mean, which is zero after an error.
func DecodeTo[F aggregation.Float](
	mean []F, s *Settled, broadcast [32]byte, sum *masking.Vector, parties int,
) error {
	seed := rotation(broadcast)
	if s.lanes != nil && (s.mechanism == nil || !s.Alone()) {
		return decodePlain(mean, s, sum, parties)
	}
	if s.mechanism != nil {
		err := privacy.DecodeTo(mean, s.mechanism, seed, sum, parties)
		switch {
		case err != nil || s.job == nil:
		case s.job.PerRecord():
			scale(mean, float64(parties)/float64(s.job.Batch()))
		case s.job.Parties.Hidden > 0:
			scale(mean, 1/s.job.Parties.Hidden)
		}
		return err
	}
	e := s.encoder
	e.Rotate = &seed
	return aggregation.DecodeTo(mean, e, sum, 0, parties)
}

// Blank writes to v what a party submits in a round of a job with noise if it has no vector: zeros
// in all that is sent, and its share of the noise, so that no message reveals this. random serves
// the noise (nil: crypto/rand). Without noise it fails with a [ConfigError]. v is zero after an
// error.
func (s *Settled) Blank(v *masking.Vector, random io.Reader) error {
	m := s.mechanism
	switch {
	case m == nil:
		v.Erase()
		return &ConfigError{Path: "privacy.noise", Reason: "zeros without noise are visible in a sum",
			Advice: "submit nothing"}
	case s.oneshot != nil:
		v.Erase() // the noise is in its masks
		return nil
	case m.Signs == nil && m.Records() == nil && m.Band() == nil: // zeros are zeros under any rotation
		zeros := make([]float32, m.Encoder.Dimension)
		return privacy.EncodeTo(v, m, [32]byte{}, zeros, random)
	}
	values, err := m.Blank(random)
	if err != nil {
		v.Erase()
		return err
	}
	defer func() {
		for _, lane := range values {
			clear(lane)
		}
	}()
	return v.Set(values...)
}

// StdDev returns the standard deviation of the noise in each coordinate of a mean of the given
// number of parties, in the units of the vectors; 0 without noise. Where the unit is a record,
// means are over the records that a round expects.
func (s *Settled) StdDev(parties int) float64 {
	if s.mechanism == nil {
		return 0
	}
	if s.job != nil && s.job.PerRecord() {
		return s.mechanism.SumStdDev(parties) / float64(s.job.Batch())
	}
	over := float64(parties)
	if q := s.Hidden(); q > 0 {
		over *= q
	}
	return s.mechanism.SumStdDev(parties) / over
}
