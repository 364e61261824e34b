package link

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ed25519"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/hushsum/hushsum/keyexchange"
)

// A frame that its head says to be longer than any is refused before a byte of it is received.
func TestFrameTooLong(t *testing.T) {
	for _, length := range []uint32{MaxFrame + 1, 600 << 20, 1<<32 - 1} {
		near, far := net.Pipe()
		link := newConnLink(near, MaxFrame)
		go func() {
			_, _ = far.Write(binary.BigEndian.AppendUint32(nil, length))
			_ = far.Close()
		}()
		if _, err := link.Receive(t.Context()); !errors.Is(err, ErrFrame) {
			t.Errorf("%d bytes: %v", length, err)
		}
	}
}

// There is room for what has come of a frame, and not for what its head says.
func TestFrameRoom(t *testing.T) {
	near, far := net.Pipe()
	link := newConnLink(near, MaxFrame)
	go func() {
		_, _ = far.Write(binary.BigEndian.AppendUint32(nil, MaxFrame))
		_, _ = far.Write(make([]byte, 100))
		_ = far.Close()
	}()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := link.Receive(t.Context())
	runtime.ReadMemStats(&after)
	if !errors.Is(err, io.EOF) {
		t.Errorf("%v", err)
	}
	if taken := after.TotalAlloc - before.TotalAlloc; taken > MaxFrame/4 {
		t.Errorf("%d bytes are made room for", taken)
	}
}

// A frame that was given back is the room of the next, whatever the lengths of both.
func TestFramesReused(t *testing.T) {
	near, far := net.Pipe()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	from, to := newConnLink(near, MaxFrame), newConnLink(far, MaxFrame)
	defer from.Close()
	defer to.Close()
	sizes := []int{10, 3, 200_000, 199_999, 200_000, 1, 300_000}
	frameOf := func(k int) []byte { return bytes.Repeat([]byte{byte(k + 1)}, sizes[k]) }
	go func() {
		for k := range sizes {
			if err := from.Send(ctx, frameOf(k)); err != nil {
				t.Error(err)
			}
		}
	}()
	var last []byte
	for k, size := range sizes {
		got, err := to.Receive(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, frameOf(k)) {
			t.Fatalf("frame %d arrives otherwise", k)
		}
		if cap(last) >= size && &last[0] != &got[0] {
			t.Errorf("frame %d has a room of its own", k)
		}
		last = got
		Reuse(to, got)
	}
}

// listening returns a listener, and a context that ends if nothing happens there for long.
func listening(
	t *testing.T, coordinator crypto.Signer, roster *keyexchange.Roster,
) (*TCPListener, context.Context) {
	t.Helper()
	listener, err := ListenTCP("127.0.0.1:0", coordinator, roster)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(func() {
		cancel()
		_ = listener.Close()
	})
	return listener, ctx
}

