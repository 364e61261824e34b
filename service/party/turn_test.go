package party

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/host"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/job/consent"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/protocol"
	"github.com/hushsum/hushsum/service/exchange"
	"github.com/hushsum/hushsum/service/federation"
)

// newRunning is a party of a server that answers as it is told.
func newRunning(t *testing.T, handler http.HandlerFunc) *running {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	identity := ed25519.NewKeyFromSeed(make([]byte, 32))
	way, err := NewServer(server.URL, "", identity)
	if err != nil {
		t.Fatal(err)
	}
	f := declare(t, "", weakly)
	r := (&Party{Federation: f, Identity: identity, Server: way}).running()
	r.accepted, r.carrier.life = new(consent.Accepted), t.Context()
	return r
}

// That another copy of the folder may have run is said where the server has what it left.
func TestPerhapsCopied(t *testing.T) {
	for err, want := range map[error]bool{protocol.ErrParticipants: true, protocol.ErrStale: false} {
		var log bytes.Buffer
		r := newRunning(t, nil)
		r.Log = slog.New(slog.NewJSONHandler(&log, nil))
		r.tell(drive.Report{Kind: drive.Refused, Round: 13, Err: fmt.Errorf("%w: round 13", err)})
		if strings.Contains(log.String(), "another copy of the folder") != want {
			t.Error(log.String())
		}
	}
}

// A server that refuses who asks or sends ends Run; what passes by itself is asked again, as if
// nothing had been seen: the answer may be lost.
func TestRefusals(t *testing.T) {
	f := few(t)
	for kind, final := range map[string]bool{
		"stranger": true, "unsigned": true, "signature": true, "clock": false, "leader": false,
	} {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			refused, asked := 0, 0
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
				next := exchange.Next{Kind: exchange.Join, Item: "a", Session: 1}
				switch {
				case q.Method == method && refused == 0:
					refused++
					w.WriteHeader(exchange.Refusals()[kind].Status)
					_ = json.NewEncoder(w).Encode(exchange.Problem{Type: exchange.ProblemPrefix + kind})
				case q.Method == http.MethodPost:
					w.WriteHeader(http.StatusAccepted)
				case asked > 0 && refused > 0:
					if seen := q.URL.Query().Get("seen"); method == http.MethodPost && seen != "" {
						t.Errorf("%s, refused as %s: it has seen %q", method, kind, seen)
					}
					next = exchange.Next{Kind: exchange.End, Item: "end"}
					fallthrough
				default:
					asked++
					next.Set(w.Header())
				}
			}))
			_, err := member(t, f, server.URL, t.TempDir()).Run(t.Context())
			server.Close()
			var refusal *RefusalError
			if errors.As(err, &refusal) != final || final && refusal.Kind != kind || !final && err != nil {
				t.Errorf("%s, refused as %s: %v", method, kind, err)
			}
		}
	}
}

// A redirection is not followed: nothing goes to another than the server that was named.
func TestRedirection(t *testing.T) {
	var elsewhere atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		elsewhere.Add(1)
	}))
	defer other.Close()
	r := newRunning(t, func(w http.ResponseWriter, q *http.Request) {
		http.Redirect(w, q, other.URL+q.URL.Path, http.StatusTemporaryRedirect)
	})
	err := r.Server.Send(context.Background(), r.Federation.ID, []byte("message"))
	var refusal *RefusalError
	if !errors.As(err, &refusal) || refusal.Status != http.StatusTemporaryRedirect || fatal(err) {
		t.Errorf("%v", err)
	}
	if elsewhere.Load() != 0 {
		t.Error("the message went elsewhere")
	}
}

