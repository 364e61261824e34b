package collusion

import (
	"encoding/binary"
	"math/rand/v2"
)

// transferEstimates plays rounds of the real exchange, and has the colluders
// estimate the inputs of party 0: of the sum they subtract their own terms, those
// that they sent one another, and of what they sent to party 0 the mean of the two
// candidates. That is all that the estimate can use, since what they received comes
// under a mask each. With equal they send party 0 the first of their candidates
// twice.
//
// Which candidate a colluder took from another is in the receiver's memory, out of
// reach here; so the colluders send one another the same one twice in any case.
func transferEstimates(
	r *rand.Rand, parties, length, rounds int, equal bool,
) (inputs, estimates []float64, err error) {
	s, err := newTransferSession(parties, length, r)
	if err != nil {
		return nil, nil, err
	}
	for round := uint64(1); round <= uint64(rounds); round++ {
		s.carry = func(from, to int, message []byte) ([]byte, error) {
			if message[1] != transferOffer || from == 0 || to == 0 && !equal {
				return message, nil
			}
			return s.equalise(from, to, round, message)
		}
		corrections, own, err := s.round(round)
		if err != nil {
			return nil, nil, err
		}
		drawn, sum := drawInputs(length, r)
		inputs = append(inputs, drawn...)
		estimates = append(estimates, s.estimate(sum, corrections, own, equal)...)
	}
	return inputs, estimates, nil
}

// estimate returns the colluders' estimates of the inputs of party 0, which are the sum
// but for the corrections.
func (s *transferSession) estimate(
	sum []uint64, corrections, own [][]uint64, equal bool,
) []float64 {
	half := make([]float64, len(sum)) // of what differs in offers to party 0
	for i, correction := range corrections {
		for k := range sum {
			sum[k] += correction[k]
			if i == 0 {
				continue
			}
			sum[k] -= own[i][k]
			for j, sent := range s.made[i] {
				if j == i {
					continue
				}
				sum[k] -= sent[0][k]
				if j == 0 && !equal {
					half[k] += centred(sent[0][k]-sent[1][k], obliviousBits) / 2
				}
			}
		}
	}
	estimates := make([]float64, len(sum))
	for k, x := range sum {
		estimates[k] = (centred(x, obliviousBits) + half[k]) / obliviousScale
	}
	return estimates
}

// transcript holds a server's view of an exchange of two parties, with the values of
// party 0 that it wants to know.
type transcript struct {
	inputs, submitted []float64
	choices           []byte   // of party 0, in the one offer that it gets
	sent              [][]byte // bits: in each, one place for each coordinate
}

// addBits adds one series for each bit of a width, of values that lie side by side.
func (t *transcript) addBits(b []byte, first, stride, width, length int) {
	for i := range width {
		series := make([]byte, length)
		for k := range series {
			at := first + k*stride + i
			series[k] = b[at/8] >> (at % 8) & 1
		}
		t.sent = append(t.sent, series)
	}
}

// playTranscript plays a round of that many coordinates, a multiple of 8. To tell the
// choices, a mark is added to all second candidates, after the server has seen the
// offer: it comes out in the sum.
func playTranscript(length int, r *rand.Rand) (*transcript, error) {
	const mark = 1 << (obliviousBits - 2)
	s, err := newTransferSession(2, length, r)
	if err != nil {
		return nil, err
	}
	seen := &transcript{}
	s.carry = func(from, to int, message []byte) ([]byte, error) {
		body := message[transferHeader+sealNonce:]
		switch {
		case from == 0 && message[1] == transferChoice:
			// 128 columns of a bit for each transfer, and a whole block of padding each.
			column := ((length+127)/128 + 1) * 128
			for i := range 128 {
				seen.addBits(body, i*column, 1, 1, length)
			}
		case to == 0 && message[1] == transferOffer:
			second := length * obliviousBits
			seen.addBits(body, 0, obliviousBits, obliviousBits, length)
			seen.addBits(body, second, obliviousBits, obliviousBits, length)
			return s.rewrite(from, to, 1, message, func(second []uint64) {
				for k := range second {
					second[k] += mark
				}
			})
		}
		return message, nil
	}
	corrections, _, err := s.round(1)
	if err != nil {
		return nil, err
	}
	var packed []byte
	inputs, sum := drawInputs(length, r)
	seen.inputs = inputs
	for k := range sum {
		sum[k] += corrections[0][k]
		seen.submitted = append(seen.submitted, centred(sum[k], obliviousBits))
		packed = binary.LittleEndian.AppendUint64(packed, sum[k])
		// The noise is far from half the mark.
		choice := byte(0)
		if centred(sum[k]+corrections[1][k], obliviousBits) > mark/2 {
			choice = 1
		}
		seen.choices = append(seen.choices, choice)
	}
	seen.addBits(packed, 0, 64, obliviousBits, length)
	return seen, nil
}
