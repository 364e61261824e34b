package door_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hushsum/hushsum/protocol"
	"github.com/hushsum/hushsum/service/door"
	"github.com/hushsum/hushsum/service/exchange"
)

// piece is a request with the bytes of a message from one offset to another, none if they are
// the same.
func (s *site) piece(
	t testing.TB, message []byte, from, to int, who ed25519.PrivateKey, more string,
) *http.Request {
	t.Helper()
	path := fmt.Sprintf("/v1/federations/%s/messages?upload=%x&length=%d&offset=%d%s", s.fed.ID,
		sha256.Sum256(message), len(message), from, more)
	var body []byte
	if from < to {
		body = message[from:to]
	}
	return s.request(t, "POST", path, body, who)
}

// came sends a piece and returns how much of its message the door says has come.
func came(t testing.TB, r *http.Request, status int) int {
	t.Helper()
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	at, err := strconv.Atoi(answer.Header.Get(exchange.HeaderOffset))
	if err != nil || answer.StatusCode != status {
		t.Fatalf("%s: %d, want %d, %v", r.URL.RawQuery, answer.StatusCode, status, err)
	}
	return at
}

// announcement is a party's first message.
func (s *site) announcement(t testing.TB, i int) []byte {
	t.Helper()
	config := s.fed.Settled.Config(1)
	b, err := protocol.NewClientSeries(config.Label, 1, s.identities[i], nil).Succeed(config)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// A message is taken that comes in pieces, in memory or in a file, whatever else comes between:
// copies of pieces, pieces ahead, another party's with the same name, pieces of other messages. Its
// room is free again after it.
func TestPieces(t *testing.T) {
	for _, memory := range []int64{0, 1} {
		s := newSite(t, door.Options{Memory: memory, Folder: t.TempDir()})
		s.gather(t)
		me, other := s.identities[0], s.identities[1]
		message := s.announcement(t, 0)
		if got := came(t, s.piece(t, message, 0, 0, me, ""), 200); got != 0 || door.Waiting(s.Door) != 0 {
			t.Fatalf("before it begins, %d bytes have come, and room is kept", got)
		}
		const size = 16
		for at := 0; at+size < len(message); at += size {
			if got := came(t, s.piece(t, message, at, at+size, me, ""), 200); got != at+size {
				t.Fatalf("at %d: %d have come", at, got)
			}
			for name, r := range map[string]*http.Request{
				"a copy": s.piece(t, message, at, at+size, me, ""),
				"ahead":  s.piece(t, message, at+size+1, at+size+2, me, ""),
			} {
				if got := came(t, r, 409); got != at+size {
					t.Fatalf("%s of the piece at %d: %d have come", name, at, got)
				}
			}
			for name, r := range map[string]*http.Request{
				"another party's": s.piece(t, message, at+size, at+size+1, other, ""),
				"another message": s.piece(t, message[1:], at+size, at+size+1, me, ""),
			} {
				if got := came(t, r, 409); got != 0 {
					t.Fatalf("%s piece at %d: %d have come", name, at, got)
				}
			}
			if got := came(t, s.piece(t, message, at, at, me, ""), 200); got != at+size {
				t.Fatalf("asked after %d: %d have come", at+size, got)
			}
		}
		if got := door.Waiting(s.Door); got != int64(len(message)) {
			t.Errorf("room for %d bytes is kept, the message has %d", got, len(message))
		}
		last := (len(message) - 1) / size * size
		for _, r := range []*http.Request{
			s.piece(t, message, last, len(message), me, ""),
			s.piece(t, message, last, len(message), me, ""),
			s.piece(t, message, 0, 0, me, ""),
			s.request(t, "POST", "/v1/federations/"+s.fed.ID+"/messages", message, me),
		} {
			if status, kind, body := send(t, r); status != 202 {
				t.Fatalf("the last piece or a copy: %d %s %s", status, kind, body)
			}
		}
		if got := door.Waiting(s.Door); got != 0 {
			t.Errorf("room for %d bytes is kept after it", got)
		}
	}
}

// What came of a piece whose connection broke is kept; while it comes, another is refused.
func TestBrokenPiece(t *testing.T) {
	s := newSite(t, door.Options{Patience: time.Hour})
	s.gather(t)
	me, message := s.identities[0], s.announcement(t, 0)
	at := 0
	for _, n := range []int{5, 1, 7} {
		connection := s.beginOf(t, s.piece(t, message, at, len(message), me, ""), message[at:], n)
		eventually(t, "the piece", func() bool {
			_, kind, _ := send(t, s.piece(t, message, 0, 0, me, ""))
			return kind == "busy"
		})
		_ = connection.Close()
		eventually(t, "its bytes", func() bool {
			status, _, body := send(t, s.piece(t, message, 0, 0, me, ""))
			return status == 200 && strings.Contains(body, fmt.Sprintf(`"offset":%d}`, at+n))
		})
		at += n
	}
	if status, kind, body := send(t, s.piece(t, message, at, len(message), me, "")); status != 202 {
		t.Errorf("the rest: %d %s %s", status, kind, body)
	}
}

// A piece that is not what was signed ends its upload, and so does a whole that is not what its
// pieces named.
func TestWrongPiece(t *testing.T) {
	s := newSite(t, door.Options{})
	s.gather(t)
	me, message := s.identities[0], s.announcement(t, 0)
	came(t, s.piece(t, message, 0, 5, me, ""), 200)
	r := s.piece(t, message, 5, 10, me, "")
	r.Body = &closer{bytes.NewReader([]byte("wrong"))}
	if status, kind, body := send(t, r); kind != "digest" {
		t.Errorf("another piece than was signed: %d %s %s", status, kind, body)
	}
	if got := came(t, s.piece(t, message, 0, 0, me, ""), 200); got != 0 || door.Waiting(s.Door) != 0 {
		t.Errorf("%d bytes of it are kept", got)
	}
	path := fmt.Sprintf("/v1/federations/%s/messages?upload=%064x&length=%d&offset=", s.fed.ID, 1,
		len(message))
	came(t, s.request(t, "POST", path+"0", message[:5], me), 200)
	r = s.request(t, "POST", path+"5", message[5:], me)
	if status, kind, body := send(t, r); kind != "digest" || !strings.Contains(body, "upload") {
		t.Errorf("another message than was named: %d %s %s", status, kind, body)
	}
	if got := door.Waiting(s.Door); got != 0 {
		t.Errorf("room for %d bytes is kept", got)
	}
}

type closer struct{ *bytes.Reader }

// Close does nothing.
func (closer) Close() error { return nil }

// An upload has room for all of its length from its first piece on, or is refused; a party has
// one, and another in its place gives the room back, as does one that does not go on, or that a
// message is no longer due of.
func TestRoomOfUploads(t *testing.T) {
	const size = 2000
	begin := func(s *site, fill byte, who int) (status int, kind string) {
		message := bytes.Repeat([]byte{fill}, size)
		status, kind, _ = send(t, s.piece(t, message, 0, 1, s.identities[who], ""))
		return status, kind
	}
	s := newSite(t, door.Options{InFlight: 2*size + 1})
	s.gather(t)
	for k := range 6 { // three messages of each of two parties
		if status, kind := begin(s, byte(k), k%2); status != 200 {
			t.Fatalf("upload %d: %d %s", k, status, kind)
		}
		if got, want := door.Waiting(s.Door), int64(size*min(k+1, 2)); got != want {
			t.Errorf("after upload %d there is room for %d bytes, want %d", k, got, want)
		}
	}
	if status, kind := begin(s, 9, 2); kind != "full" {
		t.Errorf("an upload for which there is no room: %d %s", status, kind)
	}
	announce := s.announcement(t, 0)
	if len(announce) > size {
		t.Fatalf("the message has %d bytes", len(announce))
	}
	r := s.request(t, "POST", "/v1/federations/"+s.fed.ID+"/messages", announce, s.identities[0])
	if status, kind, body := send(t, r); status != 202 {
		t.Errorf("a whole message in an upload's place: %d %s %s", status, kind, body)
	}
	if got := door.Waiting(s.Door); got != size {
		t.Errorf("after it there is room for %d bytes", got)
	}
	if status, kind := begin(s, 3, 0); kind != "due" || door.Waiting(s.Door) != size {
		t.Errorf("an upload that is not due: %d %s", status, kind)
	}

	s = newSite(t, door.Options{Patience: 50 * time.Millisecond})
	s.gather(t)
	begin(s, 1, 0) // its body may come too late already
	eventually(t, "the end of an upload", func() bool { return door.Waiting(s.Door) == 0 })
}
