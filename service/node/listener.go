package node

import (
	"container/list"
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/hushsum/hushsum/service/door"
)

// sendBuffer is how many bytes of an answer the kernel accepts before its reader has read any;
// Linux reserves twice that.
const sendBuffer = 256 << 10

// Bounds of connections.
const (
	// Where a process cannot find out how many files it may open, the door has this many.
	unknownDoor = 4096
	pageMost    = 64
	reserveMost = 4096
	leastDoor   = 16
	// perParty is the number of connections that a party always keeps: it uses two, and leaves some
	// behind when a network fails.
	perParty = 4
)

// shares divides the files that a process may open: JetStream and the record get a quarter, 4,096
// at most. A connection of the door may take another file, for a body that waits or for a request
// that is passed on to the node that leads.
func shares(files int) (door, page, reserve int) {
	if files <= 0 {
		return unknownDoor, pageMost, 0
	}
	page = min(files/16, pageMost)
	reserve = min(files/4, reserveMost)
	return max((files-page-reserve)/2, leastDoor), page, reserve
}

// boundedListener bounds connections, and the bytes of unread answers that the kernel holds. Left
// to itself the kernel takes some megabytes for each, so that thousands of slow parties fill all
// the memory that it has for TCP, and every connection crawls; the bound on what the runner lets
// out at once (runner.Options.OutRoom) would then have no effect.
//
// A connection is a stranger's until one of its requests turns out to be from a caller that is
// known. When there are too many, the oldest of a stranger makes room, once it has had a moment to
// identify itself. If all are known, it is the oldest of the caller with the most, if those are
// more than any caller needs. Otherwise a new one waits, and those of the kernel's queue behind it,
// while the known take turns (turns.go).
type boundedListener struct {
	net.Listener
	most int // connections
	each int // those of strangers at one address
	log  *slog.Logger
	// loopback reports whether the bound at one address applies to loopback too, which proxies on
	// this machine and tests use.
	loopback bool

	mutex     sync.Mutex
	open      int
	strangers *list.List // of *connection, the oldest first
	addresses map[netip.Addr]*list.List
	known     map[string]*list.List
	// Connections of known callers without a request, and with a request that waits, the longest
	// first.
	idle, polls *list.List
	gave        time.Time // when a poll was asked to give its place, last
	counted     time.Time // when the caller with the most was last looked for
	told        time.Time

	room   chan struct{} // holds a token when there may be room
	closed chan struct{}
	once   sync.Once
}

// bound bounds a listener. If each is 0 an address may have an eighth of all.
func bound(l net.Listener, most, each int, log *slog.Logger) *boundedListener {
	b := &boundedListener{
		Listener:  l,
		most:      most,
		each:      each,
		log:       log,
		loopback:  each > 0,
		strangers: list.New(),
		addresses: make(map[netip.Addr]*list.List),
		known:     make(map[string]*list.List),
		idle:      list.New(),
		polls:     list.New(),
		room:      make(chan struct{}, 1),
		closed:    make(chan struct{}),
	}
	if each == 0 {
		b.each = max(most/8, leastDoor)
	}
	return b
}

// connection is a connection of a boundedListener.
type connection struct {
	net.Conn
	of      *boundedListener
	address netip.Addr // not valid: not bounded
	who     string     // empty: a stranger's
	since   time.Time  // it came, or rests

	inAll, inOwn *list.Element // of the lists that it is in, nil: of none

	resting   *list.List // that it is in while it can give its place
	inResting *list.Element
	give      func() // ends the request that waits
	asked     bool   // to give its place
	gone      bool
}

// Accept waits for a connection, and until there is room for it.
func (l *boundedListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetWriteBuffer(sendBuffer) // without it the connection works too
	}
	c := &connection{Conn: conn, of: l}
	if a, ok := door.Address(conn.RemoteAddr().String()); ok && (l.loopback || !a.IsLoopback()) {
		c.address = a
	}
	for {
		gives, wait := l.take(c, time.Now())
		if gives != nil {
			_ = gives.Conn.Close()
		}
		if wait == 0 {
			return c, nil
		}
		select {
		case <-l.room:
		case <-time.After(wait):
		case <-l.closed:
			_ = conn.Close()
			return nil, net.ErrClosed
		}
	}
}

