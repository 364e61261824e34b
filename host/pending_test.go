package host

import (
	"context"
	"errors"
	"iter"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hushsum/hushsum/drive"
)

// has is a lead that has these items for each peer, and waits for an answer or not. It counts who
// is here.
type has struct {
	drive.Lead
	items []drive.Item
	due   bool
	here  map[drive.Peer]bool
}

func (h *has) At(drive.Peer) drive.Standing { return drive.Standing{Due: h.due} }

func (h *has) Pending(drive.Peer) iter.Seq[drive.Item] { return slices.Values(h.items) }

func (h *has) Gone(_ drive.Time, p drive.Peer) { delete(h.here, p) }

func (h *has) Status() drive.Status { return drive.Status{} }

// newHas makes a leader, which does not run.
func newHas(items []drive.Item, due bool) (*Leader, *has) {
	h := &has{items: items, due: due, here: map[drive.Peer]bool{}}
	began := time.Now()
	return NewLeader(Options{Lead: h, Room: 100,
		Clock: func() drive.Time { return drive.Time(time.Since(began)) }}), h
}

// question makes one of a peer that has seen items.
func question(seen ...string) *Question {
	q := &Question{Had: map[string]bool{}, Wait: time.Hour, asks: true}
	for _, name := range seen {
		q.Had[name] = true
	}
	return q
}

func item(session uint64, name string) drive.Item {
	return drive.Item{Kind: drive.Carry, Session: session, Name: name}
}

// Of a session a party is sent the first item that it has not seen; when it has seen all, and is
// not at work, the last. Of two sessions the first goes first. The end is told whenever it asks.
func TestNextInSession(t *testing.T) {
	two := []drive.Item{item(1, "a"), item(1, "b"), item(2, "c"), item(2, "d")}
	end := []drive.Item{{Kind: drive.Last, Name: "end"}}
	for _, x := range []struct {
		items   []drive.Item
		seen    []string
		working bool
		want    string
	}{
		{nil, nil, false, ""},
		{two, nil, false, "a"},
		{two, []string{"a"}, false, "b"},
		{two, []string{"b"}, false, "a"},
		{two[:2], []string{"a", "b"}, false, "b"},
		{two[:2], []string{"a", "b"}, true, ""},
		{two[:1], []string{"a"}, false, "a"},
		{two, []string{"a", "b"}, false, "b"},
		{two, []string{"a", "b"}, true, "c"},
		{two, []string{"a", "b", "c"}, true, "d"},
		{two, []string{"a", "b", "c", "d"}, true, ""},
		{two[2:], []string{"c", "d"}, false, "d"},
		{end, []string{"end"}, true, "end"},
	} {
		l, _ := newHas(x.items, false)
		q := question(x.seen...)
		q.Working = x.working
		if n, _ := l.next(drive.Peer{}, q); n.Name != x.want {
			t.Errorf("who has seen %q of %d items, at work %v, is sent %q, want %q", x.seen,
				len(x.items), x.working, n.Name, x.want)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		l, _ := newHas(two, false)
		ctx, cancel := context.WithTimeout(t.Context(), resendAfter/2)
		defer cancel()
		for _, want := range []string{"b", "d"} { // each session has its own
			var got string
			sent, err := l.Poll(ctx, drive.Peer{}, *question("a", "b", "c", "d"), welcome,
				func(item drive.Item, _ drive.Status) { got = item.Name })
			if err != nil || got != want {
				t.Fatalf("%q, want %q; %v", got, want, err)
			}
			sent()
		}
	})
}

func welcome(drive.Lead, drive.Time) error { return nil }

