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
	line
	committee *committee
	name      string
	machine   drive.Part
	busy      time.Duration // until when it works
	task      *task
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

// come has a member connect.
func (m *councillor) come() {
	c := m.committee
	c.finish(m.task)
	m.line.come(m.machine.Hello())
	c.tell = true
	m.machine.Connected()
	m.proceed()
}

// pump sends it what is pending.
func (m *councillor) pump() {
	m.line.pump(func(item drive.Item) (int, func()) {
		m.got += len(item.Own)
		return len(item.Own), func() { m.take(item) }
	})
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
		m.crash(c.run.clock.Now())
		return
	}
	took = time.Duration(float64(took) * m.Slow)
	m.worked += took
	m.busy = max(m.busy, c.run.clock.Now()) + took
	c.finish(m.task)
	m.task = c.later(func() error {
		return m.machine.Receive(item)
	})
	own := m.task
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
		_ = c.server.Receive(c.run.now(), m.peer, bytes.NewBuffer(message))
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
