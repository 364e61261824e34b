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
	"time"

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
	was := made("a b c d")
	p := &party.Party{Federation: was, Folder: j.folder, Spent: 3}
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
	// A run that is started again says nothing new, and the word that a state is lost is for the
	// federation in which it goes on.
	j.followed, j.spent, j.least = true, 2, 9
	p.Federation, p.Folder = was, j.folder
	if err := j.resume(p); err != nil || p.Spent != 0 || p.LeastNumber != 0 {
		t.Errorf("the first one: %d, %d, %v", p.Spent, p.LeastNumber, err)
	}
	out.Reset()
	j.tellEnd(out)
	follow := func(to *federation.Federation) error {
		return j.follow(t.Context(), p,
			func(context.Context) (*federation.Federation, error) { return to, nil }, streams{out: out})
	}
	if err := follow(next); err != nil || p.Spent != 2 || p.LeastNumber != 9 || out.Len() > 0 {
		t.Errorf("the one that was accepted last: %d, %d, %v, %s", p.Spent, p.LeastNumber, err, out)
	}
	j.tellEnd(out)
	const news = "the federation has ended\nwaiting for one that continues it\n"
	if err := follow(made("b c d f")); err != nil || p.Spent != 0 || p.LeastNumber != 0 ||
		!strings.HasPrefix(out.String(), news) {
		t.Errorf("one that is new: %d, %d, %v, %s", p.Spent, p.LeastNumber, err, out)
	}
	p.Federation, j.followed = was, false
	if err := j.resume(p); err != nil || p.Spent != 2 || p.LeastNumber != 9 {
		t.Errorf("without --follow: %d, %d, %v", p.Spent, p.LeastNumber, err)
	}
}

// Why a federation is not followed is said once, whatever others are refused later.
func TestFollowRefused(t *testing.T) {
	followPause = time.Millisecond
	refused := []error{fmt.Errorf("%w: a", party.ErrPolicy), fmt.Errorf("%w: b", party.ErrPolicy)}
	next := createdFor(t, "a b c d")
	j := joining{folder: t.TempDir(), resumes: next.ID}
	p := &party.Party{Federation: createdFor(t, "a b c d e"), Folder: j.folder}
	out, asked := new(bytes.Buffer), 0
	err := j.follow(t.Context(), p, func(context.Context) (*federation.Federation, error) {
		if asked++; asked > 4 {
			return next, nil
		}
		return nil, errors.Join(refused[:(asked+1)/2]...)
	}, streams{out: out})
	want := fmt.Sprintf("this identity does not continue: %v\ns has ended, waiting for one that "+
		"continues it\nthis identity does not continue: %v\nleft: e\n", refused[0], refused[1])
	if err != nil || !strings.HasPrefix(out.String(), want) {
		t.Errorf("%v, %s", err, out)
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
