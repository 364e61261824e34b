package session

import (
	"bytes"
	"slices"

	"github.com/hushsum/hushsum/attacks"
	"github.com/hushsum/hushsum/attacks/internal/textbook"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/protocol"
)

var replay = compared(attacks.Attack{
	Name:      "Replay",
	Adversary: anyone,
	About: "delivers messages of other rounds and sessions to everybody at every " +
		"step",
	Defence: "session and round in every message and signature",
}, replayVariants)

// recording keeps all messages of some sessions, by direction.
type recording struct {
	toServer, toClients [][]byte
}

func (r *recording) carry(_, to int, message []byte) []byte {
	list := &r.toClients
	if to == -1 {
		list = &r.toServer
	}
	*list = append(*list, bytes.Clone(message))
	return message
}

// ofType returns the messages of a type.
func ofType(messages [][]byte, kind wire.Type) [][]byte {
	return slices.DeleteFunc(slices.Clone(messages), func(m []byte) bool {
		return wire.Type(m[1]) != kind
	})
}

const replayParties = 4

// replayVariants replay messages of earlier rounds, of other sessions and for the other
// side to both sides. Receivers that ignore round and session take them and come to a
// wrong sum; the others refuse every one of them at every step, with a documented
// error, and are as they were before.
func replayVariants(seed uint64) []variant {
	inputs := randomInputs(seed, attackLayout, replayParties)
	variants := []variant{replaySubmission(inputs), replayBegin(inputs)}
	for _, session := range []struct {
		name     string
		recovery *protocol.Recovery
	}{
		{"everything, no recovery", nil},
		{"everything, with recovery", &protocol.Recovery{Threshold: 2}},
	} {
		variants = append(variants, variant{
			name:  session.name,
			lacks: textbook.Current | textbook.Once | textbook.Ordered,
			run: func(t target) (outcome, error) {
				p, err := replayEverything(t, session.recovery, inputs)
				if err != nil {
					return outcome{}, err
				}
				return counts(p.delivered, p.takenAll(), p.faults(), p.exact), nil
			},
			metrics: []metric{
				{"replayed messages accepted", atLeast(1), exactly(0)},
				{faultyRefusals, unmeasured, exactly(0)},
				{"exact sum in the end", unmeasured, exactly(1)},
			},
		})
	}
	return append(variants, replaySignatures(inputs))
}

// replaySubmission gives the server a submission of the round before.
func replaySubmission(inputs []segments) variant {
	want := sumOf(attackLayout, inputs, upTo(replayParties))
	return variant{
		name:  "a submission of round 1 in 2",
		lacks: textbook.Current,
		run: func(t target) (outcome, error) {
			signers, config := attackConfig(replayParties, nil, 0)
			var recorded recording
			s, err := t.ready(config, signers, recorded.carry)
			if err != nil {
				return outcome{}, err
			}
			if _, err := s.Round(nil, inputs); err != nil {
				return outcome{}, err
			}
			s.Carry = nil
			if err := s.Begin(nil); err != nil {
				return outcome{}, err
			}
			old := ofType(recorded.toServer, wire.TypeMasked)[0]
			accepted := s.Server.Receive(named(old), old) == nil
			if err := s.Submit(nil, textbook.Given(inputs)); err != nil {
				return outcome{}, err
			}
			sum, err := s.Server.Sum()
			if err != nil {
				return outcome{}, err
			}
			return counts(32, indicator(accepted), 32-agreements(sum, want)), nil
		},
		metrics: []metric{
			{"old submissions accepted", exactly(1), exactly(0)},
			{"values of the sum wrong, of 32", exactly(32), exactly(0)},
		},
	}
}