// A page that a proxy puts in the server's place is an error, after which the party asks
// again, and not the server's word that there is nothing to do.
func TestOtherAnswer(t *testing.T) {
	for name, handler := range map[string]http.HandlerFunc{
		"a page": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("log in")) },
		"a kind without a message": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set(exchange.HeaderNext, "message")
			w.WriteHeader(http.StatusNoContent)
		},
	} {
		r := newRunning(t, handler)
		_, err := r.carrier.Next(t.Context(), host.Standing{})
		if !errors.Is(err, errOther) || fatal(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A server that says at once that there is nothing is not asked without a pause.
func TestNothingAtOnce(t *testing.T) {
	var asked atomic.Int64
	r := newRunning(t, func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.WriteHeader(http.StatusNoContent)
	})
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if _, err := r.carrier.Next(ctx, host.Standing{}); ctx.Err() == nil {
		t.Fatal(err)
	}
	if n := asked.Load(); n < 2 || n > 11 {
		t.Errorf("asked %d times in a second", n)
	}
}

// handled has a handler answer requests at once.
type handled struct{ http.Handler }

func (h handled) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body == nil {
		r.Body = http.NoBody
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result(), r.Context().Err()
}

// Work ends when the round goes on without the party, in the first round of a session too; for what
// another session's set-up says it goes on, and the party answers that meanwhile.
func TestWorkEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCheat(fewOf(t, fewText), join(1), round(1), join(2), round(2), round(3))
		c.goesOn = true
		var trains atomic.Bool
		c.kill = func(int, bool) bool {
			asked := c.heard[len(c.heard)-1]
			if trains.Load() && strings.Contains(asked, "/next") &&
				!strings.Contains(asked, "working=true") {
				t.Errorf("it does not say that it works: %s", asked)
			}
			return false
		}
		p := member(t, c.f, "http://127.0.0.1:1", t.TempDir())
		p.Server.client.Transport = handled{c}
		var ended []int // acts in which work was told to end
		p.Trainer = TrainerFunc(func(ctx context.Context, w *Work) (*Update, error) {
			if w.Round == 3 {
				return &Update{Vector: make([]float64, len(w.Model))}, nil
			}
			trains.Store(true)
			<-ctx.Done()
			trains.Store(false)
			if !errors.Is(context.Cause(ctx), host.ErrWentOn) {
				t.Error(context.Cause(ctx))
			}
			c.mutex.Lock()
			defer c.mutex.Unlock()
			ended = append(ended, c.at)
			return nil, ctx.Err()
		})
		if _, err := p.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		c.check(t)
		if !slices.Equal(ended, []int{3, 4}) || len(c.released) != 1 || len(c.declined) != 0 {
			t.Errorf("work ended in acts %v, %d submissions, declined %v", ended, len(c.released),
				c.declined)
		}
	})
}

// A party takes its place before it reads a message, holds it while it trains, and gives it up
// before it sends or waits. Meanwhile it tells the server that it is present.
func TestTurns(t *testing.T) {
	turns := make(chan struct{}, 1)
	c := newCheat(fewOf(t, fewText), join(1), round(1), round(2))
	trained := 0
	c.play(t, func(p *Party) {
		p.Turns = turns
		p.Trainer = TrainerFunc(func(_ context.Context, w *Work) (*Update, error) {
			if trained++; len(turns) != 1 {
				t.Errorf("round %d: %d places are taken while it trains", w.Round, len(turns))
			}
			return &Update{Vector: make([]float64, len(w.Model))}, nil
		})
	}, func(request int, done bool) bool {
		taken, heard := 0, c.heard[len(c.heard)-1]
		if strings.Contains(heard, "/rounds/") {
			taken = 1
		}
		if len(turns) != taken {
			t.Errorf("%d places are taken, want %d: %s", len(turns), taken, heard)
		}
		return false
	})
	c.check(t)
	if trained != 2 || len(c.released) != 2 || len(turns) != 0 {
		t.Errorf("it trained %d times, %d submissions, %d places are left taken", trained,
			len(c.released), len(turns))
	}
}

