package simulation

import (
	"slices"
	"time"

	"github.com/hushsum/hushsum/drive"
)

// line is a connection of a party, or of a member of a committee, to a lead of package drive, in
// virtual time. Each way messages arrive in the order in which they were sent.
type line struct {
	run     *timed
	lead    drive.Lead
	proceed func() // of what carries for the lead
	peer    drive.Peer
	from    string // the place of the peer
	to      string // the place of the lead
	near    bool   // both are one machine
	up      bool
	number  int              // counts the times that it was up
	had     []string         // items that are pending for the peer, and were sent
	last    [2]time.Duration // when the last message arrives at the lead, and at the peer
}

// come connects the peer.
func (l *line) come(hello drive.Hello) {
	l.up, l.had = true, nil
	l.number++
	l.lead.Connected(l.run.now(), l.peer, hello)
}

// gone tells the lead that the peer is not there.
func (l *line) gone() { l.lead.Gone(l.run.now(), l.peer) }

// leaves breaks the connection, and the lead hears at once.
func (l *line) leaves() {
	l.up = false
	l.number++
	l.gone()
}

// crash breaks the connection at a time, and the lead hears by the network.
func (l *line) crash(at time.Duration) {
	l.up = false
	l.number++
	number := l.number
	l.upward(at, 0, func() {
		if l.number == number {
			l.gone()
			l.proceed()
		}
	})
}

// upward has something arrive at the lead that is sent at a time, or now if that is over.
func (l *line) upward(at time.Duration, size int, arrives func()) {
	at = max(at, l.run.clock.Now())
	if !l.near {
		at += l.run.transit(l.from, l.to, size)
	}
	l.last[0] = max(l.last[0], at)
	l.run.at(l.last[0], arrives)
}

// pump sends the peer what is pending for it and new. send says how many bytes that is, and what
// happens when they arrive.
func (l *line) pump(send func(item drive.Item) (size int, arrives func())) {
	if !l.up {
		return
	}
	var pending []string
	for item := range l.lead.Pending(l.peer) {
		if item.Kind == drive.Last {
			return
		}
		pending = append(pending, item.Name)
		if slices.Contains(l.had, item.Name) {
			continue
		}
		size, arrives := send(item)
		at, number := l.run.clock.Now(), l.number
		if !l.near {
			at += l.run.transit(l.to, l.from, size)
		}
		l.last[1] = max(l.last[1], at)
		l.run.at(l.last[1], func() {
			if l.up && l.number == number {
				arrives()
			}
		})
	}
	l.had = pending
}
