package simulation

import (
	"bytes"
	"errors"
	"runtime"
	"time"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/internal/cores"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/oneshot"
)

// This file has a party of a one-message sum: it carries what package drive decides for it. It is
// there for one message: once that is in, its machine is forgotten but for the number of the round,
// as on a phone that keeps nothing else.

// sender holds what a party of a one-message sum has of its own.
type sender struct {
	line
	machine drive.Part // nil: it has none to send
	spent   uint64     // the last round that it has submitted in
	task    *task
	asked   uint64 // the round that it trains for
	stale   int    // rounds before that the last that it submitted was begun

	// With sum.buffer:
	made    *job.Update[float64] // what it has made, or is making
	heard   *drive.Item          // the last opening that came while it trained
	working bool
}

// machineOf returns a party's machine.
func (c *committee) machineOf(p *party) drive.Part {
	s := &p.sender
	if s.machine != nil {
		return s.machine
	}
	var err error
	if s.machine, err = drive.NewPart(c.configOf(p)); err != nil {
		c.run.fail(err)
	}
	return s.machine
}

func (c *committee) configOf(p *party) drive.PartSettings {
	out := drive.PartSettings{
		Limits: drive.Limits{Rounds: uint64(c.run.Rounds),
			Submissions: uint64(c.run.submissions())},
		Sums:     c.sums,
		Identity: p.identity,
		Random:   c.run.source("noise", p.index),
		Layout:   c.codec.layout,
		Spent:    p.sender.spent,
	}
	if c.codec.mechanism != nil {
		out.Blank = func(_ uint64, v *masking.Vector) error {
			v.Erase()
			return nil
		}
	}
	return out
}

// come has a party connect.
func (c *committee) come(p *party) {
	s := &p.sender
	s.line.come(drive.Hello{Told: s.spent})
	c.fresh = append(c.fresh, p)
	if s.machine != nil { // what it sent last may have been lost
		c.finish(s.task)
		s.machine.Connected()
		c.follow(p)
	}
}

// send sends a party what is pending for it.
func (c *committee) send(p *party) {
	p.sender.pump(func(item drive.Item) (int, func()) {
		size := len(item.Own) + 8 // the number of a round, where that is all
		p.got += size
		return size, func() { c.take(p, item) }
	})
}

// take takes what a party was sent, unless that is the moment of its crash.
func (c *committee) take(p *party, item drive.Item) {
	if item.Kind == drive.Upload {
		c.receive(p, item)
		return
	}
	if p.downAt(c.run.round, atBegin) {
		p.sender.crash(c.run.clock.Now())
		return
	}
	if p.sender.working {
		p.sender.heard = &item
		return
	}
	c.receive(p, item)
}

// receive has a party's machine take an item.
func (c *committee) receive(p *party, item drive.Item) {
	m := c.machineOf(p)
	if m == nil {
		return
	}
	if err := m.Receive(item); err != nil {
		c.run.fail(err)
		return
	}
	c.follow(p)
}

// follow does what a party has decided, as a carrier does.
func (c *committee) follow(p *party) {
	s, r := &p.sender, c.run
	for r.failure == nil {
		ready, decided := s.machine.Ready()
		if !decided {
			return
		}
		for _, report := range ready.Reports {
			if report.Kind == drive.Refused || report.Kind == drive.Declined {
				r.course.note("%s did not answer round %d: %v", p.name, report.Round, report.Err)
			}
		}
		out := s.machine.Advance()
		if out.Offer != 0 {
			s.upward(p.busy, offerSize, func() {
				c.server.Said(r.now(), p.sender.peer, drive.Said{Offer: out.Offer})
				c.proceed()
			})
		}
		for _, m := range out.Send {
			p.sent += len(m.Bytes)
			s.upward(r.clock.Now(), len(m.Bytes), func() { c.arrived(p, m.Bytes) })
		}
		for _, away := range out.Away {
			s.upward(p.busy, offerSize, func() {
				c.server.Said(r.now(), p.sender.peer, drive.Said{Absent: away.Number})
				c.proceed()
			})
		}
		if out.Ask != nil {
			c.ask(p, out.Ask)
		}
	}
}

