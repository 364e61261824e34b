package door_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/hushsum/hushsum/service/door"
	"github.com/hushsum/hushsum/service/exchange"
)

// Whatever says that it has a body, and then sends none, is closed: wherever it goes, and
// whether the handler reads bodies or not.
func TestBodyThatNeverComes(t *testing.T) {
	s := newSite(t, door.Options{Patience: 100 * time.Millisecond})
	f := "/v1/federations/" + s.fed.ID
	const told, chunked = "Content-Length: 100000\r\n", "Transfer-Encoding: chunked\r\n"
	for _, begun := range []string{
		"POST /v1/federations HTTP/1.1\r\nHost: x\r\n" + told + "\r\n",
		"POST /v1/federations HTTP/1.1\r\nHost: x\r\n" + chunked + "\r\n",
		"POST /v1/federations HTTP/1.1\r\nHost: x\r\n" + chunked + "\r\n4\r\nab",
		"GET /v1/federations HTTP/1.1\r\nHost: x\r\n" + told + "\r\n",
		"GET /v1/federations HTTP/1.1\r\nHost: x\r\n" + chunked + "\r\n",
		"GET /healthz HTTP/1.1\r\nHost: x\r\n" + told + "\r\nabc",
		"POST " + f + "/messages HTTP/1.1\r\nHost: x\r\n" + told + "\r\n",
		"GET " + f + "/next HTTP/1.1\r\nHost: x\r\n" + chunked + "\r\n",
		"PUT /nothing HTTP/1.1\r\nHost: x\r\n" + told + "Expect: 100-continue\r\n\r\n",
	} {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			connection, err := net.Dial("tcp", strings.TrimPrefix(s.server.URL, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			defer connection.Close()
			if _, err := io.WriteString(connection, begun); err != nil {
				t.Fatal(err)
			}
			_ = connection.SetReadDeadline(time.Now().Add(time.Minute))
			answer, err := io.ReadAll(connection)
			if errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("%q stays open; answered %q", begun, answer)
			}
		})
	}
}

// Who sends a long body and is refused hears so before the body is there: a sender may wait for
// that with the rest of it.
func TestRefusedBeforeTheBody(t *testing.T) {
	s := newSite(t, door.Options{Patience: time.Hour})
	for path, kind := range map[string]string{
		"/nothing":                   "route",
		"/v1/federations":            "method",
		"/v1/federations/x/messages": "unknown",
		"/v1/federations/" + s.fed.ID + "/messages": "unsigned",
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			connection, err := net.Dial("tcp", strings.TrimPrefix(s.server.URL, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			defer connection.Close()
			fmt.Fprintf(connection, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\nabc",
				path)
			_ = connection.SetReadDeadline(time.Now().Add(time.Minute))
			answer, err := http.ReadResponse(bufio.NewReader(connection), nil)
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(answer.Body)
			if err != nil || !strings.Contains(string(text), exchange.ProblemPrefix+kind) {
				t.Errorf("%d %q, %v", answer.StatusCode, text, err)
			}
		})
	}
}

// clocked is a connection whose bytes come while a clock goes on, and whose deadlines are
// looked at by that clock.
type clocked struct {
	http.ResponseWriter
	now      time.Time
	deadline time.Time
	left     int
	at       func(left int) (n int, after time.Duration) // what comes next
}

func (c *clocked) SetReadDeadline(at time.Time) error {
	c.deadline = at
	return nil
}

func (c *clocked) Read(p []byte) (int, error) {
	if c.left == 0 {
		return 0, io.EOF
	}
	n, after := c.at(c.left)
	c.now = c.now.Add(after)
	if !c.deadline.IsZero() && c.now.After(c.deadline) {
		c.now = c.deadline
		return 0, os.ErrDeadlineExceeded
	}
	n = min(n, len(p), c.left)
	c.left -= n
	return n, nil
}

func (c *clocked) Close() error { return nil }

// A long body may come slowly. One that is too slow ends, and so does one that stops,
// however quick its beginning was: within seconds.
func TestPatience(t *testing.T) {
	const size = 100 << 20
	for name, c := range map[string]struct {
		at    func(left int) (int, time.Duration)
		whole bool
		most  time.Duration // until it is given up
	}{
		"100 MB at 20 kB a second": {
			at:    func(int) (int, time.Duration) { return 16 << 10, 800 * time.Millisecond },
			whole: true,
		},
		"100 MB with pauses": {
			at: func(left int) (int, time.Duration) {
				if left%(10<<20) == 0 {
					return 16 << 10, 9 * time.Second
				}
				return 16 << 10, 500 * time.Millisecond
			},
			whole: true,
		},
		"2 kB a second": {
			at:   func(int) (int, time.Duration) { return 10 << 10, 5 * time.Second },
			most: time.Minute,
		},
		"a byte a second": {
			at:   func(int) (int, time.Duration) { return 1, time.Second },
			most: door.DefaultPatience + time.Second,
		},
		"nothing": {
			at:   func(int) (int, time.Duration) { return 0, 24 * time.Hour },
			most: door.DefaultPatience,
		},
		"90 MB at once, and then nothing": {
			at: func(left int) (int, time.Duration) {
				if left > 10<<20 {
					return 16 << 10, time.Millisecond
				}
				return 0, 24 * time.Hour
			},
			most: time.Minute,
		},
	} {
		start := time.Unix(1e9, 0)
		conn := &clocked{ResponseWriter: httptest.NewRecorder(), now: start, left: size, at: c.at}
		r := httptest.NewRequest("POST", "/", nil)
		r.Body, r.ContentLength = conn, size
		var came int64
		var err error
		door.PatientAt(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			buffer := make([]byte, 16<<10)
			came, err = io.CopyBuffer(struct{ io.Writer }{io.Discard}, r.Body, buffer)
		}), func() time.Time { return conn.now }).ServeHTTP(conn, r)
		took := conn.now.Sub(start)
		switch {
		case c.whole && (err != nil || came != size || !conn.deadline.IsZero()):
			t.Errorf("%s: %d bytes in %v, then %v; a deadline stays: %v", name, came, took, err,
				!conn.deadline.IsZero())
		case !c.whole && (!errors.Is(err, os.ErrDeadlineExceeded) || took > c.most):
			t.Errorf("%s: %v after %v, want its end within %v", name, err, took, c.most)
		}
	}
}

