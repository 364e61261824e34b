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
	return model, r.ended(err, r.party.Guard())
}

// oneshotParty is a running Participant of a job with a committee.
type oneshotParty struct {
	participant

	// Of a job with sum.buffer, whose parties train on while rounds come and go:
	job      context.Context // ends with Run
	running  sync.WaitGroup
	making   *making // the last
	finished chan *making
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
	greeting.Least = p.party.Hello().Least
	if err := p.link.Send(ctx, transport.JSONFrame(transport.KindHello, greeting)); err != nil {
		return nil, false, err
	}
	p.report(Event{Kind: Connected})
	p.coming, p.arrived = coming{}, nil
	p.party.Connected()
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
			if body, err = p.rest(body); err == nil {
				err = p.party.Receive(drive.Item{Kind: drive.Carry, Own: body})
			}
		case transport.KindUpload:
			if len(body) != 8 {
				return nil, false, ErrFrame
			}
			err = p.party.Receive(drive.Item{Kind: drive.Upload, Round: binary.BigEndian.Uint64(body)})
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
		r, decided := p.party.Ready()
		if !decided {
			return nil
		}
		if err := p.save(r); err != nil {
			return err
		}
		if err := p.count(p.party.Guard()); err != nil {
			return err
		}
		for _, one := range r.Reports {
			p.tell(one)
		}
		if err := p.leave(ctx, p.party.Advance()); err != nil {
			return err
		}
	}
}

// leave sends what may leave, and has the program work.
func (p *oneshotParty) leave(ctx context.Context, out drive.Out) error {
	for _, away := range out.Away {
		said := transport.Absence{Told: p.party.Hello().Told, Absent: away.Number,
			Why: string(away.Cause)}
		if err := p.link.Send(ctx, transport.JSONFrame(transport.KindAbsent, said)); err != nil {
			return err
		}
	}
	if out.Offer != 0 {
		if err := p.link.Send(ctx, transport.NumberFrame(transport.KindOffer, out.Offer)); err != nil {
			return err
		}
	}
	send := func(frame []byte) error { return p.link.Send(ctx, frame) }
	for _, m := range out.Send {
		if err := sendMessage(send, m.Bytes); err != nil {
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
		p.party.Absent(ask.ID, ask.Round, fmt.Errorf("%w: the opening is of round %d, the broadcast "+
			"of %d", drive.ErrRound, ask.Round, b.Round))
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
	var m Message
	why := p.try(func() (err error) {
		m, err = p.make(ctx, b)
		return err
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return p.answerWith(ask, b, digest, m, why)
}

// answerWith has the party submit what the program has made, if it has made any.
func (p *oneshotParty) answerWith(
	ask *drive.Ask, b *transport.Broadcast, opening [32]byte, m Message, why error,
) error {
	err := p.party.Answer(drive.Answer{ID: ask.ID, Round: ask.Round, Broadcast: opening, Err: why,
		Fill: func(v *masking.Vector) error {
			values, err := p.values(b, m)
			return set(v, values, err)
		}})
	if err != nil {
		return storeError{err}
	}
	return nil
}

// set writes values to v, and erases them.
func set(v *masking.Vector, values [][]uint64, err error) error {
	if err != nil {
		v.Erase()
		return err
	}
	err = v.Set(values...)
	for _, lane := range values {
		clear(lane)
	}
	return err
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

// values encodes what the program has made for a round.
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
