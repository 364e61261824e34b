package link

import (
	"context"
	"crypto"
	"crypto/ed25519"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hushsum/hushsum/internal/fault"
	"github.com/hushsum/hushsum/keyexchange"
)

// TCPListener is a [Listener] over TCP with TLS 1.3, for the parties of a roster.
//
// Strangers cannot keep parties out. A connection has ten seconds, and a frame of at most
// 64 KiB, to show whose it is and say hello; of those that have not, there are at most a few
// hundred, of which the oldest that is idle makes room for the next. A party has four
// connections at most, and a fifth replaces one of them. A key that is not in the roster is
// told so, and its [TCPDialer] fails with [ErrPeer]. [TCPListener.Notices] reports how many were
// turned away.
type TCPListener struct {
	roster   *keyexchange.Roster
	listener net.Listener
	config   *tls.Config
	accepted chan memberLink
	closed   chan struct{}
	once     sync.Once
	most     time.Duration // until hello

	mutex     sync.Mutex
	strangers map[*guest]struct{}   // who have not shown whose they are
	parties   map[int][]*guest      // the oldest first
	room      chan struct{}         // there may be some for another stranger
	away      map[NoticeKind]Notice // what was not reported yet
}

type memberLink struct {
	party int
	link  Link
}

// Bounds on connections that have not said hello.
const (
	// handshakeTime is how long a connection may take to say hello.
	handshakeTime = 10 * time.Second
	// maxStrangers is how many connections may be about to show whose they are, next to the
	// one that waits for room.
	maxStrangers = 512
	// silentTime and strangerTime are how long one that has sent nothing, or something, has
	// before it makes room for another: enough for a handshake in a crowd of honest ones.
	silentTime   = 100 * time.Millisecond
	strangerTime = 2 * time.Second
	// maxOfParty is how many connections a party may have.
	maxOfParty = 4
	// maxHello is the longest frame before a party is known.
	maxHello = 1 + MaxText
	// refusedTime is how long who was refused has to read why.
	refusedTime = 2 * time.Second
)

// Waits after a connection could not be accepted, since there are no descriptors, say.
const (
	firstRest   = 5 * time.Millisecond
	longestRest = time.Second
)

// guest is a connection that was accepted.
type guest struct {
	net.Conn
	began   time.Time
	spoke   atomic.Bool
	greeted bool // has said hello
	gone    chan struct{}
	once    sync.Once
}

// Read notes that something came.
func (g *guest) Read(b []byte) (int, error) {
	n, err := g.Conn.Read(b)
	if n > 0 {
		g.spoke.Store(true)
	}
	return n, err
}

// Close may be called more than once.
func (g *guest) Close() (err error) {
	g.once.Do(func() {
		close(g.gone)
		err = g.Conn.Close()
	})
	return err
}

// errCrowd: the listener has closed a connection.
var errCrowd = errors.New("link: closed to make room for another connection")

// why is errCrowd for a connection that ended since the listener closed it, or else err.
func (g *guest) why(err error) error {
	select {
	case <-g.gone:
		return errCrowd
	default:
		return err
	}
}

// patience returns how long the guest may stay when another wants its place.
func (g *guest) patience(now time.Time) time.Duration {
	if g.spoke.Load() {
		return strangerTime - now.Sub(g.began)
	}
	return silentTime - now.Sub(g.began)
}

// ListenTCP listens at an address in the form that net.Listen takes, with the coordinator's
// identity. It fails with [ErrConfig], keyexchange.ErrSigner and errors of package net.
func ListenTCP(
	address string, identity crypto.Signer, roster *keyexchange.Roster,
) (*TCPListener, error) {
	l, err := newTCPListener(identity, roster)
	if err != nil {
		return nil, err
	}
	if l.listener, err = net.Listen("tcp", address); err != nil {
		return nil, err
	}
	go l.serve()
	return l, nil
}