// offerSize is about what it takes to say the number of a round.
const offerSize = 9

// arrived has the server read a submission, after those that came before.
func (c *committee) arrived(p *party, message []byte) {
	r := c.run
	r.received += len(message)
	c.free = max(c.free, r.clock.Now()) + c.reading(len(message))
	r.at(c.free, func() {
		err := c.server.Receive(r.now(), p.sender.peer, bytes.NewBuffer(message))
		switch {
		case err == nil, errors.Is(err, oneshot.ErrDuplicate):
			if s := &p.sender; s.machine != nil && s.asked <= s.machine.Hello().Told {
				s.spent = s.machine.Hello().Told
				if r.Parties.Participations == 0 { // else it counts how often it has submitted
					s.machine = nil
				}
			}
		case errors.Is(err, oneshot.ErrFull), errors.Is(err, oneshot.ErrPhase):
		default:
			r.course.note("a message of %s was refused: %v", p.name, err)
		}
		c.proceed()
	})
}

// ask has a party train, unless that is the moment of its crash, and answer when it is done.
func (c *committee) ask(p *party, ask *drive.Ask) {
	s, r := &p.sender, c.run
	switch {
	case s.asked == ask.Round && s.task != nil && !s.task.told:
		return // it is at work for it
	case p.downAt(r.round, stepSubmit) || r.dropped[p.index]:
		s.crash(r.clock.Now())
		return
	}
	if c.buffered() {
		c.askBuffered(p, ask)
		return
	}
	took, given := r.given(p)
	if !given {
		took = c.figures.PartyTime + r.training(r.rowsNow(p))
	}
	c.works(p, took)
	s.asked = ask.Round
	machine, cast := s.machine, c.casts[ask.Round]
	own := c.later(func() error {
		work, _, err := r.trained(p)
		if err != nil {
			return err
		}
		values, err := c.codec.encode(p, work.Message, cast, r.source("rounding", p.index))
		if err != nil {
			return r.failed(p, err)
		}
		return machine.Answer(answerOf(ask.ID, cast, values))
	})
	s.task = own
	r.at(p.busy, func() {
		c.finish(own)
		own.told = true
		if r.failure == nil && s.machine == machine {
			c.follow(p)
		}
	})
}

// answerOf answers a question with values.
func answerOf(id drive.AskID, broadcast [32]byte, values [][]uint64) drive.Answer {
	return drive.Answer{ID: id, Broadcast: broadcast,
		Fill: func(v *masking.Vector) error { return v.Set(values...) }}
}

// works has a party work for so long, or longer if it is slow in this round.
func (c *committee) works(p *party, took time.Duration) {
	took = time.Duration(float64(took) * c.run.slowness(p))
	p.worked += took
	p.busy = max(c.run.clock.Now(), p.busy) + took
}

// task is work of a machine, which may be done before virtual time comes to its end.
type task struct {
	do         func() error
	done, told bool
}

// later has something done by the time that it is needed.
func (c *committee) later(do func() error) *task {
	t := &task{do: do}
	c.todo = append(c.todo, t)
	return t
}

// finish does a task, and on the other cores those that are next. nil is done.
func (c *committee) finish(t *task) {
	for t != nil && !t.done && c.run.failure == nil {
		n := min(len(c.todo), 8*runtime.GOMAXPROCS(0))
		now := c.todo[:n]
		c.todo = c.todo[n:]
		if err := cores.Each(c.run.ctx, n, func(i int) error {
			work := now[i].do
			now[i].done, now[i].do = true, nil
			return work()
		}, nil); err != nil {
			c.run.fail(err)
		}
	}
}
