package host

import (
	"context"
	"errors"
	"hash/maphash"
	"maps"
	"time"

	"github.com/hushsum/hushsum/drive"
)

// A leader hands each item once to a connection. To a peer that connects for every question anew it
// hands once more what the peer has not answered.

// resendAfter is how long a peer that asks is not handed the same again.
const resendAfter = 3 * time.Second

// peer holds what a leader knows of a peer, beyond drive.
type peer struct {
	news   chan struct{} // closed when there is something new for it; nil: it does not wait
	saw    uint64        // what was pending when it began to wait: see sight
	open   int           // questions of it
	handed string        // the item that it was handed last
	when   time.Time
}

// peer is called under the lock.
func (l *Leader) peer(p drive.Peer) *peer {
	at := l.peers[p]
	if at == nil {
		at = new(peer)
		l.peers[p] = at
	}
	return at
}

// tell has the connections and questions of a peer look again.
func (l *Leader) tell(p drive.Peer) {
	if at := l.peers[p]; at != nil && at.news != nil {
		close(at.news)
		at.news = nil
	}
}

// tellAll has those look again for whom something else is pending than when they began to wait:
// thousands of parties wait while the committee's members answer, and each that looks takes the
// lock.
func (l *Leader) tellAll() {
	for p, at := range l.peers {
		if at.news != nil && l.sight(p) != at.saw {
			l.tell(p)
		}
	}
}

// sight is a hash of what next goes by of a peer, besides its question.
func (l *Leader) sight(p drive.Peer) uint64 {
	var h maphash.Hash
	h.SetSeed(sights)
	for item := range l.Lead.Pending(p) {
		maphash.WriteComparable(&h, sighted{item.Kind, item.Name, item.Session, item.Round})
	}
	maphash.WriteComparable(&h, l.Lead.At(p).Due)
	return h.Sum64()
}

// sighted holds what tells items apart.
type sighted struct {
	kind           drive.ItemKind
	name           string
	session, round uint64
}

var sights = maphash.MakeSeed()

// Asks reports whether a question of a peer is open. Call it where the lock is held.
func (l *Leader) Asks(p drive.Peer) bool { return l.peers[p] != nil && l.peers[p].open > 0 }

// ErrNothing: nothing is next for a peer.
var ErrNothing = errors.New("host: nothing is next")

// Question holds what a peer says when it asks what it has to do.
type Question struct {
	Had     map[string]bool // the names of the items that it was handed; the leader changes it
	Offer   uint64          // the round for which it has offered a submission, 0: none
	Working bool            // it works on what it was handed
	// Wait is how long a peer that asks waits for news: with 0 it hears what is pending, or nothing.
	Wait time.Duration

	asks  bool          // a peer, not a connection
	until time.Time     // when it has waited
	later time.Duration // look again, 0: when there is news
}

// has reports whether an item need not be handed out. The end is told whenever a peer asks.
func (q *Question) has(item *drive.Item) bool {
	return q.Had[item.Name] && !(q.asks && item.Kind == drive.Last)
}

// size is how many bytes are on their way with an item: a peer's question is answered by a message
// in one piece.
func (q *Question) size(item *drive.Item) int {
	if q.asks {
		return len(item.Shared) + len(item.Own)
	}
	return len(item.Own)
}

// Pending waits until there is something for a peer that its connection has not had, and calls
// hand with it, under the lock. had has the names of what the connection was handed and is pending
// still. Call sent once the item is sent or cannot be sent: its room is taken until then. Pending
// fails with the context's error, or with [ErrStopped].
func (l *Leader) Pending(ctx context.Context, p drive.Peer, had map[string]bool,
	hand func(item drive.Item, s drive.Status),
) (sent func(), err error) {
	size, err := l.wait(ctx, p, &Question{Had: had}, hand)
	if err != nil {
		return nil, err
	}
	return func() { l.rooms[p.Member].give(size) }, nil
}

