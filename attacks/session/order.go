package session

import (
	"errors"
	"slices"

	"github.com/hushsum/hushsum/attacks/internal/textbook"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/protocol"
)

// Messages of a round that come before they are due, or again when they were
// answered, all as they would be right at another time.
func reorder(r *runner) {
	in := randomInputs(r.o.Seed, attackLayout, 5)
	reorderToParty(r, in)
	reorderToServer(r, in)
}

// The other parties go ahead, so that there are signatures; party 0 is then told in
// each of its states what is not due.
func reorderToParty(r *runner, in [][][]uint64) {
	everybody := upTo(len(in))
	signers, config := attackConfig(len(in), &protocol.Recovery{}, 0) // t = q = 3, MinSurvivors = 4
	r.compare("to a party", textbook.Ordered|textbook.RoundErased|textbook.Ratchet, func(t target) (figures, error) {
		c, err := newSession(t, config, signers)
		if err != nil {
			return figures{}, err
		}
		c.nextRound()
		for _, i := range everybody[1:] {
			if err := c.agree(i, everybody, in[i], everybody); err != nil {
				return figures{}, err
			}
		}
		p := newProbe(c.terms.Digest)
		s := textbook.NewSession(config, nil, c.parties)
		early, submitted := 0, 0
		notDue := func(kinds ...wire.Type) {
			for _, kind := range kinds {
				var m []byte
				switch kind {
				case wire.TypeBegin:
					m = c.beginMessage(0, everybody, nil)
				case wire.TypeSurvivors:
					m = c.survivorsMessage(0, everybody)
				case wire.TypeCertificate:
					m = c.acrossViews(1).Append(c.header(wire.TypeCertificate))
				}
				p.deliver(s, 0, [][]byte{m}, true)
				early++
			}
		}
		submit := func() {
			_, err := c.parties[0].Submit(nil, in[0]...)
			submitted += one(err == nil)
			if err != nil && !errors.Is(err, protocol.ErrPhase) && t.without == 0 {
				p.err = errors.Join(p.err, err)
			}
		}
		notDue(wire.TypeSurvivors, wire.TypeCertificate)
		submit()
		for _, step := range []struct {
			act    func() error
			notDue []wire.Type
			submit bool
		}{
			{func() error { return c.begin(0, everybody, nil) }, []wire.Type{wire.TypeBegin, wire.TypeCertificate, wire.TypeSurvivors}, false},
			{func() error { return c.submit(0, nil, in[0]) }, []wire.Type{wire.TypeBegin, wire.TypeCertificate}, true},
			{func() error { return c.survivors(0, everybody) }, []wire.Type{wire.TypeBegin, wire.TypeSurvivors}, true},
			{func() error { return c.reveal(0, c.acrossViews(0)) }, []wire.Type{wire.TypeBegin, wire.TypeSurvivors, wire.TypeCertificate}, true},
		} {
			if err := step.act(); err != nil && t.without == 0 {
				return figures{}, err
			}
			notDue(step.notDue...)
			if step.submit {
				submit()
			}
		}
		return counts(early, p.takenAll(), submitted, p.faults()), p.err
	}, metric{"messages accepted, of 12", atLeast(3), is(0)}, metric{"inputs sent twice or too soon", atLeast(1), is(0)},
		metric{faultyRefusals, none, is(0)})
}

