package hushsum

import (
	"context"
	"crypto"
	"fmt"
	"io"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/store"
	"github.com/hushsum/hushsum/transport"
)

// Member is one member of the committee of a job with one-message sums. Set the fields, then
// call Run.
type Member struct {
	Job      *Settled
	Identity crypto.Signer // Ed25519, of the committee
	Dialer   Dialer

	// Store keeps what the member must not lose when its process ends: without one, a restarted member
	// may answer a second time in a round. Key seals it.
	Store   Store
	Key     *keyexchange.SealKey
	Counter Counter // finds older states; may be nil

	Random   io.Reader   // nil: crypto/rand
	Progress func(Event) // may be nil
}

// member is a running Member.
type member struct {
	Member
	vault *store.Vault
	drive drive.Part
	link  Link
}

// Run helps until the job is done. Run dials again whenever the connection breaks. It fails with
// the errors of [Participant.Run].
func (m *Member) Run(ctx context.Context) error {
	if err := m.check(); err != nil {
		return err
	}
	r := &member{Member: *m}
	defer func() { r.vault.Close() }()
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
	settings := m.Job.Member(m.Identity, m.Random)
	var b []byte
	var err error
	m.vault, b, err = open(m.Store, m.Key, m.Counter,
		fmt.Sprintf("member %x", m.Identity.Public()), false)
	if err != nil {
		return err
	}
	if b == nil {
		m.drive, err = drive.NewPart(settings)
		return err
	}
	if m.drive, err = drive.LoadPart(settings, m.Key, b); err != nil {
		return fmt.Errorf("%w: %w", ErrStore, err)
	}
	return nil
}

// connection dials, and answers what comes.
func (m *member) connection(ctx context.Context) (_ transport.Weights, done bool, err error) {
	if m.link, err = dial(ctx, m.Dialer); err != nil {
		return nil, false, err
	}
	defer m.link.Close()
	greeting := greetingOf(m.Job)
	greeting.Least = m.drive.Hello().Least
	if err := m.link.Send(ctx, transport.JSONFrame(transport.KindHello, greeting)); err != nil {
		return nil, false, err
	}
	m.report(Event{Kind: Connected})
	m.drive.Connected()
	longest := maxMessage(m.Job)
	var parts []byte // of a message that comes in parts
	for {
		if err := m.proceed(ctx); err != nil || done {
			return nil, done, err
		}
		in, err := receive(ctx, m.link)
		if err != nil {
			return nil, false, err
		}
		switch kind, body := in[0], in[1:]; kind {
		case transport.KindEnd:
			err = m.drive.Receive(drive.Item{Kind: drive.Last})
			done = true
		case transport.KindPart:
			if len(body) == 0 || body[0] != transport.KindMessage || len(parts)+len(body) > longest {
				return nil, false, fmt.Errorf("%w: a part of no message, or of one that is too long", ErrFrame)
			}
			parts = append(parts, body[1:]...)
		case transport.KindMessage:
			err = m.drive.Receive(drive.Item{Kind: drive.Carry, Own: append(parts, body...)})
			parts = nil
		default:
			err = fmt.Errorf("%w: kind %d", ErrFrame, kind)
		}
		if err != nil {
			return nil, false, err
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
			saved, err := m.drive.Save(m.Key)
			if err == nil {
				err = m.vault.Save(saved.State)
			}
			if err != nil {
				return storeError{err}
			}
		}
		for _, one := range r.Reports {
			m.report(Event{Kind: Refused, Round: one.Round, Err: one.Err})
		}
		for _, message := range m.drive.Advance().Send {
			send := func(frame []byte) error { return m.link.Send(ctx, frame) }
			if err := sendMessage(send, message.Bytes); err != nil {
				return err
			}
		}
	}
}
