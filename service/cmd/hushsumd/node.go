package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/hushsum/hushsum/service/page"
)

func nodeCommand(ctx context.Context, args []string, std streams) error {
	f := flags("node", "node list | node add NAME | node remove NAME [flags]", `
"list" shows which nodes a server has, how many of them make a quorum, and how many may fail. "add"
waits until a node that you start, as described under serve, has its copies of the record. "remove"
removes one for good, dead or alive: a running one hands over what it leads and stops. It refuses if
the others could decide nothing, or could not lose any of them, unless forced; it then reports what
that loses.

`+about, std)
	o, read := operatorFlags(f)
	force := f.Bool("force", false, "remove it even if the quorum suffers")
	limit := f.Duration("wait", 5*time.Minute, "for the copies of the record")
	words, err := parseAmong(f, args, 2)
	if err != nil {
		return err
	}
	named := len(words) == 2
	switch {
	case len(words) == 0 || !slices.Contains([]string{"list", "add", "remove"}, words[0]):
		return misuse("use list, add or remove")
	case named == (words[0] == "list"):
		return misuse("%s", map[bool]string{true: "list takes no name", false: "name the node"}[named])
	}
	if err := read(); err != nil {
		return err
	}
	before, err := o.nodes(ctx)
	if err != nil {
		return err
	}
	if words[0] == "list" {
		showNodes(std.out, before)
		return nil
	}
	fmt.Fprintf(std.out, "before  %s\n", before.Say())
	name := words[1]
	after := before
	if words[0] == "remove" {
		path := "/v1/nodes/" + url.PathEscape(name) + "/remove"
		if *force {
			path += "?force=true"
		}
		err = o.ask(ctx, http.MethodPost, path, nil,
			strconv.Quote(strconv.FormatUint(before.Revision, 10)), &after)
	} else if before.Members == 0 {
		err = errors.New("the record is on another NATS: just start the node")
	}
	if err != nil {
		return err
	}
	// It is over once all copies are whole, with or without the node.
	wanted := words[0] == "add"
	for began := time.Now(); after.Copying > 0 || wanted && !has(after, name); {
		if time.Since(began) > *limit {
			return fmt.Errorf("after %v: %s; ask again with hushsumd node list", *limit, after.Say())
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Second):
		}
		if now, err := o.nodes(ctx); err == nil { // which may have no leader for a moment
			after = now
		}
	}
	fmt.Fprintf(std.out, "after   %s\n", after.Say())
	return nil
}

func (o *operator) nodes(ctx context.Context) (*page.Nodes, error) {
	nodes := new(page.Nodes)
	return nodes, o.ask(ctx, http.MethodGet, "/v1/nodes", nil, "", nodes)
}

// has reports whether a node is a member, and here.
func has(nodes *page.Nodes, name string) bool {
	return slices.ContainsFunc(nodes.Nodes, func(n page.Node) bool {
		return n.Name == name && n.Member && n.Here
	})
}

func showNodes(w io.Writer, nodes *page.Nodes) {
	fmt.Fprintf(w, "%-20s %-10s %5s  %-16s  %-12s  %s\n", "node", "state", "leads", "seals under",
		"version", "door")
	for _, n := range nodes.Nodes {
		state := "here"
		if !n.Here {
			state = "away"
			if n.Seen != nil {
				state += " " + time.Since(*n.Seen).Round(time.Second).String()
			}
		}
		fmt.Fprintf(w, "%-20s %-10s %5d  %-16s  %-12s  %s\n", n.Name, state, n.Leads, n.Seals, n.Version,
			n.Door)
	}
	fmt.Fprintln(w, nodes.Say())
}