// To the server: shares before there is a list, an input after it, and shares of a
// party that is not in it.
func reorderToServer(r *runner, in [][][]uint64) {
	signers, config := attackConfig(len(in), &protocol.Recovery{}, 0)
	r.compare("to the server", textbook.Ordered, func(t target) (figures, error) {
		s, err := t.ready(config, signers, nil)
		if err != nil {
			return figures{}, err
		}
		p := newProbe([32]byte(s.Clients[0].Announce()[2:34]))
		var late []byte
		s.Carry = func(from, to int, message []byte) []byte {
			if from != 4 || wire.Type(message[1]) != wire.TypeMasked {
				return message
			}
			late = slices.Clone(message)
			return nil // held back
		}
		if err := s.Begin(nil); err != nil {
			return figures{}, err
		}
		if err := s.Submit(nil, textbook.Given(in)); err != nil {
			return figures{}, err
		}
		h := wire.Header{Type: wire.TypeReveal, Session: [32]byte(late[2:34]), Round: s.Server.Round(), Sender: 1}
		p.deliver(s, -1, [][]byte{h.Append(nil)}, true)
		for _, step := range []func() ([]protocol.Envelope, error){s.Server.Survivors, s.Server.Certificate} {
			if err := s.Step(step); err != nil {
				return figures{}, err
			}
			p.deliver(s, -1, [][]byte{late}, true)
		}
		h.Sender = 4 // which is not in the list
		p.deliver(s, -1, [][]byte{h.Append(nil)}, true)
		sum, err := s.Server.Sum()
		exact := err == nil && equal(sum, sumOf(attackLayout, in, upTo(4)))
		return counts(4, p.takenAll(), p.faults(), one(exact)), p.err
	}, metric{"messages accepted, of 4", atLeast(2), is(0)}, metric{faultyRefusals, none, is(0)},
		metric{"exact sums", is(0), is(1)})
}

// Many copies of everything that parties send, and rounds far ahead, which cost
// a derivation each.
func flood(r *runner) {
	const n, copies = 5, 50
	in := randomInputs(r.o.Seed, attackLayout, n)
	signers, config := attackConfig(n, &protocol.Recovery{}, 0)
	r.compare("copies to the server", textbook.Once, func(t target) (figures, error) {
		s, err := t.session(config, signers)
		if err != nil {
			return figures{}, err
		}
		p := newProbe([32]byte(s.Clients[0].Announce()[2:34]))
		s.Carry = func(from, to int, message []byte) []byte {
			if from != 0 {
				return message
			}
			if s.Server.Receive(from, message) != nil {
				return nil // the copies of earlier messages have done it
			}
			p.deliver(s, -1, slices.Repeat([][]byte{message}, copies), false)
			return nil
		}
		if err := s.SetUp(); err != nil {
			return figures{}, err
		}
		sum, err := s.Round(nil, in)
		wrong := err != nil || !equal(sum, sumOf(attackLayout, in, upTo(n)))
		return counts(p.delivered, len(p.taken), p.takenAll(), one(wrong), p.faults()), p.err
	}, metric{"types of messages taken twice", is(5), is(0)}, metric{"copies taken, of 250", is(5 * copies), is(0)},
		metric{"sums garbled", is(1), is(0)}, metric{faultyRefusals, none, is(0)})

	const limit, far = 10, 1000
	for _, kind := range []struct {
		name     string
		kind     wire.Type
		recovery *protocol.Recovery
	}{{"a Begin far ahead", wire.TypeBegin, nil}, {"an Invite far ahead", wire.TypeInvite, &protocol.Recovery{}}} {
		r.compare(kind.name, textbook.SkipLimit, func(t target) (figures, error) {
			signers, config := attackConfig(n, kind.recovery, 0)
			config.MaxSkip = limit
			c, err := newSession(t, config, signers)
			if err != nil {
				return figures{}, err
			}
			c.round = far
			m := append(c.header(wire.TypeInvite), c.terms.Members.Bytes()...)
			if kind.kind == wire.TypeBegin {
				m = c.beginMessage(0, upTo(n), nil)
			}
			_, err = c.parties[0].Receive(m)
			c.refused(err)
			state, err := steal(c.parties[0], c.terms.Digest)
			if err != nil {
				return figures{}, err
			}
			// A chain's first eight bytes are its round.
			chain := state.chains[1]
			moved := int(chain[7]) + int(chain[6])<<8 - 1
			return counts(1, moved, c.refusedWith(protocol.ErrSkip)), nil
		}, metric{"derivations for one message", atLeast(far - 1), span{0, limit}}, metric{"documented refusals", is(0), is(1)})
	}
}
