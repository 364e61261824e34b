package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/keyexchange/keyfile"
	"github.com/hushsum/hushsum/service/federation"
	"github.com/hushsum/hushsum/service/node"
	"github.com/hushsum/hushsum/service/page"
)

// A backup goes from a node to a file and to another node, by a token and by an operator's key;
// files that are of no use are refused before anything is sent.
func TestBackup(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	t.Setenv("HUSHSUM_TOKEN", "")
	code, key := says(t, "identity", "new", at("ann.pem"))
	if code != 0 {
		t.Fatal(key)
	}
	if err := os.WriteFile(at("operators"), []byte("operate ann "+strings.TrimSpace(key)+"\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	start := func(folder string) *node.Node {
		t.Helper()
		operators, err := page.OpenOperators(at("operators"), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := keyfile.SealKey(at("seal.key"), true); err != nil {
			t.Fatal(err)
		}
		n, err := node.Start(context.Background(), node.Options{Folder: at(folder),
			Listen: "127.0.0.1:0", Admin: "127.0.0.1:0", Operators: operators,
			KeyFile: at("seal.key")})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(n.Close)
		return n
	}
	first := start("first")
	made, err := first.Create(context.Background(), federation.Files{Text: []byte(`name = "kept"
rounds = 3
model.length = 4
parties.roster = "roster.txt"
privacy.clip = 1.0
sum.recovery = true
`), Roster: []byte("a " + strings.Repeat("11", 32) + "\nb " + strings.Repeat("22", 32) +
		"\nc " + strings.Repeat("33", 32) + "\n")})
	if err != nil {
		t.Fatal(err)
	}
	token := func(n *node.Node, which int) string {
		name := at("token")
		if err := os.WriteFile(name, []byte(n.NewTokens[which]), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	try := func(want int, has string, args ...string) {
		t.Helper()
		if code, text := says(t, args...); code != want || !strings.Contains(text, has) {
			t.Errorf("%v: %d, want %d and %q: %s", args[:2], code, want, has, text)
		}
	}
	try(2, "name the file", "backup")
	try(1, "token-file", "backup", at("one"), "--admin", first.Page)
	try(1, "403", "backup", at("one"), "--admin", first.Page, "--token-file", token(first, 0))
	if _, err := os.Stat(at("one")); err == nil {
		t.Error("a backup that was refused leaves a file")
	}
	try(0, "bytes", "backup", at("one"), "--admin", first.Page, "--token-file", token(first, 1))
	try(1, "no backup replaces another", "backup", at("one"), "--admin", first.Page, "--token-file",
		token(first, 1))
	try(2, "list, add or remove", "node", "show")
	try(2, "name the node", "node", "remove")
	try(0, "1 of 1 nodes are up, 1 decide: none of them may fail", "node", "list", "--admin",
		first.Page, "--token-file", token(first, 0))
	try(1, "403", "node", "remove", first.Name, "--admin", first.Page, "--token-file", token(first, 0))
	try(1, "just stop the node", "node", "remove", first.Name, "--admin", first.Page, "--identity",
		at("ann.pem"))
	try(2, "list or rewrite", "key")
	try(1, "403", "key", "rewrite", "--admin", first.Page, "--token-file", token(first, 0))
	try(0, "seals", "key", "list", "--admin", first.Page, "--token-file", token(first, 0))
	try(0, "seals", "key", "rewrite", "--admin", first.Page, "--identity", at("ann.pem"))
	try(0, "bytes", "backup", at("two"), "--admin", first.Page, "--identity", at("ann.pem"))
	info, err := os.Stat(at("two"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	try(1, "409", "restore", at("two"), "--admin", first.Page, "--token-file", token(first, 1))

	whole, err := os.ReadFile(at("two"))
	if err != nil {
		t.Fatal(err)
	}
	second := start("second")
	if err := os.WriteFile(at("cut"), whole[:len(whole)-9], 0o600); err != nil {
		t.Fatal(err)
	}
	try(1, "truncated", "restore", at("cut"), "--admin", second.Page, "--token-file",
		token(second, 1))
	try(1, "403", "restore", at("two"), "--admin", second.Page, "--token-file", token(second, 0))
	try(0, made.ID, "restore", at("two"), "--admin", second.Page, "--identity", at("ann.pem"))
	third := start("third")
	try(0, made.ID, "restore", at("one"), "--admin", third.Page, "--token-file", token(third, 1))
}
