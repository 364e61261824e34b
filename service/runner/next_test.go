package runner

import (
	"errors"
	"iter"
	"testing"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/service/exchange"
	"github.com/hushsum/hushsum/service/record"
)

// has is a lead that has these items for each party, and waits for an answer or not.
type has struct {
	drive.Lead
	items []drive.Item
	due   bool
}

func (h has) At(drive.Peer) drive.Standing { return drive.Standing{Due: h.due} }

func (h has) Pending(drive.Peer) iter.Seq[drive.Item] {
	return func(yield func(drive.Item) bool) {
		for _, item := range h.items {
			if !yield(item) {
				return
			}
		}
	}
}

// Of a session a party is sent the first item that it has not seen; when it has seen all, and is
// not at work, the last. Of two sessions the first goes first. The end is told whenever it asks.
func TestNextInSession(t *testing.T) {
	item := func(session uint64, name string) drive.Item {
		return drive.Item{Kind: drive.Carry, Session: session, Name: name}
	}
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
		r := &Runner{drive: has{items: x.items}, parties: make([]peer, 1)}
		n, _ := r.inSession(Peer{}, &exchange.Ask{Seen: x.seen, Working: x.working})
		if n.Item != x.want {
			t.Errorf("who has seen %q of %d items, at work %v, is sent %q, want %q", x.seen,
				len(x.items), x.working, n.Item, x.want)
		}
	}
	r := &Runner{drive: has{items: two}, parties: make([]peer, 1)}
	all := &exchange.Ask{Seen: []string{"a", "b", "c", "d"}}
	for _, want := range []string{"b", "d"} { // each session has its own
		if n, _ := r.inSession(Peer{}, all); n.Item != want {
			t.Errorf("%q, want %q", n.Item, want)
		}
	}
}

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
		r := &Runner{drive: has{items: x.items, due: x.due}, parties: make([]peer, 1)}
		n, _ := r.inOrder(Peer{}, &exchange.Ask{Seen: x.seen, Offer: x.offer, Working: x.busy})
		if n.Item != x.want {
			t.Errorf("who has seen %q of %d items, and offers %d, due %v, at work %v, is sent %q, want %q",
				x.seen, len(x.items), x.offer, x.due, x.busy, n.Item, x.want)
		}
	}
}

// What a state names is its model, and objects of any name.
func TestNamed(t *testing.T) {
	model, sum, other := &record.Ref{Name: "m"}, &record.Ref{Name: "s"}, &record.Ref{Name: "o"}
	b, err := encode(state{Format: 1, Model: model, Objects: []object{{Ref: sum}, {Ref: other}}})
	if err != nil {
		t.Fatal(err)
	}
	refs, err := Named(b)
	if err != nil || len(refs) != 3 || *refs[0] != *model || *refs[1] != *sum || *refs[2] != *other {
		t.Errorf("%v, %v", refs, err)
	}
	if refs, err := Named([]byte("text")); !errors.Is(err, record.ErrRecord) || refs != nil {
		t.Errorf("of no state: %v, %v", refs, err)
	}
}

// The broadcast of the open round is one memory for all who ask, and nobody gets that of another
// round. The record and the leader have the same model.
func TestBroadcastOfRound(t *testing.T) {
	l := newLed(t, "time.step_time = \"1h\"")
	ctx := t.Context()
	l.hold(l.follow(), 1, func(drive.Status) {})
	first, err := l.Broadcast(ctx, 0, 2)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := l.Broadcast(ctx, 1, 2); err != nil || &again[0] != &first[0] {
		t.Errorf("a second copy: %v", err)
	}
	for _, round := range []int{1, 3} {
		if _, err := l.Broadcast(ctx, 0, round); !errors.Is(err, ErrNotDue) {
			t.Errorf("round %d: %v", round, err)
		}
	}
	last, err := l.Broadcast(ctx, -1, 0)
	if err != nil {
		t.Fatal(err)
	}
	recorded, err := RecordedModel(ctx, l.fed, l.records)
	if err != nil || string(recorded) != string(last) {
		t.Errorf("%d bytes are recorded of %d: %v", len(recorded), len(last), err)
	}
}
