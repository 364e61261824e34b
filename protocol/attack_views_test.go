package protocol

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hushsum/hushsum/masking"
)

// splitPlan is a round in which everybody may be told something else.
type splitPlan struct {
	colluders    []int
	participants func(party int) []int
	broadcast    func(party int) []byte
	survivors    map[int][]int // by honest party; not in the map: told nothing
	input        func(party int, broadcast []byte) [][]uint64
	targets      []int
}

// attackSplit runs such a round with the colluders' help and unmasks the
// targets. It is the attack of SplitView, SplitParticipants, ModelInconsistency
// and LateInput, which differ in the plan.
func (c *cheater) attackSplit(plan splitPlan) *attackResult {
	c.nextRound()
	for i := range c.parties {
		broadcast := []byte(nil)
		if plan.broadcast != nil {
			broadcast = plan.broadcast(i)
		}
		err := c.begin(i, plan.participants(i), broadcast)
		if err == nil && slices.Contains(plan.colluders, i) {
			err = c.poolSecrets(i)
		}
		if err == nil {
			err = c.submit(i, broadcast, plan.input(i, broadcast))
		}
		c.refused(err)
	}
	if !c.config.recovery {
		return c.unmask(plan.targets)
	}
	for _, i := range plan.colluders {
		c.poolShares(i)
	}
	honest := slices.Sorted(maps.Keys(plan.survivors))
	for _, i := range honest {
		if c.views[i] != nil {
			c.refused(c.survivors(i, plan.survivors[i]))
		}
	}
	for _, i := range honest {
		if c.views[i] == nil || c.views[i].statement == "" {
			continue
		}
		certificate, err := c.certificate(i, plan.colluders)
		if err == nil {
			err = c.reveal(i, certificate)
		}
		c.refused(err)
	}
	return c.unmask(plan.targets)
}

// split sets up a session of n parties and runs a plan against it.
func split(t *testing.T, recovery *Recovery, n int, without defence, plan splitPlan, in [][][]uint64) (*cheater, *attackResult) {
	t.Helper()
	signers, config := attackConfig(t, n, recovery)
	c, err := newCheater(config, attackTarget(t, config, signers, without), signers, without)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.setUp(); err != nil {
		t.Fatal(err)
	}
	if plan.participants == nil {
		plan.participants = func(int) []int { return upTo(n) }
	}
	plan.input = func(i int, _ []byte) [][]uint64 { return in[i] }
	return c, c.attackSplit(plan)
}

