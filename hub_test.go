package hushsum

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hushsum/hushsum/host"
	"github.com/hushsum/hushsum/link"
)

// reading starts to read a connection for a hub, and returns the test's end of it.
func reading(t *testing.T, ctx context.Context, h *hub) (near Link, from *connection) {
	t.Helper()
	near, from = linkOf(t, ctx, h)
	running := ctx
	ctx, cancel := context.WithCancel(ctx)
	t.Cleanup(cancel)
	from.cancel = cancel
	go func() {
		h.read(ctx, running, 0, from)
		_ = near.Close()
	}()
	return near, from
}

// A connection begins with hello: anything else ends it.
func TestHelloFirst(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for name, first := range map[string][]byte{
		"nothing":   {},
		"a message": link.NewFrame(link.KindMessage, []byte("abc")),
		"a part":    {link.KindPart, link.KindMessage, 1},
	} {
		h := newHub(t.TempDir(), 1<<20)
		h.limit = 10
		near, _ := reading(t, ctx, h)
		if err := near.Send(ctx, first); err != nil {
			t.Fatal(err)
		}
		if a := <-h.events; !errors.Is(a.err, ErrFrame) {
			t.Errorf("%s: %x, %v", name, a.frame, a.err)
		}
		if _, err := near.Receive(ctx); err == nil || ctx.Err() != nil {
			t.Errorf("%s: it goes on, %v", name, err)
		}
	}
}

// Nothing is read behind a hello until that is found good, and of who is refused nothing is
// taken at all.
func TestHelloJudged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		part := []byte{link.KindPart, link.KindMessage, 1}
		for _, good := range []bool{true, false} {
			h := newHub(t.TempDir(), 1<<20)
			h.limit = 10
			near, _ := reading(t, ctx, h)
			if err := near.Send(ctx, link.NewFrame(link.KindHello, nil)); err != nil {
				t.Fatal(err)
			}
			a := <-h.events
			if a.err != nil || a.frame[0] != link.KindHello {
				t.Fatalf("%x, %v", a.frame, a.err)
			}
			soon, end := context.WithTimeout(ctx, 50*time.Millisecond)
			if err := near.Send(soon, part); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("before it was judged: %v", err)
			}
			end()
			if good {
				h.admit(a)
			} else {
				h.refuse(a, &link.Refusal{Field: "clip", Ours: "1", Theirs: "2"})
			}
			if err := near.Send(ctx, part); err != nil {
				t.Fatal(err)
			}
			if good {
				if err := near.Send(ctx, link.NewFrame(link.KindMessage, []byte{2})); err != nil {
					t.Fatal(err)
				}
				a := <-h.events
				if a.err != nil || a.long == nil {
					t.Errorf("a message in parts: %v", a.err)
				}
				a.long.Drop()
				continue
			}
			if _, err := near.Receive(ctx); err == nil || ctx.Err() != nil {
				t.Errorf("who was refused stays: %v", err)
			}
			if len(h.events) > 0 {
				t.Errorf("who was refused is heard: %v", (<-h.events).frame)
			}
		}
	})
}

// Refusals of one party are reported, not each of them, and a reader who is slow holds
// nothing up.
func TestRefusalsReported(t *testing.T) {
	h := newHub("", 1<<20)
	h.told[maxNotices] = time.Now().Add(time.Hour) // it was reported not long ago
	for party := 2*maxNotices - 1; party >= 0; party-- {
		from := &connection{judged: make(chan struct{})}
		h.refuse(arrival{party: party, from: from},
			&link.Refusal{Field: "clip", Ours: "1", Theirs: "2"})
	}
	if len(h.notices) != maxNotices {
		t.Fatalf("%d are reported, want %d", len(h.notices), maxNotices)
	}
	want := 2*maxNotices - 1
	for range maxNotices {
		e := <-h.notices
		var differs *DifferenceError
		if e.Kind != host.Rejected || e.Party != want || !errors.As(e.Err, &differs) ||
			differs.Field != "clip" {
			t.Errorf("%v", e)
		}
		if want--; want == maxNotices {
			want--
		}
	}
}

// A coordinator tells who it waits for.
func TestWaitingTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := newJob(t, testJob(), 7)
		ctx, cancel := context.WithTimeout(t.Context(), jobTime)
		defer cancel()
		told := make(chan struct{})
		var once sync.Once
		for i := range j.signers {
			p := j.participant(i, nil)
			if work := bare(p.Work); i == 3 {
				p.Work = vectors(func(ctx context.Context, r uint64, m []float64) ([]float64, error) {
					if r == 2 {
						select {
						case <-told:
						case <-ctx.Done():
						}
					}
					return work(ctx, r, m)
				})
			}
			go func() { _, _ = p.Run(ctx) }()
		}
		c := j.coordinator(nil)
		c.StepTime = time.Hour // the round goes on once it was told
		c.Progress = func(e Event) {
			if e.Kind == host.Waiting && e.Round == 2 && len(e.Parties) == 1 && e.Parties[0] == 3 {
				once.Do(func() { close(told) })
			}
		}
		if result, err := c.Run(ctx); err != nil || result.Lost != 0 {
			t.Errorf("%+v, %v", result, err)
		}
	})
}

