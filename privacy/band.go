package privacy

import (
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/aggregation"
)

// Band holds the public coefficients c₀, c₁, … of correlated noise, whose squares add up to 1. A
// party whose vector is x in one round submits c_j·x in the j-th round from there, for each j, and
// the sums are decoded: see [Band.Decode]. Parties are divided into as many cohorts as there are
// coefficients, and the cohorts take turns: in round r the cohort with number r−1 modulo the number
// of cohorts begins. So the bands of one party do not overlap, and the number of the round alone
// determines at which offset a party's submission is.
type Band []float64

// mostFitted bounds the work of NewBand, in terms of sums. The fit for longer runs is that for as
// many rounds as it allows.
const mostFitted = 1 << 22

// NewBand returns length coefficients, c_j proportional to (j+1)^−p, with p fitted to the rounds in
// thousandths, so that the noise in the sum of all vectors up to a round is least, in the mean of
// squares over the rounds (Fichtenberger, Henzinger, Upadhyay 2022 have p = ½ and infinitely many
// coefficients; Kalinin, Lampert 2024 cut them off). It fails with a [ConfigError] unless 2 ≤
// length ≤ rounds.
func NewBand(length, rounds int) (Band, error) {
	if length < 2 || length > rounds {
		return nil, bad("Band", "use 2 up to the number of rounds",
			"%d rounds have no bands of %d", rounds, length)
	}
	rounds = max(length, min(rounds, mostFitted/length))
	low, high := 0, 1000 // the error has one minimum
	for low < high {
		p := (low + high) / 2
		if powerBand(length, p).Error(rounds) <= powerBand(length, p+1).Error(rounds) {
			high = p
		} else {
			low = p + 1
		}
	}
	return powerBand(length, low), nil
}

// powerBand is that of p thousandths.
func powerBand(length, p int) Band {
	b := make(Band, length)
	squares := 0.0
	for j := range b {
		b[j] = math.Pow(float64(j+1), -float64(p)/1000)
		squares += b[j] * b[j]
	}
	for j := range b {
		b[j] /= math.Sqrt(squares)
	}
	return b
}

// Error returns by how much the sum of all decoded vectors up to a round is off, as the root of
// the mean of squares over the given number of rounds, if each sum has noise of standard
// deviation 1. With independent noise that is √((rounds+1)/2).
func (b Band) Error(rounds int) float64 {
	// inverse has the first column of the inverse of the matrix that b makes, which is constant
	// along diagonals; prefix that of its sums.
	inverse := make([]float64, rounds)
	prefix, squares, total := 0.0, 0.0, 0.0
	for t := range inverse {
		if t == 0 {
			inverse[t] = 1 / b[0]
		}
		for j := 1; j < len(b) && j <= t; j++ {
			inverse[t] -= b[j] * inverse[t-j] / b[0]
		}
		prefix += inverse[t]
		squares += prefix * prefix
		total += squares
	}
	return math.Sqrt(total / float64(rounds))
}

// Offset returns the offset, from 0, of a party in its band in a round, where rounds count from
// 1. Before its first band the party has no offset, and submits zeros.
func (b Band) Offset(party int, round uint64) (offset int, ok bool) {
	first := uint64(party%len(b)) + 1
	if round < first {
		return 0, false
	}
	return int((round - first) % uint64(len(b))), true
}

// Decoded holds the decoded result of a sum: the sum of the vectors that began in its round.
type Decoded struct {
	Round uint64
	Sum   []float64
}

// Decode turns the sum of a round into the sum of the vectors that began in that round. earlier are
// the decoded sums of earlier rounds, in any order. A round without a sum is not among them; as
// long as no party goes on with a vector that began in such a round, the other rounds are still
// decoded without error.
func (b Band) Decode(round uint64, sum []float64, earlier []Decoded) []float64 {
	out := make([]float64, len(sum))
	copy(out, sum)
	for _, e := range earlier {
		if e.Round >= round || round-e.Round >= uint64(len(b)) {
			continue
		}
		for i, x := range e.Sum {
			out[i] -= b[round-e.Round] * x
		}
	}
	for i := range out {
		out[i] /= b[0]
	}
	return out
}

// at is the encoder of an offset: what it rounds has a norm of at most its coefficient's part.
func (b Band) at(e aggregation.Encoder, offset int) aggregation.Encoder {
	e.Clip *= b[offset]
	return e
}