// A server that tells some holders that u survived and others that it dropped
// out collects both of its secrets where thresholds are low, and with them x_u.
// With sound thresholds it cannot have both; without certificates it still gets
// the sum of two honest parties where the session promises four; with
// certificates of t signatures too. A quorum of more than half of parties and
// colluders stops that.
func TestAttackSplitView(t *testing.T) {
	const n = 8
	in, _ := inputs(attackSeed(t), attackLayout, n)
	everybody := upTo(n)
	colluders := []int{6, 7}
	sound := &Recovery{Colluders: 2} // t = 5, q = 6, MinSurvivors = 6
	low := &Recovery{Adversary: CuriousServer, Colluders: 2, Threshold: 3}

	// Both of party 0's secrets: 1 and 2 give shares of its self mask, 3, 4 and 5
	// of its recovery key, the colluders of both.
	both := splitPlan{colluders: colluders, targets: []int{0}, survivors: map[int][]int{
		1: everybody, 2: everybody, 3: except(everybody, 0), 4: except(everybody, 0), 5: except(everybody, 0)}}
	// Each honest party is told a list of MinSurvivors of its own, such that all
	// keep 0 and 1, and three of them leave out each of the others.
	scattered := splitPlan{colluders: colluders, targets: []int{0, 1}, survivors: map[int][]int{
		0: except(everybody, 2, 3), 1: except(everybody, 4, 5), 2: except(everybody, 3, 4),
		3: except(everybody, 4, 5), 4: except(everybody, 5, 2), 5: except(everybody, 2, 3)}}
	// Two lists, each signed by three honest parties and the colluders: 2t = n + c.
	halves := splitPlan{colluders: colluders, targets: []int{0, 1}, survivors: map[int][]int{
		0: {0, 1, 2, 3, 6, 7}, 2: {0, 1, 2, 3, 6, 7}, 3: {0, 1, 2, 3, 6, 7},
		1: {0, 1, 4, 5, 6, 7}, 4: {0, 1, 4, 5, 6, 7}, 5: {0, 1, 4, 5, 6, 7}}}

	_, r := split(t, low, n, certified, both, in)
	r.mustRecover(t, "t = 3, no certificates", attackLayout, in, 0)
	_, r = split(t, low, n, 0, both, in)
	r.mustRecover(t, "t = q = 3, as against a curious server", attackLayout, in, 0)

	_, r = split(t, sound, n, certified, both, in)
	r.mustFail(t, "t = 5, no certificates, both secrets of one", nil)
	c, r := split(t, sound, n, certified, scattered, in)
	r.mustRecover(t, "t = 5, no certificates, a sum of two", attackLayout, in, 0, 1)
	c.result = attackResult{}
	c.unmask([]int{0}).mustFail(t, "the same round, one alone", nil)

	_, r = split(t, sound, n, majorityQuorum, halves, in)
	r.mustRecover(t, "t = 5, certificates of t signatures, two lists", attackLayout, in, 0, 1)
	if r.signatory != 5 {
		t.Errorf("the two lists have %d signatures, want t = 5", r.signatory)
	}

	for name, plan := range map[string]splitPlan{"both secrets": both, "a list each": scattered, "two lists": halves} {
		c, r := split(t, sound, n, 0, plan, in)
		r.mustFail(t, "real: "+name, ErrCertificate)
		if want := len(plan.survivors); len(r.refusals) != want {
			t.Errorf("%s: %d refusals, want %d", name, len(r.refusals), want)
		}
		if name != "two lists" {
			continue
		}
		// The sixth signature cannot be one on the other list.
		short, err := c.certificate(0, colluders)
		if err != nil {
			t.Fatal(err)
		}
		other := c.signed[c.views[1].statement][0]
		padded := slices.Insert(short, 1, other)
		if err := c.reveal(0, padded); other.Party != 1 || !errors.Is(err, ErrSignature) {
			t.Errorf("a signature on the other list: got %v, want ErrSignature", err)
		}
		// Nor is anybody made to sign twice.
		if err := c.survivors(0, everybody); !errors.Is(err, ErrReplay) {
			t.Errorf("a second list for one party: got %v, want ErrReplay", err)
		}
	}
}

// Lists that no real party signs, whatever is behind them: one that it is not in,
// one that is too short, and one with a party that it was not told of.
func TestAttackSplitViewLists(t *testing.T) {
	in, _ := inputs(attackSeed(t), attackLayout, 8)
	for name, bad := range map[string]struct {
		list []int
		want error
	}{
		"without itself": {[]int{1, 2, 3, 4, 5, 6}, ErrSurvivors},
		"too short":      {[]int{0, 1, 2, 3, 4}, ErrTooFew},
		"with another":   {upTo(8), ErrSurvivors},
	} {
		_, r := split(t, &Recovery{Colluders: 2}, 8, 0, splitPlan{
			colluders: []int{6}, targets: []int{0}, survivors: map[int][]int{0: bad.list},
			participants: func(int) []int { return upTo(7) },
		}, in)
		r.mustFail(t, name, bad.want)
	}
}

