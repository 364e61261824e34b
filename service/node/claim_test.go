package node

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/service/exchange"
	"github.com/hushsum/hushsum/service/federation"
	"github.com/hushsum/hushsum/service/record"
)

// ofThree is a node of three that are here, and a federation for which it is the first to claim,
// the second or the third.
func ofThree(turn int) (*Node, *entry) {
	n := &Node{Options: Options{Name: "a", Silence: 10 * time.Second},
		others: make(map[string]*present)}
	for _, name := range []string{"a", "b", "c"} {
		n.others[name] = &present{presence{Node: name}, time.Now().Add(time.Hour)}
	}
	e := &entry{federation: &federation.Federation{Job: new(job.Job)}, heard: time.Now()}
	for i := range 1000 {
		e.federation.ID = string(rune(i))
		if n.turn(e) == time.Duration(turn)*n.Silence/2 {
			break
		}
	}
	return n, e
}

// Who claims a federation whose leader is silent, and when: nodes take turns, in an order that
// differs between federations; a node that says it is claiming has three times the time; and one
// that was handed a federation claims at once.
func TestWhenToClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const s = time.Second
		for turn := range 3 {
			later := time.Duration(turn) * 5 * s
			for _, x := range []struct {
				what    string
				leader  lead
				claimed time.Duration // before it was heard last
				want    time.Duration // after it was heard last
			}{
				{"it is silent", lead{Node: "d"}, 0, 10*s + later},
				{"it stopped", lead{Node: "d", Leaving: true}, 0, later},
				{"it hands over to this node", lead{Node: "d", Leaving: true, For: "a"}, 0, 0},
				{"it hands over to another", lead{Node: "d", Leaving: true, For: "b"}, 0, passWait + later},
				{"it claims", lead{Node: "d", Claiming: true}, 4 * s, 10*s + later},
				{"it claims for long", lead{Node: "d", Claiming: true}, 25 * s, 5*s + later},
				{"it claims for ever", lead{Node: "d", Claiming: true}, 60 * s, later - 30*s},
			} {
				n, e := ofThree(turn)
				e.leader, e.claimed = x.leader, e.heard.Add(-x.claimed)
				if got := n.due(e).Sub(e.heard); got != x.want {
					t.Errorf("turn %d, %s: after %v, want %v", turn, x.what, got, x.want)
				}
			}
		}
	})
}

// A node from which another claims twice within a minute rests, twice as long the next time.
func TestLosesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &entry{}
		for i, x := range []struct{ after, rests time.Duration }{
			{0, 0}, {30 * time.Second, 20 * time.Second}, {40 * time.Second, 40 * time.Second},
			{60 * time.Second, 40 * time.Second}, {61 * time.Second, 0}, {time.Second, 20 * time.Second},
		} {
			time.Sleep(x.after)
			e.loses(10 * time.Second)
			if got := max(0, time.Until(e.rests)); got != x.rests {
				t.Errorf("loss %d: it rests for %v, want %v", i+1, got, x.rests)
			}
		}
	})
}

// hearing is a node that hears what others say about a federation.
type hearing struct {
	*Node
	t    *testing.T
	e    *entry
	from *between      // of the others
	late time.Duration // their messages come
}

func newHearing(t *testing.T) *hearing {
	t.Helper()
	key, err := keyexchange.GenerateSealKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	h := &hearing{t: t}
	h.Node, h.e = ofThree(0)
	h.Log, h.ctx, h.conn = slog.New(slog.DiscardHandler), t.Context(), new(nats.Conn)
	h.between = newBetween(record.NewKeys(*key), time.Now)
	h.from = newBetween(record.NewKeys(*key), func() time.Time { return time.Now().Add(-h.late) })
	h.entries = map[string]*entry{h.e.federation.ID: h.e}
	h.e.wait = exchange.Wait(4)
	return h
}

func (h *hearing) says(l lead) {
	h.t.Helper()
	b, err := json.Marshal(l)
	if err == nil {
		b, _, err = h.from.seal(forLead, h.e.federation.ID, number{}, b)
	}
	if err != nil {
		h.t.Fatal(err)
	}
	h.hear(&nats.Msg{Subject: subjectLead + h.e.federation.ID, Data: b})
}

