package simulation

import (
	"bytes"
	"slices"
	"strings"
	"time"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/job"
)

// councillor is a member of the committee, or what carries messages to and from it.
type councillor struct {
	job.WorldMember
	committee *committee
	index     int
	name      string
	machine   drive.Part
	up        bool
	line      int      // counts its connections
	had       []string // items that are pending for it, and were sent
	way       [2]time.Duration
	busy      time.Duration // until when it works
	last      *task
	batch     int // parties in the last that it checked

	// Of the round.
	worked    time.Duration
	sent, got int
}

// The kinds of a member's answers that a lie changes (SPEC-ONESHOT.md §6).
const (
	typeDisputes wire.Type = 69
	typePart     wire.Type = 74
)

func (m *councillor) peer() drive.Peer { return drive.Peer{Index: m.index, Member: true} }

// come has a member connect.
func (m *councillor) come() {
	c := m.committee
	m.up, m.had = true, nil
	m.line++
	c.finish(m.last)
	c.server.Connected(c.run.now(), m.peer(), m.machine.Hello())
	c.tell = true
	m.machine.Connected()
	m.proceed()
}

// leaves breaks its connection; the server hears of that at once.
func (m *councillor) leaves() {
	m.up = false
	m.line++
	m.committee.server.Gone(m.committee.run.now(), m.peer())
}

// crash has it go; the server hears of that by the network.
func (m *councillor) crash() {
	c, line := m.committee, m.line+1
	m.up, m.line = false, line
	m.upward(c.run.clock.Now(), 0, func() {
		if m.line == line {
			c.server.Gone(c.run.now(), m.peer())
			c.proceed()
		}
	})
}

// upward has something arrive at the server, after all that it sent before.
func (m *councillor) upward(at time.Duration, size int, arrives func()) {
	r := m.committee.run
	m.way[0] = max(m.way[0], max(at, r.clock.Now())+r.transit(m.Place, m.committee.place, size))
	r.at(m.way[0], arrives)
}

// pump sends it what is pending.
func (m *councillor) pump() {
	if !m.up {
		return
	}
	c := m.committee
	r, line := c.run, m.line
	var pending []string
	for item := range c.server.Pending(m.peer()) {
		if item.Kind == drive.Last {
			return
		}
		pending = append(pending, item.Name)
		if slices.Contains(m.had, item.Name) {
			continue
		}
		m.got += len(item.Own)
		m.way[1] = max(m.way[1], r.clock.Now()+r.transit(c.place, m.Place, len(item.Own)))
		r.at(m.way[1], func() {
			if m.up && m.line == line {
				m.take(item)
			}
		})
	}
	m.had = pending
}

// take works on what it was sent, unless that is the moment of its crash.
func (m *councillor) take(item drive.Item) {
	c := m.committee
	_, name, _ := strings.Cut(item.Name, ".")
	took, moment := time.Duration(0), ""
	u := &c.run.units
	switch name {
	case "invite":
		moment, took = atBegin, seconds(u.KeyPair+u.Sign)
	case "closing":
		moment, took = atSign, seconds(u.Sign)
	case "certificate":
		moment, took = atReveal, seconds(float64(c.figures.Quorum)*u.Verify)
	default:
		if strings.HasPrefix(name, "batch") {
			m.batch = len(item.Own) / c.figures.MemberDown // and some bytes
			moment, took = atSubmit, time.Duration(m.batch)*c.figures.MemberTime
		}
	}
	if downAt(m.Crash, c.run.round, moment) {
		m.crash()
		return
	}
	took = time.Duration(float64(took) * m.Slow)
	m.worked += took
	m.busy = max(m.busy, c.run.clock.Now()) + took
	c.finish(m.last)
	m.last = c.later(func() error {
		return m.machine.Receive(item)
	})
	own := m.last
	c.run.at(m.busy, func() {
		c.finish(own)
		m.proceed()
	})
}

// proceed does what it has decided, as a carrier does.
func (m *councillor) proceed() {
	for {
		ready, decided := m.machine.Ready()
		if !decided {
			return
		}
		for _, report := range ready.Reports {
			m.committee.run.course.note("%s refused a message: %v", m.name, report.Err)
		}
		for _, message := range m.machine.Advance().Send {
			m.send(m.says(message.Bytes))
		}
	}
}

func (m *councillor) send(message []byte) {
	if m.Silent || !m.up {
		return
	}
	c := m.committee
	m.sent += len(message)
	m.upward(m.busy, len(message), func() {
		c.run.received += len(message)
		// What is refused is a lie, or late.
		_ = c.server.Receive(c.run.now(), m.peer(), bytes.NewBuffer(message))
		c.proceed()
	})
}

// says changes what it sends, if it lies.
func (m *councillor) says(message []byte) []byte {
	h, body, err := wire.ParseHeader(message)
	if err != nil {
		return message
	}
	message = slices.Clone(message)
	body = message[len(message)-len(body):]
	switch {
	case m.Lies == "part" && h.Type == typePart:
		body[0] ^= 1
	case m.Lies == "disputes" && h.Type == typeDisputes:
		for i := range m.batch { // SPEC-ONESHOT.md: the number of the batch, then a set of it
			body[4+i/8] |= 1 << (i % 8)
		}
	}
	return message
}
