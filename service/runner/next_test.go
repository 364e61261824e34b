package runner

import (
	"errors"
	"testing"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/service/record"
)

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