// A node that claims is heard as a leader is, unless another leads; requests are passed on to a
// leader, and not to a node that claims.
func TestHearsClaims(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHearing(t)
		n, e, says := h.Node, h.e, h.says
		passes := func(what, to string) {
			t.Helper()
			got := ""
			if k := (*federations)(n).entry(e); k.Forward != nil {
				got = k.Forward.(*forward).Node
			}
			if got != to {
				t.Errorf("%s: requests go to %q, want %q", what, got, to)
			}
		}
		says(lead{Node: "c", Address: "http://127.0.0.1:2", Claiming: true})
		if passes("c claims at first", ""); e.leader.Node != "c" {
			t.Errorf("c claims what nobody leads, and %q is heard", e.leader.Node)
		}
		says(lead{Node: "b", Address: "http://127.0.0.1:1"})
		passes("b leads", "b")
		says(lead{Node: "c", Address: "http://127.0.0.1:2", Claiming: true})
		passes("c claims what b leads", "b")
		time.Sleep(11 * time.Second)
		passes("b is silent", "")
		says(lead{Node: "c", Address: "http://127.0.0.1:2", Claiming: true})
		passes("c claims", "")
		if due := n.due(e); time.Until(due) != 10*time.Second {
			t.Errorf("c claims: this node does in %v", time.Until(due))
		}
		says(lead{Node: "d", Address: "http://127.0.0.1:3", Claiming: true})
		if e.leader.Node != "c" {
			t.Errorf("%s is heard, and c claimed before", e.leader.Node)
		}
		says(lead{Node: "c", Address: "http://127.0.0.1:2"})
		passes("c leads", "c")
	})
}

// A request that was passed on to a leader that is frozen ends when another leads, and its party is
// told to ask again at once; if none is heard, it ends some time after the party's wait.
func TestFrozenLeaderIsLeft(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	h := newHearing(t)
	e, says := h.e, h.says
	e.wait = 50*time.Millisecond - answers
	for _, again := range []string{"0", "1"} {
		says(lead{Node: "b", Address: "http://" + silent.Addr().String()})
		if again == "0" {
			e.forward.proxy.Transport.(*http.Transport).ResponseHeaderTimeout = 0
		}
		w := httptest.NewRecorder()
		done := make(chan struct{})
		go func() {
			defer close(done)
			e.forward.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
		}()
		conn, err := silent.Accept() // the request is on its way
		if err != nil {
			t.Fatal(err)
		}
		if again == "0" {
			says(lead{Node: "c", Address: "http://127.0.0.1:1"})
		}
		<-done
		_ = conn.Close()
		body, _ := io.ReadAll(w.Body)
		var p exchange.Problem
		if err := json.Unmarshal(body, &p); err != nil || w.Code != http.StatusServiceUnavailable ||
			p.Type != exchange.ProblemPrefix+"leader" || w.Header().Get("Retry-After") != again {
			t.Errorf("%d %v %s: %v", w.Code, w.Header(), body, err)
		}
	}
}

// Messages that come late are worth a line once they have come late for a while: a node that was
// frozen finds what the others said meanwhile.
func TestLateMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, log := newHearing(t), new(bytes.Buffer)
		h.Log = slog.New(slog.NewTextHandler(log, nil))
		for _, x := range []struct {
			late, after time.Duration
			lines       int
		}{
			{0, 0, 0}, {2 * clockBound, 0, 0}, {2 * clockBound, unreadable - 1, 0}, {0, 0, 0},
			{2 * clockBound, time.Second, 0}, {2 * clockBound, unreadable, 1},
		} {
			time.Sleep(x.after)
			h.late = x.late
			h.says(lead{Node: "b", Address: "http://127.0.0.1:1"})
			if got := strings.Count(log.String(), "no leader was heard"); got != x.lines {
				t.Errorf("late by %v after %v: %d lines, want %d", x.late, x.after, got, x.lines)
			}
		}
	})
}
