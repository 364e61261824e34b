package session

import (
	"github.com/hushsum/hushsum/attacks"
	"github.com/hushsum/hushsum/attacks/internal/textbook"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/protocol"
)

var maskReuse = compared(attacks.Attack{
	Name:      "MaskReuse",
	Adversary: "curious server",
	About:     "compares what a party sends in two rounds or sessions",
	Defence: "single-use rounds, the ratchet, the round in the context, a key of its own " +
		"for each session",
}, reuseVariants)

// reuseVariants use masks twice, which gives the change of an input away, exactly.
// Several things stand in the way, each by itself enough: a round number is used once,
// chains are ratcheted, the round is part of what masks are derived from, and a
// session has keys of its own.
func reuseVariants(seed uint64) []variant {
	inputs := [2]segments(randomInputs(seed, attackLayout, 2))
	variants := roundTwice(inputs)
	variants = append(variants, consecutiveRounds(inputs)...)
	return append(variants, twoSessions(inputs), oldRound(inputs))
}

// Of the session, the party that sends something twice.
const reuseParties, reuseVictim = 4, 1

func reuseSession(t target) (*cheater, error) {
	signers, config := attackConfig(reuseParties, nil, 0)
	return newSession(t, config, signers)
}

// submission has the victim begin a round and submit, and returns what it sends.
func (c *cheater) submission(input segments) ([]byte, error) {
	if err := c.enter(reuseVictim, upTo(reuseParties), input); err != nil {
		return nil, err
	}
	return c.views[reuseVictim].masked.Packed, nil
}

// submissions returns what the victim sends in two rounds, or if next does nothing in one
// round for which it is told so twice.
func (c *cheater) submissions(inputs [2]segments, next func()) (packed [2][]byte, err error) {
	c.nextRound()
	if packed[0], err = c.submission(inputs[0]); err != nil {
		return packed, err
	}
	next()
	packed[1], err = c.submission(inputs[1])
	return packed, err
}

// reuseMetrics are the metrics of compareReuse, and more.
func reuseMetrics(more ...metric) []metric {
	return append([]metric{
		{"values of the change, of 32", exactly(32), exactly(0)},
		{"χ² of the rest (15 d.f.)", atLeast(80), uniform},
	}, more...)
}

// compareReuse compares the change in what is sent with that of the inputs: all
// values that agree, and the χ² of the difference.
func compareReuse(packed [2][]byte, inputs [2]segments) (outcome, error) {
	var sent [2]segments
	for k := range sent {
		vector, err := masking.ParsePacked(attackLayout, packed[k])
		if err != nil {
			return outcome{}, err
		}
		sent[k] = vector.Values()
	}
	got, want := minus(sent[1], sent[0]), minus(inputs[1], inputs[0])
	return outcome{
		values: []float64{
			float64(agreements(got, want)),
			chiSquare(minus(got, want)[0]),
		},
		samples: nibbles,
	}, nil
}

// roundTwice has a round that is begun twice: nothing comes of it where the second begin
// is refused.
func roundTwice(inputs [2]segments) []variant {
	run := func(t target) (outcome, error) {
		c, err := reuseSession(t)
		if err != nil {
			return outcome{}, err
		}
		packed, err := c.submissions(inputs, func() {})
		if err != nil {
			c.refused(err)
			return counts(nibbles, 0, 0, c.refusedWith(protocol.ErrReplay)), nil
		}
		o, err := compareReuse(packed, inputs)
		if err != nil {
			return outcome{}, err
		}
		o.values = append(o.values, 0)
		return o, nil
	}
	var variants []variant
	for _, layer := range []struct {
		name     string
		defended []target
		refusals int
	}{
		{"a round begun twice", nil, 1},
		{"the ratchet alone", []target{{without: textbook.SingleUse}}, 0},
		{"single use alone", []target{{without: textbook.Ratchet}}, 1},
	} {
		refusals := metric{documentedRefusals, exactly(0), exactly(float64(layer.refusals))}
		variants = append(variants, variant{
			name:     layer.name,
			lacks:    textbook.Ratchet | textbook.SingleUse,
			defended: layer.defended,
			run:      run,
			metrics:  reuseMetrics(refusals),
		})
	}
	return variants
}

// consecutiveRounds compares two rounds of a session.
func consecutiveRounds(inputs [2]segments) []variant {
	run := func(t target) (outcome, error) {
		c, err := reuseSession(t)
		if err != nil {
			return outcome{}, err
		}
		packed, err := c.submissions(inputs, c.nextRound)
		if err != nil {
			return outcome{}, err
		}
		return compareReuse(packed, inputs)
	}
	var variants []variant
	for _, layer := range []struct {
		name     string
		defended []target
	}{
		{"consecutive rounds", nil},
		{"consecutive, new secrets alone", []target{{without: textbook.RoundAgreed}}},
		{"consecutive, the context alone", []target{{without: textbook.Reseeded}}},
		{"consecutive, no ratchet", []target{{without: textbook.Ratchet}}},
	} {
		variants = append(variants, variant{
			name:     layer.name,
			lacks:    textbook.Reseeded | textbook.RoundAgreed,
			defended: layer.defended,
			run:      run,
			metrics:  reuseMetrics(),
		})
	}
	return variants
}

// twoSessions compares the first rounds of two sessions.
func twoSessions(inputs [2]segments) variant {
	return variant{
		name:  "two sessions",
		lacks: textbook.FreshKey,
		run: func(t target) (outcome, error) {
			var packed [2][]byte
			for k, input := range inputs {
				c, err := reuseSession(t)
				if err != nil {
					return outcome{}, err
				}
				c.nextRound()
				if packed[k], err = c.submission(input); err != nil {
					return outcome{}, err
				}
			}
			return compareReuse(packed, inputs)
		},
		metrics: reuseMetrics(),
	}
}

// oldRound goes back: a round is over once it is submitted to, and all before it are
// stale.
func oldRound(inputs [2]segments) variant {
	return variant{
		name:  "an old round",
		lacks: textbook.SingleUse | textbook.Ratchet | textbook.Ordered,
		run: func(t target) (outcome, error) {
			c, err := reuseSession(t)
			if err != nil {
				return outcome{}, err
			}
			if _, err := c.submissions(inputs, c.nextRound); err != nil {
				return outcome{}, err
			}
			again := c.submit(reuseVictim, nil, inputs[0])
			c.round = 1
			stale := c.begin(reuseVictim, upTo(reuseParties), nil)
			c.refused(again)
			c.refused(stale)
			refusals := c.refusedWith(protocol.ErrPhase) + c.refusedWith(protocol.ErrStale)
			return counts(2, indicator(stale == nil), refusals), nil
		},
		metrics: []metric{
			{"earlier rounds begun", exactly(1), exactly(0)},
			{documentedRefusals, unmeasured, exactly(2)},
		},
	}
}
