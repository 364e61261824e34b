package hushsum

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/internal/frames"
	"github.com/hushsum/hushsum/internal/signed"
)

// runOneshot takes part in a job that has a committee.
func (p *Participant) runOneshot(ctx context.Context) (frames.Weights, error) {
	r := &oneshotParty{participant: participant{Participant: *p}, finished: make(chan *making)}
	ctx, cancel := context.WithCancel(ctx)
	r.job = ctx
	defer func() { r.vault.close() }()
	defer r.running.Wait()
	defer cancel()
	if err := r.load(); err != nil {
		return nil, err
	}
	model, err := redial(ctx, r.report, r.connection)
	return model, r.blamed(err, r.drive.Guard())
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
	limits, err := LimitsOf(p.Job, p.Identity.Public())
	if err != nil {
		return err
	}
	config := drive.SenderConfig{Limits: limits, Sums: p.Job.Oneshot(), Identity: p.Identity,
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
	var reading sync.WaitGroup
	defer reading.Wait()
	defer p.link.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	greeting := greetingOf(p.Job)
	greeting.Least = p.drive.Told() + 1
	if err := p.link.Send(ctx, frames.OfJSON(frames.KindHello, greeting)); err != nil {
		return nil, false, err
	}
	p.report(Event{Kind: Connected})
	p.coming, p.arrived = coming{}, nil
	p.drive.Connected()
	arrivals := make(chan arriving)
	reading.Go(func() { read(ctx, p.link, arrivals) })
	for {
		if err := p.proceed(ctx); err != nil {
			return nil, false, err
		}
		var in []byte
		select {
		case <-ctx.Done():
			return nil, false, ctx.Err()
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
func (p *oneshotParty) integers(ctx context.Context, b *frames.Broadcast) ([]int64, error) {
	m, err := p.make(ctx, b)
	if err != nil {
		return nil, err
	}
	return p.encode(b, m)
}

// make has the program make what this party submits.
func (p *oneshotParty) make(ctx context.Context, b *frames.Broadcast) (m Message, err error) {
	model := frames.Of[float64](b.Model)
	if p.Submit != nil {
		return p.Submit(ctx, b.Round, model)
	}
	m.Vector, err = p.Work(ctx, b.Round, model)
	return m, err
}

// encode makes the integers of a round of it.
func (p *oneshotParty) encode(b *frames.Broadcast, m Message) ([]int64, error) {
	values, err := p.values(b, m)
	if err != nil {
		return nil, err
	}
	if p.Submitted != nil {
		p.Submitted(b.Round, values)
	}
	integers := signed.Values(p.Job.Layout(), values)
	for _, lane := range values {
		clear(lane)
	}
	return integers, nil
}

func (p *oneshotParty) values(b *frames.Broadcast, m Message) (_ [][]uint64, err error) {
	if p.Submit == nil {
		return p.Job.EncodeDigest(b.Digest, m.Vector, p.Random)
	}
	if more(p.Job) {
		if m, err = p.Job.Message(m.Vector, m.Samples); err != nil {
			return nil, err
		}
	}
	return p.Job.EncodeMessage(b.Digest, 0, m, p.Random)
}
