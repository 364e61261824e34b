package session

import (
	"errors"

	"github.com/hushsum/hushsum/attacks/internal/textbook"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/protocol"
)

// A server that holds a submission back, has the others reveal the recovery key
// of the party that "dropped out", and then takes the pair masks off what it
// held back. Without self mask that is the input; with it, the input plus a mask
// that nobody gave a share of.
func lateInput(r *runner) {
	const n, victim, colluder = 6, 0, 5
	in := randomInputs(r.o.Seed, attackLayout, n)
	rest := except(upTo(n), victim)
	plan := splitPlan{colluders: []int{colluder}, survivors: make(map[int][]int)}
	for _, i := range except(rest, colluder) {
		plan.survivors[i] = rest
	}
	r.compare("", textbook.SelfMask, func(t target) (figures, error) {
		c, err := split(t, &protocol.Recovery{}, 1, n, plan, in)
		if err != nil {
			return figures{}, err
		}
		if err := errors.Join(c.refusals...); err != nil {
			return figures{}, err // to each party the round is an honest one
		}
		shares := c.recovers(in, victim) // with what shares there are of the self mask
		c.singleMasked = true
		sum, err := c.unmask([]int{victim})
		if err != nil {
			return figures{}, err
		}
		// All pair masks are off. What is left over the input is one self mask.
		left := minus(sum, in[victim])
		again := 0
		for _, i := range except(rest, colluder) {
			err := c.survivors(i, upTo(n)) // the round is over for them
			again += one(errors.Is(err, protocol.ErrPhase))
		}
		return figures{values: []float64{float64(agreements(sum, in[victim])), chiSquare(left[0]), float64(shares), float64(again)}, samples: nibbles}, nil
	}, metric{"values of the input, of 32", is(32), is(0)},
		metric{"χ² of what is left (15 d.f.)", atLeast(80), uniform},
		metric{"self masks rebuilt", is(0), is(0)},
		metric{"second lists refused", is(4), is(4)})
}

// submissions is what reuseVictim sends in a round for which it is told so twice, or
// in two rounds.
func (c *cheater) submissions(in [][][]uint64, next func()) (packed [2][]byte, err error) {
	for k := range packed {
		if k == 0 {
			c.nextRound()
		} else {
			next()
		}
		if err := c.enter(reuseVictim, upTo(c.terms.Parties), in[k]); err != nil {
			return packed, err
		}
		packed[k] = c.views[reuseVictim].masked.Packed
	}
	return packed, nil
}

// reuseFigures compares the change in what is sent with that of the inputs: all
// values that agree, and the χ² of the difference.
func reuseFigures(packed [2][]byte, in [][][]uint64) (figures, error) {
	var v [2]*masking.Vector
	for k := range v {
		var err error
		if v[k], err = masking.ParsePacked(attackLayout, packed[k]); err != nil {
			return figures{}, err
		}
	}
	got, want := minus(v[1].Values(), v[0].Values()), minus(in[1], in[0])
	return figures{values: []float64{float64(agreements(got, want)), chiSquare(minus(got, want)[0])}, samples: nibbles}, nil
}

// Masks that are used twice give the change of an input away, exactly. Several
// things stand in the way, each by itself enough: a round number is used once,
// chains are ratcheted, the round is part of what masks are derived from, and a
// session has keys of its own.
func maskReuse(r *runner) {
	in := randomInputs(r.o.Seed, attackLayout, 2)
	roundTwice(r, in)
	consecutiveRounds(r, in)
	twoSessions(r, in)
	oldRound(r, in)
}

const reuseVictim = 1

// reuseSession is a session whose party reuseVictim sends something twice.
func reuseSession(t target) (*cheater, error) {
	signers, config := attackConfig(4, nil, 0)
	return newSession(t, config, signers)
}

// reuseMetrics are those of reuseFigures, and more.
func reuseMetrics(more ...metric) []metric {
	return append([]metric{{"values of the change, of 32", is(32), is(0)}, {"χ² of the rest (15 d.f.)", atLeast(80), uniform}}, more...)
}

// A round that is begun twice: nothing comes of it where the second begin is
// refused.
func roundTwice(r *runner, in [][][]uint64) {
	run := func(t target) (figures, error) {
		c, err := reuseSession(t)
		if err != nil {
			return figures{}, err
		}
		packed, err := c.submissions(in, func() {})
		if err != nil {
			c.refused(err)
			return counts(nibbles, 0, 0, c.refusedWith(protocol.ErrReplay)), nil
		}
		f, err := reuseFigures(packed, in)
		f.values = append(f.values, 0)
		return f, err
	}
	both := textbook.Ratchet | textbook.SingleUse
	r.compare("a round begun twice", both, run, reuseMetrics(metric{"documented refusals", is(0), is(1)})...)
	for _, layer := range []struct {
		name     string
		without  textbook.Defence
		refusals float64
	}{
		{"the ratchet alone", textbook.SingleUse, 0},
		{"single use alone", textbook.Ratchet, 1},
	} {
		r.compareTargets(layer.name, target{without: both}, []target{{without: layer.without}}, run,
			reuseMetrics(metric{"documented refusals", is(0), is(layer.refusals)})...)
	}
}

func consecutiveRounds(r *runner, in [][][]uint64) {
	run := func(t target) (figures, error) {
		c, err := reuseSession(t)
		if err != nil {
			return figures{}, err
		}
		packed, err := c.submissions(in, c.nextRound)
		if err != nil {
			return figures{}, err
		}
		return reuseFigures(packed, in)
	}
	all := textbook.Reseeded | textbook.RoundAgreed
	r.compare("consecutive rounds", all, run, reuseMetrics()...)
	for _, layer := range []struct {
		name    string
		without textbook.Defence
	}{
		{"consecutive, new secrets alone", textbook.RoundAgreed},
		{"consecutive, the context alone", textbook.Reseeded},
		{"consecutive, no ratchet", textbook.Ratchet},
	} {
		r.compareTargets(layer.name, target{without: all}, []target{{without: layer.without}}, run, reuseMetrics()...)
	}
}

func twoSessions(r *runner, in [][][]uint64) {
	r.compare("two sessions", textbook.FreshKey, func(t target) (figures, error) {
		var packed [2][]byte
		for k := range packed {
			c, err := reuseSession(t)
			if err != nil {
				return figures{}, err
			}
			c.nextRound()
			if err := c.enter(reuseVictim, upTo(c.terms.Parties), in[k]); err != nil {
				return figures{}, err
			}
			packed[k] = c.views[reuseVictim].masked.Packed
		}
		return reuseFigures(packed, in)
	}, reuseMetrics()...)
}

// A round is over once it is submitted to, and all before it are stale.
func oldRound(r *runner, in [][][]uint64) {
	r.compare("an old round", textbook.SingleUse|textbook.Ratchet|textbook.Ordered, func(t target) (figures, error) {
		c, err := reuseSession(t)
		if err != nil {
			return figures{}, err
		}
		if _, err := c.submissions(in, c.nextRound); err != nil {
			return figures{}, err
		}
		again := c.submit(reuseVictim, nil, in[0])
		c.round = 1
		stale := c.begin(reuseVictim, upTo(c.terms.Parties), nil)
		c.refused(again)
		c.refused(stale)
		return counts(2, one(stale == nil), c.refusedWith(protocol.ErrPhase)+c.refusedWith(protocol.ErrStale)), nil
	}, metric{"earlier rounds begun", is(1), is(0)}, metric{"documented refusals", none, is(2)})
}
