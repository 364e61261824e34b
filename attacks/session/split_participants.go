package session

import (
	"crypto/sha256"
	"errors"

	"github.com/hushsum/hushsum/attacks"
	"github.com/hushsum/hushsum/attacks/internal/textbook"
	"github.com/hushsum/hushsum/internal/graph"
	"github.com/hushsum/hushsum/internal/labels"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/protocol"
)

var splitParticipants = compared(attacks.Attack{
	Name:      "SplitParticipants",
	Adversary: cheatingServer,
	About:     "shows a party a round of few honest parties, and the others the truth",
	Defence:   "participants are checked, and agreed on through the context",
}, splitParticipantsVariants)

// splitParticipantsVariants have a server that shows a party a round of few honest parties
// and its own colluders, and the others the truth. Without recovery the party must insist
// on everybody. With it, two things stop the server, each by itself: the participants
// are agreed on through the context, and certificates. Without both it recovers
// the input exactly.
func splitParticipantsVariants(seed uint64) []variant {
	inputs := randomInputs(seed, attackLayout, splitParties)
	variants := []variant{splitWithoutRecovery(inputs[:5])}
	variants = append(variants, splitWithRecovery(inputs)...)
	variants = append(variants, oneListVariant(inputs))
	variants = append(variants, fewParticipants(inputs)...)
	return append(variants, sparseVariant())
}

// shownTo0 sends party 0 a short list of participants, and all others the true one.
func shownTo0(few, truth []int) func(int) []int {
	return func(party int) []int {
		if party == 0 {
			return few
		}
		return truth
	}
}

// splitWithoutRecovery shows party 0 a round with one colluder.
func splitWithoutRecovery(inputs []segments) variant {
	plan := splitPlan{
		colluders:    []int{4},
		participants: shownTo0([]int{0, 4}, upTo(len(inputs))),
	}
	return variant{
		name:  "no recovery",
		lacks: textbook.Participants,
		run: func(t target) (outcome, error) {
			c, err := split(t, nil, len(plan.colluders), plan, inputs)
			if err != nil {
				return outcome{}, err
			}
			return counts(1, c.recovers(inputs, 0), c.refusedWith(protocol.ErrParticipants)), nil
		},
		metrics: []metric{
			{inputsRecovered, exactly(1), exactly(0)},
			{documentedRefusals, exactly(0), exactly(1)},
		},
	}
}

// splitWithRecovery has t = 5: the parties that 0 is shown, 1 to 3 and the colluders,
// give the shares of its self mask; who is left out of the lists loses its
// recovery key, so that all of 0's pair masks are known.
func splitWithRecovery(inputs []segments) []variant {
	everybody := upTo(splitParties)
	plan := splitPlan{
		colluders:    splitColluders,
		participants: shownTo0([]int{0, 1, 2, 3, 6, 7}, everybody),
		survivors: map[int][]int{
			1: except(everybody, 2, 3),
			2: except(everybody, 1, 3),
			3: except(everybody, 1, 2),
			4: except(everybody, 1, 3),
			5: except(everybody, 2),
		},
	}
	neither := textbook.ParticipantsAgreed | textbook.Quorum
	var variants []variant
	for _, layer := range []struct {
		name     string
		defended []target
	}{
		{"with recovery", nil},
		{"the context alone", []target{{without: textbook.Quorum}}},
		{"certificates alone", []target{{without: textbook.ParticipantsAgreed}}},
	} {
		variants = append(variants, variant{
			name:     layer.name,
			lacks:    neither,
			defended: layer.defended,
			run: func(t target) (outcome, error) {
				c, err := split(t, soundRecovery, len(splitColluders), plan, inputs)
				if err != nil {
					return outcome{}, err
				}
				// Shares that honest holders open although they were told of others.
				shares := c.shares[shareOf{keyexchange.SelfMaskShare, 0}]
				opened := max(0, len(shares)-len(plan.colluders))
				return counts(1, c.recovers(inputs, 0), opened), nil
			},
			metrics: []metric{
				{inputsRecovered, exactly(1), exactly(0)},
				{"shares opened by honest holders", exactly(3), exactly(0)},
			},
		})
	}
	return variants
}

