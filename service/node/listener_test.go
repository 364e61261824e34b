package node

import (
	"errors"
	"log/slog"
	"net"
	"os"
	"runtime"
	"testing"
	"time"
)

// What a party does not read stays with the server, but for a bounded part; without the
// bound the kernel takes megabytes.
func TestBoundedListener(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("how much a kernel takes differs")
	}
	taken := func(bounded bool) int {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		if bounded {
			l = bound(l, 1, 0, slog.New(slog.DiscardHandler))
		}
		reader, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer reader.Close()
		// Little goes to the reader's side, whose kernel is another's.
		if err := reader.(*net.TCPConn).SetReadBuffer(64 << 10); err != nil {
			t.Fatal(err)
		}
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if err := c.SetWriteDeadline(time.Now().Add(time.Second)); err != nil {
			t.Fatal(err)
		}
		n, err := c.Write(make([]byte, 64<<20))
		if err == nil {
			t.Fatal("64 MB are written to somebody who does not read")
		}
		return n
	}
	with, without := taken(true), taken(false)
	t.Logf("%d kB are taken with the bound, %d without", with>>10, without>>10)
	if with > 1<<20 {
		t.Errorf("%d kB are taken with the bound", with>>10)
	}
	if without < 2*with {
		t.Skip("this kernel takes little of any connection")
	}
}

// pair is both ends of a connection that a listener has taken.
type pair struct {
	client net.Conn
	server *connection
}

func connectTo(t *testing.T, l *boundedListener) pair {
	t.Helper()
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	server, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	return pair{client, server.(*connection)}
}

// closed reports whether the other side has closed a connection; if it should have, it waits.
func closed(t *testing.T, p pair, should bool) bool {
	t.Helper()
	limit := 20 * time.Millisecond
	if should {
		limit = time.Minute
	}
	if err := p.client.SetReadDeadline(time.Now().Add(limit)); err != nil {
		t.Fatal(err)
	}
	_, err := p.client.Read(make([]byte, 1))
	return !errors.Is(err, os.ErrDeadlineExceeded)
}

func listenBounded(t *testing.T, most, each int) *boundedListener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return bound(l, most, each, slog.New(slog.DiscardHandler))
}

// When there are as many connections as there may be, the oldest of a stranger makes room,
// whenever it came, and none of who is known; what has been closed counts no more.
func TestStrangersMakeRoom(t *testing.T) {
	l := listenBounded(t, 4, 0)
	var all []pair
	for k := range 4 {
		p := connectTo(t, l)
		if k != 1 && k != 3 {
			p.server.is("party")
		}
		all = append(all, p)
	}
	all = append(all, connectTo(t, l)) // 1 makes room
	all[4].server.is("another")
	all = append(all, connectTo(t, l)) // 3 does
	for k, p := range all {
		if should := k == 1 || k == 3; closed(t, p, should) != should {
			t.Errorf("connection %d: closed is %v, want %v", k, !should, should)
		}
	}
	for _, p := range all {
		_ = p.server.Close()
		_ = p.server.Close()
	}
	if l.open != 0 || l.strangers.Len() != 0 || len(l.known) != 0 || len(l.addresses) != 0 {
		t.Errorf("all are closed, and %d are counted, %d strangers, %d known", l.open,
			l.strangers.Len(), len(l.known))
	}
}

// One address has no more strangers than it may, and whoever is known there stays.
func TestStrangersOfAnAddress(t *testing.T) {
	l := listenBounded(t, 100, 2)
	first := connectTo(t, l)
	first.server.is("party")
	var strangers []pair
	for range 4 {
		strangers = append(strangers, connectTo(t, l))
	}
	for k, p := range strangers {
		if should := k < 2; closed(t, p, should) != should {
			t.Errorf("stranger %d: closed is %v, want %v", k, !should, should)
		}
	}
	if closed(t, first, false) {
		t.Error("who is known is closed")
	}
	if l.open != 3 {
		t.Errorf("%d are counted, want 3", l.open)
	}
}

// A party that opens all connections keeps no other out: its own oldest makes room. What
// all parties need is taken from none of them.
func TestOnePartysConnections(t *testing.T) {
	l := listenBounded(t, 6, 0)
	other := connectTo(t, l)
	other.server.is("other")
	var flood []pair
	for range perParty + 1 {
		p := connectTo(t, l)
		p.server.is("flood")
		flood = append(flood, p)
	}
	late := connectTo(t, l)
	late.server.is("late")
	if !closed(t, flood[0], true) || closed(t, other, false) || closed(t, late, false) {
		t.Error("the party that floods is not the one that makes room")
	}
	waiting := acceptLater(t, l)
	for k, p := range append(flood[1:], other, late) {
		if closed(t, p, false) {
			t.Errorf("connection %d is closed, which a party needs", k)
		}
	}
	if waiting.accepted() || closed(t, waiting.pair, false) {
		t.Error("a connection without room does not wait")
	}
	_ = other.server.Close()
	<-waiting.done
	if closed(t, waiting.pair, false) {
		t.Error("a connection is closed for which there is room")
	}
}

// However many files there are, the door's connections, twice, and the page's leave what the
// record is to have.
func TestShares(t *testing.T) {
	for _, files := range []int{128, 256, 1024, 4096, 20_000, 65_536, 1 << 20} {
		d, p, reserve := shares(files)
		if 2*d+p+reserve > files || d < leastDoor || p < 1 || reserve < min(files/4, 4096) {
			t.Errorf("of %d files: %d connections of the door, %d of the page, %d kept", files, d, p,
				reserve)
		}
	}
	if d, p, _ := shares(0); d < leastDoor || p < 1 {
		t.Errorf("without a figure: %d and %d", d, p)
	}
}
