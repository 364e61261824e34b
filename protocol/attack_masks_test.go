package protocol

import (
	"errors"
	"testing"

	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
)

// A server that holds a submission back, has the others reveal the recovery key
// of the party that "dropped out", and then takes the pair masks off what it
// held back. Without self mask that is the input; with it, the input plus a mask
// that nobody gave a share of.
func TestAttackLateInput(t *testing.T) {
	const n, victim = 6, 0
	in, _ := inputs(attackSeed(t), attackLayout, n)
	rest := except(upTo(n), victim)
	plan := splitPlan{colluders: []int{5}, targets: []int{victim}, survivors: make(map[int][]int),
		participants: func(int) []int { return upTo(n) },
		input:        func(i int, _ []byte) [][]uint64 { return in[i] },
	}
	for _, i := range except(rest, 5) {
		plan.survivors[i] = rest
	}
	for _, without := range []defence{selfMasked, 0} {
		signers, config := attackConfig(t, n, &Recovery{Colluders: 1})
		c, err := newCheater(config, attackTarget(t, config, signers, without), signers, without)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.setUp(); err != nil {
			t.Fatal(err)
		}
		c.singleMasked = true
		r := c.attackSplit(plan)
		if len(r.refusals) != 0 {
			t.Fatalf("to each party the round is an honest one: %v", r.refusals)
		}
		if without != 0 {
			r.mustRecover(t, "no self mask", attackLayout, in, victim)
			continue
		}
		// All pair masks are off. What is left over the input is one self mask: a
		// 64-bit value of it is zero with probability 2^-64, and it looks uniform.
		if r.sum == nil {
			t.Fatal(r.obstacle)
		}
		if got := agreements(r.sum, in[victim]); got != 0 || !looksUniform(difference(r.sum, in[victim])) {
			t.Errorf("real: %d values of the input recovered, or the rest is not uniform", got)
		}
		t.Logf("real: pair masks stripped, 0 of 32 64-bit values recovered, what is left is uniform")
		// Nor does the server get enough shares to rebuild the self mask.
		c.result, c.singleMasked = attackResult{}, false
		c.unmask([]int{victim}).mustFail(t, "real: with the self mask's shares", nil)
		// And it cannot have them once the others have revealed: the round is over
		// for them.
		for _, i := range except(rest, 5) {
			if err := c.survivors(i, upTo(n)); !errors.Is(err, ErrPhase) {
				t.Errorf("a second list after the reveal: got %v, want ErrPhase", err)
			}
		}
	}
}

// attackMaskReuse begins one round twice and has the victim submit in both. The
// difference of what it sends is that of its inputs if the masks are the same.
func (c *cheater) attackMaskReuse(victim int, first, second [][]uint64) (delta [][]uint64, err error) {
	c.nextRound()
	var packed [2][]byte
	for k, input := range [][][]uint64{first, second} {
		if err := c.begin(victim, upTo(c.config.parties), nil); err != nil {
			return nil, err
		}
		if err := c.submit(victim, nil, input); err != nil {
			return nil, err
		}
		packed[k] = c.views[victim].masked.Packed
	}
	return c.packedDifference(packed[1], packed[0])
}

// differenceOfRounds is what a curious server does: it compares what a party
// sends in two rounds that follow each other.
func (c *cheater) differenceOfRounds(victim int, first, second [][]uint64) (delta [][]uint64, err error) {
	var packed [2][]byte
	for k, input := range [][][]uint64{first, second} {
		c.nextRound()
		if err := c.begin(victim, upTo(c.config.parties), nil); err != nil {
			return nil, err
		}
		if err := c.submit(victim, nil, input); err != nil {
			return nil, err
		}
		packed[k] = c.views[victim].masked.Packed
	}
	return c.packedDifference(packed[1], packed[0])
}