// No two certificates can exist: for every n and c the quorum is more than half
// of parties and colluders, while t = ⌊(n−1+c)/2⌋ + 1, the least that keeps a
// party's two secrets apart, allows two whenever n + c is even.
func TestAttackSplitViewQuorum(t *testing.T) {
	pairs := 0
	for n := 3; n <= 40; n++ {
		for c := 0; c < n-2; c++ {
			_, config := attackConfig(t, n, &Recovery{Colluders: c, Threshold: (n-1+c)/2 + 1})
			terms, err := config.terms()
			if err != nil {
				t.Fatal(n, c, err)
			}
			// Two lists need 2·(signatures − c) honest signers, each of whom signs once.
			if 2*(terms.quorum-c) <= n-c {
				t.Errorf("n = %d, c = %d: two certificates of %d signatures can exist", n, c, terms.quorum)
			}
			if 2*(terms.threshold-c) <= n-c {
				pairs++
			}
		}
	}
	if pairs == 0 {
		t.Error("t signatures would do after all")
	}
	t.Logf("t signatures would allow two certificates in %d of the configurations, q in none", pairs)
}

// A server that shows u a round of few honest parties and its own colluders, and
// the others the truth. Without recovery u must insist on everybody. With it, two
// things stop the server, each by itself: the participants are agreed on through
// the context, and certificates. Without both it recovers x_u exactly.
func TestAttackSplitParticipants(t *testing.T) {
	in, _ := inputs(attackSeed(t), attackLayout, 8)

	// Without recovery: the round that party 0 is shown has one colluder.
	few := splitPlan{colluders: []int{4}, targets: []int{0}, participants: func(party int) []int {
		if party == 0 {
			return []int{0, 4}
		}
		return upTo(5)
	}}
	_, r := split(t, nil, 5, everybodyTakesPart, few, in[:5])
	r.mustRecover(t, "no recovery, participants not checked", attackLayout, in[:5], 0)
	_, r = split(t, nil, 5, 0, few, in[:5])
	r.mustFail(t, "real: no recovery", ErrParticipants)

	// With recovery, t = 5: the parties that 0 is shown, 1 to 3 and the colluders,
	// give the shares of its self mask; who is left out of the lists loses its
	// recovery key, so that all of 0's pair masks are known.
	everybody := upTo(8)
	plan := splitPlan{colluders: []int{6, 7}, targets: []int{0},
		participants: func(party int) []int {
			if party == 0 {
				return []int{0, 1, 2, 3, 6, 7}
			}
			return everybody
		},
		survivors: map[int][]int{1: except(everybody, 2, 3), 2: except(everybody, 1, 3), 3: except(everybody, 1, 2),
			4: except(everybody, 1, 3), 5: except(everybody, 2)},
	}
	for _, target := range []struct {
		without defence
		name    string
		refusal error
	}{
		{participantsAgreed | certified, "neither context nor certificates", nil},
		{certified, "no certificates", nil},
		{participantsAgreed, "participants not in the context", ErrCertificate},
		{0, "real", ErrCertificate},
	} {
		c, r := split(t, &Recovery{Colluders: 2}, 8, target.without, plan, in)
		if target.without == participantsAgreed|certified {
			r.mustRecover(t, target.name, attackLayout, in, 0)
			continue
		}
		r.mustFail(t, target.name, target.refusal)
		// What does come out of the holders' hands does not open.
		if open := len(c.shares[shareOf{0, 0}]); target.without&participantsAgreed == 0 && open > len(plan.colluders) {
			t.Errorf("%s: %d holders opened a share that was made for another round's participants", target.name, open)
		}
	}
	few.participants = func(party int) []int {
		if party == 0 {
			return []int{0, 1, 6, 7}
		}
		return everybody
	}
	few.colluders = []int{6, 7}
	_, r = split(t, &Recovery{Colluders: 2}, 8, 0, few, in)
	r.mustFail(t, "real: fewer neighbours than t", ErrTooFew)
	few.participants = plan.participants
	_, r = split(t, &Recovery{Colluders: 2, MinSurvivors: 7}, 8, 0, few, in)
	r.mustFail(t, "real: fewer than MinSurvivors", ErrTooFew)
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

// cosine is that of two vectors of signed 32-bit coordinates.
func cosine(a, b []uint64) float64 {
	var ab, aa, bb float64
	for i := range a {
		x, y := float64(int32(a[i])), float64(int32(b[i]))
		ab, aa, bb = ab+x*y, aa+x*x, bb+y*y
	}
	return ab / math.Sqrt(aa*bb)
}

// A server that gives everybody but the target a dead model gets the target's
// update as the sum if the broadcast is not agreed on: cosine 1. Real parties:
// with recovery nobody can open the target's shares, so that nothing comes out;
// without it, masks that do not cancel, so that the sum is uniform: |cosine| ≤ 6/√d,
// which unrelated vectors exceed with probability below 2e-9.
func TestAttackModelInconsistency(t *testing.T) {
	const n, target = 6, 2
	seed := attackSeed(t)
	shown := func(party int) []byte {
		if party == target {
			return []byte("live")
		}
		return []byte("dead")
	}
	var in, honest [][][]uint64
	for i := range n {
		in = append(in, layerUpdate(seed, i, shown(i)))
		honest = append(honest, layerUpdate(seed, i, []byte("live")))
	}
	update := in[target][0]
	everybody := upTo(n)
	lists := make(map[int][]int)
	for i := range n {
		lists[i] = everybody
	}
	baseline := cosine(sumOf(modelLayout, honest, everybody)[0], update)
	for _, recovery := range []*Recovery{nil, {Colluders: 1}} {
		for _, without := range []defence{broadcastAgreed, 0} {
			signers, config := attackConfig(t, n, recovery)
			config.Layout = modelLayout
			c, err := newCheater(config, attackTarget(t, config, signers, without), signers, without)
			if err != nil {
				t.Fatal(err)
			}
			if err := c.setUp(); err != nil {
				t.Fatal(err)
			}
			r := c.attackSplit(splitPlan{
				participants: func(int) []int { return everybody },
				broadcast:    shown,
				survivors:    lists,
				input:        func(i int, broadcast []byte) [][]uint64 { return layerUpdate(seed, i, broadcast) },
				targets:      everybody,
			})
			name := fmt.Sprintf("recovery %v", recovery != nil)
			switch {
			case without != 0:
				r.mustRecover(t, name+", broadcast not agreed on", modelLayout, in, everybody...)
				cos := cosine(r.sum[0], update)
				if !(cos > .99) {
					t.Errorf("%s: cosine %.3f, want > .99", name, cos)
				}
				t.Logf("%s: cosine %.4f with the target's update; %.2f when all are shown one model", name, cos, baseline)
			case recovery != nil:
				r.mustFail(t, "real: "+name, ErrCertificate)
				if open := len(c.shares[shareOf{0, target}]); open != 0 {
					t.Errorf("%d holders opened the target's shares", open)
				}
			default:
				cos := cosine(r.sum[0], update)
				if !(math.Abs(cos) < 6/math.Sqrt(float64(len(update)))) || !looksUniform(r.sum[0]) {
					t.Errorf("real: %s: cosine %.3f", name, cos)
				}
				t.Logf("real: %s: cosine %.4f over %d coordinates", name, cos, len(update))
			}
		}
	}
	// The party checks what it was given against what the round began with.
	l, _ := local(t, 3)
	envelopes, err := l.Server.Begin([]byte("live"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Clients[0].Receive(envelopes[0].Message); err != nil {
		t.Fatal(err)
	}
	zero, _ := inputs(0, l.Server.config.Layout, 1)
	if _, err := l.Clients[0].Submit([]byte("dead"), zero[0]...); !errors.Is(err, ErrBroadcast) {
		t.Errorf("a broadcast other than the agreed one: got %v, want ErrBroadcast", err)
	}
}
