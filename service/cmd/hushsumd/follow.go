package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"time"

	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/service/party"
)

// followPause is about how long a party waits between two questions for a federation to go on in.
const followPause = 10 * time.Second

// follow waits for a federation that goes on from p's and that its policy accepts at an operator's
// word, and makes p take part in it.
func (j *joining) follow(ctx context.Context, p *party.Party, std streams) error {
	fmt.Fprintln(std.out, "waiting for one that goes on from it")
	told := ""
	for {
		next, err := p.Successor(ctx)
		switch {
		case next != nil:
			difference(std.out, p.Federation.Settled.Roster(), next.Settled.Roster())
			show := *j
			show.folder, show.accept = filepath.Join(j.folder, next.ID[:16]), true
			p.Federation, p.Folder, p.LeastNumber, p.Spent = next, show.folder, 0, 0
			return show.agree(next, std)
		case errors.Is(err, party.ErrPolicy):
			if err.Error() != told { // the operator may declare another
				told = err.Error()
				fmt.Fprintln(std.out, "this party does not go on:", told)
			}
		case err != nil:
			p.Log.Warn("asking again for a federation that goes on", "error", err.Error())
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(followPause/2 + rand.N(followPause)):
		}
	}
}

// difference says how a roster has changed.
func difference(w io.Writer, was, is *keyexchange.Roster) {
	joined, left, renewed := party.Changes(was, is)
	for _, c := range []struct {
		what  string
		names []string
	}{{"joined", joined}, {"left", left}, {"with another key", renewed}} {
		if len(c.names) > 0 {
			fmt.Fprintf(w, "%s: %s\n", c.what, strings.Join(c.names, ", "))
		}
	}
}