// oneListVariant has one list for all, in a round that 0 was shown without party 5.
func oneListVariant(inputs []segments) variant {
	const n = 6 // t = q = 4, MinSurvivors = 5
	list := upTo(n - 1)
	told := shownTo0(list, upTo(n))
	return variant{
		name:  "one list, two rounds",
		lacks: textbook.ParticipantsAgreed,
		run: func(t target) (outcome, error) {
			signers, config := attackConfig(n, &protocol.Recovery{}, 0)
			c, err := newSession(t, config, signers)
			if err != nil {
				return outcome{}, err
			}
			c.nextRound()
			for i := range list {
				if err := c.agree(i, told(i), inputs[i], list); err != nil {
					return outcome{}, err
				}
			}
			err = c.reveal(0, c.acrossViews(0))
			return counts(1, indicator(err == nil)), nil
		},
		metrics: []metric{{"certificates of others accepted", exactly(1), exactly(0)}},
	}
}

// fewParticipants are rounds of fewer parties than the session promises, or than a party
// needs.
func fewParticipants(inputs []segments) []variant {
	var variants []variant
	for _, short := range []struct {
		name         string
		recovery     *protocol.Recovery
		participants []int
	}{{
		name:         "fewer neighbours than t",
		recovery:     soundRecovery,
		participants: []int{0, 1, 6, 7},
	}, {
		name:         "fewer than MinSurvivors",
		recovery:     &protocol.Recovery{MinSurvivors: 7},
		participants: []int{0, 1, 2, 3, 6, 7},
	}} {
		plan := splitPlan{
			colluders:    splitColluders,
			participants: shownTo0(short.participants, upTo(splitParties)),
		}
		variants = append(variants, variant{
			name:  short.name,
			lacks: textbook.Participants,
			run: func(t target) (outcome, error) {
				c, err := split(t, short.recovery, len(splitColluders), plan, inputs)
				if err != nil {
					return outcome{}, err
				}
				tookPart := c.views[0] != nil && c.views[0].masked != nil
				return counts(1, indicator(tookPart), c.refusedWith(protocol.ErrTooFew)), nil
			},
			metrics: []metric{
				{"rounds taken part in", unmeasured, exactly(0)},
				{documentedRefusals, exactly(0), exactly(1)},
			},
		})
	}
	return variants
}

// sparseVariant has a round of few neighbours in a sparse graph. In a complete one
// MinSurvivors sees to t neighbours; in a sparse one, which textbook does not know, a
// party looks at both.
func sparseVariant() variant {
	return variant{
		name:     "sparse graph, few neighbours",
		defended: []target{{real: true}},
		run: func(t target) (outcome, error) {
			if !t.real {
				return counts(1, 0, 0), nil
			}
			begun, refusal, err := sparseBegin()
			tooFew := errors.Is(refusal, protocol.ErrTooFew)
			return counts(1, indicator(begun), indicator(tooFew)), err
		},
		metrics: []metric{
			{"rounds begun", unmeasured, exactly(0)},
			{documentedRefusals, unmeasured, exactly(1)},
		},
	}
}

// sparseBegin tells a party of a sparse session of a round with most of the others
// but fewer than t of its neighbours.
func sparseBegin() (begun bool, refusal, err error) {
	const n, degree = 12, 4 // t = 3
	signers, config := attackConfig(n, &protocol.Recovery{
		Adversary: protocol.SemiMaliciousServer,
		Degree:    degree,
	}, 0)
	config.Seed = [32]byte{1}
	s, err := target{real: true}.ready(config, signers, nil)
	if err != nil {
		return false, nil, err
	}
	envelopes, err := s.Server.Begin(nil)
	if err != nil {
		return false, nil, err
	}
	// The one graph of the session, which is public (SPEC.md §7.4).
	seed := append(append([]byte(labels.Graph), config.Seed[:]...), make([]byte, 8)...)
	g, err := graph.NewGraph(upTo(n), degree, sha256.Sum256(seed))
	if err != nil {
		return false, nil, err
	}
	h, body, err := wire.ParseHeader(envelopes[0].Message)
	if err != nil {
		return false, nil, err
	}
	genuine, err := wire.ParseBegin(body, n, func(wire.Set) int { return degree })
	if err != nil {
		return false, nil, err
	}
	neighbours := g.Neighbours(0)
	few := wire.Begin{
		Broadcast:    genuine.Broadcast,
		Participants: wire.SetOf(n, except(upTo(n), neighbours[:2]...)),
		Shares:       genuine.Shares[2:],
	}
	_, refusal = s.Clients[0].Receive(few.Append(h.Append(nil)))
	_, begun = s.Clients[0].Due()
	return begun, refusal, nil
}
