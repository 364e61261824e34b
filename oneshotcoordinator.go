package hushsum

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/oneshot"
	"github.com/hushsum/hushsum/transport"
)

// oneshotCoordinator runs a job that has a committee.
type oneshotCoordinator struct {
	*leader
	members *hub // the connections of the committee
	drive   drive.Lead
	cast    *transport.Broadcast // of the round that is open
	objects Store                // of this process; nil: the coordinator's Store
	next    chan applied
}

func (l *leader) runOneshot(ctx context.Context) (*Result, error) {
	c := &oneshotCoordinator{
		leader:  l,
		members: newHub("", maxFrame(l.Job)),
		next:    make(chan applied, 1),
	}
	ctx, cancel := context.WithCancel(ctx)
	defer c.members.running.Wait()
	defer cancel()
	if err := c.load(); err != nil {
		return nil, err
	}
	return c.run(ctx)
}

// run waits for what happens, and does what is due.
func (c *oneshotCoordinator) run(ctx context.Context) (*Result, error) {
	failed := make(chan error, 2)
	c.running.Go(func() { c.accept(ctx, c.Listener, failed) })
	c.members.running.Go(func() { c.members.accept(ctx, c.Committee, failed) })
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		if err := c.proceed(); err != nil {
			return nil, err
		}
		sleep := time.Hour
		if wake := c.drive.Wake(); wake != drive.Never {
			sleep = min(sleep, time.Duration(wake-c.now()))
		}
		switch status := c.drive.Status(); {
		case status.Paused:
			return c.result(status, c.drive.Ledger())
		case status.Ended != "":
			left := c.farewell()
			if left <= 0 && (len(c.members.parties) == 0 || time.Since(c.first) > c.StepTime) {
				return c.result(status, c.drive.Ledger())
			}
			sleep = min(sleep, max(left, clogTime/10))
		}
		timer.Reset(max(sleep, shortestSleep))
		select {
		case <-ctx.Done():
		case err := <-failed:
			return nil, err
		case a := <-c.events:
			for _, one := range c.together(a) {
				c.fromParty(one)
				if err := c.proceed(); err != nil {
					return nil, err
				}
			}
		case a := <-c.members.events:
			c.fromMember(a)
		case e := <-c.notices:
			c.report(e)
		case e := <-c.members.notices:
			c.report(e)
		case a := <-c.next:
			if a.err == nil {
				c.adopt(a.model)
			}
			c.drive.Applied(c.now(), a.round, a.err)
		case <-c.drained:
		case <-c.members.drained:
		case <-timer.C:
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
}

// proceed does what is due.
func (c *oneshotCoordinator) proceed() error {
	err := c.decide(c.drive, c.save, func(out drive.Orders) {
		if out.Apply != nil {
			c.apply(out.Apply)
		}
		if out.Tell {
			for i := range c.parties {
				c.pump(i)
			}
			for k := range c.members.parties {
				c.pumpMember(k)
			}
		}
	})
	c.unclog(c.StepTime)
	c.members.unclog(c.StepTime)
	return err
}

// pump queues what is pending for a party and was not queued on its connection.
func (c *oneshotCoordinator) pump(party int) {
	for item := range c.drive.Pending(drive.Peer{Index: party}) {
		c.queue(c.hub, party, item.Name, c.outgoing(item))
	}
}

// pumpMember does the same for a member.
func (c *oneshotCoordinator) pumpMember(member int) {
	for item := range c.drive.Pending(drive.Peer{Index: member, Member: true}) {
		out := transport.NewFrame(transport.KindMessage, item.Own)
		if item.Kind == drive.Last {
			out = transport.NewFrame(transport.KindEnd, nil)
		}
		c.queue(c.members, member, item.Name, single(out))
	}
}

// queue queues an item once on a connection. A party that does not take what it is sent is hung up
// on: it dials again, and is told what it needs.
func (c *oneshotCoordinator) queue(h *hub, to int, name string, out outgoing) {
	link := h.parties[to]
	if link == nil || link.had[name] {
		return
	}
	if link.had[name] = true; !h.offer(link, out) {
		h.hangUp(to)
		c.drive.Gone(c.now(), drive.Peer{Index: to, Member: h == c.members})
	}
}

// outgoing is an item for a party as frames. An opening follows its broadcast.
func (c *oneshotCoordinator) outgoing(item drive.Item) outgoing {
	switch item.Kind {
	case drive.Upload:
		return single(transport.NumberFrame(transport.KindUpload, item.Round))
	case drive.Last:
		if c.drive.Status().Stalled {
			return single(withoutSum())
		}
		last := &transport.Broadcast{Round: item.Round, Model: c.model}
		return outgoing{write: func(send func([]byte) error) error {
			return transport.SendBody(transport.KindEnd, last, send)
		}}
	}
	cast := c.cast
	return outgoing{write: func(send func([]byte) error) error {
		if err := transport.SendBody(transport.KindBroadcast, cast, send); err != nil {
			return err
		}
		return send(transport.NewFrame(transport.KindMessage, item.Own))
	}}
}

// begins returns the digest of what a round begins with, which is sent once the round is saved.
func (c *oneshotCoordinator) begins(round uint64, fresh [32]byte) (digest [32]byte, err error) {
	b := &transport.Broadcast{Round: round, Fresh: fresh, Model: c.model}
	if err := b.Settle(); err != nil {
		return digest, err
	}
	c.cast = b
	return b.InOpening()
}

// apply has the next model made from a sum, while the job goes on.
func (c *oneshotCoordinator) apply(a *drive.Apply) {
	r := Round{Number: a.Round, Parties: a.Parties, Broadcast: c.cast.Digest}
	model := c.model
	c.running.Go(func() {
		next := applied{round: a.Round}
		values := masking.FromSigned(c.Job.Layout(), a.Values)
		r.Sum, next.err = masking.FromValues(c.Job.Layout(), values...)
		if next.err == nil && !c.Job.Trains() {
			r.Mean, next.err = c.Job.DecodeDigest(r.Broadcast, values, len(r.Parties))
		}
		if next.err == nil {
			next.model, next.err = c.nextModel(r, model)
		}
		c.next <- next
	})
}

// greet answers the first frame of a connection, and reports whether it was of the job.
func (c *oneshotCoordinator) greet(h *hub, a arrival) (transport.Hello, bool) {
	hello, refusal := checkGreeting(c.Job, a.frame[1:])
	if refusal != nil {
		h.refuse(a, refusal)
		return hello, false
	}
	h.admit(a)
	return hello, true
}

// together returns what came from a party, and where there are proofs also what has come behind it,
// so that they are checked next to each other.
func (c *oneshotCoordinator) together(first arrival) []arrival {
	all := []arrival{first}
	if c.Job.Oneshot().Norm == 0 {
		return all
	}
	for range len(c.events) {
		all = append(all, <-c.events)
	}
	var submissions []drive.Submission
	for _, a := range all {
		if len(a.frame) > 0 && a.frame[0] == transport.KindMessage && c.parties[a.party] == a.from {
			submissions = append(submissions, drive.Submission{Party: a.party, Message: a.frame[1:]})
		}
	}
	c.drive.Check(submissions)
	return all
}

// fromParty handles what came from a party. Nothing of it ends the job.
func (c *oneshotCoordinator) fromParty(a arrival) {
	switch {
	case a.err != nil || len(a.frame) == 0:
		if c.gone(a) {
			c.drive.Gone(c.now(), drive.Peer{Index: a.party})
			c.report(Event{Kind: Disconnected, Party: a.party, Err: a.err})
		}
		return
	case a.frame[0] == transport.KindHello && !a.from.greeted:
		if h, ok := c.greet(c.hub, a); ok {
			c.drive.Connected(c.now(), drive.Peer{Index: a.party}, drive.Hello{Told: h.Told()})
			c.report(Event{Kind: Connected, Party: a.party})
			c.pump(a.party)
		}
		return
	case c.parties[a.party] != a.from:
		return
	}
	var err error
	switch a.frame[0] {
	case transport.KindAbsent:
		err = c.said(a)
	case transport.KindOffer:
		if len(a.frame) == 9 {
			round := binary.BigEndian.Uint64(a.frame[1:])
			c.drive.Said(c.now(), drive.Peer{Index: a.party}, drive.Said{Offer: round})
		} else {
			err = ErrFrame
		}
	case transport.KindMessage:
		err = c.drive.Receive(c.now(), drive.Peer{Index: a.party}, bytes.NewBuffer(a.frame[1:]))
	}
	c.refuses(a.party, false, err)
}

// refuses reports an error of a message, but for those that come of copies, and of rounds that are
// over.
func (c *oneshotCoordinator) refuses(who int, member bool, err error) {
	for _, expected := range []error{nil, oneshot.ErrDuplicate, oneshot.ErrPhase, oneshot.ErrFull,
		oneshot.ErrContext, drive.ErrEnded} {
		if errors.Is(err, expected) {
			return
		}
	}
	c.report(Event{Kind: Refused, Round: c.drive.Status().Round, Party: who, Member: member, Err: err})
}

// said takes a party's word that it does not submit in a round.
func (c *oneshotCoordinator) said(a arrival) error {
	var said transport.Absence
	if err := transport.ParseJSON(a.frame[1:], &said); err != nil {
		return err
	}
	says := drive.Said{Told: said.Told, Absent: said.Absent}
	if c.drive.Said(c.now(), drive.Peer{Index: a.party}, says) {
		c.report(Event{Kind: Absent, Round: said.Absent, Party: a.party,
			Err: fmt.Errorf("%w: %.40q", ErrAbsent, said.Why)})
	}
	return nil
}

// fromMember handles what came from a member. Nothing of it ends the job.
func (c *oneshotCoordinator) fromMember(a arrival) {
	switch {
	case a.err != nil || len(a.frame) == 0:
		if c.members.gone(a) {
			c.drive.Gone(c.now(), drive.Peer{Index: a.party, Member: true})
		}
	case a.frame[0] == transport.KindHello && !a.from.greeted:
		if h, ok := c.greet(c.members, a); ok {
			member := drive.Peer{Index: a.party, Member: true}
			c.drive.Connected(c.now(), member, drive.Hello{Told: h.Told()})
			c.pumpMember(a.party)
		}
	case a.frame[0] == transport.KindMessage && c.members.parties[a.party] == a.from:
		member := drive.Peer{Index: a.party, Member: true}
		err := c.drive.Receive(c.now(), member, bytes.NewBuffer(a.frame[1:]))
		c.refuses(a.party, true, err)
	}
}

func (c *oneshotCoordinator) save() error {
	if c.vault != nil {
		return c.saveState(c.drive)
	}
	if !c.Job.Oneshot().Covered {
		return nil
	}
	saved, err := c.drive.Save(new(keyexchange.SealKey))
	if err == nil {
		err = c.keepObjects(c.objects, saved)
	}
	if err == nil {
		err = c.objects.Drop(c.put.Spent...)
	}
	return err
}

func (c *oneshotCoordinator) load() (err error) {
	if c.Store == nil {
		c.objects = new(MemoryStore)
	}
	c.drive, c.cast, err = c.loadState(c.begins, c.objects)
	return err
}
