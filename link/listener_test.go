package link

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/hushsum/hushsum/keyexchange"
)

// counted is a net.Listener that counts the connections that are open, and fails as often
// as it is told to before it accepts one.
type counted struct {
	net.Listener
	open, most atomic.Int64
	failures   atomic.Int64
}

type countedConn struct {
	net.Conn
	of   *counted
	once sync.Once
}

func (c *counted) Accept() (net.Conn, error) {
	if c.failures.Add(-1) >= 0 {
		return nil, &net.OpError{Op: "accept", Net: "tcp", Err: syscall.EMFILE}
	}
	conn, err := c.Listener.Accept()
	if err != nil {
		return nil, err
	}
	open := c.open.Add(1)
	for most := c.most.Load(); open > most && !c.most.CompareAndSwap(most, open); {
		most = c.most.Load()
	}
	return &countedConn{Conn: conn, of: c}, nil
}

func (c *countedConn) Close() error {
	c.once.Do(func() { c.of.open.Add(-1) })
	return c.Conn.Close()
}

// testTime ends a test that does not end by itself, on however busy a machine.
const testTime = 4 * time.Minute

// named returns n identities and their roster.
func named(t testing.TB, kind string, n int) ([]crypto.Signer, *keyexchange.Roster) {
	t.Helper()
	var signers []crypto.Signer
	var members []keyexchange.Entry
	for i := range n {
		seed := sha256.Sum256(fmt.Appendf(nil, "%s %d", kind, i))
		key := ed25519.NewKeyFromSeed(seed[:])
		signers = append(signers, key)
		members = append(members,
			keyexchange.Entry{Name: fmt.Sprintf("%s-%d", kind, i), Key: key.Public().(ed25519.PublicKey)})
	}
	roster, err := keyexchange.NewRoster(members)
	if err != nil {
		t.Fatal(err)
	}
	return signers, roster
}

// world is a listener of a roster, on which tests dial.
type world struct {
	testing.TB
	ctx      context.Context
	listener *TCPListener
	under    *counted
	signers  []crypto.Signer
	server   crypto.Signer
}

func newWorld(t testing.TB, n int, change func(l *TCPListener, under *counted)) *world {
	t.Helper()
	signers, roster := named(t, "party", n)
	server, _ := named(t, "coordinator", 2)
	l, under := listenCounted(t, server[0], roster, change)
	ctx, cancel := context.WithTimeout(t.Context(), testTime)
	t.Cleanup(cancel)
	return &world{t, ctx, l, under, signers, server[0]}
}

// listenCounted listens on this machine, until the test ends.
func listenCounted(
	t testing.TB, identity crypto.Signer, roster *keyexchange.Roster,
	change func(l *TCPListener, under *counted),
) (*TCPListener, *counted) {
	t.Helper()
	l, err := newTCPListener(identity, roster)
	if err != nil {
		t.Fatal(err)
	}
	under := new(counted)
	if under.Listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	l.listener = under
	if change != nil {
		change(l, under)
	}
	go l.serve()
	t.Cleanup(func() { _ = l.Close() })
	return l, under
}

func (w *world) dialer(identity crypto.Signer) *TCPDialer {
	return &TCPDialer{
		Address:     w.listener.Address(),
		Identity:    identity,
		Coordinator: w.server.Public().(ed25519.PublicKey),
	}
}

// dial connects with a key.
func (w *world) dial(identity crypto.Signer) Link {
	w.Helper()
	link, err := w.dialer(identity).Dial(w.ctx)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = link.Close() })
	return link
}

// raw connects without TLS.
func (w *world) raw() net.Conn {
	w.Helper()
	conn, err := net.Dial("tcp", w.listener.Address())
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = conn.Close() })
	return conn
}

// held is how many strangers there are, and how many connections of a party.
func (w *world) held(party int) (strangers, of int) {
	return w.listener.held(party)
}

func (l *TCPListener) held(party int) (strangers, of int) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return len(l.strangers), len(l.parties[party])
}

