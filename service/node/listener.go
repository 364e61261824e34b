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

// sendBuffer is how many bytes of an answer the kernel takes, of which Linux keeps room for
// twice as many, before its reader has had any.
const sendBuffer = 256 << 10

// Bounds of connections.
const (
	// Where a process cannot be asked how many files it may open, the door has as many.
	unknownDoor = 4096
	pageMost    = 64
	reserveMost = 4096
	leastDoor   = 16
	// perParty is how many connections nobody takes from a party: it uses two, and leaves
	// some behind when a network fails.
	perParty = 4
)

// shares divides the files that a process may open: JetStream and the record have a quarter,
// 4,096 at most. A connection of the door may take another file, for a body that waits or
// for a request that is passed on to the node that leads.
func shares(files int) (door, page, reserve int) {
	if files <= 0 {
		return unknownDoor, pageMost, 0
	}
	page = min(files/16, pageMost)
	reserve = min(files/4, reserveMost)
	return max((files-page-reserve)/2, leastDoor), page, reserve
}

// boundedListener bounds connections, and what the kernel holds of answers that are not
// read. Left to itself it takes some megabytes of each, so that thousands of slow parties
// fill all the memory that it has for TCP, and every connection crawls; what the runner
// lets out at once (runner.Options.OutRoom) would then bound nothing.
//
// A connection is a stranger's until a request by it has been found to be that of somebody
// who is known. When there are too many, the oldest of a stranger makes room: somebody who
// is known says so at once. If all are known, it is the oldest of whoever has the most, if
// those are more than anybody needs.
type boundedListener struct {
	net.Listener
	most int // connections
	each int // those of strangers at one address
	log  *slog.Logger
	// loopback: the bound at one address is for loopback too, where proxies of this machine
	// are, and tests.
	loopback bool

	mutex     sync.Mutex
	open      int
	strangers *list.List // of *connection, the oldest first
	addresses map[netip.Addr]*list.List
	known     map[string]*list.List
	told      time.Time
}

// bound bounds a listener. With each 0 an address has an eighth of all.
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
	}
	if each == 0 {
		b.each = max(most/8, leastDoor)
	}
	return b
}

// connection is one of a boundedListener.
type connection struct {
	net.Conn
	of      *boundedListener
	address netip.Addr // not valid: not bounded
	who     string     // empty: a stranger

	inAll, inOwn *list.Element // of the lists that it is in, nil: of none
	gone         bool
}

// Accept waits for a connection for which there is room.
func (l *boundedListener) Accept() (net.Conn, error) {
	for {
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
		gives := l.take(c)
		if gives != nil {
			_ = gives.Conn.Close()
		}
		if gives != c {
			return c, nil
		}
	}
}

// take takes a connection in, and returns that which makes room, nil if none must, and the
// new one itself if none can.
func (l *boundedListener) take(c *connection) (gives *connection) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	own := l.addresses[c.address]
	switch {
	case c.address.IsValid() && own != nil && own.Len() >= l.each:
		gives = oldest(own)
	case l.open >= l.most && l.strangers.Len() > 0:
		gives = oldest(l.strangers)
	case l.open >= l.most:
		if gives = l.surplus(); gives == nil {
			l.tell("there is no room for another connection, and all are known parties'")
			return c
		}
	}
	if gives != nil {
		l.remove(gives)
		l.tell("there are too many connections: the oldest of a stranger is closed for a new one")
	}
	l.open++
	c.inAll = l.strangers.PushBack(c)
	if c.address.IsValid() {
		c.inOwn = pushTo(l.addresses, c.address, c)
	}
	return gives
}

// surplus is the oldest connection of who has the most, if those are more than anybody needs.
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

// leave takes a connection out of the lists that it is in.
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
		c.gone = true
		l.open--
	}
}

// tell says in the log, once a minute, that there are too many connections.
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

// is says whose a connection is: through a proxy, whose it was last.
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
}

// connectionKey is the key under which a request knows its connection.
type connectionKey struct{}

// withConnection is an http.Server's ConnContext.
func withConnection(ctx context.Context, c net.Conn) context.Context {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	return context.WithValue(ctx, connectionKey{}, c)
}

// known says that somebody has sent a request who is known, so that its connection stays.
func known(r *http.Request, who string) {
	if c, ok := r.Context().Value(connectionKey{}).(*connection); ok {
		c.is(who)
	}
}
