package harness

import (
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Proxy passes TCP connections on to an address, over a network that can be made bad: it delays,
// with jitter, narrows the bandwidth, goes silent without closing, in one direction or both, and
// cuts all connections.
type Proxy struct {
	Delay  atomic.Int64 // nanoseconds, of each piece
	Silent atomic.Bool
	Mute   atomic.Bool // silent from the target on, but not to it
	Slow   atomic.Bool // 64 kB a second
	Cuts   atomic.Int64

	listener    net.Listener
	mutex       sync.Mutex
	connections map[net.Conn]bool
}

// NewProxy starts a proxy on loopback that lasts as long as a test.
func NewProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{listener: l, connections: make(map[net.Conn]bool)}
	t.Cleanup(func() {
		_ = l.Close()
		p.Cut()
	})
	go Relay(l, target, func(near, far net.Conn) {
		p.mutex.Lock()
		p.connections[near], p.connections[far] = true, true
		p.mutex.Unlock()
		go p.carry(near, far, nil)
		go p.carry(far, near, &p.Mute)
	})
	return p
}

// Address returns the host and port of the proxy.
func (p *Proxy) Address() string { return p.listener.Addr().String() }

// Relay connects each connection that comes with a target, until the listener is closed.
func Relay(l net.Listener, target string, join func(near, far net.Conn)) {
	for {
		near, err := l.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", target)
		if err != nil {
			_ = near.Close()
			continue
		}
		join(near, far)
	}
}

func (p *Proxy) carry(from, to net.Conn, mute *atomic.Bool) {
	defer func() {
		_, _ = from.Close(), to.Close()
		p.mutex.Lock()
		delete(p.connections, from)
		p.mutex.Unlock()
	}()
	buffer := make([]byte, 16<<10)
	for {
		n, err := from.Read(buffer)
		for p.Silent.Load() || mute != nil && mute.Load() {
			time.Sleep(10 * time.Millisecond)
		}
		if d := p.Delay.Load(); d > 0 {
			time.Sleep(time.Duration(rand.Int64N(2*d + 1)))
		}
		if p.Slow.Load() {
			time.Sleep(time.Duration(n) * time.Second / (64 << 10))
		}
		if _, failed := to.Write(buffer[:n]); err != nil || failed != nil {
			return
		}
	}
}

// Cut closes all connections.
func (p *Proxy) Cut() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for c := range p.connections {
		_ = c.Close()
	}
	p.Cuts.Add(1)
}
