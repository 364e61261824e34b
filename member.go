package hushsum

import (
	"context"
	"crypto"
	"errors"
	"fmt"
	"io"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/internal/signed"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/oneshot"
)

// Member is one member of the committee of a plan with [Oneshot]. Set the fields, then
// call Run.
type Member struct {
	Plan     *Settled
	Identity crypto.Signer // Ed25519, of the committee
	Dialer   Dialer

	// Store keeps what the member must not lose when its process ends: without one, a
	// member that is started again may answer in a round a second time. Key seals it.
	Store   Store
	Key     *keyexchange.SealKey
	Counter Counter // finds older states; may be nil

	Random   io.Reader   // nil: crypto/rand
	Progress func(Event) // may be nil
}

// member is a running Member.
type member struct {
	Member
	vault *vault
	state *oneshot.Member
}

// Run helps until the job is done. It dials again whenever the connection breaks. It
// fails as [Participant.Run] does.
func (m *Member) Run(ctx context.Context) error {
	if err := m.check(); err != nil {
		return err
	}
	r := &member{Member: *m}
	defer func() { r.vault.close() }()
	if err := r.load(); err != nil {
		return err
	}
	_, err := redial(ctx, r.report, r.connection)
	return err
}

func (m *member) report(e Event) {
	if m.Progress != nil {
		m.Progress(e)
	}
}

func (m *member) load() error {
	config := m.Plan.Oneshot()
	var b []byte
	var err error
	m.vault, b, err = openVault(m.Store, m.Key, m.Counter,
		fmt.Sprintf("member %x", m.Identity.Public()), false)
	if err != nil {
		return err
	}
	if b == nil {
		m.state, err = oneshot.NewMember(config, m.Identity, m.Random)
		return err
	}
	m.state, err = oneshot.LoadMember(config, m.Identity, m.Random, m.Key, b)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrStore, err)
	}
	return nil
}

// save stores the state; the member's answer may be sent then, and not before.
func (m *member) save() error {
	if m.vault == nil {
		return nil
	}
	b, err := m.state.Save(m.Key)
	if err == nil {
		err = m.vault.save(b)
	}
	if err != nil {
		return storeError{err}
	}
	return nil
}

// connection dials, and answers what comes.
func (m *member) connection(ctx context.Context) (_ weights, done bool, err error) {
	link, err := m.Dialer.Dial(ctx)
	if err != nil {
		return nil, false, err
	}
	defer link.Close()
	if err := link.Send(ctx, jsonFrame(frameHello, greetingOf(m.Plan))); err != nil {
		return nil, false, err
	}
	m.report(Event{Kind: Connected})
	// What was made last may never have arrived. Who has it refuses the copy.
	if last := m.state.Output(); last != nil {
		if err := link.Send(ctx, frame(frameMessage, last)); err != nil {
			return nil, false, err
		}
	}
	for {
		in, err := receive(ctx, link)
		if err != nil {
			return nil, false, err
		}
		switch kind, body := in[0], in[1:]; kind {
		case frameEnd:
			m.state.Abandon()
			return nil, true, m.save()
		case frameMessage:
			if h, _, err := wire.ParseHeader(body); err == nil && h.Round > uint64(m.Plan.Rounds()) {
				m.report(Event{Kind: Refused, Round: h.Round, Err: fmt.Errorf("%w: %d of %d", drive.ErrRound,
					h.Round, m.Plan.Rounds())})
				continue
			}
			answer, err := m.state.Receive(body)
			if err != nil {
				// What it has seen comes again after a break.
				if !seen(err) {
					m.report(Event{Kind: Refused, Round: m.state.Round(), Err: err})
				}
				continue
			}
			if err := m.save(); err != nil {
				return nil, false, err
			}
			if answer == nil {
				continue
			}
			if err := link.Send(ctx, frame(frameMessage, answer)); err != nil {
				return nil, false, err
			}
		default:
			return nil, false, fmt.Errorf("%w: kind %d", ErrFrame, kind)
		}
	}
}

// seen reports whether a message was refused because it, or a later one, was seen before.
func seen(err error) bool {
	return errors.Is(err, oneshot.ErrDuplicate) || errors.Is(err, oneshot.ErrReplay) ||
		errors.Is(err, oneshot.ErrPhase) || errors.Is(err, oneshot.ErrLost)
}

