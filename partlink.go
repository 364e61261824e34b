package hushsum

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/host"
	"github.com/hushsum/hushsum/internal/fault"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/link"
)

// partLink carries the items and messages of a participant, or of a member of the committee, over
// links.
type partLink struct {
	job     *Settled
	dialer  Dialer
	report  func(Event)
	weights func(length int) link.Weights // zeros, of the type that the program holds models as
	member  bool
	longest int // message

	link    Link
	coming  coming
	arrived *link.Broadcast // that came before the message which it belongs to
	last    link.Weights    // the job's last model

	lock  sync.Mutex
	casts []*host.Cast // of the last two messages that a round began with
}

// coming is a body that comes in parts.
type coming struct {
	kind      byte // 0: none
	broadcast *link.BroadcastReader
	message   []byte
}

// newPartLink makes what carries for a participant or a member.
func newPartLink(s *Settled, dialer Dialer, report func(Event)) *partLink {
	return &partLink{job: s, dialer: dialer, report: report, longest: maxMessage(s)}
}

// final marks errors that another connection does not mend.
func final(err error) error {
	for _, kind := range []error{ErrConfig, keyexchange.ErrSigner, ErrJob, ErrRefused, ErrPeer} {
		if errors.Is(err, kind) {
			return &host.FatalError{Err: err}
		}
	}
	return err
}

// Dial connects, and says hello.
func (l *partLink) Dial(ctx context.Context, h drive.Hello) (err error) {
	if l.link, err = dial(ctx, l.dialer); err != nil {
		return final(err)
	}
	greeting := greetingOf(l.job)
	greeting.Least, greeting.Sessions = h.Least, h.Sessions
	err = l.link.Send(ctx, link.JSONFrame(link.KindHello, greeting))
	// A coordinator whose state was set back believes its parties about how far the job is. With
	// one-message sums the least number tells that.
	if err == nil && h.Told > 0 && l.job.Oneshot() == nil {
		told := link.JSONFrame(link.KindAbsent, link.Absence{Told: h.Told})
		err = l.link.Send(ctx, told)
	}
	if err != nil {
		return errors.Join(err, l.link.Close())
	}
	l.coming, l.arrived = coming{}, nil
	l.report(Event{Kind: host.Connected})
	return nil
}

// dial connects, or names the field of a dialer that is unusable.
func dial(ctx context.Context, dialer Dialer) (Link, error) {
	conn, err := dialer.Dial(ctx)
	var why *fault.Error
	if errors.Is(err, link.ErrConfig) && errors.As(err, &why) {
		err = &ConfigError{Path: "Dialer", Reason: why.Reason, Advice: why.Advice, Err: err}
	}
	return conn, err
}

// Close ends the connection.
func (l *partLink) Close() error { return l.link.Close() }

// Next waits for the next item.
func (l *partLink) Next(ctx context.Context, _ host.Standing) (drive.Item, error) {
	for {
		frame, err := receive(ctx, l.link)
		if err != nil {
			return drive.Item{}, cmp.Or(context.Cause(ctx), final(err))
		}
		if item, err := l.take(frame); err != nil || item.Kind != 0 {
			return item, err
		}
	}
}

// receive takes a frame of the coordinator, of a byte or more. It fails if that is a refusal.
func receive(ctx context.Context, conn Link) ([]byte, error) {
	in, err := conn.Receive(ctx)
	switch {
	case err != nil:
		return nil, err
	case len(in) == 0:
		return nil, ErrFrame
	case in[0] == link.KindRefusal:
		return nil, refused(in[1:])
	}
	return in, nil
}

func refused(body []byte) error {
	var r link.Refusal
	if err := link.ParseJSON(body, &r); err != nil {
		return err
	}
	if r.Field == "" {
		return fmt.Errorf("%w: %.200q", ErrRefused, r.Ours)
	}
	return &DifferenceError{Field: r.Field, Ours: r.Theirs, Theirs: r.Ours}
}

// take takes a frame. The item has no kind unless it is whole.
func (l *partLink) take(frame []byte) (item drive.Item, err error) {
	switch kind, body := frame[0], frame[1:]; kind {
	case link.KindPart:
		err = l.part(body)
		link.Reuse(l.link, frame)
	case link.KindJoin:
		item.Kind = drive.Join
		item.Session, err = number(body)
	case link.KindUpload:
		item.Kind = drive.Upload
		item.Round, err = number(body)
	case link.KindBroadcast:
		l.arrived, err = l.restOfBroadcast(kind, body)
	case link.KindMessage:
		item.Kind = drive.Carry
		if item.Own, err = l.rest(body); err == nil {
			item.Round, err = l.cast()
		}
	case link.KindEnd:
		var last *link.Broadcast
		if item.Kind = drive.Last; l.member {
			break
		}
		if last, err = l.restOfBroadcast(kind, body); err == nil {
			l.last = last.Model
		}
	default:
		err = fmt.Errorf("%w: kind %d", ErrFrame, kind)
	}
	return item, err
}

