package session

import (
	"crypto/sha256"
	"errors"
	"math"
	"math/rand/v2"

	"github.com/hushsum/hushsum/attacks/internal/textbook"
	"github.com/hushsum/hushsum/internal/graph"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/protocol"
)

// A server that shows a party a round of few honest parties and its own
// colluders, and the others the truth. Without recovery the party must insist on
// everybody. With it, two things stop the server, each by itself: the participants
// are agreed on through the context, and certificates. Without both it recovers
// the input exactly.
func splitParticipants(r *runner) {
	in := randomInputs(r.o.Seed, attackLayout, 8)

	// Without recovery: the round that party 0 is shown has one colluder.
	r.compare("no recovery", textbook.Participants, func(t target) (figures, error) {
		c, err := split(t, nil, 1, 5, splitPlan{colluders: []int{4}, participants: shownTo0([]int{0, 4}, upTo(5))}, in[:5])
		if err != nil {
			return figures{}, err
		}
		return counts(1, c.recovers(in, 0), c.refusedWith(protocol.ErrParticipants)), nil
	}, metric{"inputs recovered exactly", is(1), is(0)}, metric{"documented refusals", is(0), is(1)})
	splitWithRecovery(r, in)
	oneList(r, in)
	fewParticipants(r, in)
}

// shownTo0 tells party 0 of few participants, and the others the truth.
func shownTo0(few, truth []int) func(int) []int {
	return func(party int) []int {
		if party == 0 {
			return few
		}
		return truth
	}
}

// With recovery, t = 5: the parties that 0 is shown, 1 to 3 and the colluders,
// give the shares of its self mask; who is left out of the lists loses its
// recovery key, so that all of 0's pair masks are known.
func splitWithRecovery(r *runner, in [][][]uint64) {
	everybody := upTo(len(in))
	plan := splitPlan{colluders: []int{6, 7}, participants: shownTo0([]int{0, 1, 2, 3, 6, 7}, everybody),
		survivors: map[int][]int{1: except(everybody, 2, 3), 2: except(everybody, 1, 3), 3: except(everybody, 1, 2),
			4: except(everybody, 1, 3), 5: except(everybody, 2)}}
	run := func(t target) (figures, error) {
		c, err := split(t, soundRecovery, 2, len(in), plan, in)
		if err != nil {
			return figures{}, err
		}
		// Shares that honest holders open although they were told of others.
		opened := max(0, len(c.shares[shareOf{keyexchange.SelfMaskShare, 0}])-len(plan.colluders))
		return counts(1, c.recovers(in, 0), opened), nil
	}
	neither := textbook.ParticipantsAgreed | textbook.Quorum
	metrics := []metric{{"inputs recovered exactly", is(1), is(0)}, {"shares opened by honest holders", is(3), is(0)}}
	r.compare("with recovery", neither, run, metrics...)
	for _, layer := range []struct {
		name    string
		without textbook.Defence
	}{
		{"the context alone", textbook.Quorum},
		{"certificates alone", textbook.ParticipantsAgreed},
	} {
		r.compareTargets(layer.name, target{without: neither}, []target{{without: layer.without}}, run, metrics...)
	}
}

// One list for all, in a round that 0 was shown without party 5.
func oneList(r *runner, in [][][]uint64) {
	list := upTo(5)
	told := shownTo0(list, upTo(6))
	signers, config := attackConfig(6, &protocol.Recovery{}, 0) // t = q = 4, MinSurvivors = 5
	r.compare("one list, two rounds", textbook.ParticipantsAgreed, func(t target) (figures, error) {
		c, err := newSession(t, config, signers)
		if err != nil {
			return figures{}, err
		}
		c.nextRound()
		for i := range list {
			if err := c.agree(i, told(i), in[i], list); err != nil {
				return figures{}, err
			}
		}
		return counts(1, one(c.reveal(0, c.acrossViews(0)) == nil)), nil
	}, metric{"certificates of others accepted", is(1), is(0)})
}

// Rounds of fewer parties than the session promises, or than a party needs.
func fewParticipants(r *runner, in [][][]uint64) {
	everybody := upTo(len(in))
	for _, short := range []struct {
		name         string
		recovery     *protocol.Recovery
		participants []int
	}{
		{"fewer neighbours than t", soundRecovery, []int{0, 1, 6, 7}},
		{"fewer than MinSurvivors", &protocol.Recovery{MinSurvivors: 7}, []int{0, 1, 2, 3, 6, 7}},
	} {
		r.compare(short.name, textbook.Participants, func(t target) (figures, error) {
			c, err := split(t, short.recovery, 2, len(in), splitPlan{colluders: []int{6, 7}, participants: shownTo0(short.participants, everybody)}, in)
			if err != nil {
				return figures{}, err
			}
			return counts(1, one(c.views[0] != nil && c.views[0].masked != nil), c.refusedWith(protocol.ErrTooFew)), nil
		}, metric{"rounds taken part in", none, is(0)}, metric{"documented refusals", is(0), is(1)})
	}

	// In a complete graph MinSurvivors sees to t neighbours. In a sparse one, which
	// textbook does not know, a party looks at both.
	r.compareTargets("sparse graph, few neighbours", target{}, []target{{real: true}}, func(t target) (figures, error) {
		if !t.real {
			return counts(1, 0, 0), nil
		}
		begun, refusal, err := sparseBegin()
		return counts(1, one(begun), one(errors.Is(refusal, protocol.ErrTooFew))), err
	}, metric{"rounds begun", none, is(0)}, metric{"documented refusals", none, is(1)})
}