// Both sides end a connection whose other side has the right key and speaks another version, or
// does not say which.
func TestOtherVersions(t *testing.T) {
	signers, roster := named(t, "party", 2)
	coordinator := signers[1]
	listener, ctx := listening(t, coordinator, roster)
	accept := func(ed25519.PublicKey) error { return nil }
	for _, speaks := range [][]string{nil, {"hushsum/2"}} {
		config, err := tlsConfig(signers[0], accept)
		if err != nil {
			t.Fatal(err)
		}
		config.NextProtos, config.VerifyConnection = speaks, nil
		conn, err := (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", listener.Address())
		if err == nil {
			_, err = conn.Read(make([]byte, 1))
			_ = conn.Close()
		}
		if err == nil || ctx.Err() != nil {
			t.Errorf("a party that speaks %q: %v", speaks, err)
		}

		if config, err = tlsConfig(coordinator, accept); err != nil {
			t.Fatal(err)
		}
		config.NextProtos, config.VerifyConnection = speaks, nil
		other, err := tls.Listen("tcp", "127.0.0.1:0", config)
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
		go func() {
			conn, err := other.Accept()
			if err == nil {
				_ = conn.(*tls.Conn).HandshakeContext(ctx)
			}
		}()
		d := &TCPDialer{Address: other.Addr().String(), Identity: signers[0],
			Coordinator: coordinator.Public().(ed25519.PublicKey)}
		if _, err := d.Dial(ctx); !errors.Is(err, errProtocol) || !errors.Is(err, ErrPeer) {
			t.Errorf("a coordinator that speaks %q: %v", speaks, err)
		}
	}
}

// Over TCP nobody gets through who is not in the roster, or who is not the coordinator.
func TestTCP(t *testing.T) {
	signers, roster := named(t, "party", 3)
	strangers, _ := named(t, "party", 5)
	coordinator := strangers[4]
	listener, ctx := listening(t, coordinator, roster)
	dial := func(identity int, expected ed25519.PublicKey) (Link, error) {
		d := &TCPDialer{Address: listener.Address(), Identity: strangers[identity],
			Coordinator: expected}
		return d.Dial(ctx)
	}
	right := coordinator.Public().(ed25519.PublicKey)
	if _, err := dial(0, signers[1].Public().(ed25519.PublicKey)); !errors.Is(err, ErrPeer) {
		t.Errorf("another coordinator: %v", err)
	}
	// In TLS 1.3 a client learns that it is not welcome from its first read.
	link, err := dial(3, right)
	if err != nil {
		t.Fatal(err)
	}
	if err := link.Send(ctx, []byte("hello")); err != nil {
		t.Error(err)
	}
	if _, err := link.Receive(ctx); !errors.Is(err, ErrPeer) {
		t.Errorf("a stranger: %v", err)
	}
	_ = link.Close()
	if link, err = dial(1, right); err != nil {
		t.Fatal(err)
	}
	defer link.Close()
	if err := link.Send(ctx, []byte("hello")); err != nil {
		t.Fatal(err)
	}
	party, far, err := listener.Accept(ctx)
	if err != nil || party != 1 {
		t.Fatalf("party %d: %v", party, err)
	}
	defer far.Close()
	if first, err := far.Receive(ctx); string(first) != "hello" || err != nil {
		t.Errorf("the first frame is %q, %v", first, err)
	}
	large := make([]byte, 1<<20)
	large[len(large)-1] = 7
	for _, b := range [][]byte{{}, {1}, large} {
		go func() { _ = far.Send(ctx, b) }()
		if got, err := link.Receive(ctx); err != nil || !slices.Equal(got, b) {
			t.Fatalf("%d bytes: %d, %v", len(b), len(got), err)
		}
	}
	go func() { _ = far.Send(ctx, make([]byte, MaxFrame+1)) }()
	if _, err := link.Receive(ctx); !errors.Is(err, ErrFrame) {
		t.Errorf("a frame above the limit: %v", err)
	}
	soon, end := context.WithTimeout(ctx, 50*time.Millisecond)
	defer end()
	if _, err := far.Receive(soon); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a wait that ends: %v", err)
	}
}

// Neither side speaks TLS before 1.3, whose handshake would show who dials.
func TestTLSVersion(t *testing.T) {
	w := newWorld(t, 3, nil)
	config, err := tlsConfig(w.signers[1], func(ed25519.PublicKey) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	older := config.Clone()
	older.MinVersion, older.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
	if conn, err := tls.Dial("tcp", w.listener.Address(), older); err == nil {
		_ = conn.Close()
		t.Error("a listener takes TLS 1.2")
	}
	server, err := tls.Listen("tcp", "127.0.0.1:0", older)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	go func() {
		if conn, err := server.Accept(); err == nil {
			_ = conn.(*tls.Conn).Handshake()
			_ = conn.Close()
		}
	}()
	d := &TCPDialer{
		Address:     server.Addr().String(),
		Identity:    w.signers[0],
		Coordinator: w.signers[1].Public().(ed25519.PublicKey),
	}
	if link, err := d.Dial(w.ctx); err == nil {
		_ = link.Close()
		t.Error("a dialer takes TLS 1.2")
	}
}

// puts counts the session tickets that a client is given.
type puts int

func (*puts) Get(string) (*tls.ClientSessionState, bool) { return nil, false }

func (p *puts) Put(string, *tls.ClientSessionState) { *p++ }

// Each side shows one certificate, which shows its key, and a listener gives no session tickets.
func TestTLSCertificates(t *testing.T) {
	w := newWorld(t, 3, nil)
	strangers, _ := named(t, "stranger", 2) // who are told that they are not in the roster
	own, err := certificate(strangers[0])
	if err != nil {
		t.Fatal(err)
	}
	other, err := certificate(strangers[1])
	if err != nil {
		t.Fatal(err)
	}
	for count, chain := range [][][]byte{
		{}, own.Certificate, slices.Concat(own.Certificate, other.Certificate),
	} {
		var tickets puts
		c := &tls.Config{InsecureSkipVerify: true, ClientSessionCache: &tickets,
			NextProtos: []string{alpn}}
		if count > 0 {
			c.Certificates = []tls.Certificate{{Certificate: chain, PrivateKey: strangers[0]}}
		}
		conn, err := tls.Dial("tcp", w.listener.Address(), c)
		if err != nil {
			t.Fatal(err)
		}
		_, err = conn.Read(make([]byte, 4))
		if (err == nil) != (count == 1) || tickets > 0 {
			t.Errorf("with %d certificates: %v, %d tickets", count, err, tickets)
		}
		_ = conn.Close()
	}
}
