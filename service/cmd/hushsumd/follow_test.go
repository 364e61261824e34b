package main

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/service/federation"
	"github.com/hushsum/hushsum/service/party"
)

// Who goes on does so in a folder of its own, in which that federation is pinned, and hears who is
// new.
func TestFollow(t *testing.T) {
	made := func(names string) *federation.Federation {
		var roster strings.Builder
		for _, name := range strings.Fields(names) {
			key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte(name), 32)).Public().(ed25519.PublicKey)
			fmt.Fprintf(&roster, "%s %x\n", name, []byte(key))
		}
		f, err := federation.New(federation.Files{Text: []byte(created),
			Roster: []byte(roster.String())})
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
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
