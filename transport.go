package hushsum

import (
	"context"
	"io"
	"sync"

	"github.com/hushsum/hushsum/internal/frames"
)

// ErrFrame: a frame is longer than the receiver allows, or of no known kind.
var ErrFrame = frames.ErrFrame

// Link is a connection between one party and the coordinator. It carries frames in
// order, whole or not at all; when it breaks, both sides forget it and what was under
// way is lost. Send and Receive may be called from two goroutines at once.
type Link interface {
	Send(ctx context.Context, frame []byte) error
	Receive(ctx context.Context) ([]byte, error)
	Close() error
}

// reuse gives a frame back that was received from a link, which may have use for the room: the
// parts of a long body would be garbage of its length.
func reuse(link Link, frame []byte) {
	if l, ok := link.(interface{ reuse(frame []byte) }); ok {
		l.reuse(frame)
	}
}

// Dialer connects a party to the coordinator.
type Dialer interface {
	// Dial makes a new connection, which tells the coordinator who is dialing.
	Dial(ctx context.Context) (Link, error)
}

// Listener accepts the parties' connections for the coordinator.
type Listener interface {
	// Accept waits for the next connection and says whose it is, by roster index. A
	// connection from outside the roster is closed and not reported.
	Accept(ctx context.Context) (party int, link Link, err error)
	Close() error
}

// Memory carries frames between parties and a coordinator of one process. The zero
// value is ready.
type Memory struct {
	once  sync.Once
	dials chan memoryDial
}

type memoryDial struct {
	party int
	link  *memoryLink
}

func (m *Memory) channel() chan memoryDial {
	m.once.Do(func() { m.dials = make(chan memoryDial) })
	return m.dials
}

// Dialer returns a party's side.
func (m *Memory) Dialer(party int) Dialer { return memoryDialer{m, party} }

type memoryDialer struct {
	memory *Memory
	party  int
}

func (d memoryDialer) Dial(ctx context.Context) (Link, error) {
	broken := make(chan struct{})
	there, back := make(chan []byte), make(chan []byte)
	once := new(sync.Once)
	near := &memoryLink{send: there, receive: back, broken: broken, once: once}
	far := &memoryLink{send: back, receive: there, broken: broken, once: once}
	select {
	case d.memory.channel() <- memoryDial{d.party, far}:
		return near, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept waits for a party to dial.
func (m *Memory) Accept(ctx context.Context) (int, Link, error) {
	select {
	case dial := <-m.channel():
		return dial.party, dial.link, nil
	case <-ctx.Done():
		return 0, nil, ctx.Err()
	}
}

// Close does nothing: links are closed individually.
func (m *Memory) Close() error { return nil }

type memoryLink struct {
	send, receive chan []byte
	broken        chan struct{}
	once          *sync.Once
}

func (l *memoryLink) Send(ctx context.Context, frame []byte) error {
	select {
	case <-l.broken:
		return io.ErrClosedPipe
	default:
	}
	select {
	case l.send <- append([]byte(nil), frame...):
		return nil
	case <-l.broken:
		return io.ErrClosedPipe
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l *memoryLink) Receive(ctx context.Context) ([]byte, error) {
	select {
	case frame := <-l.receive:
		return frame, nil
	case <-l.broken:
		return nil, io.ErrClosedPipe
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (l *memoryLink) Close() error {
	l.once.Do(func() { close(l.broken) })
	return nil
}