// Masks that are used twice give the change of an input away, exactly. Three
// things stand in the way, each by itself enough: a round number is used once,
// chains are ratcheted, and the round is part of what masks are derived from.
func TestAttackMaskReuse(t *testing.T) {
	const n, victim = 4, 1
	in, _ := inputs(attackSeed(t), attackLayout, 2)
	want := sumOf(attackLayout, [][][]uint64{in[1], negated(in[0])}, []int{0, 1})
	for _, target := range []struct {
		without defence
		name    string
		refusal error // nil if the round is begun twice
	}{
		{ratcheted | singleUse, "rounds repeat, no ratchet", nil},
		{singleUse, "rounds repeat", nil},
		{ratcheted, "no ratchet", ErrReplay},
		{0, "real", ErrReplay},
	} {
		fresh := func() *cheater {
			signers, config := attackConfig(t, n, nil)
			c, err := newCheater(config, attackTarget(t, config, signers, target.without), signers, target.without)
			if err != nil {
				t.Fatal(err)
			}
			if err := c.setUp(); err != nil {
				t.Fatal(err)
			}
			return c
		}
		delta, err := fresh().attackMaskReuse(victim, in[0], in[1])
		switch {
		case target.without == ratcheted|singleUse:
			if err != nil || !equal(delta, want) {
				t.Fatalf("%s: the attack fails where it has to succeed: %v", target.name, err)
			}
			t.Logf("%s: the change recovered exactly (288 of 288 values)", target.name)
		case target.refusal != nil:
			if !errors.Is(err, target.refusal) {
				t.Errorf("%s: got %v, want %v", target.name, err, target.refusal)
			}
			t.Logf("%s: nothing; %v", target.name, err)
		case err != nil:
			// The keys of the round are erased.
			if !errors.Is(err, keyexchange.ErrRoundBack) {
				t.Errorf("%s: got %v, want ErrRoundBack", target.name, err)
			}
			t.Logf("%s: nothing; %v", target.name, err)
		default:
			// It is begun again, with other keys: judged as below.
			if got := agreements(delta, want); got != 0 || !looksUniform(difference(delta, want)) {
				t.Errorf("%s: %d values of the change recovered, or not uniform", target.name, got)
			}
			t.Logf("%s: other masks, 0 of 32 64-bit values recovered", target.name)
		}

		// Rounds that follow each other: a 64-bit value of the difference is that of
		// the inputs with probability 2^-64.
		c := fresh()
		delta, err = c.differenceOfRounds(victim, in[0], in[1])
		if err != nil {
			t.Fatal(err)
		}
		if got := agreements(delta, want); got != 0 || !looksUniform(difference(delta, want)) {
			t.Errorf("%s: consecutive rounds: %d values of the change recovered, or not uniform", target.name, got)
		}
		if target.without != 0 {
			continue
		}
		// A round is over once it is submitted to, and all before it are stale.
		if err := c.submit(victim, nil, in[0]); !errors.Is(err, ErrPhase) {
			t.Errorf("a second input for a round: got %v, want ErrPhase", err)
		}
		c.round = 1
		if err := c.begin(victim, upTo(n), nil); !errors.Is(err, ErrStale) {
			t.Errorf("an earlier round: got %v, want ErrStale", err)
		}
	}
}

// negated is −x modulo 2^b.
func negated(x [][]uint64) [][]uint64 {
	out := make([][]uint64, len(x))
	for j, s := range attackLayout {
		for _, v := range x[j] {
			out[j] = append(out[j], -v&(^uint64(0)>>(64-s.Bits)))
		}
	}
	return out
}

// loot is what a thief tries on a recorded round.
type loot struct {
	opened, boxes int // sealed shares, of all that were sent in the round
	exact         int // parties whose input was recovered
	failed        error
}

