package hushsum

import (
	"context"
	"crypto/ed25519"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

// Both sides speak TLS 1.3 and nothing older.
func TestTCPVersion(t *testing.T) {
	signers, roster := identities(t, 3)
	strangers, _ := named(t, "coordinator", 2)
	coordinator := strangers[0]
	key := coordinator.Public().(ed25519.PublicKey)
	listener, err := ListenTCP("127.0.0.1:0", coordinator, roster)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	go func() {
		for {
			if _, _, err := listener.Accept(ctx); err != nil {
				return
			}
		}
	}()
	config, err := tlsConfig(signers[0], func(ed25519.PublicKey) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	config.MinVersion, config.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
	dialer := tls.Dialer{Config: config}
	if conn, err := dialer.DialContext(ctx, "tcp", listener.Address()); err == nil {
		_ = conn.Close()
		t.Error("a coordinator speaks TLS 1.2")
	}
	config, err = tlsConfig(coordinator, func(ed25519.PublicKey) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	config.MinVersion, config.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
	old, err := tls.Listen("tcp", "127.0.0.1:0", config)
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	go func() {
		for {
			conn, err := old.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(io.Discard, conn) }()
		}
	}()
	party := &TCPDialer{Address: old.Addr().String(), Identity: signers[0], Coordinator: key}
	if link, err := party.Dial(ctx); err == nil {
		_ = link.Close()
		t.Error("a party speaks TLS 1.2")
	}
}

// There is room for what has come of a frame, and not for what its head says.
func TestFrameRoom(t *testing.T) {
	near, far := net.Pipe()
	link := newConnLink(near, 0)
	go func() {
		_, _ = far.Write(binary.BigEndian.AppendUint32(nil, defaultMaxFrame))
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
	if taken := after.TotalAlloc - before.TotalAlloc; taken > defaultMaxFrame/8 {
		t.Errorf("%d bytes are made room for", taken)
	}
}

// A counter's file has a number and nothing else.
func TestFileCounter(t *testing.T) {
	counter := FileCounter(filepath.Join(t.TempDir(), "counter"))
	if n, err := counter.Value(); n != 0 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if err := counter.Advance(1 << 40); err != nil {
		t.Fatal(err)
	}
	if n, err := counter.Value(); n != 1<<40 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	for _, length := range []int{0, 7, 9} {
		if err := os.WriteFile(string(counter), make([]byte, length), 0o600); err != nil {
			t.Fatal(err)
		}
		if n, err := counter.Value(); !errors.Is(err, ErrStore) {
			t.Errorf("%d bytes: %d, %v", length, n, err)
		}
	}
}
