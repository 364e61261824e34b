package hushsum

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/host"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/link"
	"github.com/hushsum/hushsum/oneshot"
	"github.com/hushsum/hushsum/protocol"
)

// This file has what a coordinator hears from its connections, and what it sends to them.

// mostUnsent is how many bytes may be on their way that are made for one party each.
const mostUnsent = 64 << 20

// clogTime is how often the coordinator looks for those who take nothing.
const clogTime = time.Second

// hear takes what comes from connections. All of it happens under the host's lock.
func (c *coordinator[F]) hear(ctx context.Context, h *hub) {
	ticker := time.NewTicker(clogTime)
	defer ticker.Stop()
	do := func(what func(lead drive.Lead, now drive.Time)) bool {
		return c.host.Do(ctx, what) == nil
	}
	for goes := true; goes; {
		select {
		case <-ctx.Done():
			return
		case a := <-h.events:
			all := c.together(h, a)
			if len(all) > 1 {
				goes = do(func(lead drive.Lead, _ drive.Time) { c.check(h, lead, all) })
			}
			for _, a := range all {
				goes = do(func(lead drive.Lead, now drive.Time) { c.arrived(h, a, lead, now) })
				if !goes {
					a.long.Drop()
				}
			}
		case e := <-h.notices:
			goes = do(func(drive.Lead, drive.Time) { c.report(e) })
		case <-ticker.C:
			if c.host.Crowded() {
				goes = do(func(drive.Lead, drive.Time) { h.unclog(c.StepTime) })
			}
		}
	}
}

// together returns what came from a party, and where there are proofs also what has come behind
// it, so that they are checked next to each other.
func (c *coordinator[F]) together(h *hub, first arrival) []arrival {
	all := []arrival{first}
	if h == c.members || c.members == nil || c.Job.Oneshot().Norm == 0 {
		return all
	}
	for range len(h.events) {
		all = append(all, <-h.events)
	}
	return all
}

// check checks the proofs of submissions that have come.
func (c *coordinator[F]) check(h *hub, lead drive.Lead, all []arrival) {
	var submissions []drive.Submission
	for _, a := range all {
		if len(a.frame) > 0 && a.frame[0] == link.KindMessage && h.there[a.party] == a.from {
			submissions = append(submissions, drive.Submission{Party: a.party, Message: a.frame[1:]})
		}
	}
	lead.Check(submissions)
}

// arrived handles what came from a party or a member. Nothing of it ends the job.
func (c *coordinator[F]) arrived(h *hub, a arrival, lead drive.Lead, now drive.Time) {
	defer a.long.Drop()
	p := drive.Peer{Index: a.party, Member: h == c.members}
	switch {
	case a.err != nil || len(a.frame) == 0:
		if h.gone(a) {
			lead.Gone(now, p)
			c.comes(p, Event{Kind: host.Disconnected, Party: a.party, Err: a.err})
		}
	case a.frame[0] == link.KindHello && !a.from.greeted:
		hello, refusal := checkGreeting(c.Job, a.frame[1:])
		if refusal != nil {
			h.refuse(a, refusal)
			return
		}
		if said := (drive.Hello{Told: hello.Told()}); c.members != nil {
			lead.Connected(now, p, said)
		} else {
			lead.Connected(now, p, drive.Hello{Sessions: hello.Sessions, Least: hello.Least})
		}
		e := Event{Kind: host.Connected, Party: a.party, Member: p.Member}
		if h.admit(a) {
			e.Err = errTwice
		}
		c.comes(p, e)
	case h.there[a.party] == a.from:
		err := c.takes(p, a, lead, now)
		c.refuses(p, lead.Status(), a.from.judge(a.frame, err))
	}
}

// errTwice: the new connection ended an older one of the same identity.
var errTwice = errors.New("its earlier connection was still open: it broke unnoticed or, if this " +
	"comes again and again, two processes have one identity; stop one of them")

// errConfiguration: a program works another session out of the same job.
var errConfiguration = errors.New("it announces keys for sessions of another configuration again " +
	"and again; its program works sessions out otherwise than SPEC-TRANSPORT.md says")

// judge returns an error that says more of a party's second Announce in a row that belongs to no
// session. One alone may be of an earlier session.
func (c *connection) judge(frame []byte, err error) error {
	const announce = 2 // bytes before the type: the frame's kind and the version
	switch {
	case err == nil:
		c.strange = 0
	case errors.Is(err, protocol.ErrSession) && len(frame) > announce &&
		frame[0] == link.KindMessage && frame[announce] == byte(wire.TypeAnnounce):
		if c.strange++; c.strange >= 2 {
			return errConfiguration
		}
	}
	return err
}

