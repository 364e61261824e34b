package simulation

import (
	"bytes"
	"slices"
	"time"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/masking"
)

// This file has a party of a private sum: it carries what package drive decides for it, to those
// who add up and from them, and works for every answer before that leaves.

// The steps of a session, as parties know them.
const (
	stepAnnounce  = "announce"
	stepKeys      = "keys"
	stepMembers   = "members"
	stepInvite    = "invite"
	stepBegin     = atBegin
	stepSubmit    = atSubmit
	stepSurvivors = atSign
	stepReveal    = atReveal
)

// stepOf names the step of an item.
func stepOf(item drive.Item, message []byte) string {
	if item.Kind == drive.Join {
		return stepAnnounce
	}
	h, _, _ := wire.ParseHeader(message)
	return map[wire.Type]string{
		wire.TypeKeys:        stepKeys,
		wire.TypeMembers:     stepMembers,
		wire.TypeInvite:      stepInvite,
		wire.TypeBegin:       stepBegin,
		wire.TypeSurvivors:   stepSurvivors,
		wire.TypeCertificate: stepReveal,
	}[h.Type]
}

// come has a party connect to those who add up for it.
func (p *party) come() error {
	g := p.group
	r := g.run
	if p.machine == nil {
		var err error
		if p.machine, err = drive.NewPart(drive.PartSettings{
			Limits: drive.Limits{Rounds: uint64(r.Rounds),
				Submissions: uint64(r.submissions())},
			Session:  g.accept,
			Label:    g.label,
			Identity: p.identity,
			// The terms of a session that is being set up were settled without it.
			Least: g.least,
		}); err != nil {
			return err
		}
	}
	hello := p.machine.Hello()
	for _, h := range g.hubs {
		l := &h.lines[p.seat]
		l.gone() // if it has not heard of that yet
		l.come(hello)
		h.tell = true
	}
	return nil
}

// up reports whether the party is connected, to all who add up for it.
func (p *party) up() bool {
	hubs := p.group.hubs
	return len(hubs) > 0 && hubs[0].lines[p.seat].up
}

// leaves breaks a party's connections, and those who add up hear at once.
func (p *party) leaves() {
	for _, h := range p.group.hubs {
		h.lines[p.seat].leaves()
	}
}

// crash has a party go at a time, and those who add up hear by the network.
func (p *party) crash(at time.Duration) {
	for _, h := range p.group.hubs {
		h.lines[p.seat].crash(at)
	}
}

// take takes what the party was sent, unless that is the moment of its crash.
func (p *party) take(item drive.Item, message []byte) {
	r := p.group.run
	step := stepOf(item, message)
	if p.downAt(r.round, step) {
		p.crash(r.clock.Now())
		return
	}
	p.begun = max(r.clock.Now(), p.busy)
	n := len(p.group.active)
	if round := []string{stepBegin, stepSurvivors, stepReveal}; slices.Contains(round, step) {
		n = r.most(n)
	}
	p.busy = p.begun + r.work(p, step, n)
	item.Shared, item.Own = nil, message
	if err := p.machine.Receive(item); err != nil {
		r.fail(err)
		return
	}
	p.proceed()
}

// proceed does what the party has decided, as a carrier does.
func (p *party) proceed() {
	r := p.group.run
	for {
		ready, decided := p.machine.Ready()
		if !decided {
			return
		}
		for _, report := range ready.Reports {
			if report.Kind == drive.Refused {
				r.course.note("%s refused a message of session %d: %v", p.name, report.Session,
					report.Err)
			}
		}
		out := p.machine.Advance()
		for _, m := range out.Send {
			p.send(m)
		}
		if out.Ask != nil {
			p.answer(*out.Ask)
		}
	}
}

// send sends a message to all who add up, when it is made.
func (p *party) send(m drive.Message) {
	message := m.Bytes
	if message == nil {
		var b bytes.Buffer
		if _, err := p.machine.Object(drive.SubmissionName).WriteTo(&b); err != nil {
			p.group.run.fail(err)
			return
		}
		message = b.Bytes()
	}
	plan, setUp := p.group.setUp(m.Session, message)
	for _, h := range p.group.hubs {
		switch {
		case h.owner == p.seat:
		case setUp:
			p.group.carried(plan, len(message))
		default:
			p.sent += len(message)
		}
		h.lines[p.seat].upward(p.busy, len(message), func() {
			h.receive(letter{p.seat, m.Session, message}, setUp)
		})
	}
}

// answer trains, and submits what comes of it.
func (p *party) answer(ask drive.Ask) {
	r := p.group.run
	if p.downAt(r.round, stepSubmit) || r.dropped[p.index] {
		p.crash(p.busy)
		return
	}
	made, err := r.submission(p.group.plans[ask.ID.Session].codec, p)
	if err != nil {
		r.fail(err)
		return
	}
	p.held = made
	p.busy = p.begun + r.workRound(p, made, r.most(len(p.group.active)))
	if err := p.machine.Answer(drive.Answer{
		ID:        ask.ID,
		Round:     ask.Round,
		Broadcast: r.digest,
		Fill:      func(v *masking.Vector) error { return v.Set(made.values...) },
	}); err != nil {
		r.fail(err)
	}
}
