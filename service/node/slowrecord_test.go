package node_test

import (
	"context"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/service/federation"
	"github.com/hushsum/hushsum/service/node"
)

// slowNATS is a server of NATS in this process, whose messages take a while to come.
type slowNATS struct {
	*server.Server
	late atomic.Int64 // nanoseconds
}

// InProcessConn is the method of [nats.InProcessConnProvider].
func (s *slowNATS) InProcessConn() (net.Conn, error) {
	conn, err := s.Server.InProcessConn()
	if err != nil {
		return nil, err
	}
	w := &lateWire{Conn: conn, comes: make(chan piece, 1<<12)}
	go func() {
		defer close(w.comes)
		for {
			b := make([]byte, 1<<15)
			n, err := conn.Read(b)
			if n > 0 {
				w.comes <- piece{b[:n], time.Now().Add(time.Duration(s.late.Load()))}
			}
			if err != nil {
				return
			}
		}
	}()
	return w, nil
}

// piece holds bytes, and when they are there.
type piece struct {
	b  []byte
	at time.Time
}

// lateWire is a connection whose bytes come late, and in their order.
type lateWire struct {
	net.Conn
	comes chan piece
	rest  []byte
}

func (w *lateWire) Read(b []byte) (int, error) {
	if len(w.rest) == 0 {
		next, open := <-w.comes
		if !open {
			return 0, net.ErrClosed
		}
		time.Sleep(time.Until(next.at))
		w.rest = next.b
	}
	n := copy(b, w.rest)
	w.rest = w.rest[n:]
	return n, nil
}

// A record answers so slowly that a node reads it for longer than others wait for a leader that is
// silent. The node says all the while that it is about to lead: no other claims the federation.
func TestSlowRecord(t *testing.T) {
	inTurn(t)
	inBubble(t, slowRecord)
}

func slowRecord(t *testing.T, in *network) {
	const silence = 2 * time.Second
	s := new(slowNATS)
	var err error
	s.Server, err = server.NewServer(&server.Options{JetStream: true, StoreDir: t.TempDir(),
		DontListen: true, NoLog: true, NoSigs: true})
	if err != nil {
		t.Fatal(err)
	}
	go s.Start()
	defer func() {
		s.Shutdown()
		s.WaitForShutdown()
	}()
	if !s.ReadyForConnections(20 * time.Second) {
		t.Fatal("NATS does not start")
	}
	key, err := keyexchange.GenerateSealKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	var nodes []*node.Node
	var logs []*safeBuffer
	for _, name := range []string{"a", "b"} {
		log := new(safeBuffer)
		c := in.node(plainNode(t.TempDir()))
		c.Name, c.NATS, c.Silence, c.Hooks().Key = name, "nats://in-process", silence, key
		c.NATSOptions = []nats.Option{nats.InProcessServer(s)}
		c.Log = slog.New(slog.NewTextHandler(log, nil))
		n, err := node.Start(context.Background(), c)
		if err != nil {
			t.Fatal(err)
		}
		defer n.Close()
		nodes, logs = append(nodes, n), append(logs, log)
	}
	s.late.Store(int64(800 * time.Millisecond))
	defer s.late.Store(0)
	text, roster, _ := fourParties(t)
	_, err = nodes[0].Create(t.Context(), federation.Files{Text: text, Roster: roster})
	if err != nil {
		t.Fatal(err)
	}
	led := func() (times int) {
		for _, l := range logs {
			times += strings.Count(l.String(), "this node leads")
		}
		return times
	}
	for deadline := time.Now().Add(5 * time.Minute); led() == 0 && time.Now().Before(deadline); {
		time.Sleep(100 * time.Millisecond)
	}
	time.Sleep(5 * silence) // in which another that has claimed leads as well
	if times := led(); times != 1 {
		t.Errorf("nodes led %d times:\n%v\n%v", times, logs[0], logs[1])
	}
}
