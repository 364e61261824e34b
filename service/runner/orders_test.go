package runner

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/internal/chain"
	"github.com/hushsum/hushsum/service/record"
)

// seen returns what an operator who looks now sees of orders.
func seen(t *testing.T, r *Runner) By {
	t.Helper()
	s, err := r.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return By{Who: "ann", Seen: s.Orders}
}

// An order that is based on a status is taken whatever rounds were held since, under the next
// leader too, and is refused once another order came between, also where that was undone again.
func TestOrderBetweenLooks(t *testing.T) {
	l := newLed(t, "")
	ctx := t.Context()
	first := seen(t, l.Runner)
	if declared := Declared(l.fed).Orders; first.Seen != declared {
		t.Errorf("at first %q, and where nobody leads %q", first.Seen, declared)
	}
	l.hold(l.follow(), 3, func(drive.Status) {})
	if err := l.Exclude(ctx, first, "p4"); err != nil {
		t.Errorf("after %d decisions: %v", l.Hold.Number(), err)
	}
	refused := func(when string, by By) {
		t.Helper()
		before := seen(t, l.Runner)
		for what, order := range map[string]func() error{
			"pause":   func() error { return l.Pause(ctx, by) },
			"end":     func() error { return l.EndNow(ctx, by) },
			"resume":  func() error { return l.Resume(ctx, by) },
			"exclude": func() error { return l.Exclude(ctx, by, "p1") },
			"readmit": func() error { return l.Readmit(ctx, by, "p4") },
		} {
			if err := order(); !errors.Is(err, ErrStale) {
				t.Errorf("%s, %s: %v", when, what, err)
			}
		}
		if after := seen(t, l.Runner); after != before {
			t.Errorf("%s: orders that are refused have an effect: %q, then %q", when, before, after)
		}
	}
	refused("a copy", first)
	second := seen(t, l.Runner)
	if err := l.Exclude(ctx, second, "p4"); err != nil || seen(t, l.Runner) != second {
		t.Errorf("left out a second time, which changes nothing: %v", err)
	}
	for _, order := range []func(context.Context, By) error{l.Pause, l.Resume} {
		if err := order(ctx, By{Who: "bob"}); err != nil {
			t.Fatal(err)
		}
	}
	refused("paused and resumed", second)
	third := seen(t, l.Runner)
	l.Runner = l.start("next")
	refused("paused and resumed, under the next leader", second)
	if err := l.Pause(ctx, third); err != nil {
		t.Errorf("of the leader before: %v", err)
	}
	refused("a copy under the next leader", third)
	recorded, err := RecordedStatus(ctx, l.fed, l.records)
	if err != nil {
		t.Fatal(err)
	}
	if want := seen(t, l.Runner).Seen; recorded.Orders != want {
		t.Errorf("where nobody leads %q, want %q", recorded.Orders, want)
	}
}

// Of operators who order at once, based on the same status, one is obeyed.
func TestOrdersAtOnce(t *testing.T) {
	l := newLed(t, "")
	const operators = 8
	for range 5 {
		by := seen(t, l.Runner)
		outcomes := make(chan error, operators)
		for i := range operators {
			go func() { outcomes <- l.Pause(t.Context(), By{Who: fmt.Sprint(i), Seen: by.Seen}) }()
		}
		obeyed := 0
		for range operators {
			switch err := <-outcomes; {
			case err == nil:
				obeyed++
			case !errors.Is(err, ErrStale):
				t.Error(err)
			}
		}
		if obeyed != 1 {
			t.Errorf("%d of %d operators are obeyed", obeyed, operators)
		}
	}
}

// An order is refused where the federation itself has changed what the order means, even a moment
// ago.
func TestOrderAfterOwnChange(t *testing.T) {
	for name, o := range map[string]drive.Order{
		"pause": {Do: drive.Pause}, "left out": {Do: drive.Exclude, Party: 2}, "end": {Do: drive.End},
	} {
		o.Why = "by itself"
		l := newLed(t, "")
		by := seen(t, l.Runner)
		l.drive.Order(l.now(), o)
		if after := seen(t, l.Runner); after == by {
			t.Errorf("%s: orders are %q as before", name, by)
		}
		if err := l.Resume(t.Context(), by); !errors.Is(err, ErrStale) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The end of a federation that has ended succeeds, whatever the operator has seen; other orders
// tell an operator who has seen the end from one who has not.
func TestEndTwice(t *testing.T) {
	l := newLed(t, "")
	ctx := t.Context()
	before := seen(t, l.Runner)
	if err := l.EndNow(ctx, before); err != nil {
		t.Fatal(err)
	}
	after, decisions := seen(t, l.Runner), l.Hold.Number()
	for _, by := range []By{before, after} {
		if err := l.EndNow(ctx, by); err != nil {
			t.Errorf("%q: %v", by, err)
		}
	}
	if again := seen(t, l.Runner); again != after || l.Hold.Number() != decisions {
		t.Errorf("another end is not without effect: %q, then %q", after, again)
	}
	if err := l.Pause(ctx, before); !errors.Is(err, ErrStale) {
		t.Errorf("an operator who has not seen the end: %v", err)
	}
	if err := l.Pause(ctx, after); !errors.Is(err, ErrState) {
		t.Errorf("an operator who has seen the end: %v", err)
	}
}

// What operators have seen of a state that is missing identifies nothing of the older state that
// the federation falls back to.
func TestOrdersOfMissingState(t *testing.T) {
	l := newLed(t, "")
	ctx := t.Context()
	looks := []By{seen(t, l.Runner)}
	for _, order := range []func(context.Context, By) error{l.Pause, l.Resume} {
		if err := order(ctx, By{Who: "ann"}); err != nil {
			t.Fatal(err)
		}
		looks = append(looks, seen(t, l.Runner))
	}
	if err := l.goBack(ctx, record.ErrMissing); err != nil {
		t.Fatal(err)
	}
	at := l.drive.Status()
	if !at.Paused {
		t.Fatalf("it falls back to %+v", at)
	}
	for _, by := range looks {
		if by.Seen == l.ordersAt(at) {
			t.Errorf("%q was seen before", by.Seen)
		}
	}
}

// A decision of several things has the kind of the first, and says the others too: that a
// federation ended with its last sum, say.
func TestEntryOfSeveral(t *testing.T) {
	l := newLed(t, "")
	for _, c := range []struct {
		told  []drive.NoticeKind
		kind  chain.Kind
		order string
	}{
		{nil, "", ""},
		{[]drive.NoticeKind{drive.Begun}, chain.Begin, ""},
		{[]drive.NoticeKind{drive.Ended, drive.Summed}, chain.Sum, "ended"},
		{[]drive.NoticeKind{drive.Lost, drive.Paused}, chain.Lost, "paused"},
		{[]drive.NoticeKind{drive.Ended, drive.Spoiler}, chain.Order, "ended"},
	} {
		l.notices = nil
		for _, kind := range c.told {
			l.notices = append(l.notices, drive.Notice{Kind: kind, Round: 1, Parties: []int{0, 1}})
		}
		e := l.entry()
		if e.Kind != c.kind || e.Order != c.order || c.kind == chain.Begin && e.Members.Count != 2 {
			t.Errorf("%v: %+v", c.told, e)
		}
	}
}
