package record

import (
	"context"
	"errors"
	"testing"

	"github.com/hushsum/hushsum/keyexchange"
)

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
