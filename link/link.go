package link

import "context"

// Link is a connection between one party and the coordinator. It carries frames in
// order, whole or not at all; when it breaks, both sides forget it and what was under
// way is lost. Send and Receive may be called from two goroutines at once.
type Link interface {
	Send(ctx context.Context, frame []byte) error
	Receive(ctx context.Context) ([]byte, error)
	Close() error
}

// Reuse gives a frame back that was received from a link, which may have use for the room: the
// parts of a long body would be garbage of its length.
func Reuse(link Link, frame []byte) {
	if l, ok := link.(interface{ reuse(frame []byte) }); ok {
		l.reuse(frame)
	}
}

// Limit sets the length of the longest frame that a link receives, if it is one over TCP.
func Limit(link Link, maxFrame int) {
	if l, ok := link.(interface{ limit(maxFrame int) }); ok {
		l.limit(maxFrame)
	}
}

// Dialer connects a party to the coordinator.
type Dialer interface {
	// Dial makes a new connection, which tells the coordinator who is dialing.
	Dial(ctx context.Context) (Link, error)
}

// Listener accepts the parties' connections for the coordinator. It may have the method
//
//	Notices() []Notice
//
// too, which a coordinator calls once a second: see [TCPListener.Notices].
type Listener interface {
	// Accept waits for the next connection and says whose it is, by roster index. A
	// connection from outside the roster is closed and not reported.
	Accept(ctx context.Context) (party int, link Link, err error)
	Close() error
}