// await waits until something holds.
func (w *world) await(what string, holds func() bool) {
	w.Helper()
	for !holds() {
		if w.ctx.Err() != nil {
			w.Fatalf("still not: %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}

// noted returns what is to be reported.
func (w *world) noted(kind NoticeKind) Notice {
	w.listener.mutex.Lock()
	defer w.listener.mutex.Unlock()
	return w.listener.away[kind]
}

// through connects a party, says hello and is accepted.
func (w *world) through(party int) (near, far Link) {
	w.Helper()
	near = w.dial(w.signers[party])
	if err := near.Send(w.ctx, []byte("hello")); err != nil {
		w.Fatal(err)
	}
	from, far, err := w.listener.Accept(w.ctx)
	if err != nil || from != party {
		w.Fatalf("party %d: %v", from, err)
	}
	w.Cleanup(func() { _ = far.Close() })
	return near, far
}

// Strangers who hold connections, whether they are silent or have begun to speak, are
// replaced, the oldest first, and no party has to wait for them to leave.
func TestStrangersReplaced(t *testing.T) {
	t.Parallel()
	for name, speak := range map[string][]byte{"silent": nil, "halting": {22, 3, 1}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 3, func(l *TCPListener, _ *counted) { l.most = time.Hour })
			first := w.raw()
			_, _ = first.Write(speak)
			w.await("the first is there", func() bool { n, _ := w.held(0); return n == 1 })
			for range maxStrangers {
				conn := w.raw()
				_, _ = conn.Write(speak)
			}
			// It is the oldest, and the last makes it go.
			if n, err := first.Read(make([]byte, 1)); n != 0 || err == nil {
				t.Errorf("the oldest: %d bytes, %v", n, err)
			}
			w.through(1)
			if n, _ := w.held(1); n > maxStrangers {
				t.Errorf("%d strangers", n)
			}
			w.await("it is noted", func() bool { return w.noted(Unfinished).Count > 0 })
			if e := w.noted(Unfinished); !errors.Is(e.Err, errCrowd) {
				t.Errorf("noted %v", e)
			}
		})
	}
}

// A crowd of honest parties is no attack: those that have begun to speak are not replaced
// at once by those that come after them.
func TestCrowdIsPatient(t *testing.T) {
	w := newWorld(t, 3, nil)
	now := time.Now()
	spoken, silent := &guest{began: now}, &guest{began: now}
	spoken.spoke.Store(true)
	if !(spoken.patience(now) > silent.patience(now)) || silent.patience(now) <= 0 {
		t.Errorf("patience with one that has spoken %v, with a silent one %v", spoken.patience(now),
			silent.patience(now))
	}
	for _, g := range []*guest{spoken, silent} {
		if later := now.Add(handshakeTime); g.patience(later) > 0 {
			t.Errorf("it never ends: %v", g.patience(later))
		}
	}
	if n, _ := w.held(0); n != 0 {
		t.Errorf("%d strangers", n)
	}
}

// Who does not say hello in time is gone, silent or not, of the roster or not.
func TestNoHello(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3, func(l *TCPListener, _ *counted) { l.most = 500 * time.Millisecond })
	raw := w.raw()
	party, err := w.dialer(w.signers[1]).Dial(w.ctx)
	if _, err := raw.Read(make([]byte, 1)); err == nil {
		t.Error("a stranger is told something")
	}
	if err == nil { // or the machine was so slow that its time was over
		if _, err := party.Receive(w.ctx); err == nil || w.ctx.Err() != nil {
			t.Errorf("a party that says nothing: %v", err)
		}
		_ = party.Close()
	}
	w.await("both are gone", func() bool {
		strangers, held := w.held(1)
		return strangers == 0 && held == 0 && w.under.open.Load() == 0
	})
	if e := w.noted(Unfinished); e.Count != 2 {
		t.Errorf("noted %v", e)
	}
}

// A key that is not in the roster is told so: its dialer fails for good.
func TestUnknownKey(t *testing.T) {
	w := newWorld(t, 3, nil)
	strangers, _ := named(t, "stranger", 2)
	link := w.dial(strangers[0])
	if err := link.Send(w.ctx, []byte("hello")); err != nil {
		t.Fatal(err)
	}
	if _, err := link.Receive(w.ctx); !errors.Is(err, ErrPeer) {
		t.Errorf("%v", err)
	}
	_ = link.Close()
	w.await("it is gone", func() bool { n, _ := w.held(0); return n == 0 })
	w.await("it is noted", func() bool { return w.noted(Unknown).Count == 1 })
	if e := w.noted(Unknown); !errors.Is(e.Err, ErrPeer) {
		t.Errorf("noted %v", e)
	}
	soon, end := context.WithTimeout(w.ctx, 50*time.Millisecond)
	defer end()
	if party, _, err := w.listener.Accept(soon); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("it was accepted as party %d: %v", party, err)
	}
}

