package party

import (
	"context"
	"crypto/ed25519"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/service/exchange"
)

// nodes answers requests as some nodes do, by their addresses.
type nodes map[string]func(*http.Request) (*http.Response, error)

func (n nodes) RoundTrip(r *http.Request) (*http.Response, error) { return n[r.URL.Host](r) }

// frozen keeps a connection, and never answers.
func frozen(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// says answers with a status, headers by name and value, and a body.
func says(status int, body string, headers ...string) func(*http.Request) (*http.Response, error) {
	return func(r *http.Request) (*http.Response, error) {
		h := make(http.Header)
		for i := 0; i < len(headers); i += 2 {
			h.Set(headers[i], headers[i+1])
		}
		return &http.Response{StatusCode: status, Header: h, ContentLength: -1, Request: r,
			Body: io.NopCloser(strings.NewReader(body))}, nil
	}
}

const noLeader = `{"type":"urn:hushsum:problem:leader","title":"No node leads","status":503}`

// asks makes a client of nodes, which begins at the first.
func asks(t *testing.T, of nodes, addresses string) *Server {
	t.Helper()
	s, err := NewServer(addresses, "", ed25519.NewKeyFromSeed(make([]byte, 32)))
	if err != nil {
		t.Fatal(err)
	}
	s.at.Store(0)
	s.client.Transport = of
	return s
}

// took measures a call in virtual time.
func took(call func()) time.Duration {
	began := time.Now()
	call()
	return time.Since(began)
}

// A node that keeps a connection and does not answer is given up 3 s after the longest wait that it
// stated, and the next is asked; for a minute others are asked before it.
func TestFrozenNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, asked := context.Background(), 0
		well := says(http.StatusOK, "", exchange.HeaderWait, "8")
		down := says(http.StatusServiceUnavailable, noLeader)
		of := nodes{"127.0.0.1:1": func(r *http.Request) (*http.Response, error) {
			asked++
			return frozen(r)
		}, "127.0.0.1:2": well, "127.0.0.1:3": well}
		s := asks(t, of, "http://127.0.0.1:1,http://127.0.0.1:2,http://127.0.0.1:3")
		ask := func(what string, want time.Duration, frozen int) {
			t.Helper()
			var err error
			asked = 0
			got := took(func() { _, _, err = s.read(ctx, "/", 1) })
			if err != nil || got != want || asked != frozen {
				t.Errorf("%s: after %v, want %v; the frozen one was asked %d times, want %d: %v", what, got,
					want, asked, frozen, err)
			}
		}
		ask("the first is frozen", 11*time.Second, 1)
		ask("the second is well", 0, 0)
		of["127.0.0.1:2"] = down
		ask("the second has no leader", 0, 0)
		of["127.0.0.1:2"], of["127.0.0.1:3"] = well, down
		ask("the third has no leader", 0, 0)
		time.Sleep(passOver)
		of["127.0.0.1:2"], of["127.0.0.1:1"] = down, well
		ask("the first is well after a minute", 0, 0)
		s.wait.Store(int64(exchange.Wait(10_000)))
		of["127.0.0.1:1"], of["127.0.0.1:2"] = frozen, well
		ask("of many parties", 28*time.Second, 0)
		of["127.0.0.1:2"], of["127.0.0.1:3"] = frozen, frozen
		if _, _, err := s.read(ctx, "/", 1); !errors.Is(err, errSilent) {
			t.Errorf("all are frozen: %v", err)
		}
	})
}

// A node that says that another leads by now is asked again at once, and only once.
func TestAsksAgainAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked, again := 0, 1
		s := asks(t, nodes{"127.0.0.1:1": func(r *http.Request) (*http.Response, error) {
			if asked++; asked <= again {
				return says(http.StatusServiceUnavailable, noLeader, "Retry-After", "0")(r)
			}
			return says(http.StatusNoContent, "")(r)
		}}, "http://127.0.0.1:1")
		if _, _, err := s.read(context.Background(), "/", 1); err != nil || asked != 2 {
			t.Errorf("asked %d times, want 2: %v", asked, err)
		}
		asked, again = 0, 9
		var refusal *RefusalError
		_, _, err := s.read(context.Background(), "/", 1)
		if !errors.As(err, &refusal) || refusal.Kind != "leader" || asked != 2 {
			t.Errorf("asked %d times, want 2: %v", asked, err)
		}
	})
}

// halts gives some bytes, and then none until its time.
type halts struct {
	context.Context
	text  string
	after time.Duration
}

func (h *halts) Read(p []byte) (int, error) {
	if len(h.text) > 0 {
		n := copy(p[:1], h.text)
		h.text = h.text[n:]
		return n, nil
	}
	select {
	case <-time.After(h.after):
		return 0, io.EOF
	case <-h.Done():
		return 0, h.Err()
	}
}

