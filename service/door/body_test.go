package door_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hushsum/hushsum/protocol"
	"github.com/hushsum/hushsum/service/door"
	"github.com/hushsum/hushsum/service/exchange"
	"github.com/hushsum/hushsum/service/runner"
)

// heap is how many bytes are held.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// Bodies of many parties come at once and slowly. However many they are, those beyond the
// bound are not in memory, nor in a file that has a name; without the bound all of them
// are in memory. What has waited in a file is taken like the rest.
func TestManyBodies(t *testing.T) {
	const parties, size = 24, 1 << 20
	text := strings.Replace(declared, "shape = [16]", "shape = [300000]", 1)
	body := bytes.Repeat([]byte{7}, size)
	for _, c := range []struct {
		memory      int64
		least, most int64 // bytes held
	}{
		{2 * size, size, 6 * size},
		{parties * size, parties * size * 3 / 4, (parties + 6) * size},
	} {
		folder := t.TempDir()
		s := newSiteOf(t, door.Options{Memory: c.memory, Folder: folder}, text, parties, 0)
		s.gather(t)
		before := heap()
		var connections []net.Conn
		for _, who := range s.identities {
			connections = append(connections, s.begin(t, body, size-1, who))
		}
		eventually(t, "all bodies", func() bool { return door.Waiting(s.Door) == parties*size })
		// Buffers of connections, and what else lives on for a moment, are not bodies.
		held := int64(0)
		for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); {
			if held = heap() - before; held >= c.least && held <= c.most {
				break
			}
			time.Sleep(50 * time.Millisecond)
		}
		if held < c.least || held > c.most {
			t.Errorf("with room for %d kB, %d kB are held, want %d to %d", c.memory>>10, held>>10,
				c.least>>10, c.most>>10)
		}
		files, err := os.ReadDir(folder)
		if err != nil || len(files) > 0 && runtime.GOOS != "windows" {
			t.Errorf("files %v, %v", files, err)
		}
		for _, connection := range connections {
			_, _ = connection.Write(body[size-1:])
			_ = connection.SetReadDeadline(time.Now().Add(time.Minute))
			answer := make([]byte, 64)
			if n, err := connection.Read(answer); err != nil || !strings.Contains(string(answer[:n]), " 4") {
				t.Errorf("nonsense is answered %q, %v", answer[:n], err)
			}
			_ = connection.Close()
		}
		eventually(t, "room for all bodies", func() bool { return door.Waiting(s.Door) == 0 })
	}
}

