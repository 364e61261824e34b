package node

import (
	"container/list"
	"net"
	"net/http"
	"time"
)

// This file has known callers take turns when there are more of them than connections. Each has
// one, by which it asks what is next and waits for the answer. While a new connection waits, those
// that have had no request for a moment are closed, and then those that have waited longest are
// told that nothing is next yet, and are closed too; their parties come again, at the end of the
// kernel's queue. So every party is heard, whatever the order of arrival.

// Times of turns.
const (
	// moment is how long a stranger may take to identify itself before it makes room: a handshake
	// and a request, of a machine that is busy. A known caller may take as long between requests:
	// if its connection were closed while a request is on its way, that request would be lost.
	moment = time.Second
	// All that wait have their turn every shortestTurn, and one every leastBetween, at most: this
	// bounds the cost of turns, at 500 requests a second.
	shortestTurn = 250 * time.Millisecond
	leastBetween = 2 * time.Millisecond
	// countEvery is the time between two searches for the caller with the most connections.
	countEvery = 100 * time.Millisecond
	// waitAtMost is how long a caller that waits for room does not check for it.
	waitAtMost = time.Second
)

// newcomers is how many connections turns are taken for. No more strangers than that take the
// places of the known.
func (l *boundedListener) newcomers() int { return max(1, l.most/8) }

// makeRoom returns the connection that makes room when all are taken. If none does, it has a known
// caller give up a place, if it is time for that, and returns how long to wait for room.
func (l *boundedListener) makeRoom(now time.Time) (gives *connection, wait time.Duration) {
	wait = waitAtMost
	first := []*list.List{l.strangers, l.idle}
	forStrangers := l.strangers.Len() >= l.newcomers()
	if forStrangers {
		first = first[:1]
	}
	for _, some := range first {
		if some.Len() == 0 {
			continue
		}
		c := oldest(some)
		left := c.since.Add(moment).Sub(now)
		if left <= 0 {
			return c, 0
		}
		wait = min(wait, left)
	}
	if now.Sub(l.counted) >= countEvery {
		l.counted = now
		if gives = l.surplus(); gives != nil {
			return gives, 0
		}
	}
	if forStrangers || l.polls.Len() == 0 {
		return nil, wait
	}
	l.tell("there is no room for another connection: parties take turns, and wait for each other")
	left := l.gave.Add(max(leastBetween, shortestTurn/time.Duration(l.most))).Sub(now)
	if left > 0 {
		return nil, min(wait, left)
	}
	l.gave = now
	c := oldest(l.polls)
	c.asked = true
	c.give()
	c.rests(nil, nil)
	return nil, wait
}

// mayHaveRoom wakes those that wait for room.
func (l *boundedListener) mayHaveRoom() {
	select {
	case l.room <- struct{}{}:
	default:
	}
}

// rests notes that a connection gives up its place when others need it: it is in a list, nil for
// none, and give ends its request, if there is one. The lock is held.
func (c *connection) rests(in *list.List, give func()) {
	if c.resting != nil {
		c.resting.Remove(c.inResting)
	}
	if c.resting, c.inResting, c.give = in, nil, give; in != nil {
		c.inResting, c.since = in.PushBack(c), time.Now()
	}
}

// poll serves as a door's Poll: it notes that a request waits for something to do.
func poll(r *http.Request, give func()) (ended func() (asked bool)) {
	c := connectionOf(r)
	if c == nil {
		return func() bool { return false }
	}
	l := c.of
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if !c.gone {
		c.rests(l.polls, give)
	}
	return func() bool {
		l.mutex.Lock()
		defer l.mutex.Unlock()
		c.rests(nil, nil)
		return c.asked
	}
}

// stateOf serves as the ConnState of an http.Server: it notes which connections have no request.
func stateOf(conn net.Conn, state http.ConnState) {
	c, ok := inner(conn).(*connection)
	if !ok || state != http.StateIdle && state != http.StateActive {
		return
	}
	l := c.of
	l.mutex.Lock()
	defer l.mutex.Unlock()
	switch {
	case c.gone || c.who == "":
	case state == http.StateActive:
		c.rests(nil, nil)
	case c.asked: // without being told
		go func() { _ = c.Close() }()
	default:
		c.rests(l.idle, nil)
		l.mayHaveRoom()
	}
}