// sensitivity is that of a band as a whole. A vector of whole numbers has a square that is a whole
// number, so that nothing is lost by rounding each offset's down.
func (b Band) sensitivity(e aggregation.Encoder) (accounting.Sensitivity, error) {
	square := 0.0
	for j := range b {
		s, err := b.at(e, j).Sensitivity()
		if err != nil {
			return s, err
		}
		square += math.Floor(s.L2 * s.L2)
	}
	return accounting.Sensitivity{L2: math.Sqrt(square) * (1 + 0x1p-50), Dimension: e.Dimension}, nil
}

// attained is the norm of what vectors as long as the clip add to the sums of a band, before they
// are rounded; without a band it is that of an encoder.
func (b Band) attained(e aggregation.Encoder) (float64, error) {
	if b == nil {
		return e.Attained()
	}
	norm := 0.0
	for j := range b {
		one, err := b.at(e, j).Attained()
		if err != nil {
			return 0, err
		}
		norm = math.Hypot(norm, one)
	}
	return norm * (1 - 0x1p-40), nil
}

// chooseScale is that of an encoder for noise of a multiple of a band's norm, which is larger than
// that of a vector that is rounded once.
func (b Band) chooseScale(
	e aggregation.Encoder, multiplier float64, honest int,
) (aggregation.Encoder, accounting.Sensitivity, error) {
	for wide := multiplier; ; {
		scaled, err := e.ChooseScale(wide, honest)
		if err != nil {
			return scaled, accounting.Sensitivity{}, err
		}
		if least := slices.Min(b) * scaled.Clip * scaled.Scale; least < 2 {
			return scaled, accounting.Sensitivity{}, fmt.Errorf(
				"%w: the least coefficient's part of a vector is %.2g integer units", aggregation.ErrBits,
				least)
		}
		one, err := scaled.Sensitivity()
		if err != nil {
			return scaled, one, err
		}
		all, err := b.sensitivity(scaled)
		if need := multiplier * all.L2 / one.L2; err != nil || need <= wide {
			return scaled, all, err
		}
		wide = multiplier * all.L2 / one.L2 * (1 + 1e-6)
	}
}

func (r *Release) validateBand() error {
	switch {
	case r.Band == nil:
		return nil
	case r.Noise.Family == accounting.FamilyDiscreteLaplace:
		return bad("Noise.Family", "use discrete Gaussian or Skellam noise",
			"a band's budget is an L2 norm, and that of discrete Laplace noise is not")
	case r.Records != nil:
		return bad("Records", "leave one of the two out",
			"a record may be in each vector that its party begins")
	case r.Signs != nil:
		return bad("Signs", "leave one of the two out", "signs are sent in each round")
	case r.Rate != 0 && r.Rate != 1:
		return bad("Rate", "leave one of the two out", "a coin lasts a band, and amplifies no message")
	}
	squares := 0.0
	for _, c := range r.Band {
		squares += c * c
	}
	if !(len(r.Band) > 1 && slices.Min(r.Band) > 0 && squares <= 1+1e-9) {
		return bad("Band", "use NewBand",
			"its %d coefficients have squares that add up to %v, or are not all above 0", len(r.Band),
			squares)
	}
	return nil
}

// Band returns the coefficients of correlated noise, nil if it is independent.
func (m *Mechanism) Band() Band { return m.band }

// EncodeAt is [Mechanism.Encode] of a release with a [Band], at one of its offsets: the submission
// is the coefficient at that offset times the vector. Zeros may be encoded at any offset.
func (m *Mechanism) EncodeAt(
	rotation [32]byte, offset int, vector []float64, random io.Reader,
) ([][]uint64, error) {
	if offset < 0 || offset >= len(m.band) {
		return nil, fmt.Errorf("%w: offset %d in a band of %d", aggregation.ErrConfig, offset,
			len(m.band))
	}
	share, err := m.Vector.share(random)
	if err != nil {
		return nil, err
	}
	defer clear(share)
	clipped, _, err := aggregation.Clip(vector, m.Encoder.Clip)
	if err != nil {
		return nil, err
	}
	part := make([]float64, len(clipped))
	for i, x := range clipped {
		part[i] = m.band[offset] * x
	}
	return m.band.at(m.rotated(rotation), offset).Encode(part, share, random)
}

// single refuses the encodings that know no offset, or would add a member's share to each vector.
func (m *Mechanism) single() error {
	if m.promise.members {
		return fmt.Errorf("%w: the committee adds the noise, encode by the Encoder",
			aggregation.ErrConfig)
	}
	if m.band != nil {
		return fmt.Errorf("%w: a vector of a band has an offset, use EncodeAt", aggregation.ErrConfig)
	}
	return nil
}
