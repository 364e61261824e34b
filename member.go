package hushsum

import (
	"context"
	"crypto"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/internal/frames"
	"github.com/hushsum/hushsum/internal/signed"
	"github.com/hushsum/hushsum/keyexchange"
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
	drive *drive.Member
	link  Link
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
	config := drive.MemberConfig{Sums: m.Plan.Oneshot(), Rounds: uint64(m.Plan.Rounds()),
		Identity: m.Identity, Random: m.Random}
	var b []byte
	var err error
	m.vault, b, err = openVault(m.Store, m.Key, m.Counter,
		fmt.Sprintf("member %x", m.Identity.Public()), false)
	if err != nil {
		return err
	}
	if b == nil {
		m.drive, err = drive.NewMember(config)
		return err
	}
	if m.drive, err = drive.LoadMember(config, m.Key, b); err != nil {
		return fmt.Errorf("%w: %w", ErrStore, err)
	}
	return nil
}

// connection dials, and answers what comes.
func (m *member) connection(ctx context.Context) (_ frames.Weights, done bool, err error) {
	if m.link, err = m.Dialer.Dial(ctx); err != nil {
		return nil, false, err
	}
	defer m.link.Close()
	greeting := greetingOf(m.Plan)
	greeting.Least = m.drive.Told() + 1
	if err := m.link.Send(ctx, frames.OfJSON(frames.KindHello, greeting)); err != nil {
		return nil, false, err
	}
	m.report(Event{Kind: Connected})
	m.drive.Connected()
	for {
		if err := m.proceed(ctx); err != nil || done {
			return nil, done, err
		}
		in, err := receive(ctx, m.link)
		if err != nil {
			return nil, false, err
		}
		switch kind, body := in[0], in[1:]; kind {
		case frames.KindEnd:
			m.drive.Finish()
			done = true
		case frames.KindMessage:
			m.drive.Receive(body)
		default:
			return nil, false, fmt.Errorf("%w: kind %d", ErrFrame, kind)
		}
	}
}

// proceed saves what the member has decided, then sends it.
func (m *member) proceed(ctx context.Context) error {
	for {
		r, decided := m.drive.Ready()
		if !decided {
			return nil
		}
		if r.Save && m.vault != nil {
			state, err := m.drive.State(m.Key)
			if err == nil {
				err = m.vault.save(state)
			}
			if err != nil {
				return storeError{err}
			}
		}
		for _, one := range r.Reports {
			m.report(Event{Kind: Refused, Round: one.Round, Err: one.Err})
		}
		for _, message := range m.drive.Advance() {
			if err := m.link.Send(ctx, frames.New(frames.KindMessage, message)); err != nil {
				return err
			}
		}
	}
}

// runOneshot takes part in a job whose plan has a committee.
func (p *Participant) runOneshot(ctx context.Context) (frames.Weights, error) {
	r := &oneshotParty{participant: participant{Participant: *p}}
	defer func() { r.vault.close() }()
	if err := r.load(); err != nil {
		return nil, err
	}
	model, err := redial(ctx, r.report, r.connection)
	if guard := r.drive.Guard(); err == nil && guard.Count() == r.blanks && r.missed != nil {
		err = fmt.Errorf("%w: %w", ErrAbsent, r.missed)
	}
	return model, err
}

// oneshotParty is a running Participant of a plan with a committee.
type oneshotParty struct {
	participant
	drive *drive.Sender
}

func (p *oneshotParty) load() error {
	limits, err := LimitsOf(p.Plan)
	if err != nil {
		return err
	}
	config := drive.SenderConfig{Limits: limits, Sums: p.Plan.Oneshot(), Identity: p.Identity,
		Random: p.Random, Least: p.LeastNumber, Spent: uint64(p.Spent), Noisy: p.noisy()}
	var b []byte
	p.vault, b, err = openVault(p.Store, p.Key, p.Counter,
		fmt.Sprintf("party %x", p.Identity.Public()), p.Spent > 0)
	switch {
	case err != nil:
		return err
	case b == nil:
		p.drive, err = drive.NewSender(config)
	default:
		if p.drive, err = drive.LoadSender(config, p.Key, b); err != nil {
			err = fmt.Errorf("%w: %w", ErrStore, err)
		}
	}
	return err
}