// A party that holds connections without hello replaces its own, and nobody else's; of those
// that said hello the newest stay.
func TestHoldingParty(t *testing.T) {
	w := newWorld(t, 3, func(l *TCPListener, _ *counted) { l.most = time.Hour })
	other, far := w.through(2)
	greeted, _ := w.through(1)
	for range 5 * maxOfParty {
		w.dial(w.signers[1])
		if _, n := w.held(1); n > maxOfParty {
			t.Fatalf("%d connections", n)
		}
	}
	w.await("as many as may be", func() bool { _, n := w.held(1); return n == maxOfParty })
	w.await("none of strangers", func() bool { n, _ := w.held(1); return n == 0 })
	if err := greeted.Send(w.ctx, []byte("I am here")); err != nil {
		t.Errorf("the one that said hello: %v", err)
	}
	for range 2 * maxOfParty {
		w.through(1)
	}
	if _, n := w.held(1); n > maxOfParty {
		t.Errorf("%d connections", n)
	}
	if _, err := greeted.Receive(w.ctx); err == nil {
		t.Error("the oldest is still there")
	}
	if err := other.Send(w.ctx, []byte("and I")); err != nil {
		t.Errorf("another party's: %v", err)
	}
	for _, want := range []string{"hello", "and I"} {
		if got, err := far.Receive(w.ctx); string(got) != want || err != nil {
			t.Errorf("another party's: %q, %v", got, err)
		}
	}
	// What is closed leaves its place.
	_ = far.Close()
	w.await("its place is free", func() bool { _, n := w.held(2); return n == 0 })
}

// A first frame is short: nobody makes room for a long one of who is not known yet.
func TestLongHello(t *testing.T) {
	w := newWorld(t, 3, nil)
	for size, ok := range map[int]bool{maxHello: true, maxHello + 1: false, 1 << 30: false} {
		link := w.dial(w.signers[1])
		head := binary.BigEndian.AppendUint32(nil, uint32(size))
		body := make([]byte, min(size, maxHello))
		_, err := link.(*connLink).conn.Write(append(head, body...))
		if ok && err != nil {
			t.Fatal(err)
		}
		if ok {
			_, far, err := w.listener.Accept(w.ctx)
			if err != nil {
				t.Fatal(err)
			}
			if b, err := far.Receive(w.ctx); len(b) != size || err != nil {
				t.Errorf("%d bytes of %d, %v", len(b), size, err)
			}
			_ = far.Close()
		} else if _, err := link.Receive(w.ctx); err == nil {
			t.Errorf("%d bytes are taken", size)
		}
	}
	w.await("both are noted", func() bool { return w.noted(Unfinished).Count == 2 })
	if e := w.noted(Unfinished); !errors.Is(e.Err, ErrFrame) {
		t.Errorf("noted %v", e)
	}
}

// That there are no descriptors for a while ends nothing, and is noted.
func TestNoDescriptors(t *testing.T) {
	w := newWorld(t, 3, func(_ *TCPListener, under *counted) { under.failures.Store(3) })
	w.through(1)
	if e := w.noted(Strained); e.Count != 3 || !errors.Is(e.Err, syscall.EMFILE) {
		t.Errorf("noted %v", e)
	}
	// A closed listener says so, and not the end of a wait.
	if err := w.listener.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.listener.Accept(w.ctx); !errors.Is(err, net.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}

// What is noted is told once, by numbers.
func TestNotices(t *testing.T) {
	server, _ := named(t, "coordinator", 2)
	_, roster := named(t, "party", 3)
	l, err := newTCPListener(server[0], roster)
	if err != nil {
		t.Fatal(err)
	}
	for range 1000 {
		l.note(Unknown, ErrPeer)
	}
	l.note(Strained, syscall.EMFILE)
	told := l.Notices()
	if want := []Notice{{Unknown, 1000, ErrPeer}, {Strained, 1, syscall.EMFILE}}; !slices.Equal(told,
		want) {
		t.Errorf("%v, want %v", told, want)
	}
	if told := l.Notices(); len(told) != 0 {
		t.Errorf("it is told again: %v", told)
	}
}

// What a listener or dialer cannot go on with is told at once, by its name.
func TestMisuseIdentity(t *testing.T) {
	signers, roster := named(t, "party", 2)
	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		identity crypto.Signer
		roster   *keyexchange.Roster
		want     error
		says     string
	}{
		"none":         {nil, roster, ErrConfig, "Identity"},
		"nil":          {ed25519.PrivateKey(nil), roster, ErrConfig, "Identity"},
		"short":        {make(ed25519.PrivateKey, 31), roster, ErrConfig, "31 bytes"},
		"another kind": {other, roster, keyexchange.ErrSigner, ""},
		"no roster":    {signers[0], nil, ErrConfig, "Roster"},
	} {
		l, err := ListenTCP("127.0.0.1:0", c.identity, c.roster)
		if l != nil || !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
		if c.roster == nil {
			continue
		}
		link, err := (&TCPDialer{Identity: c.identity}).Dial(t.Context())
		if link != nil || !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s, to dial: %v", name, err)
		}
	}
}
