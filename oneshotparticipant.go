package hushsum

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/transport"
)

// runOneshot takes part in a job that has a committee.
func (p *participant) runOneshot(ctx context.Context) (transport.Weights, error) {
	r := &oneshotParty{participant: *p, finished: make(chan *making)}
	ctx, cancel := context.WithCancel(ctx)
	r.job = ctx
	defer func() { r.vault.Close() }()
	defer r.running.Wait()
	defer cancel()
	if err := r.load(); err != nil {
		return nil, err
	}
	model, err := redial(ctx, r.report, r.connection)
	return model, r.ended(err, r.drive.Guard())
}

// oneshotParty is a running Participant of a job with a committee.
type oneshotParty struct {
	participant
	drive *drive.Sender

	// Of a job with sum.buffer, whose parties train on while rounds come and go:
	job      context.Context // ends with Run
	running  sync.WaitGroup
	making   *making // the last
	finished chan *making
}

func (p *oneshotParty) load() error {
	limits, err := p.Job.Limits(p.Identity.Public())
	if err != nil {
		return err
	}
	config := drive.SenderConfig{Limits: limits, Sums: p.Job.Oneshot(), Identity: p.Identity,
		Random: p.Random, Least: p.LeastNumber, Spent: uint64(p.Spent), Noisy: p.noisy()}
	var b []byte
	p.vault, b, err = open(p.Store, p.Key, p.Counter,
		fmt.Sprintf("party %x", p.Identity.Public()), p.Spent > 0)
	if err != nil {
		return err
	}
	if b == nil {
		p.drive, err = drive.NewSender(config)
	} else if p.drive, err = drive.LoadSender(config, p.Key, b); err != nil {
		err = fmt.Errorf("%w: %w", ErrStore, err)
	}
	if err != nil {
		return err
	}
	return p.count(p.drive.Guard())
}

// connection dials, and submits to the rounds that open.
func (p *oneshotParty) connection(
	ctx context.Context,
) (model transport.Weights, done bool, err error) {
	var reading sync.WaitGroup
	defer reading.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	hours, stop, err := p.Policy.Hours(ctx)
	if err != nil {
		return nil, false, err
	}
	defer stop()
	if p.link, err = dial(hours, p.Dialer); err != nil {
		return nil, false, err
	}
	defer p.link.Close()
	greeting := greetingOf(p.Job)
	greeting.Least = p.drive.Told() + 1
	if err := p.link.Send(ctx, transport.JSONFrame(transport.KindHello, greeting)); err != nil {
		return nil, false, err
	}
	p.report(Event{Kind: Connected})
	p.coming, p.arrived = coming{}, nil
	p.drive.Connected()
	arrivals := make(chan arriving)
	reading.Go(func() { read(hours, p.link, arrivals) })
	for {
		if err := p.proceed(ctx); err != nil {
			return nil, false, err
		}
		var in []byte
		select {
		case <-hours.Done():
			return nil, false, context.Cause(hours)
		case m := <-p.finished:
			if err := p.made(m); err != nil {
				return nil, false, err
			}
			continue
		case a := <-arrivals:
			if in, err = a.frame, a.err; err != nil {
				return nil, false, err
			}
		}
		switch kind, body := in[0], in[1:]; kind {
		case transport.KindPart:
			err = p.part(body)
			transport.Reuse(p.link, in)
		case transport.KindBroadcast:
			p.arrived, err = p.restOfBroadcast(kind, body)
		case transport.KindMessage:
			if p.arrived != nil {
				p.broadcast, p.arrived = p.arrived, nil
			}
			p.drive.Opening(body)
		case transport.KindUpload:
			if len(body) != 8 {
				return nil, false, ErrFrame
			}
			p.drive.Upload(binary.BigEndian.Uint64(body))
		case transport.KindEnd:
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
				err = p.vault.Save(state)
			}
			if err != nil {
				return storeError{err}
			}
		}
		if err := p.count(p.drive.Guard()); err != nil {
			return err
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
		said := transport.Absence{Told: p.drive.Told(), Absent: away.Number, Why: string(away.Cause)}
		if err := p.link.Send(ctx, transport.JSONFrame(transport.KindAbsent, said)); err != nil {
			return err
		}
	}
	if out.Offer != 0 {
		if err := p.link.Send(ctx, transport.NumberFrame(transport.KindOffer, out.Offer)); err != nil {
			return err
		}
	}
	if out.Send != nil {
		if err := p.link.Send(ctx, transport.NewFrame(transport.KindMessage, out.Send)); err != nil {
			return err
		}
	}
	if out.Ask == nil || p.broadcast == nil {
		return nil
	}
	return p.answer(ctx, out.Ask)
}

// arriving is a frame, or the end of a connection.
type arriving struct {
	frame []byte
	err   error
}

// read hands on what arrives until the connection ends.
func read(ctx context.Context, link Link, arrivals chan<- arriving) {
	for {
		frame, err := receive(ctx, link)
		select {
		case arrivals <- arriving{frame, err}:
		case <-ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

// answer has the program make this party's submission.
func (p *oneshotParty) answer(ctx context.Context, ask *drive.Ask) error {
	b := p.broadcast
	if b.Round != ask.Round {
		p.drive.Absent(ask.ID, fmt.Errorf("%w: the opening is of round %d, the broadcast of %d",
			drive.ErrRound, ask.Round, b.Round))
		return nil
	}
	digest, err := p.inOpening(b) // before the program may change the model
	switch {
	case err != nil:
		return storeError{err}
	case ask.ID.Made > 0:
		return p.submitMade(ask, b, digest)
	case p.Job.Buffer() > 0:
		p.begin(ask.ID, b, digest)
		return nil
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
func (p *oneshotParty) integers(ctx context.Context, b *transport.Broadcast) ([]int64, error) {
	m, err := p.make(ctx, b)
	if err != nil {
		return nil, err
	}
	return p.encode(b, m)
}

// make has the program make what this party submits.
func (p *oneshotParty) make(ctx context.Context, b *transport.Broadcast) (m Message, err error) {
	model := transport.FloatsOf[float64](b.Model)
	if p.Submit != nil {
		return p.Submit(ctx, b.Round, model)
	}
	m.Vector, err = p.Work(ctx, b.Round, model)
	return m, err
}

// encode makes the integers of a round of it.
func (p *oneshotParty) encode(b *transport.Broadcast, m Message) ([]int64, error) {
	values, err := p.values(b, m)
	if err != nil {
		return nil, err
	}
	if p.Submitted != nil {
		p.Submitted(b.Round, values)
	}
	integers := masking.Signed(p.Job.Layout(), values)
	for _, lane := range values {
		clear(lane)
	}
	return integers, nil
}

func (p *oneshotParty) values(b *transport.Broadcast, m Message) (_ [][]uint64, err error) {
	if p.Submit == nil {
		return p.Job.EncodeDigest(b.Digest, m.Vector, p.Random)
	}
	if more(p.Job) {
		if m, err = p.Job.Message(m.Vector, m.Samples); err != nil {
			return nil, err
		}
	}
	return p.Job.EncodeMessage(b.Digest, m, p.Random)
}