// comes reports that a party comes or goes, and of a member that it came twice.
func (c *coordinator[F]) comes(p drive.Peer, e Event) {
	if !p.Member || e.Err == errTwice {
		c.report(e)
	}
}

// takes takes a frame of a peer that is connected.
func (c *coordinator[F]) takes(p drive.Peer, a arrival, lead drive.Lead, now drive.Time) error {
	switch kind := a.frame[0]; {
	case kind == link.KindMessage && a.long != nil:
		return lead.Receive(now, p, a.long.Message())
	case kind == link.KindMessage:
		return lead.Receive(now, p, bytes.NewBuffer(a.frame[1:]))
	case p.Member:
	case kind == link.KindAbsent:
		return c.said(p, a.frame[1:], lead, now)
	case kind == link.KindOffer && len(a.frame) == 9:
		lead.Said(now, p, drive.Said{Offer: binary.BigEndian.Uint64(a.frame[1:])})
	case kind == link.KindOffer:
		return ErrFrame
	}
	return nil
}

// said takes a party's word of the last round that it has submitted in, and that it does not
// submit in the one that goes on. Absent 0: the first alone.
func (c *coordinator[F]) said(p drive.Peer, body []byte, lead drive.Lead, now drive.Time) error {
	var said link.Absence
	if err := link.ParseJSON(body, &said); err != nil {
		return err
	}
	if lead.Said(now, p, drive.Said{Told: said.Told, Absent: said.Absent}) {
		c.report(Event{Kind: host.Absent, Session: lead.Status().Session, Round: said.Absent,
			Party: p.Index, Err: fmt.Errorf("%w: %.40q", ErrAbsent, said.Why)})
	}
	return nil
}

// refuses reports an error of a frame, but for those that come of copies, and of rounds that are
// over.
func (c *coordinator[F]) refuses(p drive.Peer, s drive.Status, err error) {
	for _, expected := range []error{nil, drive.ErrEnded, protocol.ErrDuplicate, protocol.ErrStale,
		protocol.ErrSession, oneshot.ErrDuplicate, oneshot.ErrPhase, oneshot.ErrFull,
		oneshot.ErrContext} {
		if errors.Is(err, expected) {
			return
		}
	}
	e := Event{Kind: host.Refused, Session: s.Session, Party: p.Index, Member: p.Member, Err: err}
	if c.members != nil {
		e.Round = s.Round
	}
	c.report(e)
}

// write sends a connection what is pending for its peer, until the connection ends.
func (c *coordinator[F]) write(ctx context.Context, h *hub, party int, to *connection) {
	p := drive.Peer{Index: party, Member: h == c.members}
	send := func(frame []byte) error { return to.link.Send(ctx, frame) }
	had := make(map[string]bool)
	for {
		var frames func(send func([]byte) error) error
		sent, err := c.host.Pending(ctx, p, had, func(item drive.Item, s drive.Status) {
			frames = c.frames(p, item, s)
		})
		if err != nil {
			return
		}
		h.sends(to, time.Now())
		err = frames(send)
		h.sends(to, time.Time{})
		sent()
		if err != nil {
			return
		}
	}
}

// frames returns an item as frames. A message that begins a round follows its broadcast.
func (c *coordinator[F]) frames(
	p drive.Peer, item drive.Item, s drive.Status,
) func(send func([]byte) error) error {
	single := func(frame []byte) func(send func([]byte) error) error {
		return func(send func([]byte) error) error { return send(frame) }
	}
	switch {
	case item.Kind == drive.Join:
		return single(link.NumberFrame(link.KindJoin, item.Session))
	case item.Kind == drive.Upload:
		return single(link.NumberFrame(link.KindUpload, item.Round))
	case item.Kind == drive.Last && p.Member:
		return single(link.NewFrame(link.KindEnd, nil))
	case item.Kind == drive.Last && s.Stalled:
		return single(withoutSum())
	case item.Kind == drive.Last:
		last := &link.Broadcast{Round: item.Round, Model: c.model}
		return func(send func([]byte) error) error {
			return link.SendBody(link.KindEnd, last, send)
		}
	}
	cast := c.cast
	return func(send func([]byte) error) error {
		if item.Round > 0 {
			if err := link.SendBody(link.KindBroadcast, cast, send); err != nil {
				return err
			}
		}
		return sendMessage(send, item.Shared, item.Own)
	}
}

// withoutSum tells somebody that the job is done and came to nothing.
func withoutSum() []byte {
	return link.JSONFrame(link.KindRefusal,
		link.Refusal{Ours: "the job ended, and the coordinator knows of no round that gave a sum"})
}
