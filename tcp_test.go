package hushsum

import (
	"bytes"
	"context"
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

// A frame that was given back is the room of the next, whatever the lengths of both.
func TestFramesReused(t *testing.T) {
	near, far := net.Pipe()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	from, to := newConnLink(near, 0), newConnLink(far, 0)
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
		reuse(to, got)
	}
}