// replayBegin shows a party the beginning of the round before. A party that ignores round
// and session works on an old round's model, in a round of its own that nobody else is in.
func replayBegin(inputs []segments) variant {
	model := []byte("old")
	return variant{
		name:  "the Begin of round 1 in 2",
		lacks: textbook.Current,
		run: func(t target) (outcome, error) {
			signers, config := attackConfig(replayParties, nil, 0)
			c, err := newSession(t, config, signers)
			if err != nil {
				return outcome{}, err
			}
			c.nextRound()
			if err := c.begin(0, upTo(replayParties), model); err != nil {
				return outcome{}, err
			}
			old := c.beginMessage(0, upTo(replayParties), model)
			if err := c.submit(0, model, inputs[0]); err != nil {
				return outcome{}, err
			}
			c.nextRound()
			_, err = c.parties[0].Receive(old)
			c.refused(err)
			_, again := c.parties[0].Submit(model, inputs[0]...)
			return counts(1, indicator(again == nil), c.refusedWith(protocol.ErrReplay)), nil
		},
		metrics: []metric{
			{"old models taken for new", exactly(1), exactly(0)},
			{documentedRefusals, exactly(0), exactly(1)},
		},
	}
}

// replaySignatures shows a party of round 2 the signatures of round 1 on the same
// survivors.
func replaySignatures(inputs []segments) variant {
	everybody := upTo(replayParties)
	return variant{
		name:  "signatures of round 1 in 2",
		lacks: textbook.RoundAgreed,
		run: func(t target) (outcome, error) {
			signers, config := attackConfig(replayParties, &protocol.Recovery{}, 0)
			c, err := newSession(t, config, signers)
			if err != nil {
				return outcome{}, err
			}
			var old wire.Certificate
			for round := range 2 {
				c.nextRound()
				for i, input := range inputs {
					if err := c.agree(i, everybody, input, everybody); err != nil {
						return outcome{}, err
					}
				}
				if round == 0 {
					old = c.acrossViews(0)
				}
			}
			err = c.reveal(0, old)
			c.refused(err)
			return counts(1, indicator(err == nil), c.refusedWith(protocol.ErrSignature)), nil
		},
		metrics: []metric{
			{"old certificates accepted", exactly(1), exactly(0)},
			{documentedRefusals, exactly(0), exactly(1)},
		},
	}
}

// replayEverything records two rounds of a session, three of a session of the
// same configuration and three of one of another, and delivers all of it to
// everybody at every step of the third round, with what that round has brought so
// far. To a weak target it does so once.
func replayEverything(
	t target, recovery *protocol.Recovery, inputs []segments,
) (*probe, error) {
	_, config := attackConfig(replayParties, recovery, 0)
	terms, err := textbook.NewTerms(config, 0)
	if err != nil {
		return nil, err
	}
	var recorded recording
	s, err := recordSessions(t, config, inputs, &recorded)
	if err != nil {
		return nil, err
	}
	p := newProbe(terms.Digest)
	replayAll := func() {
		all := slices.Concat(recorded.toServer, recorded.toClients)
		for to := -1; to < len(s.Clients); to++ {
			p.deliver(s, to, all, false)
		}
	}
	replayAll() // from here on what was just delivered is replayed too
	if t.without != 0 {
		return p, nil
	}
	steps := []func() error{
		func() error { return s.Begin(nil) },
		func() error { return s.Submit(nil, textbook.Given(inputs)) },
	}
	if recovery != nil {
		steps = append(steps,
			func() error { return s.Step(s.Server.Survivors) },
			func() error { return s.Step(s.Server.Certificate) })
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return p, p.err // what was replayed has broken the round
		}
		replayAll()
	}
	sum, err := s.Server.Sum()
	want := sumOf(attackLayout, inputs, upTo(replayParties))
	p.exact = indicator(err == nil && equal(sum, want))
	return p, p.err
}

// recordSessions runs the three sessions, and returns the last one. The others have a
// third round, whose number is due in it next.
func recordSessions(
	t target, config *protocol.Config, inputs []segments, recorded *recording,
) (last *textbook.Session, err error) {
	another := *config
	another.Label = "another"
	signers := textbook.Signers(replayParties)
	for _, session := range []struct {
		config *protocol.Config
		rounds int
	}{{&another, 3}, {config, 3}, {config, 2}} {
		if last, err = t.ready(session.config, signers, recorded.carry); err != nil {
			return nil, err
		}
		for round := range session.rounds {
			here := slices.Clone(inputs)
			if round == 0 && config.Recovery != nil {
				here[replayParties-1] = nil // so that there are invitations too
			}
			if _, err := last.Round(nil, here); err != nil {
				return nil, err
			}
		}
	}
	return last, nil
}