// sparseBegin tells a party of a sparse session of a round with most of the others
// but fewer than t of its neighbours.
func sparseBegin() (begun bool, refusal, err error) {
	const n, degree = 12, 4 // t = 3
	signers, config := attackConfig(n, &protocol.Recovery{Adversary: protocol.SemiMaliciousServer, Degree: degree}, 0)
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
	seed := append(append([]byte("hushsum/2 graph"), config.Seed[:]...), make([]byte, 8)...)
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
	near := g.Neighbours(0)
	few := wire.Begin{Broadcast: genuine.Broadcast, Participants: wire.SetOf(n, except(upTo(n), near[0], near[1])), Shares: genuine.Shares[2:]}
	_, refusal = s.Clients[0].Receive(few.Append(h.Append(nil)))
	_, begun = s.Clients[0].Due()
	return begun, refusal, nil
}

// modelLayout holds the gradient of a layer of 25 units with 40 inputs.
var modelLayout = masking.Layout{{Length: 25 * 40, Bits: 32}}

// layerUpdate is what a party sends for a model: the gradient of the loss of one
// rectified linear layer on the party's one record, at 16 fractional bits. The
// broadcast "dead" has biases under which no unit answers to any record, so that
// the gradient is zero (Pasquini 2022 §4).
func layerUpdate(seed uint64, party int, broadcast []byte) [][]uint64 {
	model, data := rand.New(rand.NewPCG(seed, 1)), rand.New(rand.NewPCG(seed, 100+uint64(party)))
	bias := 0.0
	if string(broadcast) == "dead" {
		bias = -1e6
	}
	record := make([]float64, 40)
	for i := range record {
		record[i] = data.NormFloat64()
	}
	out := make([]uint64, 0, 25*40)
	for range 25 {
		activation := bias
		for i := range record {
			activation += model.NormFloat64() * record[i]
		}
		slope := data.NormFloat64() // of the loss in the unit's output
		if activation <= 0 {
			slope = 0
		}
		for _, x := range record {
			out = append(out, uint64(uint32(int32(math.Round(slope*x*(1<<16))))))
		}
	}
	return [][]uint64{out}
}

// cosineOf is that of two vectors of signed 32-bit coordinates.
func cosineOf(a, b []uint64) float64 {
	var ab, aa, bb float64
	for i := range a {
		x, y := float64(int32(a[i])), float64(int32(b[i]))
		ab, aa, bb = ab+x*y, aa+x*x, bb+y*y
	}
	return ab / math.Sqrt(aa*bb)
}

// A server that gives everybody but the target a dead model gets the target's
// update as the sum if the broadcast is not agreed on: cosine 1. With the context,
// and with recovery, nobody can open the target's shares, so that nothing comes
// out; without recovery, masks do not cancel, so that the sum is uniform:
// |cosine| ≤ 6/√d, which unrelated vectors exceed with probability below 2e-9.
func modelInconsistency(r *runner) {
	const n, victim = 6, 2
	seed := r.o.Seed
	everybody := upTo(n)
	shown := func(party int) []byte {
		if party == victim {
			return []byte("live")
		}
		return []byte("dead")
	}
	lists := make(map[int][]int)
	in := make([][][]uint64, n)
	for i := range n {
		lists[i], in[i] = everybody, layerUpdate(seed, i, shown(i))
	}
	d := modelLayout[0].Length
	run := func(recovery *protocol.Recovery) func(target) (figures, error) {
		return func(t target) (figures, error) {
			signers, config := attackConfig(n, recovery, 1)
			config.Layout = modelLayout
			c, err := newSession(t, config, signers)
			if err != nil {
				return figures{}, err
			}
			c.attackSplit(splitPlan{broadcast: shown, survivors: lists,
				input: func(i int, broadcast []byte) [][]uint64 { return layerUpdate(seed, i, broadcast) }})
			cosine, exact := 0.0, 0
			if sum, err := c.unmask(everybody); err == nil {
				cosine, exact = cosineOf(sum[0], in[victim][0]), c.recovers(in, everybody...)
			}
			opened := len(c.shares[shareOf{keyexchange.SelfMaskShare, victim}])
			return figures{values: []float64{cosine, float64(exact), float64(opened)}, samples: d}, nil
		}
	}
	bound := 6 / math.Sqrt(float64(d))
	sums := metric{"sums read exactly", is(1), is(0)}
	r.compare("no recovery", textbook.BroadcastAgreed, run(nil),
		metric{"cosine(sum, target's update)", span{.99, 1 + 1e-9}, span{-bound, bound}}, sums, metric{"holders that open its shares", is(0), is(0)})
	r.compare("with recovery", textbook.BroadcastAgreed, run(&protocol.Recovery{}),
		metric{"cosine(sum, target's update)", span{.99, 1 + 1e-9}, is(0)}, sums, metric{"holders that open its shares", is(n - 1), is(0)})

	// The party checks what it was given against what the round began with.
	r.compare("another broadcast", textbook.BroadcastChecked, func(t target) (figures, error) {
		signers, config := attackConfig(n, nil, 0)
		config.Layout = modelLayout
		c, err := newSession(t, config, signers)
		if err != nil {
			return figures{}, err
		}
		c.nextRound()
		if err := c.begin(0, everybody, []byte("live")); err != nil {
			return figures{}, err
		}
		err = c.submit(0, []byte("dead"), in[0])
		c.refused(err)
		return counts(1, one(err == nil), c.refusedWith(protocol.ErrBroadcast)), nil
	}, metric{"inputs made from it", is(1), is(0)}, metric{"documented refusals", is(0), is(1)})
}
