package main

import (
	"context"
	"fmt"
	"net/http"

	"github.com/hushsum/hushsum/service/page"
)

func keyCommand(ctx context.Context, args []string, std streams) error {
	f := flags("key", "key list|rewrite [flags]", `
The record is sealed under the keys in the file of serve --key, one a line: the first seals, all
open. A node rereads the file whenever it changes. "list" shows how much is sealed under each key.
"rewrite" has the node reread its file, reseals under the newest key what is sealed under others,
while rounds continue, and shows how much is left; if it fails, keep the lines of old keys. A node
keeps a key whose line is gone for as long as something is sealed under it.

`+about, std)
	o, read := operatorFlags(f)
	words, err := parseAmong(f, args, 1)
	if err != nil {
		return err
	}
	if len(words) != 1 || words[0] != "list" && words[0] != "rewrite" {
		return misuse("use list or rewrite")
	}
	if err := read(); err != nil {
		return err
	}
	method, path := http.MethodGet, "/v1/keys"
	if words[0] == "rewrite" {
		method, path = http.MethodPost, "/v1/keys/rewrite"
	}
	var keys []page.Key
	if err := o.ask(ctx, method, path, nil, "", &keys); err != nil {
		return err
	}
	left := 0
	for _, k := range keys {
		state := "opens"
		switch {
		case k.Seals:
			state = "seals"
		case k.Name == "":
			k.Name, state = "unknown", "damaged, or sealed under a key that no node has"
		case k.Missing:
			state = "missing on this node"
		}
		if !k.Seals {
			left += k.Objects
		}
		fmt.Fprintf(std.out, "%-16s  %6d objects  %s\n", k.Name, k.Objects, state)
	}
	if words[0] == "rewrite" && left > 0 {
		return fmt.Errorf("%d objects are left under other keys, whose lines must stay: make sure that "+
			"each federation has a leader and that every node seals under the new key, and run it again",
			left)
	}
	if words[0] == "rewrite" {
		fmt.Fprintln(std.out, "nothing is sealed under another key; earlier backups need theirs")
	}
	return nil
}