// connection dials, and submits to the rounds that open.
func (p *oneshotParty) connection(
	ctx context.Context,
) (model frames.Weights, done bool, err error) {
	if p.link, err = p.Dialer.Dial(ctx); err != nil {
		return nil, false, err
	}
	defer p.link.Close()
	greeting := greetingOf(p.Plan)
	greeting.Least = p.drive.Told() + 1
	if err := p.link.Send(ctx, frames.OfJSON(frames.KindHello, greeting)); err != nil {
		return nil, false, err
	}
	p.report(Event{Kind: Connected})
	p.coming, p.arrived = coming{}, nil
	p.drive.Connected()
	for {
		if err := p.proceed(ctx); err != nil {
			return nil, false, err
		}
		in, err := receive(ctx, p.link)
		if err != nil {
			return nil, false, err
		}
		switch kind, body := in[0], in[1:]; kind {
		case frames.KindPart:
			err = p.part(body)
			reuse(p.link, in)
		case frames.KindBroadcast:
			p.arrived, err = p.restOfBroadcast(kind, body)
		case frames.KindMessage:
			if p.arrived != nil {
				p.broadcast, p.arrived = p.arrived, nil
			}
			p.drive.Opening(body)
		case frames.KindUpload:
			if len(body) != 8 {
				return nil, false, ErrFrame
			}
			p.drive.Upload(binary.BigEndian.Uint64(body))
		case frames.KindEnd:
			last, err := p.restOfBroadcast(kind, body)
			if err != nil {
				return nil, false, err
			}
			return last.Model, true, nil
		default:
			err = fmt.Errorf("%w: kind %d", ErrFrame, kind)
		}
		if err != nil {
			return nil, false, err
		}
	}
}

// proceed does what the party has decided: saves, then sends, then works.
func (p *oneshotParty) proceed(ctx context.Context) error {
	for {
		r, decided := p.drive.Ready()
		if !decided {
			return nil
		}
		if r.Save && p.vault != nil {
			state, err := p.drive.State(p.Key)
			if err == nil {
				err = p.vault.save(state)
			}
			if err != nil {
				return storeError{err}
			}
		}
		for _, one := range r.Reports {
			p.tell(one)
		}
		if err := p.leave(ctx, p.drive.Advance()); err != nil {
			return err
		}
	}
}

// leave sends what may leave, and has the program work.
func (p *oneshotParty) leave(ctx context.Context, out drive.SenderOut) error {
	for _, away := range out.Away {
		said := frames.Absence{Told: p.drive.Told(), Absent: away.Number, Why: string(away.Cause)}
		if err := p.link.Send(ctx, frames.OfJSON(frames.KindAbsent, said)); err != nil {
			return err
		}
	}
	if out.Offer != 0 {
		if err := p.link.Send(ctx, frames.OfRound(frames.KindOffer, out.Offer)); err != nil {
			return err
		}
	}
	if out.Send != nil {
		if err := p.link.Send(ctx, frames.New(frames.KindMessage, out.Send)); err != nil {
			return err
		}
	}
	if out.Ask == nil || p.broadcast == nil {
		return nil
	}
	return p.answer(ctx, out.Ask)
}

// answer has the program make this party's submission.
func (p *oneshotParty) answer(ctx context.Context, ask *drive.Ask) error {
	b := p.broadcast
	if b.Round != ask.Round {
		p.drive.Absent(ask.ID, fmt.Errorf("%w: the opening is of round %d, the broadcast of %d",
			drive.ErrRound, ask.Round, b.Round))
		return nil
	}
	digest, err := b.InOpening() // before the program may change the model
	if err != nil {
		return storeError{err}
	}
	var integers []int64
	why := p.try(func() (err error) {
		integers, err = p.integers(ctx, b)
		return err
	})
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case why != nil:
		err = p.drive.None(ask.ID, digest, why)
	default:
		err = p.drive.Answer(ask.ID, digest, integers)
	}
	if err != nil {
		return storeError{err}
	}
	return nil
}

// integers makes and encodes the submission.
func (p *oneshotParty) integers(ctx context.Context, b *frames.Broadcast) ([]int64, error) {
	values, err := p.values(ctx, b)
	if err != nil {
		return nil, err
	}
	if p.Submitted != nil {
		p.Submitted(b.Round, values)
	}
	integers := signed.Values(p.Plan.Layout(), values)
	for _, lane := range values {
		clear(lane)
	}
	return integers, nil
}

// values has the program make this party's submission, and encodes it.
func (p *oneshotParty) values(ctx context.Context, b *frames.Broadcast) ([][]uint64, error) {
	model := frames.Of[float64](b.Model)
	if p.Submit != nil {
		m, err := p.Submit(ctx, b.Round, model)
		if err == nil && more(p.Plan) {
			m, err = p.Plan.Message(m.Vector, m.Samples)
		}
		if err != nil {
			return nil, err
		}
		return p.Plan.EncodeMessage(b.Digest, 0, m, p.Random)
	}
	vector, err := p.Work(ctx, b.Round, model)
	if err != nil {
		return nil, err
	}
	return p.Plan.EncodeDigest(b.Digest, vector, p.Random)
}