// An answer that stands still is given up as one that does not begin is, however long its reader
// has taken before it reads.
func TestAnswerStandsStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for after, want := range map[time.Duration]error{5 * time.Second: nil, time.Hour: errSilent} {
			s := asks(t, nodes{"127.0.0.1:1": func(r *http.Request) (*http.Response, error) {
				answer, err := says(http.StatusOK, "")(r)
				answer.Body = io.NopCloser(&halts{r.Context(), "model", after})
				return answer, err
			}}, "http://127.0.0.1:1")
			answer, err := s.do(context.Background(), http.MethodGet, "/", nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Hour) // until it is the party's turn
			got := took(func() { _, err = io.ReadAll(answer.Body) })
			if !errors.Is(err, want) || got != min(after, 11*time.Second) {
				t.Errorf("an answer that stands still for %v: after %v, %v", after, got, err)
			}
			_ = answer.Body.Close()
		}
	})
}

// A body has the time that the door gives it to leave, and the answer its own after that.
func TestSlowBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := asks(t, nodes{"127.0.0.1:1": frozen}, "http://127.0.0.1:1")
		var err error
		got := took(func() { _, err = s.post(context.Background(), "/", make([]byte, 160<<10)) })
		if !errors.Is(err, errSilent) || got != 21*time.Second {
			t.Errorf("160 KiB that nobody reads: after %v, %v", got, err)
		}
	})
}

// A party that knows of a step asks again after half a second to two seconds while no node leads,
// for as long as the step may wait for it; afterwards, or where nothing was asked of it, it takes
// its time.
func TestComesBackSoon(t *testing.T) {
	for _, some := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			key, err := keyexchange.GenerateSealKey(nil)
			if err != nil {
				t.Fatal(err)
			}
			f := declare(t, "", weakly)
			ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
			defer cancel()
			var joined time.Time
			var asked []time.Time // since then
			s := asks(t, nodes{"127.0.0.1:1": func(r *http.Request) (*http.Response, error) {
				switch {
				case r.Method == http.MethodPost:
					return says(http.StatusAccepted, "")(r)
				case joined.IsZero() && some:
					joined = time.Now()
					return says(http.StatusOK, "", exchange.HeaderNext, "join", "Hushsum-Item", "a",
						"Hushsum-Session", "1", "Hushsum-Round", "0")(r)
				}
				asked = append(asked, time.Now())
				return says(http.StatusServiceUnavailable, noLeader, "Retry-After", "1")(r)
			}}, "http://127.0.0.1:1")
			p := Party{Federation: f, Identity: s.identity, Server: s, Folder: t.TempDir(), Key: key}
			if _, err := p.Run(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Fatal(err)
			}
			over := joined.Add(time.Duration(f.Job.Time.StepTime) + away)
			for k := range asked[1:] {
				least, most := soonest, soonest+spread
				if !some || !asked[k].Before(over) {
					least, most = 0, longestWait*3/2
				}
				if asked[k+1].Before(asked[k].Add(least)) || asked[k+1].After(asked[k].Add(most)) {
					t.Fatalf("with a step %v it asks at %v, and then at %v", some, asked[k], asked[k+1])
				}
			}
			if n := len(asked); n < 3600/8 || n > 3600/4 {
				t.Errorf("with a step %v it asks %d times in an hour", some, n)
			}
		})
	}
}

// Waits after failures grow, and begin anew once the server has answered, or once what it asked for
// has been dealt with.
func TestWaitsBeginAnew(t *testing.T) {
	const failures = 8 // in a row
	for _, join := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			down := says(http.StatusServiceUnavailable, noLeader)
			var asked []time.Time
			s := asks(t, nodes{"127.0.0.1:1": func(r *http.Request) (*http.Response, error) {
				switch {
				case r.Method == http.MethodPost:
					return says(http.StatusAccepted, "")(r)
				case strings.HasSuffix(r.URL.Path, "/model"):
					return says(http.StatusOK, "model")(r)
				}
				asked = append(asked, time.Now())
				switch n := len(asked); {
				case n == failures+1 && join:
					return says(http.StatusOK, "", exchange.HeaderNext, "join", "Hushsum-Item", "a",
						"Hushsum-Session", "1", "Hushsum-Round", "0")(r)
				case n == failures+1:
					return says(http.StatusNoContent, "")(r)
				case n == failures+2 && join: // a refusal that no step waits for
					return says(http.StatusTooManyRequests, `{"type":"urn:hushsum:problem:rate"}`)(r)
				case n == failures+3:
					return says(http.StatusOK, "", exchange.HeaderNext, "end", "Hushsum-Item", "end",
						"Hushsum-Session", "0", "Hushsum-Round", "0")(r)
				}
				return down(r)
			}}, "http://127.0.0.1:1")
			p := Party{Federation: declare(t, "", weakly), Identity: s.identity, Server: s,
				Folder: t.TempDir(), Key: &keyexchange.SealKey{1}}
			if _, err := p.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			wait := firstWait
			for k := range failures {
				pause := asked[k+1].Sub(asked[k])
				if pause < wait/2 || pause > wait*3/2 {
					t.Errorf("join %v: a pause of %v, want about %v", join, pause, wait)
				}
				wait = min(2*wait, longestWait)
			}
			if pause := asked[failures+2].Sub(asked[failures+1]); pause > firstWait*3/2 {
				t.Errorf("join %v: once it was answered, a pause of %v", join, pause)
			}
		})
	}
}