// Where items follow each other a party is sent the one behind the last that it has seen, or that
// again while its answer is due. What it offers answers the opening of that round.
func TestNextInOrder(t *testing.T) {
	items := []drive.Item{{Kind: drive.Carry, Name: "opening", Round: 3},
		{Kind: drive.Upload, Name: "upload", Round: 3}}
	for _, x := range []struct {
		items     []drive.Item
		seen      []string
		offer     uint64
		due, busy bool
		want      string
	}{
		{nil, nil, 0, true, false, ""},
		{items, nil, 0, true, false, "opening"},
		{items, nil, 3, true, false, "upload"},
		{items, nil, 2, true, false, "opening"},
		{items[:1], nil, 3, true, false, ""},
		{items[:1], []string{"opening"}, 0, true, false, "opening"},
		{items[:1], []string{"opening"}, 0, true, true, ""},
		{items[:1], []string{"opening"}, 0, false, false, ""},
		{items[:1], []string{"opening"}, 3, true, false, ""},
		{items, []string{"opening"}, 3, true, false, "upload"},
		{items, []string{"upload"}, 3, true, false, "upload"},
		{items, []string{"upload"}, 3, false, false, ""},
		{[]drive.Item{{Kind: drive.Last, Name: "end"}}, []string{"end"}, 0, false, true, "end"},
	} {
		l, _ := newHas(x.items, x.due)
		q := question(x.seen...)
		q.Offer, q.Working = x.offer, x.busy
		if n, _ := l.next(drive.Peer{}, q); n.Name != x.want {
			t.Errorf("who has seen %q of %d items, and offers %d, due %v, at work %v, is sent %q, want %q",
				x.seen, len(x.items), x.offer, x.due, x.busy, n.Name, x.want)
		}
	}
}

// Who is at work on what it has seen is not sent it again. Others are: at once by a leader that has
// not sent it that, and else once in a while. A connection never is.
func TestAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, _ := newHas(nil, false)
		n := item(1, "1.opening")
		at := l.peer(drive.Peer{})
		again := func(what string, q Question, want bool) {
			t.Helper()
			q.asks = true
			got := l.again(drive.Peer{}, &n, &q)
			if got != want || !want && !q.Working && q.later <= 0 {
				t.Errorf("%s: %v, again after %v", what, got, q.later)
			}
			if got {
				at.handed, at.when = n.Name, time.Now()
			}
		}
		again("of another leader, at work", Question{Working: true}, false)
		again("of another leader", Question{}, true)
		again("at once", Question{}, false)
		n.Name = "2.opening"
		again("something else", Question{}, true)
		time.Sleep(resendAfter + time.Second)
		again("later, at work", Question{Working: true}, false)
		if l.again(drive.Peer{}, &n, new(Question)) {
			t.Error("a connection is sent it again")
		}
		again("later", Question{}, true)
		again("and at once", Question{}, false)
		sooner := Question{asks: true, later: time.Millisecond}
		if l.again(drive.Peer{}, &n, &sooner) || sooner.later != time.Millisecond {
			t.Errorf("what is due sooner is put off by %v", sooner.later)
		}
	})
}

