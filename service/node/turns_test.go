package node

import (
	"context"
	"errors"
	"net"
	"net/http"
	"testing"
	"time"
)

// later is a connection for which there may be no room yet.
type later struct {
	pair
	err  error
	done chan struct{}
}

// acceptLater connects to a listener, and has it accept when it can.
func acceptLater(t *testing.T, l *boundedListener) *later {
	t.Helper()
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	a := &later{pair: pair{client: client}, done: make(chan struct{})}
	t.Cleanup(func() {
		_ = l.Close()
		<-a.done
		_ = client.Close()
		if a.server != nil {
			_ = a.server.Close()
		}
	})
	go func() {
		defer close(a.done)
		var c net.Conn
		if c, a.err = l.Accept(); a.err == nil {
			a.server = c.(*connection)
		}
	}()
	return a
}

func (a *later) accepted() bool {
	select {
	case <-a.done:
		return true
	default:
		return false
	}
}

// polling is a known party's connection with a request that waits.
type polling struct {
	pair
	asked chan struct{} // closed when the request is to end
	ended func() bool
}

// pollBy has a party wait until something is next.
func pollBy(t *testing.T, l *boundedListener, who string) *polling {
	t.Helper()
	p := &polling{pair: connectTo(t, l), asked: make(chan struct{})}
	p.server.is(who)
	r, err := http.NewRequestWithContext(withConnection(context.Background(), p.server),
		http.MethodGet, "/", nil)
	if err != nil {
		t.Fatal(err)
	}
	p.ended = poll(r, func() { close(p.asked) })
	return p
}

// A listener that is closed does not wait for room.
func TestClosedWithoutRoom(t *testing.T) {
	l := listenBounded(t, 1, 0)
	connectTo(t, l).server.is("party")
	waiting := acceptLater(t, l)
	if closed(t, waiting.pair, false) || waiting.accepted() {
		t.Fatal("a connection without room does not wait")
	}
	_ = l.Close()
	<-waiting.done
	if !errors.Is(waiting.err, net.ErrClosed) || !closed(t, waiting.pair, true) {
		t.Errorf("the listener is closed, and Accept ends with %v", waiting.err)
	}
}

// All connections are those of parties that wait: nobody is asked for a place while nobody needs
// one, and then it is who has waited longest.
func TestPartiesTakeTurns(t *testing.T) {
	const room = 8
	l := listenBounded(t, room, 0)
	var all []*polling
	for _, who := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		all = append(all, pollBy(t, l, who))
	}
	all[0].ended() // this one is at work: it has waited, and does not now
	for _, p := range all {
		select {
		case <-p.asked:
			t.Fatal("a place is asked for that nobody needs")
		default:
		}
	}
	waiting := acceptLater(t, l)
	<-all[1].asked
	if !all[1].ended() {
		t.Error("who has given its place keeps the connection")
	}
	_ = all[1].server.Close()
	<-waiting.done
	if waiting.err != nil || closed(t, all[0].pair, false) {
		t.Errorf("a place was given, and Accept ends with %v", waiting.err)
	}
}

// A connection by which nobody has asked anything for a moment makes room before those that
// wait, and one that is used makes none.
func TestIdleMakesRoom(t *testing.T) {
	l := listenBounded(t, 3, 0)
	used, unused, waits := connectTo(t, l), connectTo(t, l), pollBy(t, l, "c")
	used.server.is("a")
	unused.server.is("b")
	for _, p := range []pair{used, unused} {
		stateOf(p.server, http.StateActive)
		stateOf(p.server, http.StateIdle)
	}
	stateOf(used.server, http.StateActive)
	l.mutex.Lock()
	l.gave = time.Now().Add(time.Hour) // it is nobody's turn
	unused.server.since = time.Now().Add(-moment)
	l.mutex.Unlock()
	connectTo(t, l).server.is("d")
	if !closed(t, unused, true) || closed(t, used, false) || waits.ended() {
		t.Error("another than the connection that nobody uses makes room")
	}
}

// Strangers have the places that are for newcomers: no party gives one for another stranger.
func TestStrangersTakeNoTurns(t *testing.T) {
	const room = 8
	l := listenBounded(t, room, 0)
	var parties []*polling
	for _, who := range []string{"a", "b", "c", "d", "e", "f", "g"} {
		parties = append(parties, pollBy(t, l, who))
	}
	first := connectTo(t, l)
	for range 2 {
		stranger := connectTo(t, l) // which waits for the first's moment
		if !closed(t, first, true) {
			t.Fatal("the stranger before does not make room")
		}
		first = stranger
	}
	for k, p := range parties {
		select {
		case <-p.asked:
			t.Errorf("party %d gives its place for a stranger", k)
		default:
		}
	}
}
