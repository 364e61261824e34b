package session

import (
	"errors"

	"github.com/hushsum/hushsum/attacks"
	"github.com/hushsum/hushsum/attacks/internal/textbook"
	"github.com/hushsum/hushsum/protocol"
)

var lateInput = compared(attacks.Attack{
	Name:      "LateInput",
	Adversary: cheatingServer,
	About:     "declares a party dropped out, and uses the input that it held back",
	Defence:   "the self mask",
}, lateInputVariants)

// lateInputVariants have a server that holds a submission back, has the others reveal the
// recovery key of the party that "dropped out", and then takes the pair masks off what it
// held back. Without self mask that is the input; with it, the input plus a mask
// that nobody gave a share of.
func lateInputVariants(seed uint64) []variant {
	const n, victim, colluder = 6, 0, 5
	inputs := randomInputs(seed, attackLayout, n)
	rest := except(upTo(n), victim)
	honest := except(rest, colluder)
	plan := splitPlan{colluders: []int{colluder}, survivors: everyone(honest, rest)}
	return []variant{{
		lacks: textbook.SelfMask,
		run: func(t target) (outcome, error) {
			c, err := split(t, &protocol.Recovery{}, 1, plan, inputs)
			if err != nil {
				return outcome{}, err
			}
			if err := errors.Join(c.refusals...); err != nil {
				return outcome{}, err // to each party the round is an honest one
			}
			rebuilt := c.recovers(inputs, victim) // with what shares there are of the self mask
			c.singleMasked = true
			sum, err := c.unmask([]int{victim})
			if err != nil {
				return outcome{}, err
			}
			// All pair masks are off. What is left over the input is one self mask.
			left := minus(sum, inputs[victim])
			again := 0
			for _, i := range honest {
				err := c.survivors(i, upTo(n)) // the round is over for them
				again += indicator(errors.Is(err, protocol.ErrPhase))
			}
			return outcome{
				values: []float64{
					float64(agreements(sum, inputs[victim])),
					chiSquare(left[0]),
					float64(rebuilt),
					float64(again),
				},
				samples: nibbles,
			}, nil
		},
		metrics: []metric{
			{"values of the input, of 32", exactly(32), exactly(0)},
			{"χ² of what is left (15 d.f.)", atLeast(80), uniform},
			{"self masks rebuilt", exactly(0), exactly(0)},
			{"second lists refused", exactly(4), exactly(4)},
		},
	}}
}
