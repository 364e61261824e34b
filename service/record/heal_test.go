package record_test

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/service/record"
)

// A backup has back what a state names, also one that is so long that it has several parts, and
// also where the state itself is there.
func TestHealLongState(t *testing.T) {
	ctx := context.Background()
	o := startOwning(t)
	h := o.claims(0)
	model, err := h.Put(ctx, "model", []byte("a model"))
	if err != nil {
		t.Fatal(err)
	}
	state := bytes.Repeat([]byte("a state. "), 4<<20) // 36 MB
	if err := h.Decide(ctx, state); err != nil {
		t.Fatal(err)
	}
	named := func(b []byte) ([]*record.Ref, error) {
		if !bytes.Equal(b, state) {
			t.Errorf("what a state of %d bytes names is asked for", len(b))
		}
		return []*record.Ref{model}, nil
	}
	var file bytes.Buffer
	if err := o.all[0].Backup(ctx, &file, named); err != nil {
		t.Fatal(err)
	}
	name := o.chain().Last().State.Name
	store, err := o.e.JS.ObjectStore(ctx, "hushsum-objects-"+id[:16])
	if err != nil {
		t.Fatal(err)
	}
	for _, lost := range [][]string{{model.Name}, {model.Name, name, name + ".1"}} {
		for _, name := range lost {
			if err := store.Delete(ctx, name); err != nil {
				t.Fatal(err)
			}
		}
		took, err := o.all[0].HealFrom(ctx, bytes.NewReader(file.Bytes()), named)
		if err != nil || took["objects"] != len(lost) {
			t.Errorf("without %s it takes %v, %v", strings.Join(lost, ", "), took, err)
		}
		if now, err := o.all[0].Check(ctx, id, named); err != nil || len(now.Problems) > 0 {
			t.Errorf("without %s: %+v, %v", strings.Join(lost, ", "), now, err)
		}
	}
}
