package observation

import (
	"context"
	"errors"
	"math"

	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/attacks"
)

var wrapAround = attacks.Attack{
	Name:      "WrapAround",
	Adversary: "client",
	About:     "add half the ring, or scale the update, past the encoder",
	Defence: "the decoder refuses what no updates add up to; within that, " +
		"a documented limit",
	Run: runWrapAround,
}

// shiftOutcome says what a client gets into a sum by adding to its submission in the ring,
// past its own encoder.
type shiftOutcome struct {
	tried, refused int
	// largest is the largest change of the decoded sum that was not refused, in clipping
	// norms.
	largest float64
}

// tryShifts has one party add each of the shifts to the first coordinate of its
// encoded update, all updates being zero, and decodes the sum.
func tryShifts(e aggregation.Encoder, shifts []uint64) (shiftOutcome, error) {
	layout, err := e.Layout()
	if err != nil {
		return shiftOutcome{}, err
	}
	ring := ^uint64(0) >> (64 - layout[0].Bits)
	outcome := shiftOutcome{tried: len(shifts)}
	for _, shift := range shifts {
		sum := make([]uint64, layout[0].Length)
		sum[0] = shift & ring
		decoded, err := e.Decode([][]uint64{sum}, 1)
		switch {
		case errors.Is(err, aggregation.ErrSum):
			outcome.refused++
		case err != nil:
			return shiftOutcome{}, err
		default:
			outcome.largest = max(outcome.largest, math.Abs(decoded[0])/e.Clip)
		}
	}
	return outcome, nil
}

func runWrapAround(context.Context, attacks.Options) (*attacks.Report, error) {
	const parties = 10
	e := aggregation.Encoder{Parties: parties, Dimension: 4, Clip: 1, Scale: 64}
	layout, err := e.Layout()
	if err != nil {
		return nil, err
	}
	ring := uint64(1) << layout[0].Bits
	half, err := tryShifts(e, []uint64{ring / 2})
	if err != nil {
		return nil, err
	}
	shifts := make([]uint64, ring)
	for i := range shifts {
		shifts[i] = uint64(i)
	}
	all, err := tryShifts(e, shifts)
	if err != nil {
		return nil, err
	}
	// Without the bound of the encoder a decoder takes the whole ring.
	decoded, err := aggregation.Integers([]uint64{ring / 2}, layout[0].Bits)
	if err != nil {
		return nil, err
	}
	unbounded := math.Abs(float64(decoded[0])) / float64(ring/2)
	unnoticed := 1 - float64(half.refused)/float64(half.tried)
	return &attacks.Report{Rows: []attacks.Row{{
		Case:       "x + M/2",
		Metric:     "shifts that go unnoticed",
		Undefended: attacks.Exactly(unbounded, 1, 1),
		Defended:   attacks.Exactly(unnoticed, half.tried, 0),
		Note:       "undefended: the decoded shift, of M/2",
	}, {
		Case:     "scaling",
		Metric:   "largest unnoticed shift of the sum, in clipping norms",
		Defended: attacks.Exactly(all.largest, all.tried, parties),
		Limit:    true,
		Note: "a client can take the place of all: only a proof of its norm " +
			"would stop that",
	}}}, nil
}
