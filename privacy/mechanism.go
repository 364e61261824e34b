package privacy

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"math"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/internal/labels"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/noise"
)

// Mechanism is a [Release] with everything worked out: how vectors become submissions with noise,
// how sums become means, and what a round spends. All parties and the decoder must have the same
// Mechanism. It is safe for concurrent use.
type Mechanism struct {
	// Encoder rounds vectors. Its Rotate is a placeholder: see Encode.
	Encoder aggregation.Encoder
	Vector  Lane
	Signs   *Lane // nil without

	signs    aggregation.Signs
	promise  Promise
	rate     float64
	overrun  float64
	records  *Records
	band     Band
	assumes  accounting.Assumptions
	overlong float64 // see aggregation.Encoder.Overlong
}

// Statement returns what an ε of the noise is about.
func (m *Mechanism) Statement() accounting.Statement {
	return m.promise.Statement(m.records.unit()).Assuming(m.assumes)
}

// Promise returns what the noise was settled for: whatever takes sums of it must promise as much.
func (m *Mechanism) Promise() Promise { return m.promise }

// Layout returns the segments of a submission: the vector, with its dimension rounded up to a
// power of two, and the signs if there are any.
func (m *Mechanism) Layout() (masking.Layout, error) { return m.lanes().Layout() }

func (m *Mechanism) lanes() aggregation.Lanes {
	all := aggregation.Lanes{m.Encoder}
	if m.Signs != nil {
		all = append(all, m.signs)
	}
	return all
}

// StdDev returns the standard deviation of the noise of the given number of parties in each
// coordinate of a sum, in the units of the vectors. For Vector.Shares.MinHonest shares StdDev
// returns the noise that is left in any case. The noise in the mean of k vectors is a k-th part of
// the noise in their sum.
func (m *Mechanism) StdDev(shares int) float64 {
	return m.Vector.SumStdDev(shares) / m.Encoder.Scale
}

// SumStdDev returns the standard deviation of the noise in each coordinate of a sum of the given
// number of parties, in the units of the vectors: StdDev of as many shares or, with a committee,
// the noise that all members add together with the noise that hides the parties' keys.
func (m *Mechanism) SumStdDev(parties int) float64 {
	if !m.promise.members {
		return m.StdDev(parties)
	}
	own := ownNoise * math.Sqrt(float64(parties)) / m.Encoder.Scale
	return math.Hypot(m.StdDev(m.promise.shares), own)
}

// Records returns the release's Records, nil if the noise hides parties.
func (m *Mechanism) Records() *Records { return m.records }

// MaxNorm returns Δ₂ of the vectors, in their own units: Clip plus what rounding can add to it.
func (m *Mechanism) MaxNorm() float64 { return m.Vector.Sensitivity.L2 / m.Encoder.Scale }

// Round returns what one round, or one [Band], spends: the noise of the fewest honest shares
// against the sensitivity after rounding, and the distance of the samplers from their law.
func (m *Mechanism) Round() accounting.Round {
	r := accounting.Round{
		Family:     m.Vector.Shares.Law.Family(),
		Statement:  m.Statement(),
		Shares:     m.promise.honest,
		Honest:     m.promise.honest,
		Rate:       1,
		SecretRate: m.secretRate(),
		Update:     m.Vector.accounting(),
		// The shares of all parties count, though those beyond MinHonest protect
		// nothing that is claimed.
		Samples:       m.Vector.samples(),
		TableDistance: noise.MaxTableDistance,
		Overrun:       m.overrun,
		Failure:       m.promise.failure + m.overlong,
	}
	if m.records != nil {
		r.SecretRate = m.records.Rate
		r.Overrun += m.records.Overrun()
	}
	if m.promise.members {
		// All other parties may collude, and a party's own noise is still in its sum.
		r.Own = ownNoise * ownNoise
	}
	if b := m.band; b != nil {
		r.Messages = len(b)
		r.Overrun *= float64(len(b))
		r.Update.Sensitivity.Dimension *= len(b)
		r.Samples *= float64(len(b))
		r.Failure *= float64(len(b))
	}
	if m.Signs != nil {
		signs := m.Signs.accounting()
		r.Signs = &signs
		r.Samples += m.Signs.samples()
	}
	return r
}