// number reads a frame that has the number of a session or of a round.
func number(body []byte) (uint64, error) {
	if len(body) != 8 {
		return 0, ErrFrame
	}
	return binary.BigEndian.Uint64(body), nil
}

// part takes a part of a body.
func (l *partLink) part(in []byte) error {
	if len(in) == 0 || l.coming.kind != 0 && l.coming.kind != in[0] {
		return fmt.Errorf("%w: parts of several bodies", ErrFrame)
	}
	kind, body := in[0], in[1:]
	l.coming.kind = kind
	switch {
	case kind == link.KindMessage:
		if len(l.coming.message)+len(body) > l.longest {
			return fmt.Errorf("%w: a message that is too long", ErrFrame)
		}
		l.coming.message = append(l.coming.message, body...)
		return nil
	case l.member, kind != link.KindBroadcast && kind != link.KindEnd:
		return fmt.Errorf("%w: parts of kind %d", ErrFrame, kind)
	case l.coming.broadcast == nil:
		l.arrived = nil
		l.forget()
		collect(l.job)
		room := l.weights(l.job.ModelLength())
		l.coming.broadcast = link.NewBroadcastReader(room)
	}
	_, err := l.coming.broadcast.Write(body)
	return err
}

// rest returns a message, of which the last bytes have come.
func (l *partLink) rest(body []byte) ([]byte, error) {
	if l.coming.kind == 0 {
		return body, nil
	}
	err := l.part(append([]byte{link.KindMessage}, body...))
	message := l.coming.message
	l.coming = coming{}
	return message, err
}

// restOfBroadcast returns a broadcast, of which the last bytes have come.
func (l *partLink) restOfBroadcast(kind byte, body []byte) (*link.Broadcast, error) {
	if err := l.part(append([]byte{kind}, body...)); err != nil {
		return nil, err
	}
	r := l.coming.broadcast
	l.coming = coming{}
	return r.End()
}

// cast has a broadcast belong to the message that came after it, and returns its round. Without one
// it returns 0.
func (l *partLink) cast() (round uint64, err error) {
	b := l.arrived
	if b == nil {
		return 0, nil
	}
	l.arrived = nil
	c := &host.Cast{Round: b.Round, Digest: b.Digest, Model: b}
	if l.job.Oneshot() != nil {
		if c.Digest, err = b.InOpening(); err != nil {
			return 0, err
		}
	}
	l.lock.Lock()
	defer l.lock.Unlock()
	l.casts = append(l.casts[max(0, len(l.casts)-1):], c)
	return b.Round, nil
}

// forget makes room for another broadcast, in a job whose parties make nothing of earlier ones.
func (l *partLink) forget() {
	l.lock.Lock()
	defer l.lock.Unlock()
	if l.job.Buffer() == 0 {
		l.casts = nil
	}
}

// Cast returns what a round began with: a model of another round is no use in it.
func (l *partLink) Cast(_ context.Context, round uint64) (*host.Cast, error) {
	l.lock.Lock()
	defer l.lock.Unlock()
	if len(l.casts) == 0 {
		return nil, nil
	}
	last := l.casts[len(l.casts)-1]
	for _, c := range []*host.Cast{last, l.casts[0]} {
		if c.Round == round || round == 0 {
			return c, nil
		}
	}
	return nil, fmt.Errorf("%w: %w: the message is of round %d, the broadcast of %d", host.ErrCast,
		drive.ErrRound, round, last.Round)
}

// Away tells the coordinator that it need not wait for this party in a round.
func (l *partLink) Away(ctx context.Context, told uint64, away drive.Absence) error {
	why := link.Absence{Told: told, Absent: away.Number, Why: string(away.Cause)}
	return l.link.Send(ctx, link.JSONFrame(link.KindAbsent, why))
}

// Offer tells the coordinator of a submission.
func (l *partLink) Offer(ctx context.Context, round uint64) error {
	return l.link.Send(ctx, link.NumberFrame(link.KindOffer, round))
}

// Send sends a message.
func (l *partLink) Send(ctx context.Context, message io.WriterTo) error {
	send := func(frame []byte) error { return l.link.Send(ctx, frame) }
	return link.SendBody(link.KindMessage, message, send)
}
