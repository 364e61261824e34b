package runner

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/service/exchange"
	"github.com/hushsum/hushsum/service/record"
)

// This file tests what a runner gives its leader, and asks of it.

// Parties that ask are connected, and are handed what follows. A copy of a question is refused.
func TestNext(t *testing.T) {
	l := newLed(t, "")
	ended := run(t, l.Runner)
	number := uint64(time.Now().Add(time.Hour).UnixNano())
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	handed := make(chan Outgoing, parties)
	for i := range parties {
		go func() {
			n, err := l.Next(ctx, Peer{Index: i}, exchange.Ask{Number: number}, time.Hour)
			if err != nil {
				t.Error(err)
			}
			handed <- n
		}()
	}
	var last Outgoing
	for range parties {
		last = <-handed
		if last.Kind != exchange.Join || last.Session != 1 {
			t.Errorf("%+v", last.Next)
		}
		last.Sent()
	}
	var copied *CopiedError
	_, err := l.Next(ctx, Peer{}, exchange.Ask{Number: number}, time.Hour)
	if !errors.As(err, &copied) || copied.Last != number {
		t.Errorf("a copy: %v", err)
	}
	waits := make(chan error)
	go func() {
		_, err := l.Next(ctx, Peer{}, exchange.Ask{Seen: []string{last.Item}, Working: true}, time.Hour)
		waits <- err
	}()
	l.waitsFor(Peer{})
	l.start("other")
	if err := l.Confirm(ctx); !errors.Is(err, ErrStopped) {
		t.Errorf("another leads: %v", err)
	}
	if err := <-waits; !errors.Is(err, ErrStopped) {
		t.Errorf("a party that waits hears %v", err)
	}
	await(t, ended, record.ErrLost)
}

// waitsFor waits until a question of a peer is open.
func (l *led) waitsFor(p Peer) {
	for open := false; !open; runtime.Gosched() {
		err := l.host.With(l.t.Context(), operator, func(drive.Lead, drive.Time) error {
			open = l.host.Asks(p)
			return nil
		})
		if err != nil {
			l.t.Fatal(err)
		}
	}
}

// The leader knows what a party has, has offered and works on.
func TestQuestion(t *testing.T) {
	q := question(&exchange.Ask{Seen: []string{"a", "b"}, Offer: 3, Working: true}, time.Hour)
	if len(q.Had) != 2 || !q.Had["a"] || !q.Had["b"] || q.Offer != 3 || !q.Working {
		t.Errorf("%+v", q)
	}
}

// A clock that stands still waits for those who were here before, until they were heard of or ask
// what is next.
func TestPresent(t *testing.T) {
	l := newLed(t, "")
	at := time.Now()
	l.clock.time = func() time.Time { return at }
	is := func(what string, want bool) {
		t.Helper()
		if got := l.present(at); got != want {
			t.Errorf("%s: all are present: %v", what, got)
		}
	}
	is("nobody was here", true)
	l.connected(Peer{Index: 1}, new(exchange.Ask))
	at = at.Add(time.Second)
	is("one was, and is not heard of", false)
	l.heard(Peer{Index: 1})
	is("and is heard of", true)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		_, err := l.Next(ctx, Peer{Index: 1}, exchange.Ask{}, time.Hour)
		ended <- err
	}()
	l.waitsFor(Peer{Index: 1})
	at = at.Add(time.Second)
	is("and asks", true)
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	is("and asks no more", false)
}

// While the record is away a clock stands still. When it goes again the waits of steps begin anew,
// once.
func TestWaitsBeginAnew(t *testing.T) {
	l := newLed(t, "")
	lead := &anew{Lead: l.drive}
	l.drive = lead
	for _, x := range []struct {
		away, stands bool
		times        int
	}{{false, false, 0}, {true, true, 0}, {true, true, 0}, {false, false, 1}, {false, false, 1}} {
		l.Away(x.away)
		if most := l.goes(); (most > 0) != x.stands || lead.times != x.times {
			t.Errorf("%+v: it stands for %v, and waits began anew %d times", x, most, lead.times)
		}
	}
}

// anew counts how often waits begin anew.
type anew struct {
	drive.Lead
	times int
}

func (a *anew) Again(drive.Time) { a.times++ }

// While a decision is on its way to the record nobody is handed what follows from it.
func TestNothingBeforeRecorded(t *testing.T) {
	l := newLed(t, "")
	for i := range parties {
		l.connected(Peer{Index: i}, new(exchange.Ask))
	}
	pending := func() (n int) {
		for range l.drive.Pending(Peer{}) {
			n++
		}
		return n
	}
	writes := 0
	l.Hold.Fault = func(step string) {
		if writes++; step != "sending" && pending() > 0 {
			t.Errorf("at %q a party is handed something", step)
		}
	}
	if err := l.looks(t.Context()); err != nil || writes == 0 || pending() != 1 {
		t.Errorf("%d items after %d steps: %v", pending(), writes, err)
	}
}

// A runner whose node tells it to end does so between rounds, and the next one goes on.
func TestPassed(t *testing.T) {
	l := newLed(t, "")
	o := l.Options
	o.Pass = func() bool { return true }
	r, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	await(t, run(t, r), ErrPassed)
	if _, err := r.Status(t.Context()); !errors.Is(err, ErrStopped) {
		t.Errorf("it still answers: %v", err)
	}
	if _, err := l.start("next").Status(t.Context()); err != nil {
		t.Error(err)
	}
}

// Nothing of a decision that is not recorded is said.
func TestNotRecordedNotSaid(t *testing.T) {
	l := newLed(t, "")
	var log bytes.Buffer
	l.Log = slog.New(slog.NewTextHandler(&log, nil))
	said := func(what string) bool { return strings.Contains(log.String(), "msg="+what) }
	if err := l.Pause(t.Context(), By{Who: "ann"}); err != nil || !said("paused") {
		t.Errorf("%v: %s", err, &log)
	}
	l.start("other")
	if err := l.Resume(t.Context(), By{Who: "ann"}); err == nil || said("resumed") {
		t.Errorf("%v: %s", err, &log)
	}
}

// Where states are sealed anew the two last are, and all that was decided is in them.
func TestReseal(t *testing.T) {
	l := newLed(t, "")
	if err := l.looks(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := l.Hold.Number()
	if err := l.Reseal(t.Context()); err != nil || l.Hold.Number() != before+2 {
		t.Errorf("%d more states, %v", l.Hold.Number()-before, err)
	}
	l.start("other")
	if err := l.Reseal(t.Context()); !errors.Is(err, record.ErrLost) {
		t.Error(err)
	}
	if _, err := l.Status(t.Context()); !errors.Is(err, ErrStopped) {
		t.Errorf("it still answers: %v", err)
	}
}

// The model of a sum is recorded with the round that gave it, with what the server's rule keeps
// next to it, and the history has its digest.
func TestModelRecorded(t *testing.T) {
	l := newLed(t, "server.rule = \"fedadam\"\nserver.rate = 0.1")
	l.hold(l.follow(), 2, func(drive.Status) {})
	past := l.history[1]
	if past.Lost != "" || past.Digest != l.modelRef.Digest || past.Digest == l.history[0].Digest {
		t.Errorf("%+v, %+v", past, l.modelRef)
	}
	model := l.model
	next := l.start("next")
	if next.model[0] == 0 || next.model[0] != model[0] || len(next.optimizer.Moments()) != 2 {
		t.Errorf("the next leader has %v, want %v", next.model, model)
	}
}
