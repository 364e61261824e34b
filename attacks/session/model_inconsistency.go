package session

import (
	"math"
	"math/rand/v2"

	"github.com/hushsum/hushsum/attacks"
	"github.com/hushsum/hushsum/attacks/internal/textbook"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/protocol"
)

var modelInconsistency = compared(attacks.Attack{
	Name:      "ModelInconsistency",
	Adversary: cheatingServer,
	About: "gives a dead model to all but one party, so that the sum is that one's " +
		"update",
	Defence: "the broadcast's digest is in the context",
}, modelVariants)

// The broadcasts are of two models: one to train, and one that is dead.
const (
	liveModel = "live"
	deadModel = "dead"
)

// The model is one layer.
const (
	layerUnits  = 25
	layerInputs = 40
)

// modelLayout holds the gradient of the layer.
var modelLayout = masking.Layout{{Length: layerUnits * layerInputs, Bits: 32}}

// layerUpdate returns a party's update of a model: the gradient of the loss of one
// rectified linear layer on the party's one record, at 16 fractional bits. The
// broadcast "dead" has biases under which no unit answers to any record, so that
// the gradient is zero (Pasquini 2022 §4).
func layerUpdate(seed uint64, party int, broadcast []byte) segments {
	model := rand.New(rand.NewPCG(seed, 1))
	data := rand.New(rand.NewPCG(seed, 100+uint64(party)))
	bias := 0.0
	if string(broadcast) == deadModel {
		bias = -1e6
	}
	record := make([]float64, layerInputs)
	for i := range record {
		record[i] = data.NormFloat64()
	}
	gradient := make([]uint64, 0, layerUnits*layerInputs)
	for range layerUnits {
		activation := bias
		for i := range record {
			activation += model.NormFloat64() * record[i]
		}
		slope := data.NormFloat64() // of the loss in the unit's output
		if activation <= 0 {
			slope = 0
		}
		for _, x := range record {
			gradient = append(gradient, uint64(uint32(int32(math.Round(slope*x*(1<<16))))))
		}
	}
	return segments{gradient}
}

// cosineOf is the cosine of two vectors of signed 32-bit coordinates.
func cosineOf(a, b []uint64) float64 {
	var ab, aa, bb float64
	for i := range a {
		x, y := float64(int32(a[i])), float64(int32(b[i]))
		ab, aa, bb = ab+x*y, aa+x*x, bb+y*y
	}
	return ab / math.Sqrt(aa*bb)
}

// The session of ModelInconsistency, and who gets the live model.
const modelParties, modelVictim = 6, 2

// shownModel is the broadcast that a party is shown.
func shownModel(party int) []byte {
	if party == modelVictim {
		return []byte(liveModel)
	}
	return []byte(deadModel)
}

// modelVariants have a server that gives everybody but the target a dead model. It gets
// the target's update as the sum if the broadcast is not agreed on: cosine 1. With the
// context, and with recovery, nobody can open the target's shares, so that nothing comes
// out; without recovery, masks do not cancel, so that the sum is uniform:
// |cosine| ≤ 6/√d, which unrelated vectors exceed with probability below 2e-9.
func modelVariants(seed uint64) []variant {
	bound := 6 / math.Sqrt(layerUnits*layerInputs)
	uncorrelated := bounds{-bound, bound}
	return []variant{
		modelVariant("no recovery", seed, nil, uncorrelated, exactly(0)),
		modelVariant("with recovery", seed, &protocol.Recovery{},
			exactly(0), exactly(modelParties-1)),
		anotherBroadcast(seed),
	}
}

// modelVariant runs a session with or without recovery. With the defence, the cosine must be
// within the bounds defended; without it, the number of holders that open the target's shares
// must be within the bounds opened.
func modelVariant(
	name string, seed uint64, recovery *protocol.Recovery, defended, opened bounds,
) variant {
	everybody := upTo(modelParties)
	plan := splitPlan{
		broadcast: shownModel,
		survivors: everyone(everybody, everybody),
		input: func(i int, broadcast []byte) segments {
			return layerUpdate(seed, i, broadcast)
		},
	}
	inputs := make([]segments, modelParties)
	for i := range inputs {
		inputs[i] = layerUpdate(seed, i, shownModel(i))
	}
	return variant{
		name:  name,
		lacks: textbook.BroadcastAgreed,
		run: func(t target) (outcome, error) {
			signers, config := attackConfig(modelParties, recovery, 1)
			config.Layout = modelLayout
			c, err := newSession(t, config, signers)
			if err != nil {
				return outcome{}, err
			}
			c.attackSplit(plan)
			cosine, exact := 0.0, 0
			if sum, err := c.unmask(everybody); err == nil {
				cosine = cosineOf(sum[0], inputs[modelVictim][0])
				exact = c.recovers(inputs, everybody...)
			}
			shares := c.shares[shareOf{keyexchange.SelfMaskShare, modelVictim}]
			return outcome{
				values:  []float64{cosine, float64(exact), float64(len(shares))},
				samples: layerUnits * layerInputs,
			}, nil
		},
		metrics: []metric{
			{"cosine(sum, target's update)", bounds{0.99, 1 + 1e-9}, defended},
			{"sums read exactly", exactly(1), exactly(0)},
			{"holders that open its shares", opened, exactly(0)},
		},
	}
}

// anotherBroadcast gives a party another model than the round began with: it checks.
func anotherBroadcast(seed uint64) variant {
	input := layerUpdate(seed, 0, []byte(deadModel))
	return variant{
		name:  "another broadcast",
		lacks: textbook.BroadcastChecked,
		run: func(t target) (outcome, error) {
			signers, config := attackConfig(modelParties, nil, 0)
			config.Layout = modelLayout
			c, err := newSession(t, config, signers)
			if err != nil {
				return outcome{}, err
			}
			c.nextRound()
			if err := c.begin(0, upTo(modelParties), []byte(liveModel)); err != nil {
				return outcome{}, err
			}
			err = c.submit(0, []byte(deadModel), input)
			c.refused(err)
			return counts(1, indicator(err == nil), c.refusedWith(protocol.ErrBroadcast)), nil
		},
		metrics: []metric{
			{"inputs made from it", exactly(1), exactly(0)},
			{documentedRefusals, exactly(0), exactly(1)},
		},
	}
}
