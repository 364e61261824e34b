package node_test

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/nats-io/nats-server/v2/server/ats"

	"github.com/hushsum/hushsum/service/node"
	"github.com/hushsum/hushsum/service/party"
)

// network carries connections within this process: a goroutine that waits for a socket would keep
// the time of a bubble from passing. Its addresses are those of loopback.
type network struct {
	mutex sync.Mutex
	at    map[string]*ear
	open  []net.Conn
	port  int
}

// ear is a listener of a network.
type ear struct {
	of      *network
	address net.Addr
	comes   chan net.Conn
	closed  chan struct{}
	once    sync.Once
}

// cable is a connection of a network.
type cable struct {
	net.Conn
	here, there net.Addr
}

func (w cable) LocalAddr() net.Addr  { return w.here }
func (w cable) RemoteAddr() net.Addr { return w.there }

// inBubble runs a test in virtual time, with a network for its nodes and parties. The JetStream of
// its nodes is in the bubble too, except for a clock that all servers of NATS in one process share.
func inBubble(t *testing.T, test func(t *testing.T, in *network)) {
	t.Helper()
	shared()
	synctest.Test(t, func(t *testing.T) {
		test(t, &network{at: make(map[string]*ear), port: 40_000})
	})
}

// shared starts the clock of files of NATS outside of bubbles, for good.
var shared = sync.OnceFunc(ats.Register)

// node has a node listen in the network; of nil, at sockets.
func (n *network) node(c node.Options) node.Options {
	if n != nil {
		c.Hooks().Listen = n.listen
	}
	return c
}

// server has a party, or a member, dial in the network; of nil, over TCP.
func (n *network) server(s *party.Server) *party.Server {
	if n != nil {
		s.Dial = n.dial
	}
	return s
}

// small has the parties and members of a small federation dial in the network.
func (n *network) small(s *small) *small {
	s.in = n
	return s
}

// start starts a small federation.
func (n *network) start(t *testing.T, rounds int) *small {
	t.Helper()
	return n.small(startSmall(t, rounds, "", n.node(node.Options{})))
}

// client speaks HTTP in the network.
func (n *network) client() *http.Client {
	return &http.Client{Transport: &http.Transport{DialContext: n.dial, DisableKeepAlives: true}}
}

// cut ends all connections, and lets no other begin until somebody listens again.
func (n *network) cut() {
	n.mutex.Lock()
	ears, open := slices.Collect(maps.Values(n.at)), n.open
	n.open = nil
	n.mutex.Unlock()
	for _, e := range ears {
		_ = e.Close()
	}
	for _, c := range open {
		_ = c.Close()
	}
}

func (n *network) tcp(port int) *net.TCPAddr {
	return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port}
}

func (n *network) listen(_, address string) (net.Listener, error) {
	a, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		return nil, err
	}
	n.mutex.Lock()
	defer n.mutex.Unlock()
	if n.port++; a.Port == 0 {
		a.Port = n.port
	}
	if n.at[a.String()] != nil {
		return nil, fmt.Errorf("%w: %v", syscall.EADDRINUSE, a)
	}
	e := &ear{of: n, address: a, comes: make(chan net.Conn), closed: make(chan struct{})}
	n.at[a.String()] = e
	return e, nil
}

func (n *network) dial(ctx context.Context, _, address string) (net.Conn, error) {
	n.mutex.Lock()
	e := n.at[address]
	n.port++
	from := n.tcp(n.port)
	n.mutex.Unlock()
	refused := fmt.Errorf("%w: %s", syscall.ECONNREFUSED, address)
	if e == nil {
		return nil, refused
	}
	near, far := net.Pipe()
	n.mutex.Lock()
	n.open = append(n.open, near, far)
	n.mutex.Unlock()
	select {
	case e.comes <- cable{far, e.address, from}:
		return cable{near, from, e.address}, nil
	case <-e.closed:
		return nil, refused
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (e *ear) Accept() (net.Conn, error) {
	select {
	case c := <-e.comes:
		return c, nil
	case <-e.closed:
		return nil, net.ErrClosed
	}
}

func (e *ear) Close() error {
	e.once.Do(func() {
		close(e.closed)
		e.of.mutex.Lock()
		delete(e.of.at, e.address.String())
		e.of.mutex.Unlock()
	})
	return nil
}

func (e *ear) Addr() net.Addr { return e.address }
