package session

import (
	"errors"
	"slices"

	"github.com/hushsum/hushsum/attacks"
	"github.com/hushsum/hushsum/attacks/internal/textbook"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/protocol"
)

var reorder = compared(attacks.Attack{
	Name:      "Reorder",
	Adversary: anyone,
	About:     "delivers messages before they are due, or again",
	Defence:   "each message is taken in one state only",
}, reorderVariants)

const reorderParties = 5 // with recovery t = q = 3, MinSurvivors = 4

// reorderVariants have messages of a round that come before they are due, or again when
// they were answered, all as they would be right at another time.
func reorderVariants(seed uint64) []variant {
	inputs := randomInputs(seed, attackLayout, reorderParties)
	return []variant{{
		name:  "to a party",
		lacks: textbook.Ordered | textbook.RoundErased | textbook.Ratchet,
		run:   func(t target) (outcome, error) { return reorderToParty(t, inputs) },
		metrics: []metric{
			{"messages accepted, of 12", atLeast(3), exactly(0)},
			{"inputs sent twice or too soon", atLeast(1), exactly(0)},
			{faultyRefusals, unmeasured, exactly(0)},
		},
	}, {
		name:  "to the server",
		lacks: textbook.Ordered,
		run:   func(t target) (outcome, error) { return reorderToServer(t, inputs) },
		metrics: []metric{
			{"messages accepted, of 4", atLeast(2), exactly(0)},
			{faultyRefusals, unmeasured, exactly(0)},
			{"exact sums", exactly(0), exactly(1)},
		},
	}}
}

// hurrier tells party 0, in each of its states, what is not due.
type hurrier struct {
	*cheater
	probe     *probe
	session   *textbook.Session
	weak      bool // the target: it may fail as it likes
	input     segments
	early     int // messages that were not due
	submitted int // inputs that were not due
}

// notDue tells it messages of the given types.
func (h *hurrier) notDue(kinds ...wire.Type) {
	everybody := upTo(reorderParties)
	for _, kind := range kinds {
		var message []byte
		switch kind {
		case wire.TypeBegin:
			message = h.beginMessage(0, everybody, nil)
		case wire.TypeSurvivors:
			message = h.survivorsMessage(0, everybody)
		case wire.TypeCertificate:
			message = h.acrossViews(1).Append(h.header(wire.TypeCertificate))
		}
		h.probe.deliver(h.session, 0, [][]byte{message}, true)
		h.early++
	}
}

// submitEarly has it submit.
func (h *hurrier) submitEarly() {
	_, err := h.parties[0].Submit(nil, h.input...)
	h.submitted += indicator(err == nil)
	if err != nil && !errors.Is(err, protocol.ErrPhase) && !h.weak {
		h.probe.err = errors.Join(h.probe.err, err)
	}
}

// reorderToParty has the other parties go ahead, so that there are signatures; party 0 is
// then told in each of its states what is not due.
func reorderToParty(t target, inputs []segments) (outcome, error) {
	everybody := upTo(reorderParties)
	signers, config := attackConfig(reorderParties, &protocol.Recovery{}, 0)
	c, err := newSession(t, config, signers)
	if err != nil {
		return outcome{}, err
	}
	c.nextRound()
	for _, i := range everybody[1:] {
		if err := c.agree(i, everybody, inputs[i], everybody); err != nil {
			return outcome{}, err
		}
	}
	h := &hurrier{
		cheater: c,
		probe:   newProbe(c.terms.Digest),
		session: textbook.NewSession(config, nil, c.parties),
		weak:    t.without != 0,
		input:   inputs[0],
	}
	const begin, survivors = wire.TypeBegin, wire.TypeSurvivors
	const certificate = wire.TypeCertificate
	h.notDue(survivors, certificate)
	h.submitEarly()
	for _, step := range []struct {
		advance func() error
		notDue  []wire.Type
		submit  bool // is not due either
	}{{
		advance: func() error { return c.begin(0, everybody, nil) },
		notDue:  []wire.Type{begin, certificate, survivors},
	}, {
		advance: func() error { return c.submit(0, nil, inputs[0]) },
		notDue:  []wire.Type{begin, certificate},
		submit:  true,
	}, {
		advance: func() error { return c.survivors(0, everybody) },
		notDue:  []wire.Type{begin, survivors},
		submit:  true,
	}, {
		advance: func() error { return c.reveal(0, c.acrossViews(0)) },
		notDue:  []wire.Type{begin, survivors, certificate},
		submit:  true,
	}} {
		if err := step.advance(); err != nil && !h.weak {
			return outcome{}, err
		}
		h.notDue(step.notDue...)
		if step.submit {
			h.submitEarly()
		}
	}
	p := h.probe
	return counts(h.early, p.takenAll(), h.submitted, p.faults()), p.err
}

// reorderToServer sends the server shares before there is a list, an input after it, and
// shares of a party that is not in it.
func reorderToServer(t target, inputs []segments) (outcome, error) {
	const slow = 4 // the party whose input is late
	signers, config := attackConfig(reorderParties, &protocol.Recovery{}, 0)
	s, err := t.ready(config, signers, nil)
	if err != nil {
		return outcome{}, err
	}
	p := newProbe([32]byte(s.Clients[0].Announce()[2:34]))
	var late []byte
	s.Carry = func(from, _ int, message []byte) []byte {
		if from != slow || wire.Type(message[1]) != wire.TypeMasked {
			return message
		}
		late = slices.Clone(message)
		return nil // held back
	}
	if err := s.Begin(nil); err != nil {
		return outcome{}, err
	}
	if err := s.Submit(nil, textbook.Given(inputs)); err != nil {
		return outcome{}, err
	}
	reveal := wire.Header{
		Type:    wire.TypeReveal,
		Session: [32]byte(late[2:34]),
		Round:   s.Server.Round(),
		Sender:  1,
	}
	p.deliver(s, -1, [][]byte{reveal.Append(nil)}, true)
	for _, step := range []func() ([]protocol.Envelope, error){
		s.Server.Survivors, s.Server.Certificate,
	} {
		if err := s.Step(step); err != nil {
			return outcome{}, err
		}
		p.deliver(s, -1, [][]byte{late}, true)
	}
	reveal.Sender = slow // which is not in the list
	p.deliver(s, -1, [][]byte{reveal.Append(nil)}, true)
	sum, err := s.Server.Sum()
	exact := err == nil && equal(sum, sumOf(attackLayout, inputs, upTo(slow)))
	return counts(4, p.takenAll(), p.faults(), indicator(exact)), p.err
}
