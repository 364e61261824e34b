package job

import (
	"crypto/sha256"
	"io"

	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/privacy"
	"github.com/hushsum/hushsum/protocol"
)

// This file has how a vector becomes a submission of a settled job, and a sum a mean.

// rotation is the seed of a round's rotation, which follows from the digest of its
// broadcast.
func rotation(broadcast [32]byte) [32]byte {
	return sha256.Sum256(append([]byte("hushsum/2 rotation of a broadcast"), broadcast[:]...))
}

// BroadcastDigest returns the digest that names a broadcast, the sum of protocol.NewBroadcastHash.
func BroadcastDigest(broadcast []byte) [32]byte {
	h := protocol.NewBroadcastHash()
	h.Write(broadcast)
	return [32]byte(h.Sum(nil))
}

// Encode returns a party's submission: its vector of Length coordinates, clipped, rounded to
// integers and with the party's share of the noise, which in one-message sums the masks contain
// instead. The round began with broadcast. random serves noise and rounding (nil: crypto/rand). To
// send a submission again, send the same bytes: do not encode the vector anew. It fails as
// aggregation.Encoder's Encode does, without telling a value.
func (s *Settled) Encode(broadcast []byte, vector []float64, random io.Reader) ([][]uint64, error) {
	return s.EncodeDigest(BroadcastDigest(broadcast), vector, random)
}

// EncodeDigest is [Settled.Encode] with the digest of the broadcast, by [BroadcastDigest].
func (s *Settled) EncodeDigest(
	broadcast [32]byte, vector []float64, random io.Reader,
) ([][]uint64, error) {
	m, err := s.Message(vector, 1)
	if err != nil {
		return nil, err
	}
	return s.EncodeMessage(broadcast, m, random)
}

// EncodeMessage returns a party's submission: all that the party sends, with its share of the
// noise. Without noise the vector is as the training clipped it. broadcast is the digest of the
// round's broadcast; random is as for [Settled.Encode].
func (s *Settled) EncodeMessage(
	broadcast [32]byte, m Message, random io.Reader,
) ([][]uint64, error) {
	return s.lanes.Encode(rotation(broadcast), m, random)
}

// Message returns what a party sends for a vector that its own program has made: the vector clipped
// as the job says, the number of rows by which it is weighed, at most sum.max_weight, and, for a
// mask, its signs. It fails with the errors of aggregation.
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

// Alone reports whether parties send a vector and nothing more: no weight, no signs and no votes.
// [EncodeTo] and [DecodeTo] are for such jobs.
func (s *Settled) Alone() bool { return s.plainable() == nil }

// Decode returns the mean of the vectors in a sum of a given number of parties' submissions.
func (s *Settled) Decode(broadcast []byte, sum [][]uint64, parties int) ([]float64, error) {
	return s.DecodeDigest(BroadcastDigest(broadcast), sum, parties)
}

// DecodeDigest is [Settled.Decode] with the digest of the broadcast.
func (s *Settled) DecodeDigest(
	broadcast [32]byte, sum [][]uint64, parties int,
) ([]float64, error) {
	total, err := s.DecodeTotal(broadcast, sum, parties)
	return total.Mean, err
}

// DecodeTotal decodes the sum of a given number of submissions, each made by EncodeMessage.
func (s *Settled) DecodeTotal(broadcast [32]byte, sum [][]uint64, parties int) (Total, error) {
	return s.lanes.Decode(rotation(broadcast), sum, parties)
}

// EncodeTo is [Settled.Encode] for vectors too large for a second copy: it writes the submission to
// v, which has the job's layout, and draws the noise as it goes. broadcast is the digest: see
// [BroadcastDigest]. v is zero after an error.
func EncodeTo[F aggregation.Float](
	v *masking.Vector, s *Settled, broadcast [32]byte, vector []F, random io.Reader,
) error {
	switch {
	case s.oneshot != nil:
		v.Erase()
		return &ConfigError{Path: "Oneshot", Reason: "one message is not encoded in place",
			Advice: "use Encode"}
	case s.mechanism == nil || !s.Alone():
		return encodePlain(v, s, vector)
	}
	return privacy.EncodeTo(v, s.mechanism, rotation(broadcast), vector, random)
}

// DecodeTo is [Settled.Decode] without a second copy: it writes the mean, of Length
// coordinates, to mean, which is zero after an error.
func DecodeTo[F aggregation.Float](
	mean []F, s *Settled, broadcast [32]byte, sum *masking.Vector, parties int,
) error {
	if s.mechanism == nil || !s.Alone() {
		return decodePlain(mean, s, sum, parties)
	}
	if err := privacy.DecodeTo(mean, s.mechanism, rotation(broadcast), sum, parties); err != nil {
		return err
	}
	switch {
	case s.job.PerRecord():
		scale(mean, float64(parties)/float64(s.job.Batch()))
	case s.job.Parties.Hidden > 0:
		scale(mean, 1/s.job.Parties.Hidden)
	}
	return nil
}

// Blank writes to v the submission of a party that has no vector in a round of a job with noise:
// zeros in all that is sent, with the party's share of the noise, so that no message reveals that
// the vector is missing. random serves the noise (nil: crypto/rand). Without noise it fails with a
// [ConfigError]. v is zero after an error.
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
