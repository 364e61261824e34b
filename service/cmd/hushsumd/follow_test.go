package main

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hushsum/hushsum/job/consent"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/service/exchange"
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
	j.out = filepath.Join(t.TempDir(), "m.safetensors")
	ended := func(model string) {
		t.Helper()
		if err := j.ended([]byte(model), out); err != nil {
			t.Error(err)
		}
	}
	ended("old")
	follow := func(to *federation.Federation) error {
		return j.follow(t.Context(), p,
			func(context.Context) (*federation.Federation, error) { return to, nil }, streams{out: out})
	}
	if err := follow(next); err != nil || p.Spent != 2 || p.LeastNumber != 9 || out.Len() > 0 ||
		hasFile(j.out) {
		t.Errorf("the one that was accepted last: %d, %d, %v, %s", p.Spent, p.LeastNumber, err, out)
	}
	ended("new")
	if text, err := os.ReadFile(j.out); err != nil || string(text) != "new" {
		t.Errorf("the model: %s, %v", text, err)
	}
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

// A member that has gone on does not go back: federations that it has seen end are not judged by a
// policy that was tightened since, and it takes no part in them.
func TestMemberGoesOn(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	files := federation.Files{
		Roster:    []byte(rosterOf(t, at, "p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7")),
		Committee: []byte(rosterOf(t, at, "m0", "m1", "m2", "m3", "m4")),
	}
	declared := func(name string) *federation.Federation {
		files.Text = []byte("name = \"" + name + "\"\n" + `rounds = 4
parties = { roster = "r", drop_out = 0.2, colluders = 1 }
sum = { protocol = "oneshot", committee = "c" }
model.length = 8
privacy.clip = 1.0
`)
		f, err := federation.New(files)
		if err != nil {
			t.Fatal(err)
		}
		f.Key = bytes.Repeat([]byte{7}, ed25519.PublicKeySize)
		return f
	}
	was, next := declared("was"), declared("next")
	write := func(name string, text []byte) string {
		if err := os.WriteFile(at(name), text, 0o600); err != nil {
			t.Fatal(err)
		}
		return at(name)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		asked = append(asked, strings.TrimPrefix(q.URL.Path, "/v1/federations"))
		var answer any = []exchange.Listed{{Name: "was", ID: was.ID}}
		switch asked[len(asked)-1] {
		case "":
		case "/" + was.ID:
			answer = exchange.Description{Name: "was", ID: was.ID, Text: string(was.Text), Committee: "c",
				Key: strings.Repeat("07", 32)}
		default:
			cancel()
		}
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	policy := write("policy.toml", fmt.Appendf(nil, "follow = [\"%064x\"]\ncovered = true\n", 7))
	member := func() (int, string) {
		asked = nil
		b := new(printed)
		code := dispatch(ctx, []string{"member", "--server", server.URL, "--identity", at("m0.pem"),
			"--roster", write("r", files.Roster), "--committee", write("c", files.Committee), "--folder",
			at("m"), "--follow", "--policy", policy}, streams{out: b, err: b})
		return code, b.said()
	}
	if code, text := member(); code != 1 || !strings.Contains(text, "policy: ") || len(asked) != 2 {
		t.Errorf("at first: %d %s, asked for %q", code, text, asked)
	}
	j := joining{folder: at("m"), accept: true}
	on := joining{folder: j.folderOf(next.ID), accept: true}
	err := os.MkdirAll(on.folder, 0o700)
	for _, err := range []error{err, j.agree(was, streams{out: io.Discard}),
		on.agree(next, streams{out: io.Discard})} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if code, text := member(); code != exitInterrupted || len(asked) != 3 ||
		asked[2] != "/"+was.ID+"/successors" {
		t.Errorf("once it has gone on: %d %s, asked for %q", code, text, asked)
	}
}

// Why a federation is not followed is said once, whatever others are refused later.
func TestFollowRefused(t *testing.T) {
	followPause = time.Millisecond
	refused := []error{fmt.Errorf("%w: a", consent.ErrPolicy), fmt.Errorf("%w: b", consent.ErrPolicy)}
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
	p.Policy = &consent.Policy{MaxEpsilon: 1} // and the federation has no noise
	if err := permitted(p); !errors.Is(err, consent.ErrPolicy) {
		t.Errorf("no book: %v", err)
	}
	p.Book = &consent.Book{File: filepath.Join(t.TempDir(), "book"), Key: new(keyexchange.SealKey)}
	if err := permitted(p); !errors.Is(err, consent.ErrPolicy) {
		t.Errorf("not in the book: %v", err)
	}
	if err := p.Book.Decline(p.Federation.Settled); err != nil {
		t.Fatal(err)
	}
	if err := permitted(p); err != nil {
		t.Errorf("it has ended: %v", err)
	}
}