// A party that waits for its place has read no message, and tells the server that it is present.
func TestWaitsForTurn(t *testing.T) {
	turns := make(chan struct{}, 1)
	turns <- struct{}{}
	var once sync.Once
	r := newRunning(t, func(w http.ResponseWriter, q *http.Request) {
		if q.URL.Query().Get("working") != "" {
			if seen := q.URL.Query().Get("seen"); seen != "a" {
				t.Errorf("it has seen %q", seen)
			}
			once.Do(func() { <-turns })
			<-q.Context().Done()
			return
		}
		next := exchange.Next{Kind: exchange.Message, Item: "a", Session: 1}
		next.Set(w.Header())
		_, _ = w.Write([]byte("message"))
	})
	r.carrier.turn.places = turns
	in, err := r.carrier.Next(t.Context(), host.Standing{})
	if err != nil || string(in.Own) != "message" || len(turns) != 1 {
		t.Errorf("%+v, %v, %d places are taken", in, err, len(turns))
	}
	r.carrier.stay()
}

// What a trainer may return.
func TestCheck(t *testing.T) {
	r := newRunning(t, func(http.ResponseWriter, *http.Request) {})
	w := &Work{Model: make([]float64, r.Federation.Spec.Len())}
	p := (*program)(r)
	if err := p.check(&Update{Values: [][]uint64{make([]uint64, 5)}}); err == nil {
		t.Error("a submission that nothing clips is taken")
	}
	for length, want := range map[int]error{3: ErrTraining, len(w.Model): nil} {
		r.Trainer = TrainerFunc(func(context.Context, *Work) (*Update, error) {
			return &Update{Vector: make([]float64, length)}, nil
		})
		update, err := p.train(t.Context(), w)
		if !errors.Is(err, want) || err == nil && p.check(update) != nil {
			t.Errorf("a vector of %d: %v", length, err)
		}
	}
}

// What a declared training submits is not kept once it is in the vector, or does not fit.
func TestValuesErased(t *testing.T) {
	r := newRunning(t, func(http.ResponseWriter, *http.Request) {})
	layout := r.Federation.Settled.Config(1).Layout
	for _, length := range []int{layout[0].Length, layout[0].Length + 1} {
		v, err := masking.NewVector(layout)
		if err != nil {
			t.Fatal(err)
		}
		values := slices.Repeat([]uint64{7}, length)
		err = (*program)(r).encode(v, &Update{Values: [][]uint64{values}}, new(Work), 0)
		if fits := length == layout[0].Length; (err == nil) != fits || fits != (v.Values()[0][0] == 7) {
			t.Errorf("%d values: %v", length, err)
		}
		if slices.Contains(values, 7) {
			t.Errorf("%d values are left", length)
		}
	}
}

// A trainer that returns neither an update nor an error and a vector that is not a number, without
// noise, a model of another round and a round that there is not are absences: the log says why, the
// server is told, and one that does not listen has no more training for it.
func TestAbsent(t *testing.T) {
	for name, one := range map[string]struct {
		train  func(w *Work) *Update
		script []act
		reason string
	}{
		"no update": {func(*Work) *Update { return nil }, []act{join(1), round(1)},
			"returned no update"},
		"not a number": {func(w *Work) *Update {
			v := make([]float64, len(w.Model))
			v[1] = math.NaN()
			return &Update{Vector: v}
		}, []act{join(1), round(1)}, "no update for this round"},
		"another round's model": {nil, []act{join(1), round(1)}, "the model is refused"},
		"a round of no number":  {nil, []act{join(1), round(0)}, "it names no round"},
		"a round above all": {func(w *Work) *Update { return nil }, []act{join(1), round(4)},
			"no such round"},
	} {
		f := few(t)
		if name == "no update" || name == "not a number" {
			f = fewOf(t, fewText)
		}
		c := newCheat(f, one.script...)
		round, told := one.script[1].number, []uint64(nil)
		if c.misnamed = name == "another round's model"; round > 0 {
			c.deaf, told = 2, []uint64{round}
		}
		var log bytes.Buffer
		trained := 0
		c.play(t, func(p *Party) {
			p.Log = slog.New(slog.NewTextHandler(&log, nil))
			p.Trainer = TrainerFunc(func(_ context.Context, w *Work) (*Update, error) {
				trained++
				return one.train(w), nil
			})
		}, nil)
		if trained > 1 || c.deaf != 0 {
			t.Errorf("%s: it trained %d times, and was to be asked %d times more", name, trained, c.deaf)
		}
		if !slices.Equal(c.declined, told) || len(c.released) != 0 || len(c.sums[round]) != 1 {
			t.Errorf("%s: declined %v, %d submissions, sums %v", name, c.declined, len(c.released), c.sums)
		}
		if !errors.Is(c.absent, ErrAbsent) {
			t.Errorf("%s: the party's end is %v", name, c.absent)
		}
		if !strings.Contains(log.String(), one.reason) {
			t.Errorf("%s: %s", name, log.String())
		}
	}
}

