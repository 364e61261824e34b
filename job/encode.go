package job

import (
	"crypto/sha256"
	"fmt"
	"io"

	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/internal/labels"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/privacy"
	"github.com/hushsum/hushsum/protocol"
)

// This file has how a vector becomes a submission of a settled job, and a sum a mean.

// rotation is the seed of a round's rotation, which follows from the digest of its
// broadcast.
func rotation(broadcast [32]byte) [32]byte {
	return sha256.Sum256(append([]byte(labels.RotationBroadcast), broadcast[:]...))
}

// BroadcastDigest returns the digest that names a broadcast, the sum of protocol.NewBroadcastHash.
func BroadcastDigest(broadcast []byte) [32]byte {
	h := protocol.NewBroadcastHash()
	h.Write(broadcast)
	return [32]byte(h.Sum(nil))
}

// Encode returns a party's submission, encoded: its vector of Length coordinates and all that goes
// with it, rounded to integers and with the party's share of the noise, which in one-message sums
// the masks contain instead. A vector that the party's own program made is clipped; one of a job
// that trains its model itself, package training has clipped. broadcast is the digest of the
// round's broadcast, by [BroadcastDigest]; random serves noise and rounding (nil: crypto/rand). To
// send a submission again, send the same bytes: do not encode the update anew. Encode fails with
// the errors of package aggregation, without telling a value.
func (s *Settled) Encode(
	broadcast [32]byte, u Update[float64], random io.Reader,
) (values [][]uint64, err error) {
	switch {
	case s.Trains() && !u.Trained:
		return nil, &ConfigError{Path: "Work", Reason: "the job trains its model itself",
			Advice: "use training.Submit, or a job without model.name"}
	case !s.Trains():
		if u, err = s.clipped(u); err != nil {
			return nil, err
		}
	}
	return s.lanes.Encode(rotation(broadcast), u, random)
}

// clipped returns what is encoded of an update that a party's own program has made: its vector
// clipped as the job says, with its metrics, its weight of at most sum.max_weight, and, for a mask,
// its signs.
func (s *Settled) clipped(u Update[float64]) (Update[float64], error) {
	v, err := withMetrics(s, u)
	if err != nil {
		return u, err
	}
	clip, most := s.job.Privacy.Clip, s.lanes.shape.MaxWeight
	// A mechanism clips too, but the vector with its weight.
	if clip > 0 && (s.mechanism == nil || most > 0) {
		if v, _, err = aggregation.Clip(v, clip); err != nil {
			return u, err
		}
	}
	u.Vector = v
	if most > 0 {
		u.Samples = min(u.Samples, most)
	}
	if s.lanes.shape.Signs {
		u.Signed = v
	}
	return u, nil
}

// Alone reports whether parties send a vector, perhaps with metrics, and nothing more: no weight,
// no signs and no votes.
func (s *Settled) Alone() bool {
	o := &s.lanes.shape
	return o.MaxWeight == 0 && !o.Signs && !o.Votes && !o.Control
}

// Decode decodes the sum of a given number of submissions.
func (s *Settled) Decode(broadcast [32]byte, sum [][]uint64, parties int) (Total, error) {
	t, err := s.lanes.Decode(rotation(broadcast), sum, parties)
	if n := s.Length(); err == nil && s.job.Metrics.Share > 0 {
		t.Metric = s.metricOf(t.Mean[n], t.Mean[n+1], parties)
		t.Mean = t.Mean[:n]
	}
	return t, err
}

// inPlace reports whether a submission is encoded as it is written, without a second copy.
func (s *Settled) inPlace() bool { return s.oneshot == nil && s.Alone() && !s.Trains() }

// EncodeTo is [Settled.Encode] of vectors of either type, written to v, which has the job's layout.
// Where parties send one vector, pairwise, it makes no second copy. v is zero after an error.
func EncodeTo[F aggregation.Float](
	v *masking.Vector, s *Settled, broadcast [32]byte, u Update[F], random io.Reader,
) error {
	if !s.inPlace() {
		return encodeWhole(v, s, broadcast, u, random)
	}
	vector, err := withMetrics(s, u)
	switch {
	case err != nil:
		v.Erase()
		return err
	case s.mechanism == nil:
		return encodePlain(v, s, vector)
	}
	return privacy.EncodeTo(v, s.mechanism, rotation(broadcast), vector, random)
}

// encodeWhole is EncodeTo for what is encoded as a whole.
func encodeWhole[F aggregation.Float](
	v *masking.Vector, s *Settled, broadcast [32]byte, u Update[F], random io.Reader,
) error {
	wide := Update[float64]{Vector: converted[float64](u.Vector), Samples: u.Samples, Loss: u.Loss,
		Accuracy: u.Accuracy, Trained: u.Trained, Signed: u.Signed, Voted: u.Voted, Control: u.Control,
		Offset: u.Offset}
	values, err := s.Encode(broadcast, wide, random)
	return setOnce(v, values, err)
}

// setOnce writes values to v, unless there was an error, and erases them.
func setOnce(v *masking.Vector, values [][]uint64, err error) error {
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

// converted returns numbers of another type, or those that are of it.
func converted[To, From aggregation.Float](x []From) []To {
	if same, is := any(x).([]To); is {
		return same
	}
	y := make([]To, len(x))
	for i, v := range x {
		y[i] = To(v)
	}
	return y
}

// DecodeTo is [Settled.Decode] into a mean of either type, of Length coordinates, which is zero
// after an error. The Total that it returns has no Mean. Where parties send one vector, pairwise,
// without metrics, it makes no second copy.
func DecodeTo[F aggregation.Float](
	mean []F, s *Settled, broadcast [32]byte, sum *masking.Vector, parties int,
) (t Total, err error) {
	if len(mean) != s.Length() {
		return t, fmt.Errorf("%w: room for %d coordinates, want %d", aggregation.ErrLength, len(mean),
			s.Length())
	}
	if !s.inPlace() || s.job.Metrics.Share > 0 {
		t, err = s.Decode(broadcast, sum.Values(), parties)
		copy(mean, converted[F](t.Mean))
		t.Mean = nil
		return t, err
	}
	if s.mechanism == nil {
		return Total{Parties: parties}, decodePlain(mean, s, sum, parties)
	}
	err = privacy.DecodeTo(mean, s.mechanism, rotation(broadcast), sum, parties)
	switch {
	case err != nil:
	case s.job.PerRecord():
		scale(mean, float64(parties)/float64(s.job.Batch()))
	case s.job.Parties.Hidden > 0:
		scale(mean, 1/s.job.Parties.Hidden)
	}
	return Total{Parties: parties}, err
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
	return setOnce(v, values, err)
}
