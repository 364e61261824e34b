package record

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"

	"github.com/hushsum/hushsum/keyexchange"
)

// A backup has the log's key, and not its leaves. A key that was restored is marked until the log
// has its leaves back; one that was lost next to them is as it was; and it takes no other log's
// place.
func TestPublicLogRestored(t *testing.T) {
	ctx := t.Context()
	key, err := keyexchange.GenerateSealKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	opened := func() *Records {
		embedded, err := StartEmbedded(ctx, EmbeddedOptions{Folder: t.TempDir(), Name: "n"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(embedded.Close)
		r, err := Open(ctx, embedded.JS, 1, NewKeys(*key))
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	logOf := func(r *Records) *PublicLog {
		t.Helper()
		l, err := r.PublicLog(ctx, "a.example/log", false)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	named := func([]byte) ([]*Ref, error) { return nil, nil }
	backup := func(r *Records) *bytes.Reader {
		t.Helper()
		var file bytes.Buffer
		if err := r.Backup(ctx, &file, named); err != nil {
			t.Fatal(err)
		}
		return bytes.NewReader(file.Bytes())
	}
	r := opened()
	l := logOf(r)
	if err := l.Append(ctx, []byte("a leaf")); err != nil {
		t.Fatal(err)
	}
	file := backup(r)
	other := opened()
	if l := logOf(other); l.Restored {
		t.Error("a log that begins is one that was restored")
	}
	if _, err := other.Restore(ctx, file); !errors.Is(err, ErrNotEmpty) {
		t.Errorf("restored over another log: %v", err)
	}
	next := opened()
	for _, from := range []*Records{r, next} {
		if from == next { // a restored one that has no leaves yet
			next = opened()
		}
		if _, err := next.Restore(ctx, backup(from)); err != nil {
			t.Fatal(err)
		}
		if again := logOf(next); !again.Key.Equal(l.Key) || !again.Restored {
			t.Errorf("after a restore: the same key %v, marked %v", again.Key.Equal(l.Key), again.Restored)
		}
	}
	back := logOf(next)
	if err := back.Append(ctx, []byte("a leaf")); err != nil {
		t.Fatal(err)
	}
	if again := logOf(next); !again.Restored {
		t.Error("it is whole with some of its leaves")
	}
	if err := back.Back(ctx); err != nil {
		t.Fatal(err)
	}
	if again := logOf(next); again.Restored || !again.Key.Equal(l.Key) {
		t.Error("it is not whole with its leaves")
	}
	// The key alone is lost.
	if err := r.js.DeleteStream(ctx, streamLog); err != nil {
		t.Fatal(err)
	}
	lost := &PublicLog{records: r}
	if err := lost.makeStream(ctx); err != nil {
		t.Fatal(err)
	}
	if err := lost.Append(ctx, []byte("a leaf")); err != nil {
		t.Fatal(err)
	}
	if _, err := r.PublicLog(ctx, "a.example/log", true); !errors.Is(err, ErrDamaged) {
		t.Errorf("a key that is lost: %v", err)
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	took, err := r.HealFrom(ctx, file, named)
	if again := logOf(r); err != nil || took["objects"] != 1 || again.Restored ||
		!again.Key.Equal(l.Key) {
		t.Errorf("healed: %v, %v, marked %v", took, err, again.Restored)
	}
}

// Two nodes have one log under one key: a leaf is added after those that its author has read, also
// once the key that seals has changed.
func TestPublicLog(t *testing.T) {
	ctx := context.Background()
	embedded, err := StartEmbedded(ctx, EmbeddedOptions{Folder: t.TempDir(), Name: "n"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(embedded.Close)
	old, err := keyexchange.GenerateSealKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	newest, err := keyexchange.GenerateSealKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	opened := func(keys *Keys, name string, begun bool) (*PublicLog, error) {
		r, err := Open(ctx, embedded.JS, 1, keys)
		if err != nil {
			t.Fatal(err)
		}
		return r.PublicLog(ctx, name, begun)
	}
	if _, err := opened(NewKeys(*old), "a.example/log", true); !errors.Is(err, ErrDamaged) {
		t.Errorf("a log that was begun, and has no key: %v", err)
	}
	a, err := opened(NewKeys(*old), "a.example/log", false)
	if err != nil {
		t.Fatal(err)
	}
	b, err := opened(NewKeys(*newest, *old), "a.example/log", true)
	if err != nil || !a.Key.Equal(b.Key) {
		t.Fatal("the nodes have two keys", err)
	}
	if c, err := opened(NewKeys(*newest), "a.example/log", true); err != nil || !c.Key.Equal(a.Key) {
		t.Errorf("the key is not sealed anew: %v", err)
	}
	if _, err := opened(NewKeys(*newest), "b.example/log", false); !errors.Is(err, ErrRecord) {
		t.Errorf("another name: %v", err)
	}
	next := func(l *PublicLog, want string) {
		t.Helper()
		if leaf, err := l.Next(ctx); err != nil || string(leaf) != want {
			t.Errorf("%q, %v, want %q", leaf, err, want)
		}
	}
	next(a, "")
	if err := a.Append(ctx, []byte("one")); err != nil {
		t.Fatal(err)
	}
	if err := b.Append(ctx, []byte("another")); !errors.Is(err, ErrLost) {
		t.Error(err)
	}
	next(b, "one")
	if err := b.Append(ctx, []byte("two")); err != nil {
		t.Fatal(err)
	}
	next(b, "two")
	next(b, "")
	next(a, "one")
	next(a, "two")
	next(a, "")
}