// runOneshot takes part in a job whose plan has a committee.
func (p *Participant) runOneshot(ctx context.Context) (weights, error) {
	r := &oneshotParty{participant: participant{Participant: *p}}
	defer func() { r.vault.close() }()
	var b []byte
	var err error
	r.vault, b, err = openVault(p.Store, p.Key, p.Counter,
		fmt.Sprintf("party %x", p.Identity.Public()), p.Spent > 0)
	switch {
	case err != nil:
		return nil, err
	case b == nil:
		r.state, err = oneshot.NewParty(p.Plan.Oneshot(), p.Identity, p.Random)
	default:
		r.state, err = oneshot.LoadParty(p.Plan.Oneshot(), p.Identity, p.Random, p.Key, b)
	}
	if err != nil {
		return nil, err
	}
	limits, err := LimitsOf(p.Plan)
	if err != nil {
		return nil, err
	}
	// Rounds that it sat out count too: they have numbers that it cannot use any more.
	spent := max(r.state.Round(), uint64(p.Spent))
	if r.guard, err = drive.NewGuard(limits, spent); err != nil {
		return nil, err
	}
	model, err := redial(ctx, r.report, r.connection)
	if err == nil {
		err = r.absent()
	}
	return model, err
}

// oneshotParty is a running Participant of a plan with a committee.
type oneshotParty struct {
	participant
	state *oneshot.Party
	guard *drive.Guard
	began []byte // the last broadcast
}

// absent is ErrAbsent if the party was asked, and had nothing to submit in any round.
func (p *oneshotParty) absent() error {
	if p.missed == nil || p.guard.Count() > 0 {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrAbsent, p.missed)
}

// connection dials, and submits to the rounds that open.
func (p *oneshotParty) connection(ctx context.Context) (model weights, done bool, err error) {
	if p.link, err = p.Dialer.Dial(ctx); err != nil {
		return nil, false, err
	}
	defer p.link.Close()
	if err := p.link.Send(ctx, jsonFrame(frameHello, greetingOf(p.Plan))); err != nil {
		return nil, false, err
	}
	p.report(Event{Kind: Connected})
	if err := p.again(ctx); err != nil {
		return nil, false, err
	}
	for {
		in, err := receive(ctx, p.link)
		if err != nil {
			return nil, false, err
		}
		switch kind, body := in[0], in[1:]; kind {
		case frameBroadcast:
			p.began = body
		case frameMessage:
			err = p.opening(ctx, body)
		case frameEnd:
			last, err := parseBroadcast(body, p.Plan.ModelLength())
			if err != nil {
				return nil, false, err
			}
			return last.model, true, nil
		default:
			err = fmt.Errorf("%w: kind %d", ErrFrame, kind)
		}
		if err != nil {
			return nil, false, err
		}
	}
}

// again sends the last message once more: it may never have arrived.
func (p *oneshotParty) again(ctx context.Context) error {
	if p.state.Output() == nil {
		return nil
	}
	return p.link.Send(ctx, frame(frameMessage, p.state.Output()))
}

// opening answers the opening of a round, once.
func (p *oneshotParty) opening(ctx context.Context, message []byte) error {
	h, _, err := wire.ParseHeader(message)
	if err != nil {
		return err
	}
	switch {
	case h.Round == p.state.Round():
		return p.again(ctx)
	case h.Round < max(p.state.Round(), p.LeastNumber) || p.began == nil:
		return nil
	}
	b, err := parseBroadcast(p.began, p.Plan.ModelLength())
	if err != nil {
		return err
	}
	absent := func(err error) error {
		p.missed = err
		p.report(Event{Kind: Absent, Round: h.Round, Err: err})
		return ctx.Err()
	}
	if err = p.guard.Check(h.Round); err == nil && b.round != h.Round {
		err = fmt.Errorf("%w: the opening is of round %d, the broadcast of %d", drive.ErrRound, h.Round,
			b.round)
	}
	if err != nil {
		return absent(err)
	}
	values, err := p.values(ctx, b)
	if err != nil {
		return absent(err)
	}
	if p.Submitted != nil {
		p.Submitted(b.round, values)
	}
	integers := signed.Values(p.Plan.Layout(), values)
	out, err := p.state.Submit(message, p.began, integers)
	clear(integers)
	for _, v := range values {
		clear(v)
	}
	if err != nil {
		p.report(Event{Kind: Refused, Round: h.Round, Err: err})
		return nil
	}
	if err := p.guard.Charge(h.Round); err != nil {
		return storeError{err} // it was checked before
	}
	if p.vault != nil {
		state, err := p.state.Save(p.Key)
		if err == nil {
			err = p.vault.save(state)
		}
		if err != nil {
			return storeError{err}
		}
	}
	p.report(Event{Kind: Submitted, Round: b.round})
	return p.link.Send(ctx, frame(frameMessage, out))
}

// values has the program make this party's submission.
func (p *oneshotParty) values(ctx context.Context, b *broadcast) ([][]uint64, error) {
	model := of[float64](b.model)
	if p.Submit != nil {
		m, err := p.Submit(ctx, b.round, model)
		if err != nil {
			return nil, err
		}
		return p.Plan.EncodeMessage(BroadcastDigest(p.began), m, p.Random)
	}
	vector, err := p.Work(ctx, b.round, model)
	if err != nil {
		return nil, err
	}
	return p.Plan.Encode(p.began, vector, p.Random)
}