// Poll is Pending for a peer that connects for every question anew. It begins with begin, which has
// to tell lead that the peer is connected, and whose error refuses the question. The peer is gone
// when sent was called, or Poll has failed, of the last of its questions. An item that it has had,
// whose answer is due, and on which it does not work, comes again. Poll fails with [ErrNothing] if
// nothing is next within the time of the question.
func (l *Leader) Poll(ctx context.Context, p drive.Peer, q Question,
	begin func(lead drive.Lead, now drive.Time) error, hand func(item drive.Item, s drive.Status),
) (sent func(), err error) {
	err = l.With(ctx, p, func(lead drive.Lead, now drive.Time) error {
		if err := begin(lead, now); err != nil {
			return err
		}
		l.peer(p).open++
		return nil
	})
	if err != nil {
		return nil, err
	}
	l.Poke()
	q.asks, q.until = true, time.Now().Add(q.Wait)
	size, err := l.wait(ctx, p, &q, hand)
	sent = func() {
		l.rooms[p.Member].give(size)
		_ = l.With(context.Background(), p, func(lead drive.Lead, now drive.Time) error {
			at := l.peer(p)
			if at.open--; at.open == 0 {
				lead.Gone(now, p)
			}
			return nil
		})
		l.Poke()
	}
	if err != nil {
		sent()
		return nil, err
	}
	return sent, nil
}

// wait waits until there is something for a peer, and calls hand with it. It returns how much room
// that takes.
func (l *Leader) wait(ctx context.Context, p drive.Peer, q *Question,
	hand func(item drive.Item, s drive.Status),
) (size int, err error) {
	room := l.rooms[p.Member]
	for {
		if size, err = room.take(ctx); err != nil {
			return 0, err
		}
		if err := l.takeFor(ctx, p); err != nil {
			room.give(size)
			return 0, err
		}
		short := room.short(size) // others were handed longer ones since
		var item drive.Item
		found := false
		if !short {
			item, found = l.next(p, q)
		}
		at := l.peer(p)
		if found {
			q.Had[item.Name], at.handed, at.when = true, item.Name, time.Now()
			size = room.fill(size, q.size(&item))
			hand(item, l.Lead.Status())
		} else if at.news == nil {
			at.news, at.saw = make(chan struct{}), l.sight(p)
		}
		news := at.news
		l.give()
		if found {
			return size, nil
		}
		room.give(size)
		if short {
			continue
		}
		if err := l.rest(ctx, news, q); err != nil {
			return 0, err
		}
	}
}

// rest waits for news, or until it is time to look again. It fails with [ErrNothing] once the
// question has waited.
func (l *Leader) rest(ctx context.Context, news <-chan struct{}, q *Question) error {
	var again, over <-chan time.Time
	if q.later > 0 {
		again = time.After(q.later)
	}
	if q.asks {
		left := time.Until(q.until)
		if left <= 0 {
			return ErrNothing
		}
		over = time.After(left)
	}
	select {
	case <-news:
	case <-again:
	case <-over:
		return ErrNothing
	case <-l.stopped:
		return ErrStopped
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// next returns what a peer is to be handed, and else when to look again. Of a session that is the
// first item that the peer has not had. Other items follow each other, so that whoever has had one
// has had those before it, and an offer has answered the opening of its round. Where a peer has had
// all it may be the last again, of the first session before that of the second. Names of items that
// are not pending any more are forgotten of a connection; a question is short.
func (l *Leader) next(p drive.Peer, q *Question) (next drive.Item, found bool) {
	q.later = 0
	var last drive.Item // that it has had, of the session that follows
	pending := make(map[string]bool)
	for item := range l.Lead.Pending(p) {
		if item.Session != last.Session && l.again(p, &last, q) {
			return last, true
		}
		pending[item.Name] = true
		switch {
		case item.Kind == drive.Carry && item.Round > 0 && item.Round == q.Offer: // answered
		case q.has(&item):
			last, found = item, false
		case item.Session > 0 && !found:
			return item, true
		case !found:
			next, found = item, true
		}
	}
	switch {
	case found:
		return next, true
	case l.again(p, &last, q):
		return last, true
	}
	if !q.asks {
		maps.DeleteFunc(q.Had, func(name string, _ bool) bool { return !pending[name] })
	}
	return drive.Item{}, false
}

// again reports whether a peer is handed again what it has had: it is not working on that, so that
// its answer was lost, with a leader that stopped or on the way. What is pending of a session is
// due; otherwise the lead says. If it is only too soon, again notes in q when to look again.
func (l *Leader) again(p drive.Peer, had *drive.Item, q *Question) bool {
	if had.Name == "" || !q.asks || q.Working || had.Session == 0 && !l.Lead.At(p).Due {
		return false
	}
	at := l.peer(p)
	wait := resendAfter - time.Since(at.when)
	if at.handed != had.Name || wait <= 0 {
		return true
	}
	if q.later == 0 || wait < q.later {
		q.later = wait
	}
	return false
}

// Crowded reports whether somebody waits for room that others take.
func (l *Leader) Crowded() bool { return l.rooms[false].crowded() || l.rooms[true].crowded() }
