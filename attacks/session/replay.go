package session

import (
	"bytes"
	"slices"

	"github.com/hushsum/hushsum/attacks/internal/textbook"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/protocol"
)

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
	return slices.DeleteFunc(slices.Clone(messages), func(m []byte) bool { return wire.Type(m[1]) != kind })
}

// Messages of earlier rounds, of other sessions and for the other side, replayed
// to both sides. Receivers that ignore round and session take them and come to a
// wrong sum; the others refuse every one of them at every step, with a documented
// error, and are as they were before.
func replay(r *runner) {
	in := randomInputs(r.o.Seed, attackLayout, 4)
	replaySubmission(r, in)
	replayBegin(r, in)
	for _, c := range []struct {
		name     string
		recovery *protocol.Recovery
	}{{"everything, no recovery", nil}, {"everything, with recovery", &protocol.Recovery{Threshold: 2}}} {
		r.compare(c.name, textbook.Current|textbook.Once|textbook.Ordered, func(t target) (figures, error) {
			p, exact, err := replayEverything(t, c.recovery, in)
			if err != nil {
				return figures{}, err
			}
			return counts(p.delivered, p.takenAll(), p.faults(), exact), nil
		}, metric{"replayed messages accepted", atLeast(1), is(0)}, metric{faultyRefusals, none, is(0)},
			metric{"exact sum in the end", none, is(1)})
	}
	replaySignatures(r, in)
}

func replaySubmission(r *runner, in [][][]uint64) {
	signers, config := attackConfig(len(in), nil, 0)
	want := sumOf(attackLayout, in, upTo(len(in)))
	r.compare("a submission of round 1 in 2", textbook.Current, func(t target) (figures, error) {
		var rec recording
		s, err := t.ready(config, signers, rec.carry)
		if err != nil {
			return figures{}, err
		}
		if _, err := s.Round(nil, in); err != nil {
			return figures{}, err
		}
		s.Carry = nil
		if err := s.Begin(nil); err != nil {
			return figures{}, err
		}
		old := ofType(rec.toServer, wire.TypeMasked)[0]
		accepted := s.Server.Receive(named(old), old) == nil
		if err := s.Submit(nil, textbook.Given(in)); err != nil {
			return figures{}, err
		}
		sum, err := s.Server.Sum()
		if err != nil {
			return figures{}, err
		}
		return counts(32, one(accepted), 32-agreements(sum, want)), nil
	}, metric{"old submissions accepted", is(1), is(0)}, metric{"values of the sum wrong, of 32", is(32), is(0)})
}

// A party that ignores round and session works on an old round's model, in a round
// of its own that nobody else is in.
func replayBegin(r *runner, in [][][]uint64) {
	n := len(in)
	signers, config := attackConfig(n, nil, 0)
	r.compare("the Begin of round 1 in 2", textbook.Current, func(t target) (figures, error) {
		c, err := newSession(t, config, signers)
		if err != nil {
			return figures{}, err
		}
		c.nextRound()
		if err := c.begin(0, upTo(n), []byte("old")); err != nil {
			return figures{}, err
		}
		old := c.beginMessage(0, upTo(n), []byte("old"))
		if err := c.submit(0, []byte("old"), in[0]); err != nil {
			return figures{}, err
		}
		c.nextRound()
		_, err = c.parties[0].Receive(old)
		c.refused(err)
		_, again := c.parties[0].Submit([]byte("old"), in[0]...)
		return counts(1, one(again == nil), c.refusedWith(protocol.ErrReplay)), nil
	}, metric{"old models taken for new", is(1), is(0)}, metric{"documented refusals", is(0), is(1)})
}

// A party of round 2 is shown the signatures of round 1 on the same survivors.
func replaySignatures(r *runner, in [][][]uint64) {
	n := len(in)
	signers, config := attackConfig(n, &protocol.Recovery{}, 0)
	r.compare("signatures of round 1 in 2", textbook.RoundAgreed, func(t target) (figures, error) {
		c, err := newSession(t, config, signers)
		if err != nil {
			return figures{}, err
		}
		var old wire.Certificate
		for round := range 2 {
			c.nextRound()
			for i := range n {
				if err := c.agree(i, upTo(n), in[i], upTo(n)); err != nil {
					return figures{}, err
				}
			}
			if round == 0 {
				old = c.acrossViews(0)
			}
		}
		err = c.reveal(0, old)
		c.refused(err)
		return counts(1, one(err == nil), c.refusedWith(protocol.ErrSignature)), nil
	}, metric{"old certificates accepted", is(1), is(0)}, metric{"documented refusals", is(0), is(1)})
}

// replayEverything records two rounds of a session, three of a session of the
// same configuration and three of one of another, and delivers all of it to
// everybody at every step of the third round, with what that round has brought so
// far. To a weak target it does so once.
func replayEverything(t target, recovery *protocol.Recovery, in [][][]uint64) (p *probe, exact int, err error) {
	signers, config := attackConfig(len(in), recovery, 0)
	other := *config
	other.Label = "another"
	var rec recording
	var s *textbook.Session
	for session, config := range []*protocol.Config{&other, config, config} {
		if s, err = t.ready(config, signers, rec.carry); err != nil {
			return nil, 0, err
		}
		// The other sessions have a third round, whose number is due here next. In
		// round 1 a party drops out, so that there are invitations too.
		for round := range []int{3, 3, 2}[session] {
			here := slices.Clone(in)
			if round == 0 && recovery != nil {
				here[len(in)-1] = nil
			}
			if _, err := s.Round(nil, here); err != nil {
				return nil, 0, err
			}
		}
	}
	terms, err := textbook.NewTerms(config, 0)
	if err != nil {
		return nil, 0, err
	}
	p = newProbe(terms.Digest)
	check := func() {
		all := slices.Concat(rec.toServer, rec.toClients)
		for to := -1; to < len(s.Clients); to++ {
			p.deliver(s, to, all, false)
		}
	}
	check() // from here on what was just delivered is replayed too
	if t.without != 0 {
		return p, 0, nil
	}
	steps := []func() error{func() error { return s.Begin(nil) }, func() error { return s.Submit(nil, textbook.Given(in)) }}
	if recovery != nil {
		steps = append(steps, func() error { return s.Step(s.Server.Survivors) }, func() error { return s.Step(s.Server.Certificate) })
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return p, 0, p.err // what was replayed has broken the round
		}
		check()
	}
	sum, err := s.Server.Sum()
	exact = one(err == nil && equal(sum, sumOf(attackLayout, in, upTo(len(in)))))
	return p, exact, p.err
}