// A party's new connection takes the place of the old one, whose end is not the new one's.
func TestHubReplaced(t *testing.T) {
	h := newHub("", 1<<20)
	ended := make(map[*connection]bool)
	admit := func(again bool) *connection {
		c := &connection{judged: make(chan struct{})}
		c.cancel = func() { ended[c] = true }
		if replaced := h.admit(arrival{party: 3, from: c}); replaced != again {
			t.Errorf("there was one before: %v", replaced)
		}
		return c
	}
	old := admit(false)
	now := admit(true)
	if !ended[old] || ended[now] || h.there[3] != now {
		t.Errorf("the old one has ended: %v, the new one: %v", ended[old], ended[now])
	}
	if h.gone(arrival{party: 3, from: old}) || h.there[3] != now || ended[now] {
		t.Error("the end of the old connection is taken for that of the new one")
	}
	if !h.gone(arrival{party: 3, from: now}) || h.there[3] != nil {
		t.Error("the end of the connection is not noticed")
	}
}

// What two sides settled of one job and roster is compared too: they may calibrate otherwise.
func TestGreetingDigest(t *testing.T) {
	j := newJob(t, testJob(), 4)
	greeting := greetingOf(j.settled)
	hello := link.JSONFrame(link.KindHello, greeting)
	if _, refused := checkGreeting(j.settled, hello[1:]); refused != nil {
		t.Errorf("the same job: %+v", refused)
	}
	greeting.Digest = greeting.Roster
	_, refused := checkGreeting(j.settled, link.JSONFrame(link.KindHello, greeting)[1:])
	if refused == nil || refused.Field != "digest" || refused.Theirs != greeting.Digest {
		t.Errorf("another digest: %+v", refused)
	}
}

// A connection that takes nothing for long is hung up on, if it keeps others from what is theirs.
func TestHubUnclog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHub("", 1<<20)
		ended := make(map[int]bool)
		for i := range 3 {
			from := &connection{judged: make(chan struct{}), cancel: func() { ended[i] = true }}
			h.admit(arrival{party: i, from: from})
		}
		h.sends(h.there[0], time.Now())
		h.sends(h.there[1], time.Now())
		h.unclog(time.Second)
		if len(ended) != 0 {
			t.Errorf("hung up on, having just begun to be sent to: %v", ended)
		}
		time.Sleep(2 * time.Second)
		h.sends(h.there[1], time.Time{})
		h.unclog(time.Second)
		if !ended[0] || len(ended) != 1 {
			t.Errorf("hung up on: %v, want the one that takes nothing", ended)
		}
	})
}

// strained is a listener that nobody dials, and that has turned connections away.
type strained struct {
	Memory
	away chan []link.Notice
}

func (s *strained) Notices() []link.Notice {
	select {
	case away := <-s.away:
		return away
	default:
		return nil
	}
}

// What a listener does with strangers is told once, by numbers.
func TestNotices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		h := newHub("", 0)
		l := &strained{away: make(chan []link.Notice, 1)}
		l.away <- []link.Notice{{Kind: link.Unknown, Count: 1000, Err: ErrPeer},
			{Kind: link.Unfinished, Count: 2}, {Kind: link.Strained, Count: 3}}
		h.running.Go(func() { h.accept(ctx, l, func(error) {}) })
		for _, want := range []Event{{Kind: host.Unknown, Count: 1000, Err: ErrPeer},
			{Kind: host.Unfinished, Count: 2}, {Kind: host.Strained, Count: 3}} {
			if e := <-h.notices; e.Kind != want.Kind || e.Count != want.Count || e.Err != want.Err {
				t.Errorf("%v, want %v", e, want)
			}
		}
		time.Sleep(10 * noticeTime)
		if len(h.notices) != 0 {
			t.Errorf("it is told again: %v", <-h.notices)
		}
		cancel()
		h.running.Wait()
	})
}

// A party that the coordinator's roster does not have does not dial for ever.
func TestParticipantUnknown(t *testing.T) {
	_, dialer := newJob(t, testJob(), 7).listen()
	ctx, cancel := context.WithTimeout(t.Context(), jobTime)
	defer cancel()
	j := newJob(t, testJob(), 8) // with a roster of one more
	p := j.participant(7, nil)
	d := dialer(0).(*TCPDialer)
	d.Identity = j.signers[7]
	p.Dialer = d
	if _, err := p.Run(ctx); !errors.Is(err, ErrPeer) {
		t.Errorf("%v", err)
	}
}