// Close closes the listener, which ends Accept too.
func (l *boundedListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// counts returns the number of connections of known callers and of strangers.
func (l *boundedListener) counts() (known, strangers int) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	strangers = l.strangers.Len()
	return l.open - strangers, strangers
}

// take adds a connection, and returns the one that makes room, nil if none must. Without room it
// adds none, and returns how long to wait before it may be called again.
func (l *boundedListener) take(
	c *connection, now time.Time,
) (gives *connection, wait time.Duration) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	own := l.addresses[c.address]
	switch {
	case c.address.IsValid() && own != nil && own.Len() >= l.each:
		gives = oldest(own)
	case l.open >= l.most:
		if gives, wait = l.makeRoom(now); gives == nil {
			return nil, wait
		}
	}
	if gives != nil {
		l.remove(gives)
		l.tell("there are too many connections: the oldest one of a stranger, or an unused one, is " +
			"closed for a new one")
	}
	l.open++
	c.since = now
	c.inAll = l.strangers.PushBack(c)
	if c.address.IsValid() {
		c.inOwn = pushTo(l.addresses, c.address, c)
	}
	return gives, 0
}

// surplus returns the oldest connection of the caller with the most, if it has more than any caller
// needs.
func (l *boundedListener) surplus() *connection {
	var most *list.List
	for _, own := range l.known {
		if own.Len() > perParty && (most == nil || own.Len() > most.Len()) {
			most = own
		}
	}
	if most == nil {
		return nil
	}
	return oldest(most)
}

func oldest(l *list.List) *connection { return l.Front().Value.(*connection) }

func pushTo[K comparable](lists map[K]*list.List, k K, c *connection) *list.Element {
	if lists[k] == nil {
		lists[k] = list.New()
	}
	return lists[k].PushBack(c)
}

func removeFrom[K comparable](lists map[K]*list.List, k K, e *list.Element) {
	if e == nil {
		return
	}
	if lists[k].Remove(e); lists[k].Len() == 0 {
		delete(lists, k)
	}
}

// leave removes a connection from the lists of its owner.
func (l *boundedListener) leave(c *connection) {
	if c.who != "" {
		removeFrom(l.known, c.who, c.inOwn)
		return
	}
	l.strangers.Remove(c.inAll)
	removeFrom(l.addresses, c.address, c.inOwn)
}

func (l *boundedListener) remove(c *connection) {
	if !c.gone {
		l.leave(c)
		c.rests(nil, nil)
		c.gone = true
		l.open--
		l.mayHaveRoom()
	}
}

// tell logs, once a minute, that there are too many connections.
func (l *boundedListener) tell(what string) {
	if now := time.Now(); now.Sub(l.told) > time.Minute {
		l.told = now
		l.log.Warn(what, "connections", l.open, "most", l.most, "of an address", l.each)
	}
}

// Close closes the connection, and makes room.
func (c *connection) Close() error {
	c.of.mutex.Lock()
	c.of.remove(c)
	c.of.mutex.Unlock()
	return c.Conn.Close()
}

// is records whose connection this is; through a proxy, that of the caller that used it last.
func (c *connection) is(who string) {
	l := c.of
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if c.gone || c.who == who || who == "" {
		return
	}
	l.leave(c)
	c.who, c.inAll = who, nil
	c.inOwn = pushTo(l.known, who, c)
	l.mayHaveRoom()
}

// connectionKey is the key under which a request's context holds its connection.
type connectionKey struct{}

// withConnection serves as the ConnContext of an http.Server.
func withConnection(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connectionKey{}, inner(c))
}

// inner returns the connection beneath one with TLS.
func inner(c net.Conn) net.Conn {
	if t, ok := c.(*tls.Conn); ok {
		return t.NetConn()
	}
	return c
}

// known records that a known caller has sent a request, so that its connection stays.
func known(r *http.Request, who string) {
	if c := connectionOf(r); c != nil {
		c.is(who)
	}
}

// connectionOf returns the connection of a request, nil if it belongs to no boundedListener.
func connectionOf(r *http.Request) *connection {
	c, _ := r.Context().Value(connectionKey{}).(*connection)
	return c
}
