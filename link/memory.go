package link

import (
	"context"
	"io"
	"sync"
)

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