// A party's number in the roster must be one.
func TestDeclaredParty(t *testing.T) {
	var roster strings.Builder
	for _, p := range "ab" {
		seed := make([]byte, 32)
		seed[0] = byte(p)
		key := ed25519.NewKeyFromSeed(seed).Public().(ed25519.PublicKey)
		roster.WriteString(string(p) + " " + hex.EncodeToString(key) + "\n")
	}
	f, err := federation.New(federation.Files{Text: []byte(`name = "t"
parties.roster = "r"
rounds = 2
model = { name = "logistic", features = 1, classes = 2 }
sum = { adversary = "curious", recovery = true }
`), Roster: []byte(roster.String())})

	if err != nil {
		t.Fatal(err)
	}
	for _, i := range []int{-1, 2} {
		if _, err := NewDeclared(f, i, nil, t.TempDir()); !errors.Is(err, job.ErrConfig) {
			t.Errorf("party %d: %v", i, err)
		}
	}
}

// A proxy's certificate by an authority is good with TLS 1.2, by suites that are authenticated
// encryption; a fingerprint is a node's own certificate, which speaks TLS 1.3.
func TestVersionsOfTLS(t *testing.T) {
	for _, c := range []struct {
		name            string
		most            uint16
		suite           uint16
		trusted, pinned bool
	}{
		{"1.3", tls.VersionTLS13, 0, true, true},
		{"1.2", tls.VersionTLS12, 0, true, false},
		{"1.2 GCM", tls.VersionTLS12, tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384, true, false},
		{"1.2 CBC", tls.VersionTLS12, tls.TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA, false, false},
		{"1.2 RSA", tls.VersionTLS12, tls.TLS_RSA_WITH_AES_128_GCM_SHA256, false, false},
		{"1.1", tls.VersionTLS11, 0, false, false},
	} {
		server := httptest.NewUnstartedServer(http.NotFoundHandler())
		server.Config.ErrorLog = log.New(io.Discard, "", 0)
		server.TLS = &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: c.most}
		if c.suite != 0 {
			server.TLS.CipherSuites = []uint16{c.suite}
		}
		server.StartTLS()
		defer server.Close()
		digest := sha256.Sum256(server.Certificate().Raw)
		for pin, good := range map[string]bool{
			"": c.trusted, hex.EncodeToString(digest[:]): c.pinned,
		} {
			identity := ed25519.NewKeyFromSeed(make([]byte, 32))
			way, err := NewServer(server.URL, pin, identity)
			if err != nil {
				t.Fatal(err)
			}
			config := way.client.Transport.(*http.Transport).TLSClientConfig
			if pin == "" {
				config.RootCAs = x509.NewCertPool()
				config.RootCAs.AddCert(server.Certificate())
			}
			err = way.Send(context.Background(), "f", []byte("message"))
			var refusal *RefusalError
			if answered := errors.As(err, &refusal); answered != good {
				t.Errorf("%s, pinned %v: %v", c.name, pin != "", err)
			}
			old := c.most < tls.VersionTLS12 || pin != "" && c.most < tls.VersionTLS13
			if old != strings.Contains(err.Error(), "turn on 1.3") {
				t.Errorf("%s, pinned %v says: %v", c.name, pin != "", err)
			}
		}
	}
}
