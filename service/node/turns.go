package node

import (
	"container/list"
	"net"
	"net/http"
	"time"
)

// This file has how the known take turns when they are more than there may be connections. Each
// has one, by which it asks what is next and waits for the answer. While somebody waits for a
// connection, those by which nobody has asked for a moment are closed, and then those that have
// waited longest are told that nothing is next yet, and are closed too; their parties come again,
// at the end of the kernel's queue. So everybody is heard, whoever came first.

// Times of turns.
const (
	// moment is how long a stranger may take to say who it is before it makes room: a handshake
	// and a request, of a machine that is busy. Who is known may as well take it between requests:
	// closed under a request that is on its way, a connection loses that.
	moment = time.Second
	// All that wait have their turn every shortestTurn, and one every leastBetween, at most: this
	// bounds what turns cost, at 500 requests a second.
	shortestTurn = 250 * time.Millisecond
	leastBetween = 2 * time.Millisecond
	// countEvery is how often it is looked for who has the most connections.
	countEvery = 100 * time.Millisecond
	// waitAtMost is how long who waits for room does not look for it.
	waitAtMost = time.Second
)

// newcomers is how many connections turns are taken for. No more strangers than these take the
// places of the known.
func (l *boundedListener) newcomers() int { return max(1, l.most/8) }

// makeRoom returns the connection that makes room when all are taken. If none does, it has
// somebody who is known give a place, where it is time for that, and returns how long to wait for
// room.
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

// mayHaveRoom wakes who waits for room.
func (l *boundedListener) mayHaveRoom() {
	select {
	case l.room <- struct{}{}:
	default:
	}
}

// rests notes that a connection gives its place when others need it: it is in a list, nil for
// none, and its request, if there is one, is ended by give. It is called with the lock.
func (c *connection) rests(in *list.List, give func()) {
	if c.resting != nil {
		c.resting.Remove(c.inResting)
	}
	if c.resting, c.inResting, c.give = in, nil, give; in != nil {
		c.inResting, c.since = in.PushBack(c), time.Now()
	}
}

// poll is a door's Poll: it notes that a request waits for something to do.
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

// stateOf is an http.Server's ConnState: it notes by which connections nobody asks anything.
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
	case c.asked: // and it was not told
		go func() { _ = c.Close() }()
	default:
		c.rests(l.idle, nil)
		l.mayHaveRoom()
	}
}
