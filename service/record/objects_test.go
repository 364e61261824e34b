package record_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/hushsum/hushsum/service/record"
)

// Who rewrites JetStream's files, and has no key, can pass off no object as another: neither one
// that was altered, nor that of another name, nor that of another federation under the same key.
// The state of another federation is led by nobody.
func TestObjectsOfAnother(t *testing.T) {
	ctx, key := context.Background(), newKey(t)
	e, r := embedded(t, key)
	theirs := strings.Repeat("7a", 32)
	// Objects of federations whose identifiers begin alike lie in one bucket.
	alike := id[:16] + strings.Repeat("0", len(id)-16)
	declared(t, r)
	if err := r.Create(ctx, record.Definition{ID: theirs, Text: []byte("t")}, nil, nil); err != nil {
		t.Fatal(err)
	}
	h, err := r.Claim(ctx, id, "a")
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Decide(ctx, []byte("our state")); err != nil {
		t.Fatal(err)
	}
	other, err := r.Claim(ctx, theirs, "b")
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Decide(ctx, []byte("their state")); err != nil {
		t.Fatal(err)
	}
	bucket := func(id string) jetstream.ObjectStore {
		t.Helper()
		store, err := e.JS.ObjectStore(ctx, "hushsum-objects-"+id[:16])
		if err != nil {
			t.Fatal(err)
		}
		return store
	}
	from, to := bucket(id), bucket(theirs)
	put := func(store jetstream.ObjectStore, name string, box []byte) {
		t.Helper()
		if _, err := store.PutBytes(ctx, name, box); err != nil {
			t.Fatal(err)
		}
	}
	ref, err := h.Put(ctx, "model", []byte("a model"))
	if err != nil {
		t.Fatal(err)
	}
	box, err := from.GetBytes(ctx, ref.Name)
	if err != nil {
		t.Fatal(err)
	}
	refused := func(what, id string, ref record.Ref) {
		t.Helper()
		if b, err := r.Get(ctx, id, &ref); !errors.Is(err, record.ErrRecord) {
			t.Errorf("%s: %q, %v, want ErrRecord", what, b, err)
		}
	}
	if b, err := r.Get(ctx, id, ref); err != nil || string(b) != "a model" {
		t.Fatalf("%q, %v", b, err)
	}
	put(to, ref.Name, box)
	refused("copied to another federation", theirs, *ref)
	refused("of a federation whose identifier begins alike", alike, *ref)
	renamed := *ref
	renamed.Name += "0"
	put(from, renamed.Name, box)
	refused("under another name", id, renamed)
	digest := *ref
	digest.Digest = strings.Map(func(c rune) rune { return c ^ 1 }, ref.Digest)
	refused("of another digest", id, digest)
	smaller, larger := *ref, *ref
	smaller.Size--
	larger.Size++
	refused("of a smaller size", id, smaller)
	refused("of a larger size", id, larger)
	for k := range box {
		box[k] ^= 1
		put(from, ref.Name, box)
		box[k] ^= 1
		refused("altered", id, *ref)
	}

	decided, err := e.JS.Stream(ctx, "HUSHSUM-DECIDED")
	if err != nil {
		t.Fatal(err)
	}
	entry, err := decided.GetLastMsgForSubject(ctx, "hushsum.decided."+id)
	if err != nil {
		t.Fatal(err)
	}
	all, err := from.List(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range all {
		if strings.HasPrefix(info.Name, "state-") {
			box, err := from.GetBytes(ctx, info.Name)
			if err != nil {
				t.Fatal(err)
			}
			put(to, info.Name, box)
		}
	}
	if _, err := e.JS.Publish(ctx, "hushsum.decided."+theirs, entry.Data); err != nil {
		t.Fatal(err)
	}
	if b, err := r.State(ctx, theirs); !errors.Is(err, record.ErrRecord) {
		t.Errorf("another federation's state: %q, %v", b, err)
	}
	if _, err := r.Claim(ctx, theirs, "c"); !errors.Is(err, record.ErrRecord) {
		t.Errorf("another federation's state is led: %v", err)
	}
}