func newTCPListener(identity crypto.Signer, roster *keyexchange.Roster) (*TCPListener, error) {
	if roster == nil {
		return nil, fault.New(ErrConfig, "give that of the parties, or of the committee",
			"Roster: there is none")
	}
	// A peer that is not in the roster gets an answer: the handshake alone would not tell it why.
	config, err := tlsConfig(identity, func(ed25519.PublicKey) error { return nil })
	if err != nil {
		return nil, err
	}
	return &TCPListener{
		roster:    roster,
		config:    config,
		accepted:  make(chan memberLink),
		closed:    make(chan struct{}),
		most:      handshakeTime,
		strangers: make(map[*guest]struct{}),
		parties:   make(map[int][]*guest),
		room:      make(chan struct{}, 1),
		away:      make(map[NoticeKind]Notice),
	}, nil
}

// Address returns the address that the listener listens at.
func (l *TCPListener) Address() string { return l.listener.Addr().String() }

// serve accepts connections until the listener is closed. That there are no descriptors,
// or no memory, passes.
func (l *TCPListener) serve() {
	for rest := firstRest; ; {
		conn, err := l.listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			_ = l.Close()
			return
		case err != nil:
			l.note(Strained, err)
			l.dismiss(func(time.Duration) bool { return true })
			if !l.wait(nil, rest) {
				return
			}
			rest = min(2*rest, longestRest)
			continue
		}
		rest = firstRest
		g := &guest{Conn: conn, began: time.Now(), gone: make(chan struct{})}
		if !l.enter(g) {
			_ = conn.Close()
			return
		}
		go l.greet(g)
	}
}

// wait waits for a time or, if it comes first, a signal. It reports whether the listener is
// still open.
func (l *TCPListener) wait(signal <-chan struct{}, most time.Duration) bool {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-signal:
	case <-timer.C:
	case <-l.closed:
		return false
	}
	return true
}

// enter makes a connection one of the strangers, once there is room. It reports whether the
// listener is still open.
func (l *TCPListener) enter(g *guest) bool {
	for {
		l.mutex.Lock()
		if len(l.strangers) < maxStrangers {
			l.strangers[g] = struct{}{}
			l.mutex.Unlock()
			return true
		}
		l.mutex.Unlock()
		most := l.dismiss(func(patience time.Duration) bool { return patience <= 0 })
		if most > 0 && !l.wait(l.room, most) {
			return false
		}
	}
}

// dismiss closes the stranger who has the least patience to be shown, if it is little
// enough, and returns that patience.
func (l *TCPListener) dismiss(little func(time.Duration) bool) time.Duration {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	now := time.Now()
	var out *guest
	var least time.Duration
	for g := range l.strangers {
		if patience := g.patience(now); out == nil || patience < least {
			out, least = g, patience
		}
	}
	if out != nil && little(least) {
		delete(l.strangers, out)
		_ = out.Close()
	}
	return least
}

// become makes a stranger one of a party's connections, in place of another if they are
// many: one that has not said hello, or else the oldest.
func (l *TCPListener) become(g *guest, party int) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.forget(g)
	others := l.parties[party]
	if len(others) >= maxOfParty {
		i := max(0, slices.IndexFunc(others, func(other *guest) bool { return !other.greeted }))
		_ = others[i].Close()
		others = slices.Delete(others, i, i+1)
	}
	l.parties[party] = append(others, g)
}

// forget takes a guest from the strangers. The caller has the mutex.
func (l *TCPListener) forget(g *guest) {
	delete(l.strangers, g)
	select {
	case l.room <- struct{}{}:
	default:
	}
}

// leave closes a guest and forgets it. party is below 0 if it is a stranger.
func (l *TCPListener) leave(g *guest, party int) {
	_ = g.Close()
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.forget(g)
	others := slices.DeleteFunc(l.parties[party], func(other *guest) bool { return other == g })
	if len(others) == 0 {
		delete(l.parties, party)
	} else {
		l.parties[party] = others
	}
}