// attackStolenState is a thief of the states of all parties, after they have
// advanced past a round of which it has the whole transcript, the shares that
// were revealed in it included. It derives what it can of the round, tries every
// key that it finds on every sealed share, and unmasks whom it can.
func (c *cheater) attackStolenState(states []*Client, in [][][]uint64) loot {
	var out loot
	var keys []*keyexchange.SealKey
	addKeys := func(ch *keyexchange.Channels) {
		for _, purpose := range []keyexchange.Purpose{keyexchange.SelfMaskShare, keyexchange.RecoveryShare} {
			keys = append(keys, ch.Key(purpose, 0, 1), ch.Key(purpose, 1, 0))
		}
	}
	for i, state := range states {
		for peer, chain := range state.chains {
			if channels, secret, err := chain.Ahead(c.round); err == nil {
				c.pairs[pairOf(i, peer)] = secret
				addKeys(channels)
			} else {
				out.failed = err
				addKeys(chain.Channels()) // of a later round, but it is what there is
			}
		}
		if state.open != nil {
			for _, channels := range state.open.channels {
				addKeys(channels)
			}
		}
	}
	for owner, v := range c.views {
		for k, holder := range v.near {
			at := indexOf(c.topology.neighbours(c.round, owner), holder)
			for purpose, sealed := range map[keyexchange.Purpose]wire.SealedShare{
				keyexchange.SelfMaskShare: v.masked.Shares[k],
				keyexchange.RecoveryShare: c.uploads[owner].Shares[at],
			} {
				context := v.context
				if purpose == keyexchange.RecoveryShare {
					context = [32]byte{}
				}
				out.boxes++
				data := shareData(purpose, c.session, c.round, owner, holder, context)
				for _, key := range keys {
					if share, err := keyexchange.Open(key, sealed[:], data); err == nil {
						out.opened++
						c.learn(purpose, owner, holder, [32]byte(share))
						break
					}
				}
			}
		}
	}
	for i := range states {
		c.result = attackResult{}
		if exact, _ := c.unmask([]int{i}).exact(attackLayout, in); exact {
			out.exact++
		}
	}
	return out
}

// stolen is what a thief finds. A party without ratchet has its first chain keys
// at all times, also while it works with those of a round.
func stolen(p attackParty) *Client {
	if w, ok := p.(*weakClient); ok {
		w.unratchet()
	}
	return insideOf(p)
}

func indexOf(list []int, x int) int {
	for i, y := range list {
		if x == y {
			return i
		}
	}
	return -1
}

// A thief of every party's state opens a recorded round, all of it, if chain keys
// are kept; it opens nothing of a round that the parties have advanced past. In
// the round one party is declared dropped out although it submitted, one never
// gets its certificate, and all have begun the next round.
func TestAttackStolenState(t *testing.T) {
	const n, late, uncertified = 6, 0, 3
	in, _ := inputs(attackSeed(t), attackLayout, n)
	survivors := except(upTo(n), late)
	for _, without := range []defence{ratcheted, 0} {
		signers, config := attackConfig(t, n, &Recovery{Threshold: 3})
		c, err := newCheater(config, attackTarget(t, config, signers, without), signers, without)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.setUp(); err != nil {
			t.Fatal(err)
		}
		c.nextRound()
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		for i := range n {
			must(c.begin(i, upTo(n), nil))
			must(c.submit(i, nil, in[i]))
		}
		for _, i := range survivors {
			must(c.survivors(i, survivors))
		}
		for _, i := range except(survivors, uncertified) {
			certificate, err := c.certificate(i, nil)
			must(err)
			must(c.reveal(i, certificate))
		}
		if got := c.unmask(survivors); !equal(got.sum, sumOf(attackLayout, in, survivors)) {
			t.Fatalf("the round itself fails: %v", got.obstacle)
		}

		recorded := *c // the next round gets maps of its own
		c.nextRound()
		var states []*Client
		for i := range n {
			must(c.begin(i, upTo(n), nil))
			states = append(states, stolen(c.parties[i]))
		}
		got := recorded.attackStolenState(states, in)
		t.Logf("defences removed %v: %d of %d sealed shares opened, %d of %d inputs recovered exactly", without != 0, got.opened, got.boxes, got.exact, n)
		switch {
		case without != 0 && (got.opened != got.boxes || got.exact != n):
			t.Errorf("no ratchet: the attack fails where it has to succeed")
		case without == 0 && (got.opened != 0 || got.exact != 0 || !errors.Is(got.failed, keyexchange.ErrRoundBack)):
			// A sealed share opens by chance with probability 2^-128 a key.
			t.Errorf("real: the thief opens something (%v)", got.failed)
		}
	}
}
