package main

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/service/federation"
	"github.com/hushsum/hushsum/service/party"
)

// Who goes on does so in a folder of its own, in which that federation is pinned, and hears who is
// new.
func TestFollow(t *testing.T) {
	made := func(names string) *federation.Federation { return createdFor(t, names) }
	next := made("b c d e")
	j := joining{folder: t.TempDir(), address: "https://127.0.0.1:1"}
	p := &party.Party{Federation: made("a b c d"), Folder: j.folder, Spent: 3}
	out := new(bytes.Buffer)
	err := j.follow(context.Background(), p,
		func(context.Context) (*federation.Federation, error) { return next, nil },
		streams{in: nil, out: out, err: out})
	if err != nil || p.Federation != next || p.Spent != 0 || p.Folder == j.folder ||
		!hasFile(filepath.Join(p.Folder, "accepted.json")) {
		t.Errorf("%+v, %v", p, err)
	}
	for _, words := range []string{"joined: e\n", "left: a\n", next.ID} {
		if !strings.Contains(out.String(), words) {
			t.Errorf("it does not say %q: %s", words, out)
		}
	}
}

// createdFor is a federation of parties with some names.
func createdFor(t *testing.T, names string) *federation.Federation {
	t.Helper()
	var roster strings.Builder
	for _, name := range strings.Fields(names) {
		key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte(name), 32)).Public().(ed25519.PublicKey)
		fmt.Fprintf(&roster, "%s %x\n", name, []byte(key))
	}
	f, err := federation.New(federation.Files{Text: []byte(created), Roster: []byte(roster.String())})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// A federation that has ended is not judged by a policy that was tightened since: else the party
// could not follow on from it. One that goes on is.
func TestPermitted(t *testing.T) {
	p := &party.Party{Federation: createdFor(t, "a b c d")}
	if err := permitted(p); err != nil {
		t.Errorf("no policy: %v", err)
	}
	p.Policy = &party.Policy{MaxEpsilon: 1} // and the federation has no noise
	if err := permitted(p); !errors.Is(err, party.ErrPolicy) {
		t.Errorf("no book: %v", err)
	}
	p.Book = &party.Book{File: filepath.Join(t.TempDir(), "book"), Key: new(keyexchange.SealKey)}
	if err := permitted(p); !errors.Is(err, party.ErrPolicy) {
		t.Errorf("not in the book: %v", err)
	}
	if err := p.Book.Decline(p.Federation); err != nil {
		t.Fatal(err)
	}
	if err := permitted(p); err != nil {
		t.Errorf("it has ended: %v", err)
	}
}