// greet finds out who dials, and takes its first frame.
func (l *TCPListener) greet(g *guest) {
	ctx, cancel := context.WithTimeout(context.Background(), l.most)
	defer cancel()
	secure := tls.Server(g, l.config)
	if err := secure.HandshakeContext(ctx); err != nil {
		l.note(Unfinished, g.why(err))
		l.leave(g, -1)
		return
	}
	key := secure.ConnectionState().PeerCertificates[0].PublicKey.(ed25519.PublicKey)
	link := newConnLink(secure, maxHello)
	party, found := l.roster.Index(key)
	if !found {
		l.refuse(ctx, link, key)
		l.leave(g, -1)
		l.note(Unknown, fmt.Errorf("%w: the key %x is not in the roster", ErrPeer, []byte(key)))
		return
	}
	l.become(g, party)
	first, err := link.Receive(ctx)
	if err != nil {
		l.note(Unfinished, fmt.Errorf("party %d: %w", party, g.why(err)))
		l.leave(g, party)
		return
	}
	l.mutex.Lock()
	g.greeted = true
	l.mutex.Unlock()
	link.first, link.left = first, func() { l.leave(g, party) }
	link.limit(MaxFrame)
	select {
	case l.accepted <- memberLink{party, link}:
	case <-g.gone: // another has taken its place
		_ = link.Close()
	case <-l.closed:
		_ = link.Close()
	}
}

// refuse tells who is not in the roster so, and waits for it to have read that: were the
// connection closed with something unread, the refusal could be lost.
func (l *TCPListener) refuse(ctx context.Context, link *connLink, key ed25519.PublicKey) {
	ctx, cancel := context.WithTimeout(ctx, refusedTime)
	defer cancel()
	why := &Refusal{Field: identityField, Ours: "not in the roster",
		Theirs: hex.EncodeToString(key)}
	if link.Send(ctx, JSONFrame(KindRefusal, why)) != nil {
		return
	}
	stop := interrupt(ctx, link.conn.SetReadDeadline)
	_, _ = io.Copy(io.Discard, io.LimitReader(link.conn, 2*MaxText))
	_ = stop()
}

// identityField is the field of a refusal of a peer that is not in the roster.
const identityField = "identity"

// unknownThere returns [ErrPeer] if a frame is the refusal of a peer that is not in the roster.
func unknownThere(frame []byte) error {
	var why Refusal
	if len(frame) == 0 || frame[0] != KindRefusal || ParseJSON(frame[1:], &why) != nil ||
		why.Field != identityField {
		return nil
	}
	return fmt.Errorf("%w: the coordinator's roster has no such key as this side's", ErrPeer)
}

// NoticeKind says what a listener did with connections.
type NoticeKind int

// The kinds of notices.
const (
	Unknown    NoticeKind = iota + 1 // closed: keys that are not in the roster
	Unfinished                       // closed: no first frame in time, too many, or broken
	Strained                         // not accepted: there are no descriptors, say; tried again
)

// Notice reports connections that a listener turned away, by their number and not one by one.
type Notice struct {
	Kind  NoticeKind
	Count int   // since the notice before
	Err   error // of the last
}

// note counts what is to be reported.
func (l *TCPListener) note(kind NoticeKind, err error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.away[kind] = Notice{Kind: kind, Count: l.away[kind].Count + 1, Err: err}
}

// Notices returns what happened since the last call, at most one notice of a kind.
func (l *TCPListener) Notices() (notices []Notice) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	for kind := Unknown; kind <= Strained; kind++ {
		if n, found := l.away[kind]; found {
			notices = append(notices, n)
		}
	}
	clear(l.away)
	return notices
}

// Accept waits for the next party that dials and has sent a first frame.
func (l *TCPListener) Accept(ctx context.Context) (int, Link, error) {
	select {
	case m := <-l.accepted:
		return m.party, m.link, nil
	case <-l.closed:
		return 0, nil, net.ErrClosed
	case <-ctx.Done():
		return 0, nil, ctx.Err()
	}
}

// Close stops listening. Links stay open.
func (l *TCPListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	l.mutex.Lock()
	var out []*guest
	for g := range l.strangers {
		out = append(out, g)
	}
	for _, guests := range l.parties {
		for _, g := range guests {
			if !g.greeted {
				out = append(out, g)
			}
		}
	}
	l.mutex.Unlock()
	for _, g := range out {
		_ = g.Close()
	}
	return l.listener.Close()
}