// secretRate is that of an accounting.Round, which has 0 where there is no coin.
func (m *Mechanism) secretRate() float64 {
	if m.rate < 1 {
		return m.rate
	}
	return 0
}

// Rotation returns the seed of a round's rotation, which all parties and the decoder must use, from
// randomness that is public now but was unknown when vectors were chosen, such as a digest of the
// session's keys.
func Rotation(public [32]byte, round uint64) [32]byte {
	b := append([]byte(labels.RotationRound), public[:]...)
	return sha256.Sum256(binary.BigEndian.AppendUint64(b, round))
}

// rotated is the encoder of a round.
func (m *Mechanism) rotated(rotation [32]byte) aggregation.Encoder {
	e := m.Encoder
	e.Rotate = &rotation
	return e
}

// Encode returns a party's submission in the form of Layout: its vector clipped, rotated and
// rounded, and the signs of the other vector, nil without that lane, each with the party's share of
// the noise. random serves noise and rounding (nil: crypto/rand); to send a submission again, send
// the same bytes: do not encode the vector anew. Encode fails with the errors of
// aggregation.Encoder's Encode, and with the error of random.
func (m *Mechanism) Encode(
	rotation [32]byte, vector, signs []float64, random io.Reader,
) ([][]uint64, error) {
	if err := m.single(); err != nil {
		return nil, err
	}
	if (signs != nil) != (m.Signs != nil) {
		return nil, fmt.Errorf("%w: signs without a lane, or a lane without", aggregation.ErrLength)
	}
	share, err := m.Vector.share(random)
	if err != nil {
		return nil, err
	}
	defer clear(share)
	out, err := m.rotated(rotation).Encode(vector, share, random)
	if err != nil || m.Signs == nil {
		return out, err
	}
	votes, err := m.Signs.share(random)
	if err != nil {
		return nil, err
	}
	defer clear(votes)
	beside, err := m.signs.Encode(signs, votes)
	if err != nil {
		return nil, err
	}
	return m.lanes().Join(out, beside)
}

// Blank returns the submission of a party that its coin left out, see [Release].Rate: vectors of
// zeros, which are zeros under any rotation, with the party's share of the noise.
func (m *Mechanism) Blank(random io.Reader) ([][]uint64, error) {
	if m.promise.members {
		return nil, m.single()
	}
	layout, err := m.Layout()
	if err != nil {
		return nil, err
	}
	lanes := []*Lane{&m.Vector, m.Signs}
	out := make([][]uint64, len(layout))
	for s, segment := range layout {
		share, err := lanes[s].share(random)
		if err != nil {
			return nil, err
		}
		mask := ^uint64(0) >> (64 - segment.Bits)
		out[s] = make([]uint64, len(share))
		for j, x := range share {
			out[s][j] = uint64(x) & mask
		}
		clear(share)
	}
	return out, nil
}

// Decode returns the mean of the vectors in a sum, of the given number of parties, and the sums of
// signs, nil without that lane. With 1 party the mean equals the sum. It fails as
// aggregation.Encoder's Decode does.
func (m *Mechanism) Decode(
	rotation [32]byte, sum [][]uint64, parties int,
) (mean []float64, signs []int64, err error) {
	parts, err := m.lanes().Split(sum)
	if err != nil {
		return nil, nil, err
	}
	if mean, err = m.rotated(rotation).Decode(parts[0], parties); err != nil || m.Signs == nil {
		return mean, nil, err
	}
	signs, err = m.signs.Decode(parts[1], parties)
	if err != nil {
		return nil, nil, err
	}
	return mean, signs, nil
}