// A question that is open waits for news, and for what comes again. Whoever asks is here until the
// last of its questions has ended, however that does. A question that is refused counts for
// nothing.
func TestPoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, h := newHas([]drive.Item{item(1, "a")}, false)
		p := drive.Peer{Index: 3}
		ask := func(ctx context.Context, q *Question) (string, func(), error) {
			got := ""
			sent, err := l.Poll(ctx, p, *q, func(drive.Lead, drive.Time) error {
				h.here[p] = true
				return nil
			}, func(item drive.Item, _ drive.Status) { got = item.Name })
			return got, sent, err
		}
		is := func(what string, here bool) {
			t.Helper()
			if h.here[p] != here || l.Asks(p) != here {
				t.Errorf("%s: here %v, and asks %v", what, h.here[p], l.Asks(p))
			}
		}
		got, first, err := ask(t.Context(), question())
		if got != "a" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
		is("while it is answered", true)
		began := time.Now()
		got, second, err := ask(t.Context(), question("a")) // as it was lost
		if took := time.Since(began); got != "a" || err != nil || took != resendAfter {
			t.Errorf("%q again after %v, %v", got, took, err)
		}
		first()
		is("one of two has ended", true)
		second()
		is("both have", false)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		working := question("a")
		working.Working = true
		time.AfterFunc(time.Second/3, func() { // nothing is pending while a decision is not durable
			for _, items := range [][]drive.Item{nil, h.items} {
				_ = l.With(ctx, nobody, func(drive.Lead, drive.Time) error {
					h.items = items
					l.tell(p)
					return nil
				})
				synctest.Wait()
			}
		})
		if got, _, err := ask(ctx, working); got != "" || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("at work: %q, %v", got, err)
		}
		is("its time is over", false)
		got, sent, err := ask(t.Context(), &Question{Had: map[string]bool{}})
		if got != "a" || err != nil {
			t.Fatalf("without a wait: %q, %v", got, err)
		}
		sent()
		began = time.Now()
		patient := &Question{Had: map[string]bool{"a": true}, Working: true, Wait: time.Minute}
		got, _, err = ask(t.Context(), patient)
		if took := time.Since(began); got != "" || !errors.Is(err, ErrNothing) || took != time.Minute {
			t.Errorf("nothing is next: %q, %v after %v", got, err, took)
		}
		refused := errors.New("a copy")
		refuses := func(drive.Lead, drive.Time) error { return refused }
		_, err = l.Poll(t.Context(), p, *question(), refuses, func(drive.Item, drive.Status) {
			t.Error("it is answered")
		})
		if !errors.Is(err, refused) || l.Asks(p) {
			t.Errorf("refused: %v, asks %v", err, l.Asks(p))
		}
	})
}

// Questions take room for all of a message, and members have room of their own. Of those that wait
// for news, for room or for the lock each hears that the leader has stopped.
func TestStoppedPolls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, h := newHas(nil, false)
		ended := make(chan error, 10)
		ask := func(p drive.Peer) {
			_, err := l.Poll(t.Context(), p, *question(), welcome, func(drive.Item, drive.Status) {})
			ended <- err
		}
		go ask(drive.Peer{Index: 9}) // waits for news
		synctest.Wait()
		h.items = []drive.Item{{Name: "a", Shared: make([]byte, 60), Own: make([]byte, 20)}}
		for i := range 2 {
			go ask(drive.Peer{Index: i})
			go ask(drive.Peer{Index: i, Member: true})
		}
		synctest.Wait()
		if len(ended) != 2 || <-ended != nil || <-ended != nil || !l.Crowded() {
			t.Fatalf("with room for 100 bytes %d more are answered", len(ended))
		}
		_ = l.With(t.Context(), nobody, func(drive.Lead, drive.Time) error {
			for i := range 2 {
				go ask(drive.Peer{Index: 4 + i})
			}
			synctest.Wait()
			if len(ended) > 0 {
				t.Errorf("%d end early: %v", len(ended), <-ended)
			}
			l.Stop(errDisk)
			return nil
		})
		synctest.Wait()
		if n := len(ended); n != 5 {
			t.Errorf("%d of 5 hear that it has stopped", n)
		}
		for range len(ended) {
			if err := <-ended; !errors.Is(err, ErrStopped) {
				t.Error(err)
			}
		}
		if err := l.Run(t.Context()); !errors.Is(err, errDisk) {
			t.Error(err)
		}
	})
}

// Of many parties that wait for the lock, one at most comes before a member that asks later.
func TestMembersFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, _ := newHas(nil, false)
		var order []drive.Peer
		ask := func(p drive.Peer) {
			err := l.With(t.Context(), p, func(drive.Lead, drive.Time) error {
				order = append(order, p)
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		}
		<-l.lock
		for i := range 100 {
			go ask(drive.Peer{Index: i})
		}
		synctest.Wait()
		member := drive.Peer{Index: 3, Member: true}
		go ask(member)
		synctest.Wait()
		l.give() // which lets the first in
		synctest.Wait()
		if at := slices.Index(order, member); len(order) != 101 || at > 1 {
			t.Errorf("%d got in, the member behind %d parties", len(order), at)
		}
	})
}