// The deadline of a body is over with it: an answer may take longer than a body may pause.
func TestPatienceEnds(t *testing.T) {
	const patience = 50 * time.Millisecond
	var kept io.Reader
	server := httptest.NewServer(door.Patient(http.HandlerFunc(
		func(w http.ResponseWriter, r *http.Request) {
			kept = r.Body
			body, err := io.ReadAll(r.Body)
			select {
			case <-r.Context().Done():
				err = r.Context().Err()
			case <-time.After(10 * patience):
			}
			fmt.Fprint(w, len(body), err)
		}), patience))
	defer server.Close()
	for range 2 { // the second by the connection of the first
		answer, err := http.Post(server.URL, "", bytes.NewReader(make([]byte, 1000)))
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if string(b) != "1000 <nil>" || err != nil {
			t.Errorf("%q, %v", b, err)
		}
	}
	if _, err := kept.Read(make([]byte, 1)); err == nil || err == io.EOF {
		t.Errorf("a body is read after its handler's end: %v", err)
	}
}

// What strangers may ask is counted apart from what parties may, and each party's apart from
// the others', although all come from one address, as they do through a balancer.
func TestRateApart(t *testing.T) {
	now := time.Now()
	s := newSite(t, door.Options{PerSecond: 2, Now: func() time.Time { return now }})
	f := "/v1/federations/" + s.fed.ID
	ask := func(r *http.Request) string {
		t.Helper()
		status, kind, _ := send(t, r)
		if status == 200 {
			return "ok"
		}
		return kind
	}
	me, other := s.identities[0], s.identities[1]
	forged := func() *http.Request {
		r := s.request(t, "GET", f, nil, me)
		r.URL.Path += "/roster"
		return r
	}
	for _, c := range []struct {
		what string
		r    func() *http.Request
		kind string
	}{
		{"unsigned", func() *http.Request { return s.request(t, "GET", f, nil, nil) }, "unsigned"},
		{"by a stranger", func() *http.Request { return s.request(t, "GET", f, nil, s.stranger) },
			"stranger"},
		{"forged", forged, "signature"},
		{"open", func() *http.Request { return s.request(t, "GET", "/healthz", nil, nil) }, "ok"},
		{"of no federation", func() *http.Request {
			return s.request(t, "GET", "/v1/federations/x", nil, me)
		}, "unknown"},
		{"with a query that is too long", func() *http.Request {
			return s.request(t, "GET", f+"?a="+strings.Repeat("a", 2000), nil, nil)
		}, "unsigned"},
	} {
		for k := range 25 { // a burst of 20 is allowed
			got, want := ask(c.r()), c.kind
			if k >= 20 {
				want = "rate"
			}
			if got != want {
				t.Errorf("%s, request %d: %s, want %s", c.what, k+1, got, want)
			}
		}
		if got := ask(s.request(t, "GET", f, nil, me)); got != "ok" {
			t.Errorf("after strangers' requests (%s) a party's is answered %s", c.what, got)
		}
		now = now.Add(15 * time.Second)
	}
	got := map[string]int{}
	for range 25 {
		got[ask(s.request(t, "GET", f, nil, me))]++
	}
	if got["ok"] != 20 || got["rate"] != 5 {
		t.Errorf("of 25 requests of one party: %v", got)
	}
	if got := ask(s.request(t, "GET", f, nil, other)); got != "ok" {
		t.Errorf("another party's: %s", got)
	}
	if got := ask(s.request(t, "GET", "/healthz", nil, nil)); got != "ok" {
		t.Errorf("a stranger's after a party's many: %s", got)
	}
}

// Queries that programs read in different ways are refused.
func TestDoubtfulQueries(t *testing.T) {
	s := newSite(t, door.Options{})
	f := "/v1/federations/" + s.fed.ID
	for _, query := range []string{"wait=0&least=%zz", "wait=0;least=1", "wait=0&%", "wait=0&a=%1"} {
		for _, path := range []string{f + "/next", f, "/v1/federations"} {
			r := s.request(t, "GET", path, nil, nil)
			r.URL.RawQuery = query
			resign(t, r, s.identities[0])
			if status, kind, body := send(t, r); status != 400 || kind != "query" {
				t.Errorf("%s?%s: %d %s %s", path, query, status, kind, body)
			}
		}
	}
}

// A party's requests count wherever they come from, such as through a proxy on the same machine;
// those of strangers there do not, since all of them share its address.
func TestRateOnLoopback(t *testing.T) {
	now := time.Now()
	s := newSite(t, door.Options{Now: func() time.Time { return now }})
	for path, want := range map[string]int{"/v1/federations/" + s.fed.ID: 5, "/healthz": 0} {
		refused := 0
		for range 505 { // a burst of 500 is allowed
			if status, _, _ := send(t, s.request(t, "GET", path, nil, s.identities[0])); status == 429 {
				refused++
			}
		}
		if refused != want {
			t.Errorf("%s: of 505 requests %d are refused, want %d", path, refused, want)
		}
	}
}
