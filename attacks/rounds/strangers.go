package rounds

import (
	"context"
	"crypto/ed25519"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/hushsum/hushsum/attacks/internal/textbook"
	"github.com/hushsum/hushsum/link"
)

const (
	// welcome is how many parties want to connect.
	welcome = 3
	// places is how many connections the listener without the defence takes, and crowd how many
	// strangers hold with the real one: it takes 512 that have not said hello.
	places, crowd = 64, 600
	loopback      = "127.0.0.1:0"
)

// errClosed says that a listener lets nobody in, though there are no strangers.
var errClosed = errors.New("the listener without the defence lets nobody in")

// runStrangers has strangers connect and say nothing, and then parties.
func runStrangers(r *runner) error {
	// Whom nobody is in the way of comes in, however long that takes; who has no place waits for
	// nothing.
	const long, short = time.Minute, time.Second / 2
	var kept [3]int
	for i, c := range []struct {
		strangers int
		keeps     bool
		wait      time.Duration
	}{{0, true, long}, {places, true, short}, {crowd, false, long}} {
		in, err := letIn(r.ctx, c.strangers, c.keeps, c.wait)
		if err != nil {
			return err
		}
		kept[i] = welcome - in
	}
	if kept[0] > 0 {
		return errClosed
	}
	r.measured("silent connections", "parties kept out, of 3", welcome, exactly(kept[1], welcome),
		exactly(kept[2], 0))
	return nil
}

// letIn returns how many parties get through to a coordinator that strangers have connected to
// before, with a front that keeps every connection or without.
func letIn(ctx context.Context, strangers int, keeps bool, wait time.Duration) (in int, err error) {
	ctx, end := context.WithCancel(ctx)
	var group sync.WaitGroup
	defer group.Wait()
	defer end()
	signers := textbook.Signers(welcome + 1)
	coordinator := signers[welcome]
	l, err := link.ListenTCP(loopback, coordinator, textbook.RosterOf("party", signers[:welcome]))
	if err != nil {
		return 0, err
	}
	defer l.Close()
	address := l.Address()
	if keeps {
		f, err := newFront(ctx, address)
		if err != nil {
			return 0, err
		}
		defer f.group.Wait()
		defer end()
		address = f.listener.Addr().String()
	}
	for range strangers {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
		if err != nil {
			return 0, err
		}
		defer conn.Close()
	}
	for _, signer := range signers[:welcome] {
		d := &link.TCPDialer{Address: address, Identity: signer,
			Coordinator: coordinator.Public().(ed25519.PublicKey)}
		group.Go(func() { greet(ctx, d) })
	}
	soon, late := context.WithTimeout(ctx, wait)
	defer late()
	for ; in < welcome; in++ {
		_, conn, err := l.Accept(soon)
		if errors.Is(err, context.DeadlineExceeded) {
			return in, nil
		} else if err != nil {
			return 0, err
		}
		_ = conn.Close()
	}
	return in, nil
}

// greet connects as a party does, again and again until it could say hello.
func greet(ctx context.Context, d *link.TCPDialer) {
	for ctx.Err() == nil {
		conn, err := d.Dial(ctx)
		if err == nil {
			err = conn.Send(ctx, []byte("hello"))
			if err == nil {
				_, _ = conn.Receive(ctx) // until the other end has seen it
			}
			_ = conn.Close()
		}
		if err == nil {
			return
		}
	}
}

// front is a listener without the defence: it has some places, keeps every connection until that
// ends by itself, and hands those that say something to another listener.
type front struct {
	listener net.Listener
	to       string
	group    sync.WaitGroup
}

func newFront(ctx context.Context, to string) (*front, error) {
	listener, err := net.Listen("tcp", loopback)
	if err != nil {
		return nil, err
	}
	f := &front{listener: listener, to: to}
	context.AfterFunc(ctx, func() { _ = listener.Close() })
	f.group.Go(func() { f.serve(ctx) })
	return f, nil
}

func (f *front) serve(ctx context.Context) {
	free := make(chan struct{}, places)
	for {
		select {
		case free <- struct{}{}:
		case <-ctx.Done():
			return
		}
		conn, err := f.listener.Accept()
		if err != nil {
			return // it is closed
		}
		f.group.Go(func() {
			f.forward(ctx, conn)
			<-free
		})
	}
}

// forward waits for the first bytes of a connection, and carries them and what follows.
func (f *front) forward(ctx context.Context, conn net.Conn) {
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	first := make([]byte, 1<<12)
	n, err := conn.Read(first)
	if err != nil {
		return
	}
	to, err := new(net.Dialer).DialContext(ctx, "tcp", f.to)
	if err != nil {
		return
	}
	defer to.Close()
	if _, err := to.Write(first[:n]); err != nil {
		return
	}
	f.group.Go(func() {
		_, _ = io.Copy(to, conn) // either end may close
		_ = to.Close()
	})
	_, _ = io.Copy(conn, to)
}