// All parties are told of a decision at once. However slowly they take their messages,
// those that are being written have no more room than they may, and all get theirs. The
// longest message, of 24 parties' keys, has some 30 kB: there is room for three.
func TestManyMessages(t *testing.T) {
	const parties, room, atOnce = 24, 100 << 10, 3
	s := newSiteOf(t, door.Options{}, declared, parties, room)
	s.gather(t)
	config := s.fed.Settled.Config(1)
	for i, identity := range s.identities {
		announce, err := protocol.NewClientSeries(config.Label, 1, identity, nil).Succeed(config)
		if err != nil {
			t.Fatal(err)
		}
		err = s.run.ReadMessage(context.Background(), runner.Peer{Index: i}, bytes.NewReader(announce),
			int64(len(announce)), sha256.Sum256(announce), time.Now())
		if err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	type answer struct {
		runner.Outgoing
		error
	}
	answers := make(chan answer)
	for i := range parties {
		go func() {
			ask := exchange.Ask{Sessions: []uint64{1}, Least: 2}
			next, err := s.run.Next(ctx, runner.Peer{Index: i}, ask, time.Hour)
			answers <- answer{next, err}
		}()
	}
	var written []*answer
	held, most, longest, got := 0, 0, 0, 0
	for got < parties {
		// While fewer are being written than there is room for, another is sent its own, sooner
		// or later; beyond that nobody is, whose messages are as long.
		limit := time.Minute
		if len(written) >= atOnce {
			limit = 50 * time.Millisecond
		}
		select {
		case a := <-answers:
			if a.error != nil || a.Kind != exchange.Message {
				t.Fatalf("%q, %v", a.Kind, a.error)
			}
			got++
			held += a.Len()
			most, longest = max(most, held), max(longest, a.Len())
			written = append(written, &a)
		case <-time.After(limit): // one has its message
			if len(written) < atOnce {
				t.Fatalf("%d are being written, and nobody else is sent anything", len(written))
			}
			held -= written[0].Len()
			written[0].Sent()
			written = written[1:]
		}
	}
	for _, a := range written {
		a.Sent()
	}
	if most > room || longest*atOnce > room || longest*(atOnce+1) <= room {
		t.Errorf("%d bytes were being written at once, there is room for %d; the longest has %d", most,
			room, longest)
	}
}

// A message that waited in a file is taken, and copies of it are held already; another
// is not due.
func TestBodyInFile(t *testing.T) {
	s := newSite(t, door.Options{Memory: 1, Folder: t.TempDir()})
	s.gather(t)
	config := s.fed.Settled.Config(1)
	series := protocol.NewClientSeries(config.Label, 1, s.identities[0], nil)
	announce, err := series.Succeed(config)
	if err != nil {
		t.Fatal(err)
	}
	post := func(b []byte) *http.Request {
		return s.request(t, "POST", "/v1/federations/"+s.fed.ID+"/messages", b, s.identities[0])
	}
	for copies := range 3 {
		if status, kind, body := send(t, post(announce)); status != 202 {
			t.Fatalf("copy %d: %d %s %s", copies, status, kind, body)
		}
	}
	if status, kind, body := send(t, post(announce[1:])); status != 409 || kind != "due" {
		t.Errorf("another: %d %s %s", status, kind, body)
	}
}

// What one leader had is taken again by another that was set back and waits for it: the door's own
// word that it is held does not stand in the way.
func TestHeldByLeaderBefore(t *testing.T) {
	s := newSite(t, door.Options{})
	config := s.fed.Settled.Config(1)
	announce, err := protocol.NewClientSeries(config.Label, 1, s.identities[0], nil).Succeed(config)
	if err != nil {
		t.Fatal(err)
	}
	for leader := range 2 {
		if leader > 0 {
			s.lead(t, 0)
		}
		s.gather(t)
		path := "/v1/federations/" + s.fed.ID + "/messages"
		if status, kind, body := send(t, s.request(t, "POST", path, announce, s.identities[0])); status !=
			202 {
			t.Fatalf("%d %s %s", status, kind, body)
		}
		got, err := s.run.Status(context.Background())
		if err != nil || got.BytesIn != int64(len(announce)) {
			t.Errorf("%d bytes came of %d: %v", got.BytesIn, len(announce), err)
		}
	}
}

// A body takes room in memory while it is open, up to the last byte that there is; one that waits
// in a file takes none.
func TestRoomIsGivenBack(t *testing.T) {
	d := door.New(door.Options{Memory: 10, Folder: t.TempDir()})
	for range 2 {
		got := door.Held(t, d, 4, 7, 6, 1)
		if want := []int64{4, 4, 10, 10, 6, 6, 0, 0}; !slices.Equal(got, want) {
			t.Errorf("the room taken is %v, want %v", got, want)
		}
	}
}

// A body that waited in a file leaves none open.
func TestBodyFileIsClosed(t *testing.T) {
	if !door.Closed(t, door.New(door.Options{Memory: 1, Folder: t.TempDir()})) {
		t.Error("the file is open")
	}
}

// What is in the file is not what came, and what is read of it is.
func TestBodyIsSealed(t *testing.T) {
	d := door.New(door.Options{Memory: 1, Folder: t.TempDir()})
	sent := bytes.Repeat([]byte("marked submission "), 5000)
	stored, reader := door.Store(t, d, sent)
	if bytes.Contains(stored, []byte("marked")) || len(stored) != len(sent) {
		t.Error("the file has the body as it came")
	}
	if read, err := io.ReadAll(reader); err != nil || !bytes.Equal(read, sent) {
		t.Errorf("another body comes back, %v", err)
	}
}
